"""Exports: a dataset written as files from which another program asks and scores it.

A target is a plug-in in `exports/`. It gets a `Job`, which yields every question exactly as `vgbench eval` asks it,
after writing its images to the folder. An export folder appears complete or not at all.
"""

from __future__ import annotations

import abc
import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.stand_ins import config_error
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Keeps, NamesImages, Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked, make_asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.scoring import SCORER_VERSION, make_case
from vgbench_gen.publish.scorer import copy_scorer
from vgbench_gen.rewards.solution import write_solution
from vgbench_gen.store.files import dataset_error, fill_folder, sync_all_to_disk
from vgbench_gen.store.media import NAME
from vgbench_gen.store.pictures import find_image_kind, read_image_size
from vgbench_gen.text.render import find_templates_root
from vgbench_gen.training.families import Size, find_family, has_points, rewrite_points, rewrite_text
from vgbench_gen.training.options import AS_BUILT, TrainOptions
from vgbench_gen.training.rationales import make_rationale

SCHEMA = 1
MANIFEST = "export.json"  # marks a folder as an export, which the next export may replace
IMAGES = "images"
_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One question of an export."""

    item: Item
    """The row as built."""
    asked: Asked
    """The question as `vgbench eval` asks it."""
    images: tuple[str, ...]
    """Paths in the export, in the order shown."""
    reply: str = ""
    """The assistant's turn of a training row: the rationale, if wanted, and the answer as the prompt asks for it."""

    @property
    def solution(self) -> str:
        """What `vgbench_gen.rewards` takes besides a reply, as JSON text: Arrow gives nested data all rows' keys."""
        return write_solution(self.asked.item)

    def parts(self) -> list[dict[str, str]]:
        """The prompt in order: `{"type": "text", "text"}` and `{"type": "image", "path"}`."""
        found: list[dict[str, str]] = []
        for shown, path in zip(self.asked.images, self.images, strict=True):
            if shown.tag:
                found.append({"type": "text", "text": shown.tag})
            found.append({"type": "image", "path": path})
        return [*found, {"type": "text", "text": self.asked.text}]

    def case(self) -> dict[str, Any]:
        """The arguments of `evaluation.scoring.Case`, from which a reply is scored."""
        return asdict(make_case(self.asked.item))

    def record(self) -> dict[str, Any]:
        """The columns that identify the question in a log, and those that scores are grouped by.

        `request_digest` covers the question alone, not the settings of the other program.
        """
        item = self.asked.item
        return {
            "id": item.id,
            "request_digest": self.asked.question,
            "prompt_set": self.asked.key.prompt_set,
            "benchmark": item.benchmark,
            "task": item.task,
            "category": item.category,
            "question_type": item.question_type,
            "answer": item.answer,
            "scene": f"{item.source}/{item.scene_id}",
            "split": item.split,
        }


@dataclass
class Job:
    """One export in progress: arguments of `export`, and methods that write its files."""

    source: Source
    options: AskOptions
    folder: Path
    """Temporary folder, which is moved to its final place when the target has filled it."""
    answers: bool = False
    progress: Callable[[int, int], None] = lambda done, total: None
    oracle: bool = False
    train: TrainOptions = AS_BUILT

    def __post_init__(self) -> None:
        self.settings = self.options.settings("")
        self._questions = Questions(self.source, self.options)
        self.total = self._questions.total  # a target may set the number of rows that it wrote
        self.left_out: Counter[str] = Counter()  # why rows are not in the export -> how many
        self.unexplained: Counter[str] = Counter()  # why rows have no rationale -> how many
        self._laid: dict[str, str] = {}
        self._sizes: dict[str, Size] = {}
        self._benchmarks: set[str] = set()
        self._family = find_family(self.train.family, self.train.max_pixels) if self.train.family else None

    @property
    def images(self) -> int:
        """Number of images written so far."""
        return len(set(self._laid.values()))

    @property
    def name(self) -> str:
        """Name of the task in other programs: the dataset folder's name in letters, digits and `_`."""
        folder = self.source.folder.resolve().name.removesuffix(".vgbench")
        plain = re.sub(r"\W+", "_", folder, flags=re.ASCII).strip("_").lower()
        return plain if plain.startswith("vgbench") else f"vgbench_{plain}" if plain else "vgbench"

    def check_images(self) -> None:
        """Raise DatasetError if an image is missing, before any is copied."""
        missing = self.source.missing_images(self._questions.rows) if isinstance(self.source, NamesImages) else ()
        if missing:
            found = f"{len(missing)} images missing ({', '.join(missing[:3])})"
            raise dataset_error(self.source.folder, found, "all of them", "Name their folder with --images.")

    def rows(self, refuse: Callable[[Asked], str] = lambda asked: "") -> Iterator[ExportRow]:
        """Yield every question in the order of the dataset, after its images are written to the folder.

        refuse: says why a question is left out; "" where it is not.
        """
        total = self.total
        for done, (item, built) in enumerate(self._questions.walk(self.settings), start=1):
            self.progress(done, total)
            if problem := refuse(built):
                self._leave_out(problem)
                continue
            images = tuple(self.lay(shown.item, shown.k) for shown in built.images)
            self._benchmarks.add(item.benchmark)
            try:
                asked, rationale = self._prepare(item, built)
            except ConfigError as error:
                self._leave_out(make_one_line(str(error).replace(item.id, "…")))
            else:
                yield ExportRow(item, asked, images, write_reply(asked, rationale))

    def _leave_out(self, reason: str) -> None:
        """Count a row that is not written."""
        self.left_out[reason] += 1
        self.total -= 1

    def _prepare(self, item: Item, asked: Asked) -> tuple[Asked, str]:
        """(question, rationale or "" where there is none) with the points of its images as the family counts them.

        Raises:
            ConfigError: the row's text does not allow it.
        """
        text, sizes = "", list[Size]()
        if self._family is not None and has_points(item):
            sizes = [self.find_size(item, k) for k in range(len(item.images))]
            rewritten = rewrite_points(item, sizes, self._family)
            asked = asked if rewritten is item else make_asked(rewritten, self.settings, self.options)
        if self.train.rationale != "none":
            text, problem = make_rationale(item, self.train.rationale)
            if problem:
                self.unexplained[make_one_line(problem.replace(item.id, "…"))] += 1
        return asked, rewrite_text(text, item, sizes, self._family) if self._family and sizes else text

    def find_size(self, item: Item, k: int) -> Size:
        """(width, height) of an image of a question, pixels."""
        path = self.lay(item, k)
        if path not in self._sizes:
            with (self.folder / path).open("rb") as file:
                self._sizes[path] = read_image_size(file.read(), path)
        return self._sizes[path]

    def items(self) -> dict[str, Item]:
        """The questions by their ids; writes no images."""
        return {item.id: item for item, _ in self._questions.walk(self.settings)}

    def text(self, name: str, words: str) -> None:
        """Write a text file."""
        (self.folder / name).write_text(words, encoding="utf-8")

    def json_lines(self, name: str, records: Iterable[Mapping[str, Any]]) -> int:
        """Write one JSON object per line; returns the number of lines."""
        count = 0
        with (self.folder / name).open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
                count += 1
        return count

    def template(self, file: str, target: str, **slots: str) -> None:
        """Write a file of `templates/exports/` with its slots filled."""
        words = (find_templates_root() / "exports" / file).read_text("utf-8")
        slots |= {"name": self.name, "questions": str(self.total), "prompts": self.options.prompt_set}
        slots |= {"written": self._describe_writing()}
        self.text(target, _SLOT.sub(lambda match: slots[match.group(1)], words))

    def _describe_writing(self) -> str:
        """How training rows are written, a sentence on each line."""
        family, rationale = self.train.family, self.train.rationale
        points = f"are written for {family}: train only models of that family on them" if family else ""
        lines = [
            f"Points of images {points or 'are in pixels of the image files: for a model, export with `--family`'}."
        ]
        if rationale != "none":
            lines.append(f"A {rationale} rationale comes before each answer.")
        if self.settings.system:
            lines.append("Rows begin with a system prompt, with which the model is to be asked as well.")
        return "\n".join(lines)

    def scorer(self) -> None:
        """Write the package `vgbench_scorer`, which scores replies without this package.

        Call it after all `rows`, because it contains the rules of their benchmarks.
        """
        copy_scorer(self.folder, self._benchmarks)

    def lay(self, item: Item, k: int) -> str:
        """Write an image of a question once; returns its path in the export."""
        name = item.images[k]
        if NAME.fullmatch(name) and name in self._laid:
            return self._laid[name]
        data = self.source.image(item, k)
        if not NAME.fullmatch(name):
            # Names in other benchmarks may repeat between rows or lead out of the folder.
            data = data if isinstance(data, bytes) else data.read_bytes()
            name = f"{digest_bytes(data)}.{find_image_kind(data) or 'bin'}"
        return self.lay_file(name, data)

    def lay_file(self, name: str, data: bytes | Path) -> str:
        """Write an image once under a name that is its digest; returns its path in the export."""
        place = f"{IMAGES}/{name[:2]}/{name}"
        if name not in self._laid:
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, bytes):
                (self.folder / place).write_bytes(data)
            else:
                shutil.copyfile(data, self.folder / place)
            self._laid[name] = place
        return place


def write_reply(asked: Asked, rationale: str = "") -> str:
    """The right answer in the form that the prompt asks for, after the rationale, where there is one, and a blank
    line."""
    reply = answer = asked.item.answer
    if "\\distance_unit{" in asked.text and asked.item.question_type == "open-ended":
        number, _, unit = answer.partition(" ")
        reply = rf"\scalar{{{number}}} \distance_unit{{{unit}}}"
    elif "\nAnswer: " in asked.text:
        reply = f"Answer: {answer}"
    return f"{rationale}\n\n{reply}" if rationale else reply


class Export(abc.ABC):
    """A target of exports: a plug-in without state."""

    takes_answers: bool = False
    """Whether it can write the right answers as replies."""
    trains: bool = False
    """Whether its rows always have the right answers, because a trainer reads them."""
    takes_oracle: bool = False
    """Whether it can write traces of agents with oracle tools."""
    refuses: tuple[str, ...] = ()
    """Options of training with which its trainer would not get what they promise."""

    @abc.abstractmethod
    def write(self, job: Job) -> str:
        """Fill `job.folder`; returns the command to run there, for the terminal.

        Raises:
            ConfigError: a package is not installed, or the rows cannot be written in this format.
            DatasetError: replies or traces are missing.
        """


exports: Registry[Export] = Registry("export", "vgbench_gen.publish.exports")


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export."""

    to: str
    """The target's name."""
    path: Path
    questions: int
    images: int
    run: str
    """The command to run in the folder."""
    left_out: Mapping[str, int]
    """Why questions are not in the export -> how many."""
    unexplained: Mapping[str, int]
    """Why questions have no rationale, where one is wanted -> how many."""


def export(
    source: Source,
    to: str,
    out: Path,
    options: AskOptions,
    *,
    answers: bool = False,
    oracle: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    train: TrainOptions = AS_BUILT,
) -> Exported:
    """Write a dataset for another program.

    Args:
        source: the questions.
        to: name of a target.
        out: folder; an older export in it is replaced.
        options: selects questions and prompts; controls and rotated options are not exported.
        answers: whether to add the right answers as replies, for training.
        oracle: whether to include traces of agents with oracle tools.
        progress: called with (questions done, questions in all).
        train: how rows of a training file are written.

    Raises:
        UnknownNameError: no such target.
        ConfigError: the target does not support an option.
        DatasetError: `out` holds other files, or the dataset cannot be read.
    """
    target = exports[to]
    _check(source, to, out, options, answers, oracle, train)
    with fill_folder(out) as folder:
        job = Job(source, options, folder, answers or target.trains, progress, oracle, train)
        job.check_images()
        run = target.write(job)
        job.text(MANIFEST, json.dumps(_describe(job, to), indent=2) + "\n")
        sync_all_to_disk(sorted(path for path in folder.rglob("*") if path.is_file()))
    return Exported(to, out, job.total, job.images, run, job.left_out, job.unexplained)


def _check(
    source: Source, to: str, out: Path, options: AskOptions, answers: bool, oracle: bool, train: TrainOptions
) -> None:
    """Refuse options that the target does not support, and a folder with other files. Raises as `export`."""
    target = exports[to]
    for flag, wanted, taken in (
        ("answers", answers and not target.trains, "takes_answers"),
        ("oracle", oracle, "takes_oracle"),
    ):
        if wanted and not getattr(target, taken):
            fit = ", ".join(name for name in exports if getattr(exports[name], taken))
            raise config_error(f"--{flag}", f"it with --to {to}", f"one of {fit}", "Leave it out.")
    for option in ("rationale", "family", "max_pixels"):
        flag, wanted = f"--{option.replace('_', '-')}", getattr(train, option) != getattr(AS_BUILT, option)
        if wanted and not (answers or target.trains):
            found = "it where no answers are written"
            raise config_error(flag, found, "--answers, or a target for training", "Add --answers.")
        if wanted and option in target.refuses:
            fit = ", ".join(name for name in exports if exports[name].trains and option not in exports[name].refuses)
            raise config_error(flag, f"it with --to {to}", f"one of {fit}", "Leave it out.")
    if train.max_pixels and not train.family:
        raise config_error("--max-pixels", "it without --family", "the family whose limit it is", "Name the family.")
    if options.circular or options.epochs > 1 or options.wrong_images or options.shots or options.long_side_px:
        found = "repeats, rotations, examples, wrong images or resizing"
        raise config_error("export", found, "each question once", "Leave these options out.")
    if isinstance(source, Keeps):
        found = f"{source.benchmark}, whose replies are images"
        raise config_error("export", found, "answers in words", "Export another benchmark.")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / MANIFEST).is_file())):
        raise dataset_error(out, "files that no export wrote", "a new folder or an older export", "Give another --out.")


def _describe(job: Job, to: str) -> dict[str, Any]:
    """The manifest of an export."""
    return {
        "schema": SCHEMA,
        "to": to,
        "benchmark": job.source.benchmark,
        "dataset": job.source.fingerprint,
        "questions": job.total,
        "images": job.images,
        "left_out": dict(job.left_out),
        "without_rationale": dict(job.unexplained),
        "train": job.train.model_dump(),
        "prompt_set": job.options.prompt_set,
        "settings": job.settings.model_dump(mode="json"),
        "scorer_version": SCORER_VERSION,
        "code": __version__,
    }
