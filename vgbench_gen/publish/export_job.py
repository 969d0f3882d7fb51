"""What a target of an export is given: every question as `vgbench eval` would ask it, and a folder to fill.

The images of a question lie in the folder when the question comes.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import NamesImages, Source
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.questions import Questions
from vgbench_gen.evaluation.scoring import make_case
from vgbench_gen.publish.scorer import copy_scorer
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.media import NAME
from vgbench_gen.store.pictures import find_image_kind
from vgbench_gen.text.render import find_templates_root

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


class Job:
    """One export under way.

    Args:
        source: where questions come from.
        options: which, and how they are asked.
        folder: to fill; takes its final place when the target is done.
        answers: whether the right answers are wanted as replies.
        progress: called with (questions done, in all).
        oracle: whether traces of agents with oracle tools are wanted.
    """

    def __init__(
        self,
        source: Source,
        options: AskOptions,
        folder: Path,
        answers: bool = False,
        progress: Callable[[int, int], None] = lambda done, total: None,
        oracle: bool = False,
    ) -> None:
        self.source, self.options, self.folder, self.answers = source, options, folder, answers
        self.oracle = oracle
        self._rows: int | None = None
        self.settings = options.settings("")
        self._questions = Questions(source, options)
        self._progress = progress
        self._laid: dict[str, str] = {}
        self._benchmarks: set[str] = set()  # of the rows so far

    @property
    def total(self) -> int:
        """Questions in all, or the rows that a target made of them."""
        return self._questions.total if self._rows is None else self._rows

    def narrow(self, rows: int) -> None:
        """Say how many rows were written, where they are not the questions."""
        self._rows = rows

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
            self._progress(done, self.total)

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

    def lay_file(self, path: Path) -> str:
        """Lay down an image that is no question's; its name is its digest. Returns its path in the export."""
        place = f"{IMAGES}/{path.name[:2]}/{path.name}"
        if path.name not in self._laid:
            target = self.folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
            self._laid[path.name] = place
        return place

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
        place = f"{IMAGES}/{name[:2]}/{name}"
        if name not in self._laid:
            target = self.folder / place
            target.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(data, bytes):
                target.write_bytes(data)
            else:
                shutil.copyfile(data, target)
            self._laid[name] = place
        return place
