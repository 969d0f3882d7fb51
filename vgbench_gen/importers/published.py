"""Questions of the published SpatialScore schema: a JSON list with the options inside the question's text.

Row fields (`haoningwu3639/SpatialScore`: `version_0/dataset/SpatialScore-Hard.json`): `index`, `category`,
`subcategory`, `question_type`, `input_modality`, `question`, `answer`, `img_paths`, `source`, `index_origin`,
`category_origin`. `question`, `answer` and `question_type` are needed; what else is there is used.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from vgbench_gen.core.json_text import read_json
from vgbench_gen.core.types import QUESTION_TYPES
from vgbench_gen.importers._words import FOUND_LETTERS, find_options, parse_measure
from vgbench_gen.quality.questions import Question
from vgbench_gen.store.files import dataset_error
from vgbench_gen.text.render import fill_word

MAX_BYTES = 256_000_000
MAX_ROWS = 1_000_000
MAX_TEXT = 100_000  # characters of a question; the published ones stay below 3,000
MAX_IMAGES = 1024
_REMEDY = "Give a JSON list of rows with question, answer and question_type, as SpatialScore publishes it."

_ANSWER_LETTER = re.compile(r"\(?([A-Ja-j])\)?(?:[.:)].*)?", re.DOTALL)
_YES, _NO = {"yes", "true"}, {"no", "false"}
_UNKNOWN = {"", "unknown", "none"}


@dataclass(frozen=True, slots=True)
class UnreadableRow:
    """A row that cannot be judged."""

    row: int
    """Its place in the file, from 0."""
    field: str
    """The field that is to blame."""
    found: str
    """What stands there."""

    def __str__(self) -> str:
        return f"row {self.row}, {self.field}: {self.found}"


@dataclass(frozen=True, slots=True)
class PublishedQuestions:
    """The questions of a published file."""

    path: Path
    """The file."""
    questions: tuple[Question, ...]
    """Those that could be read."""
    bad: tuple[UnreadableRow, ...]
    """The rows that could not."""


class _Bad(ValueError):
    def __init__(self, field: str, found: str) -> None:
        super().__init__(field, found)
        self.field, self.found = field, found


def read_published(path: Path) -> PublishedQuestions:
    """Read a file of the published schema.

    Scenes are not known, so rows that share an image are kept together instead (`quality.questions.clusters`).

    Raises:
        DatasetError: no such file, too large, no JSON list, or no row of it can be read.
    """
    rows = read_rows(path)
    questions: list[Question] = []
    bad: list[UnreadableRow] = []
    ids: set[str] = set()
    for number, row in enumerate(rows):
        try:
            question = _read_question(row, number)
        except _Bad as problem:
            bad.append(UnreadableRow(number, problem.field, problem.found))
            continue
        if question.id in ids:
            question = replace(question, id=f"{question.id}-row{number}")
        ids.add(question.id)
        questions.append(replace(question, group=question.id))
    if not questions:
        first = str(bad[0]) if bad else "no row"
        raise dataset_error(path, f"{len(rows)} rows of which none can be read ({first})", "questions", _REMEDY)
    return PublishedQuestions(path, tuple(questions), tuple(bad))


def split_options(text: str) -> tuple[str, tuple[str, ...]]:
    """(question, options without letters) of a text that holds both; no options where none are found.

    What follows the options is joined to the question. See `find_options`.
    """
    words = find_options(text)
    return "\n".join(part for part in (words.lead, words.tail) if part), words.options


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


def _read_question(row: Any, number: int) -> Question:
    if not isinstance(row, Mapping):
        raise _Bad("row", f"a {type(row).__name__} where an object should be")
    text, answer = _read_text(row, "question"), _read_text(row, "answer", also_number=True)
    form = _read_text(row, "question_type").replace("_", "-").lower()
    form = "multi-choice" if form in {"multiple-choice", "multichoice"} else form
    images = row.get("img_paths", [])
    if not isinstance(images, list) or len(images) > MAX_IMAGES or not all(isinstance(name, str) for name in images):
        raise _Bad("img_paths", f"{str(images)[:80]!r}, which is no list of at most {MAX_IMAGES} names")
    known = next((name for name in QUESTION_TYPES if name == form), None)
    if known is None:
        raise _Bad("question_type", f"{form[:40]!r}, which is none of {', '.join(QUESTION_TYPES)}")
    key = _read_key(known, text, answer)
    source = _read_optional(row, "source")
    kind = next(
        (name for key in ("category_origin", "subcategory", "category") if (name := _read_optional(row, key))), ""
    )
    index = row.get("index", row.get("id", number))
    return Question(
        id=str(index)[:80] if isinstance(index, int | str) else str(number),
        group="",
        scene="",
        source=source,
        task="/".join(part for part in (source, kind) if part) or "all",
        ask="",
        form=known,
        question=key.question,
        context="",
        options=key.options,
        truth=key.truth,
        value=key.value,
        unit=key.unit,
        images=tuple(images),
    )


class _Key(NamedTuple):
    """A question without its options, and its right answer: the place of an option, or a value with its unit."""

    question: str
    """Text of the question without its options."""
    options: tuple[str, ...] = ()
    """Texts of the options without letters, in order; empty for an open-ended question."""
    truth: int = -1
    """Place of the right option, from 0; -1 where there are no options."""
    value: float = float("nan")
    """Right value of an open-ended question, in `unit`; NaN for other questions."""
    unit: str = ""
    """Unit of the value; "" where it has none or there is no value."""


def _read_key(form: str, text: str, answer: str) -> _Key:
    if form == "multi-choice":
        question, options = split_options(text)
        if not options:
            raise _Bad("question", "a multi-choice question in whose text no options A, B, … stand")
        return _Key(question, options, _find_place(answer, options))
    if form == "judgment":
        said = answer.strip(" .").lower()
        if said not in _YES | _NO:
            raise _Bad("answer", f"{answer[:40]!r}, which is neither yes nor no")
        return _Key(text, (fill_word("answer.yes"), fill_word("answer.no")), 0 if said in _YES else 1)
    value, unit = parse_measure(answer)
    if math.isnan(value):
        raise _Bad("answer", f"{answer[:40]!r}, which is no number with or without a unit")
    return _Key(text, value=value, unit=unit)


def _read_text(row: Mapping[str, Any], field: str, also_number: bool = False) -> str:
    found = row.get(field)
    if also_number and isinstance(found, int | float) and not isinstance(found, bool):
        return repr(found)
    if not isinstance(found, str) or not found.strip():
        raise _Bad(field, "nothing" if found is None else f"{str(found)[:40]!r}, which is no text")
    if len(found) > MAX_TEXT:
        raise _Bad(field, f"{len(found)} characters, more than {MAX_TEXT}")
    return found


def _read_optional(row: Mapping[str, Any], field: str) -> str:
    found = row.get(field)
    found = found.strip() if isinstance(found, str) else ""
    return "" if found.lower() in _UNKNOWN else found[:80]


def _find_place(answer: str, options: Sequence[str]) -> int:
    plain = answer.strip()
    if plain in options:
        return options.index(plain)
    match = _ANSWER_LETTER.fullmatch(plain)
    place = FOUND_LETTERS.index(match[1].upper()) if match else -1
    if not 0 <= place < len(options):
        raise _Bad("answer", f"{answer[:40]!r}, which is none of the {len(options)} options")
    return place
