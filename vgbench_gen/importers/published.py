"""Rows of the published SpatialScore JSON: as items of our schema, images left where they are, and as texts to audit.

Row fields (`haoningwu3639/SpatialScore`: `version_0/dataset/SpatialScore-Hard.json`): `index`, `category`,
`subcategory`, `question_type`, `input_modality`, `question`, `answer`, `img_paths`, `source`, `index_origin`,
`category_origin`. The question is asked word for word, options inside. Scenes are known only where the path of an image
names a scan, so questions that share their first image (or, of a video, the folder of its frames) count as one cluster.
Equal questions about the same images share a `group_id`.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import QUESTION_TYPES, Item, QuestionType
from vgbench_gen.importers._alike import find_repeats
from vgbench_gen.importers._files import RowError, find_inside, list_names, read_column, read_optional, read_text
from vgbench_gen.importers._reading import FAMILY, MAX_IMAGES, BadRow, make_item
from vgbench_gen.importers._words import find_options, plain_words
from vgbench_gen.importers.base import UNKNOWN, Modality, SourceRow
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.files import dataset_error

T = TypeVar("T")
MAX_BYTES = 256_000_000
MAX_ROWS = 1_000_000
_REMEDY = "Give a JSON list of rows with question, answer and question_type, as SpatialScore publishes it."
_MODALITIES: tuple[Modality, ...] = ("single-image", "multi-images", "video")
_SCAN = re.compile(r"(?:^|/)(scannet|scannetpp|arkitscenes)/([^/]+)", re.IGNORECASE)
_TYPES = {"multiple-choice": "multi-choice", "multichoice": "multi-choice", "judgement": "judgment"}


@dataclass(frozen=True, slots=True)
class PublishedItems:
    """The items of a published file."""

    items: tuple[Item, ...]
    """The rows that can be asked."""
    bad: tuple[BadRow, ...]
    """The rows that cannot."""
    repeated: tuple[tuple[str, ...], ...]
    """Groups of ids that ask the same with the same answer."""
    contradicting: tuple[tuple[str, ...], ...]
    """Groups of ids that ask the same with different answers."""

    def notes(self, name: str) -> list[str]:
        """What a reader must know of the file, one line each."""
        total = len(self.items) + len(self.bad)
        lines = [f"{name}: {total} rows, {len(self.items)} of them questions"]
        if self.bad:
            reasons = ", ".join(f"{reason} {n}" for reason, n in sorted(Counter(b.reason for b in self.bad).items()))
            shown = "; ".join(map(str, self.bad[:5]))
            lines.append(f"{name}: {len(self.bad)} rows cannot be asked ({reasons}), such as {shown}")
        if self.repeated:
            extra = sum(len(group) - 1 for group in self.repeated)
            shown = " = ".join(self.repeated[0])
            lines.append(
                f"{name}: {extra} questions repeat an earlier one, images and answer included, such as {shown}"
            )
        if self.contradicting:
            shown = "; ".join(" and ".join(group) for group in self.contradicting[:3])
            lines.append(f"{name}: {len(self.contradicting)} questions have contradicting answers: {shown}")
        return lines


def read_items(path: Path) -> PublishedItems:
    """All questions of a file.

    Raises:
        DatasetError: no such file, too large, no JSON list, or no row of it can be read.
    """
    items: list[Item] = []
    ids: Counter[str] = Counter()
    made, bad = _read_all(path, _make_item)
    for place, item in enumerate(made):
        ids[item.id] += 1
        name = item.id if ids[item.id] == 1 else f"{item.id}-{ids[item.id]}"
        items.append(replace(item, index=place, id=name))
    repeated, contradicting = find_repeats(items)
    return PublishedItems(tuple(items), tuple(bad), tuple(repeated), tuple(contradicting))


def read_rows(path: Path) -> list[Any]:
    """The rows of a file, whatever they are.

    Raises:
        DatasetError: no such file, too large, or no JSON list.
    """
    try:
        found = read_json(path, "none", MAX_BYTES)
    except FileNotFoundError:
        raise dataset_error(path, "no file", "questions of the published schema", _REMEDY) from None
    except (OSError, ValueError) as error:
        raise dataset_error(path, f"no JSON ({error})", "a JSON list of rows", _REMEDY) from error
    if not isinstance(found, list):
        raise dataset_error(path, f"a JSON {type(found).__name__}", "a JSON list of rows", _REMEDY)
    if len(found) > MAX_ROWS:
        raise dataset_error(path, f"{len(found)} rows", f"at most {MAX_ROWS}", "Split the file.")
    return found


def read_published(path: Path) -> tuple[list[Question], list[BadRow]]:
    """The texts of a file, as text-only audits read them, and the rows without one; images need not be named.

    Scenes are not known, so rows that share an image are kept together instead (`quality.questions.group_by_scene`).

    Raises:
        DatasetError: no such file, too large, no JSON list, or no row of it can be read.
    """
    questions: list[Question] = []
    ids: set[str] = set()
    made, bad = _read_all(path, _read_question)
    for question, number in made:
        name = f"{question.id}-row{number}" if question.id in ids else question.id
        ids.add(name)
        questions.append(replace(question, id=name, group=question.group or name))
    if not questions:
        first = str(bad[0]) if bad else "no row"
        raise dataset_error(path, f"{len(bad)} rows of which none can be read ({first})", "questions", _REMEDY)
    return questions, bad


def _read_all(path: Path, make: Callable[[Any, int], T]) -> tuple[list[T], list[BadRow]]:
    """What is made of the rows of a file and their numbers, and the rows of which nothing can be made."""
    made: list[T] = []
    bad: list[BadRow] = []
    for number, fields in enumerate(read_rows(path)):
        try:
            made.append(make(fields, number))
        except RowError as problem:
            bad.append(BadRow(f"row {number}", problem.field, problem.found, problem.reason))
    return made, bad


def _read_question(fields: Any, number: int) -> tuple[Question, int]:
    item = _make_item(fields, number, fewest_images=0)
    question = read_question(item)
    if question.form == "open-ended" and math.isnan(question.value):
        raise RowError("answer", f"{item.answer[:40]!r}, which is no number with or without a unit")
    source = _read_known(fields, "source")
    kinds = (_read_known(fields, key) for key in ("category_origin", "subcategory", "category"))
    index = fields.get("index", fields.get("id", number))
    question = replace(
        question,
        id=str(index)[:80] if isinstance(index, int | str) else str(number),
        scene="",
        source=source,
        group=_read_known(fields, "group_id"),
        pair=_read_known(fields, "pair_id"),
        task="/".join(part for part in (source, next(filter(None, kinds), "")) if part) or "all",
        question="\n".join(part for part in (item.question, item.context) if part),
        context="",
    )
    return question, number


def _make_item(fields: Any, number: int, fewest_images: int = 1) -> Item:
    if not isinstance(fields, Mapping):
        raise RowError("row", f"a {type(fields).__name__} where an object should be")
    form = _read_form(fields)
    asked = read_text(fields, "question")
    names = read_column(fields, "img_paths") if fewest_images else fields.get("img_paths", [])
    fits = isinstance(names, list) and fewest_images <= len(names) <= MAX_IMAGES
    if not fits or not all(isinstance(name, str) for name in names):
        raise RowError("img_paths", f"{str(names)[:80]!r}, which is no list of {fewest_images} to {MAX_IMAGES} names")
    images = tuple(map(_normalize_path, names))
    source = _read_word(fields, "source") or UNKNOWN
    modality = next((known for known in _MODALITIES if known == fields.get("input_modality")), None)
    index = read_optional(fields, "index_origin")
    number_here = read_optional(fields, "index", "id")
    scans, scene = _find_scene(images, modality)
    return make_item(
        SourceRow(
            index=index if isinstance(index, int | str) and not isinstance(index, bool) else -1,
            origin=_read_word(fields, "category_origin") or UNKNOWN,
            category=(_read_word(fields, "category"), _read_word(fields, "subcategory")),
            question_type=form,
            words=find_options(asked) if form == "multi-choice" else plain_words(asked),
            answer=read_text(fields, "answer"),
            images=(),
            modality=modality or "",
            key=str(number_here if isinstance(number_here, int | str) else number)[:80],
            scans=scans or source,
            scene=scene,
            group=hash_stably("published", " ".join(asked.split()), *images),
        ),
        name=FAMILY,
        benchmark=f"{FAMILY}/{source}",
        source=source,
        images=images,
        index=number,
    )


@lru_cache(maxsize=100_000)
def _normalize_path(name: str) -> str:
    """A path without "./"; kept, because thousands of questions name the same images."""
    name = name.replace("\\", "/")
    if ".." in name.split("/"):
        raise RowError("img_paths", f"{name[:80]!r}, which leaves the folder of images")
    return posixpath.normpath(name)


def _read_form(fields: Mapping[str, Any]) -> QuestionType:
    said = read_text(fields, "question_type").strip().replace("_", "-").casefold()
    said = _TYPES.get(said, said)
    known = next((name for name in QUESTION_TYPES if name == said), None)
    if known is None:
        raise RowError("question_type", f"{said[:40]!r}, which is none of {', '.join(QUESTION_TYPES)}")
    return known


def _read_word(fields: Mapping[str, Any], name: str) -> str:
    found = fields.get(name)
    return found.strip()[:80] if isinstance(found, str) else ""


def _read_known(fields: Mapping[str, Any], name: str) -> str:
    found = _read_word(fields, name)
    return "" if found.casefold() in ("", "none", UNKNOWN) else found


def _find_scene(images: Sequence[str], modality: str | None) -> tuple[str, str]:
    if not images:
        return "", UNKNOWN
    scan = _SCAN.search(images[0])
    if modality == "video":
        return (scan[1].casefold(), scan[2]) if scan else ("", str(PurePosixPath(images[0]).parent))
    return "", images[0].rpartition(".")[0] or images[0]


def list_image_files(folders: Sequence[Path], name: str) -> Iterator[Path]:
    """Where the image of this name may lie: below each folder, with and without the `dataset/` that it begins with."""
    for folder in folders:
        names = list(list_names(folder, name))
        for each in dict.fromkeys((*names, names[0].removeprefix("dataset/"))):
            try:
                yield find_inside(folder, each)
            except RowError as error:
                raise dataset_error(folder, str(error), "names of images in it", "Copy the images there.") from error
