"""Defects of form that a reader sees without understanding the question (`docs/validity.md#text`).

Stricter checks against a task's own template stand in `text.lint`; these work on any benchmark's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from vgbench_gen.quality import reading
from vgbench_gen.quality.questions import Question
from vgbench_gen.text.numbers import count_decimals, keep_digits

_DEBRIS_DECIMALS = 6  # so many decimals are floating-point debris
_SIGNIFICANT = 4  # most significant digits of a printed number
_LENGTH_DIFFERENCE = 2  # most characters between the shortest and the longest numeric option
_DEBRIS = re.compile(r"(?<![\w.])[+-]?[0-9]+\.[0-9]+(?![0-9]*[eE][0-9+-])")
_NEGATIVE_ZERO = re.compile(r"(?<![\w.])-0(?:\.0*)?(?![0-9.]*[1-9]|[0-9]*\.[0-9])")
_EXPONENT = re.compile(r"(?<![\w.])[+-]?[0-9]+(?:\.[0-9]*)?[eE][+-]?[0-9]+\b")
_SLOT = re.compile(
    r"\{\{.*?\}\}|\{[A-Za-z_][\w .]*\}|<[A-Za-z]+_[A-Za-z_]+>|<[A-Z]{3,}>|\b(?:nan|None|null|TODO|TBD)\b"
)
_IMAGE_SLOT = re.compile(r"<image>|<IMAGE>")  # the customary place of a picture, not a defect
_PAIRS = ("()", "[]", "{}")
_PIXEL_BOX = re.compile(r"[\[(]\s*[0-9]{1,5}(?:\.[0-9]+)?(?:\s*,\s*[0-9]{1,5}(?:\.[0-9]+)?){3}\s*[\])]")
_SIZE = re.compile(
    r"\b([0-9]{2,5}) ?(?:[xX*\u00d7]|by) ?([0-9]{2,5})\b|\b([0-9]{2,5}) pixels wide and ([0-9]{2,5}) pixels high"
)
_GLUED = re.compile(r"[^\s]\s*\b[Oo]ptions?\s*:|\S[ \t]+\(?A[.:)]\s\S.*\bB[.:)]\s", re.DOTALL)
_PROVIDED = re.compile(
    r"\b(?:provided|given|following|above|below)\s+(?:camera\s+)?(?:parameters?|intrinsics?|matrix|information|table|"
    r"context|layout|point cloud|depth map)\b",
    re.IGNORECASE,
)
_UNIT = re.compile(
    r"\b(?:met(?:re|er)s?|cm|mm|m|centimet(?:re|er)s?|millimet(?:re|er)s?|feet|foot|inch(?:es)?|pixels?|px|degrees?|deg|"
    r"radians?|rad|percent|times|how many|number of|count)\b|°|%",
    re.IGNORECASE,
)
_MEASURED = re.compile(
    r"\b(?:distance|depth|far|tall|long|wide|high|height|width|size|length|focal|angle|area)\b", re.I
)


def find_defects(questions: Sequence[Question]) -> dict[str, list[str]]:
    """Ids of the questions that have a defect, by its name."""
    return {name: [q.id for q in questions if defect(q)] for name, defect in DEFECTS.items()}


def _list_options(question: Question) -> tuple[str, ...]:
    return question.options if question.form == "multi-choice" else ()


def _join_asked_text(question: Question) -> str:
    return f"{question.question}\n{question.context}"


def _join_all_text(question: Question) -> str:
    return "\n".join([_join_asked_text(question), *_list_options(question)])


def _has_mixed_decimals(question: Question) -> bool:
    """Options with other numbers of decimals at the same place, unless all have the same significant digits."""
    rows = [reading.find_number_tokens(option) for option in _list_options(question)]
    if len({len(row) for row in rows}) != 1:
        return False
    if all(len({count_decimals(token) for token in place}) == 1 for place in zip(*rows, strict=True)):
        return False
    digits = {len(keep_digits(token)) for row in rows for token in row if keep_digits(token)}
    return digits != {_SIGNIFICANT}


def _has_debris(question: Question) -> bool:
    """Six decimals or more, unless they are needed for four significant digits."""
    return any(
        count_decimals(token) >= _DEBRIS_DECIMALS and len(keep_digits(token)) > _SIGNIFICANT
        for token in _DEBRIS.findall(_join_all_text(question))
    )


def _count_numbers(question: Question) -> set[int]:
    return {len(reading.find_number_tokens(option)) for option in _list_options(question)}


def _has_unequal_length(question: Question) -> bool:
    """Options of one number whose lengths differ by more than two characters."""
    lengths = [len(option) for option in question.options]
    return _count_numbers(question) == {1} and max(lengths) - min(lengths) > _LENGTH_DIFFERENCE


def _has_open_bracket(question: Question) -> bool:
    texts = [_join_asked_text(question), *_list_options(question)]
    return any(text.count(pair[0]) != text.count(pair[1]) for text in texts for pair in _PAIRS)


def _has_no_unit(question: Question) -> bool:
    """A measured quantity is asked for as a number, and no unit is named."""
    numbers = _count_numbers(question) == {1} and reading.are_quantities(question)
    asked = question.form == "open-ended" or numbers
    return asked and bool(_MEASURED.search(question.question)) and not _UNIT.search(_join_all_text(question))


def _cites_nothing_given(question: Question) -> bool:
    """Refers to parameters that are "provided" where the text around holds no number they could be."""
    found = _PROVIDED.search(_join_asked_text(question))
    return found is not None and len(reading.find_number_tokens(_join_asked_text(question))) < _SIGNIFICANT


DEFECTS: dict[str, Callable[[Question], bool]] = {
    "mixed decimals": _has_mixed_decimals,
    "float debris": _has_debris,
    "negative zero": lambda q: bool(_NEGATIVE_ZERO.search(_join_all_text(q))),
    "exponent": lambda q: bool(_EXPONENT.search(_join_all_text(q))),
    "unfilled slot": lambda q: bool(_SLOT.search(_IMAGE_SLOT.sub("", _join_all_text(q)))),
    "open bracket": _has_open_bracket,
    "box without image size": lambda q: bool(
        _PIXEL_BOX.search(_join_asked_text(q)) and not _SIZE.search(_join_asked_text(q))
    ),
    "options in the sentence": lambda q: bool(_GLUED.search(q.question)),
    "missing unit": _has_no_unit,
    "context not given": _cites_nothing_given,
    "unequal length": _has_unequal_length,
    "equal options": lambda q: len(set(q.options)) < len(q.options),
}
"""Name of a defect -> whether a question has it."""
