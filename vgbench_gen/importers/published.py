"""Reads the published SpatialScore JSON, as items whose images stay in place, or as questions for text-only audits.

Row fields (`haoningwu3639/SpatialScore`: `version_0/dataset/SpatialScore-Hard.json`): `index`, `category`,
`subcategory`, `question_type`, `input_modality`, `question`, `answer`, `img_paths`, `source`, `index_origin`,
`category_origin`. The question is asked verbatim, with its options. The scene is known only if the path of an image
names a scan; otherwise questions with the same first image (or, of a video, the same folder of frames) form a cluster.
Equal questions about the same images share a `group_id`.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field

from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Item, QuestionType
from vgbench_gen.importers._files import RawRow, RowError, Text, find_inside, list_names
from vgbench_gen.importers._reading import FAMILY, MAX_IMAGES, make_item, name_once
from vgbench_gen.importers._report import find_repeats
from vgbench_gen.importers._words import find_options, plain_words
from vgbench_gen.importers.base import UNKNOWN, Modality, SourceRow
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.files import dataset_error

T = TypeVar("T")
MAX_BYTES = 256_000_000
MAX_ROWS = 1_000_000
_REMEDY = "Give a JSON list of rows with question, answer and question_type, as SpatialScore publishes it."
_SCAN = re.compile(r"(?:^|/)(scannet|scannetpp|arkitscenes)/([^/]+)", re.IGNORECASE)
_TYPES = {"multiple-choice": "multi-choice", "multichoice": "multi-choice", "judgement": "judgment"}


@lru_cache(maxsize=100_000)
def _normalize_path(name: str) -> str:
    """A path without "./"; cached, because thousands of questions name the same images."""
    name = name.replace("\\", "/")
    if ".." in name.split("/"):
        raise RowError("img_paths", f"{name[:80]!r}, which leaves the folder of images")
    return posixpath.normpath(name)


def _normalize_type(cell: Any) -> Any:
    if isinstance(cell, str):
        cell = cell.strip().replace("_", "-").casefold()
        cell = _TYPES.get(cell, cell)
    return cell


_Word = Annotated[str, BeforeValidator(lambda cell: cell.strip()[:80] if isinstance(cell, str) else "")]
_Modality = Annotated[Modality | Literal[""], BeforeValidator(lambda cell: cell if cell in get_args(Modality) else "")]
_Number = Annotated[int | str | None, BeforeValidator(lambda cell: cell if type(cell) in (int, str) else None)]


class _Row(RawRow):
    index: _Number = Field(None, validation_alias=AliasChoices("index", "id"))
    category: _Word = ""
    subcategory: _Word = ""
    question_type: Annotated[QuestionType, BeforeValidator(_normalize_type)]
    input_modality: _Modality = ""
    question: Text
    answer: Text
    img_paths: list[Annotated[str, AfterValidator(_normalize_path)]] = Field([], max_length=MAX_IMAGES)
    source: _Word = ""
    index_origin: _Number = None
    category_origin: _Word = ""
    group_id: _Word = ""
    pair_id: _Word = ""


def read_items(path: Path) -> tuple[tuple[Item, ...], list[str]]:
    """(all questions of a file, notes on broken, repeated and contradicting rows).

    Raises:
        DatasetError: no such file, a file that is too large or no JSON list, or no row can be asked.
    """
    ids: Counter[str] = Counter()
    made, bad = _read_all(path, _make_asked_item)
    if not made:
        found = f"no question that can be asked ({bad[0] if bad else 'no row'})"
        raise dataset_error(path, found, "rows as SpatialScore publishes them", "Name its JSON file.")
    items = [name_once(replace(item, index=index), ids) for index, item in enumerate(made)]
    notes = [f"{len(items) + len(bad)} rows, {len(items)} of them questions"]
    if bad:
        counts = Counter(row.reason for row in bad)
        reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(counts.items()))
        notes.append(f"{len(bad)} rows cannot be asked ({reasons}), such as {'; '.join(map(str, bad[:5]))}")
    repeated, contradicting = find_repeats(items)
    if repeated:
        extra = sum(len(group) - 1 for group in repeated)
        shown = " = ".join(repeated[0])
        notes.append(f"{extra} questions repeat an earlier one, images and answer included, such as {shown}")
    if contradicting:
        shown = "; ".join(" and ".join(group) for group in contradicting[:3])
        notes.append(f"{len(contradicting)} questions have contradicting answers: {shown}")
    return tuple(items), [f"{path.name}: {note}" for note in notes]


def _read_rows(path: Path) -> list[Any]:
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


def read_published(path: Path) -> tuple[list[Question], list[RowError]]:
    """(questions of a file for text-only audits, rows that cannot be read); rows need no images.

    Scenes are unknown, so rows are grouped by shared images instead (`quality.questions.group_by_scene`).

    Raises:
        DatasetError: no such file, a file that is too large or no JSON list, or no row can be read.
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


def _read_all(path: Path, make: Callable[[_Row, int], T]) -> tuple[list[T], list[RowError]]:
    """(results of `make` on the rows and row numbers of a file, rows on which it raised RowError)."""
    made: list[T] = []
    bad: list[RowError] = []
    for number, fields in enumerate(_read_rows(path)):
        try:
            made.append(make(_Row.read(fields), number))
        except RowError as problem:
            bad.append(problem.at(f"row {number}"))
    return made, bad


def _read_question(row: _Row, number: int) -> tuple[Question, int]:
    item = _make_item(row, number)
    question = read_question(item)
    if question.form == "open-ended" and math.isnan(question.value):
        raise RowError("answer", f"{item.answer[:40]!r}, which is no number with or without a unit")
    source, *kinds, group, pair = (
        "" if name.casefold() in ("none", UNKNOWN) else name
        for name in (row.source, row.category_origin, row.subcategory, row.category, row.group_id, row.pair_id)
    )
    question = replace(
        question,
        id=str(number if row.index is None else row.index)[:80],
        scene="",
        source=source,
        group=group,
        pair=pair,
        task="/".join(part for part in (source, next(filter(None, kinds), "")) if part) or "all",
        question="\n".join(part for part in (item.question, item.context) if part),
        context="",
    )
    return question, number


def _make_asked_item(row: _Row, number: int) -> Item:
    if not row.img_paths:
        raise RowError("img_paths", "no image")
    return _make_item(row, number)


def _make_item(row: _Row, number: int) -> Item:
    images, modality = tuple(row.img_paths), row.input_modality
    source = row.source or UNKNOWN
    scans, scene = _find_scene(images, modality)
    return make_item(
        SourceRow(
            index=-1 if row.index_origin is None else row.index_origin,
            question_type=row.question_type,
            words=find_options(row.question) if row.question_type == "multi-choice" else plain_words(row.question),
            answer=row.answer,
            images=(),
            origin=row.category_origin or UNKNOWN,
            category=(row.category, row.subcategory),
            modality=modality,
            key=str(number if row.index is None else row.index)[:80],
            scans=scans or source,
            scene=scene,
            group=hash_stably("published", " ".join(row.question.split()), *images),
        ),
        name=FAMILY,
        benchmark=f"{FAMILY}/{source}",
        source=source,
        images=images,
        index=number,
    )


def _find_scene(images: Sequence[str], modality: str) -> tuple[str, str]:
    if not images:
        return "", UNKNOWN
    scan = _SCAN.search(images[0])
    if modality == "video":
        return (scan[1].casefold(), scan[2]) if scan else ("", str(PurePosixPath(images[0]).parent))
    return "", images[0].rpartition(".")[0] or images[0]


def list_image_files(folders: Sequence[Path], name: str) -> Iterator[Path]:
    """Paths at which an image may be: below each folder, with or without the leading `dataset/` of its name."""
    for folder in folders:
        names = list(list_names(folder, name))
        for inner in dict.fromkeys((*names, names[0].removeprefix("dataset/"))):
            try:
                yield find_inside(folder, inner)
            except RowError as error:
                raise dataset_error(folder, str(error), "names of images in it", "Copy the images there.") from error
