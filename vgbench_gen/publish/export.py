"""A dataset as the files that another program asks and scores it from.

A target is a plug-in in `exports/`. It gets a `Job`, which yields every question exactly as `vgbench eval` would ask it
and lays its images down in the folder before the question comes; what the target makes of them is its own. A folder
appears whole or not at all.
"""

from __future__ import annotations

import abc
import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vgbench_gen import __version__
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.registry import Registry
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import Keeps, NamesImages, Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.scoring import SCORER_VERSION, make_case
from vgbench_gen.publish.scorer import copy_scorer
from vgbench_gen.store.files import dataset_error, fill_folder, sync_all_to_disk
from vgbench_gen.store.media import NAME
from vgbench_gen.store.pictures import find_image_kind
from vgbench_gen.text.render import find_templates_root

SCHEMA = 1
MANIFEST = "export.json"  # says that a folder is an export, which may be replaced by the next one
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
    """The paths of its images in the export, in the order in which they are shown."""

    def parts(self) -> list[dict[str, str]]:
        """What the model reads, in order: `{"type": "text", "text"}` and `{"type": "image", "path"}`."""
        found: list[dict[str, str]] = []
        for shown, path in zip(self.asked.images, self.images, strict=True):
            if shown.tag:
                found.append({"type": "text", "text": shown.tag})
            found.append({"type": "image", "path": path})
        return [*found, {"type": "text", "text": self.asked.text}]

    def case(self) -> dict[str, Any]:
        """What scoring needs to know: the arguments of `evaluation.scoring.Case`."""
        return asdict(make_case(self.asked.item))

    def record(self) -> dict[str, Any]:
        """What a log must carry so that a reply finds its question again, and what one groups by.

        request_digest: of the question alone; how another program asks it is that program's.
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
        }


@dataclass
class Job:
    """One export under way."""

    source: Source
    """Where questions come from."""
    options: AskOptions
    """Which questions, and how they are asked."""
    folder: Path
    """To fill; takes its final place when the target is done."""
    answers: bool = False
    """Whether the right answers are wanted as replies."""
    progress: Callable[[int, int], None] = lambda done, total: None
    """Called with (questions done, in all)."""
    oracle: bool = False
    """Whether traces of agents with oracle tools are wanted."""

    def __post_init__(self) -> None:
        self.settings = self.options.settings("")
        self._questions = Questions(self.source, self.options)
        self.total = self._questions.total  # or the rows that a target made of them
        self._laid: dict[str, str] = {}
        self._benchmarks: set[str] = set()  # of the rows so far

    @property
    def images(self) -> int:
        """Images laid down so far."""
        return len(set(self._laid.values()))

    @property
    def name(self) -> str:
        """A name for the task in other programs: of the dataset's folder, in letters, digits and `_`."""
        folder = self.source.folder.resolve().name.removesuffix(".vgbench")
        plain = re.sub(r"\W+", "_", folder, flags=re.ASCII).strip("_").lower()
        return plain if plain.startswith("vgbench") else f"vgbench_{plain}" if plain else "vgbench"

    def check_images(self) -> None:
        """Look for all images before any is copied.

        Raises:
            DatasetError: some are missing.
        """
        missing = self.source.missing_images(self._questions.rows) if isinstance(self.source, NamesImages) else ()
        if missing:
            found = f"{len(missing)} images missing ({', '.join(missing[:3])})"
            raise dataset_error(self.source.folder, found, "all of them", "Name their folder with --images.")

    def rows(self) -> Iterator[ExportRow]:
        """Every question in the order of the dataset; its images are in the folder when it comes."""
        for done, (item, asked) in enumerate(self._questions.walk(self.settings), start=1):
            images = tuple(self.lay(shown.item, shown.k) for shown in asked.images)
            self._benchmarks.add(item.benchmark)
            yield ExportRow(item, asked, images)
            self.progress(done, self.total)

    def items(self) -> dict[str, Item]:
        """The questions by their ids; no image is laid down."""
        return {item.id: item for item, _ in self._questions.walk(self.settings)}

    def text(self, name: str, words: str) -> None:
        """Write one file."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(words, encoding="utf-8")

    def json_lines(self, name: str, records: Iterable[Mapping[str, Any]]) -> int:
        """Write one JSON object per line; returns how many."""
        count = 0
        with (self.folder / name).open("w", encoding="utf-8") as file:
            for record in records:
                file.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n")
                count += 1
        return count

    def template(self, file: str, target: str, **slots: str) -> None:
        """Write a file of `templates/exports/`; in Markdown `name`, `questions`, `prompts` and the slots are filled."""
        words = (find_templates_root() / "exports" / file).read_text("utf-8")
        if target.endswith(".md"):
            slots |= {"name": self.name, "questions": str(self.total), "prompts": self.options.prompt_set}
            words = _SLOT.sub(lambda match: slots[match.group(1)], words)
        self.text(target, words)

    def scorer(self) -> None:
        """Lay down the package `vgbench_scorer`: our scoring as it is now, for a Python that lacks ours.

        To be called when all rows have come, for it holds the rules of their benchmarks.
        """
        copy_scorer(self.folder, self._benchmarks)

    def lay(self, item: Item, k: int) -> str:
        """Lay down an image of a question, once. Returns its path in the export."""
        name = item.images[k]
        if NAME.fullmatch(name) and name in self._laid:
            return self._laid[name]
        data = self.source.image(item, k)
        if not NAME.fullmatch(name):
            # Names of other benchmarks may repeat between rows or climb out of the folder.
            data = data if isinstance(data, bytes) else data.read_bytes()
            name = f"{digest_bytes(data)}.{find_image_kind(data) or 'bin'}"
        return self.lay_file(name, data)

    def lay_file(self, name: str, data: bytes | Path) -> str:
        """Lay down an image under a name that is its digest, once. Returns its path in the export."""
        place = f"{IMAGES}/{name[:2]}/{name}"
        if name not in self._laid:
            (self.folder / place).parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, bytes):
                (self.folder / place).write_bytes(data)
            else:
                shutil.copyfile(data, self.folder / place)
            self._laid[name] = place
        return place


class Export(abc.ABC):
    """A target of exports: a plug-in without state."""

    takes_answers: bool = False
    """Whether `Job.answers` means something to it."""
    takes_oracle: bool = False
    """Whether `Job.oracle` means something to it."""

    @abc.abstractmethod
    def write(self, job: Job) -> str:
        """Fill `job.folder`; returns what to run there, for the terminal.

        Raises:
            ConfigError: a package that it needs is not installed, or the rows cannot be written in its form.
            DatasetError: replies or traces that it needs are not there.
        """


exports: Registry[Export] = Registry("export", "vgbench_gen.publish.exports")


@dataclass(frozen=True, slots=True)
class Exported:
    """What an export wrote."""

    to: str
    """The target's name."""
    path: Path
    questions: int
    images: int
    run: str
    """What to run with it."""


def export(
    source: Source,
    to: str,
    out: Path,
    options: AskOptions,
    *,
    answers: bool = False,
    oracle: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write a dataset for another program.

    Args:
        source: the questions.
        to: name of a target.
        out: folder; one that an export made before is replaced.
        options: which questions, and the words they are asked in; controls and orders of options are not exported.
        answers: the right answers as replies, for training, where the target takes them.
        oracle: with traces of agents with oracle tools, where the target takes traces.
        progress: called with (questions done, in all).

    Raises:
        UnknownNameError: no such target.
        ConfigError: options that the target cannot keep.
        DatasetError: `out` holds something that is no export, or the dataset cannot be read.
    """
    target = exports[to]
    _check(source, to, out, options, answers, oracle)
    with fill_folder(out) as folder:
        job = Job(source, options, folder, answers, progress, oracle)
        job.check_images()
        run = target.write(job)
        job.text(MANIFEST, json.dumps(_describe(job, to), indent=2) + "\n")
        sync_all_to_disk(sorted(path for path in folder.rglob("*") if path.is_file()))
    return Exported(to, out, job.total, job.images, run)


def _check(source: Source, to: str, out: Path, options: AskOptions, answers: bool, oracle: bool) -> None:
    """Refuse what a target cannot keep, and a folder that holds something else. Raises as `export`."""
    for flag, wanted, taken in (("answers", answers, "takes_answers"), ("oracle", oracle, "takes_oracle")):
        if wanted and not getattr(exports[to], taken):
            fit = ", ".join(name for name in exports if getattr(exports[name], taken))
            raise ConfigError(f"--{flag}: found it with --to {to}; expected one of {fit}. Leave it out.")
    if options.circular or options.epochs > 1 or options.wrong_images or options.shots or options.long_side_px:
        raise ConfigError(
            "export: found repeats, rotations, examples, wrong images or resizing; expected each question once."
        )
    if isinstance(source, Keeps):
        raise ConfigError(f"export: found {source.benchmark}, whose replies are images; expected answers in words.")
    if out.exists() and not (out.is_dir() and (not any(out.iterdir()) or (out / MANIFEST).is_file())):
        raise dataset_error(out, "files that no export wrote", "a new folder or an older export", "Give another --out.")


def _describe(job: Job, to: str) -> dict[str, Any]:
    """The manifest of a finished export."""
    return {
        "schema": SCHEMA,
        "to": to,
        "benchmark": job.source.benchmark,
        "dataset": job.source.fingerprint,
        "questions": job.total,
        "images": job.images,
        "prompt_set": job.options.prompt_set,
        "settings": job.settings.model_dump(mode="json"),
        "scorer_version": SCORER_VERSION,
        "code": __version__,
    }
