"""Words, numbers, marks and claims of questions, ours and foreign ones, read as tolerantly as a cheat would.

Unlike `text.numbers`, which reads back only what is printed here, this reads exponents, glued units and broken rows.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.questions import Question
from vgbench_gen.text.marks import compile_mark_names
from vgbench_gen.text.numbers import SIGNED_LIST

# Not part of a name or size (X2, fx_1, 3D, 3x3); a unit may touch it (2.1m).
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![0-9]|[xX][0-9]|D\b)", re.ASCII)
_WORD = re.compile(r"[^\W_]+(?:\.[0-9]+)?")

_MINUS = "\u2212"  # the typographic sign, which is not the one on keyboards
_N = r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
_NAME = rf"(?:{compile_mark_names()}|\b[a-z]+ [0-9]{{1,2}})"
_LABEL = re.compile(rf"^(?:the )?({_NAME})\.?$", re.IGNORECASE)
_PLACE = re.compile(rf"({_NAME})(?: at| is| in)?[ :=]*[\[(]\s*({_N}(?:\s*,\s*{_N}){{1,3}})\s*[\])]", re.IGNORECASE)
_ROW = re.compile(r"[\[(]([^\[\]()]*)[\])]")
_TRIPLE = re.compile(rf"[\[(]\s*{_N}\s*,\s*{_N}\s*,\s*{_N}\s*[\])]")
_MATRIX = re.compile(
    r"\[\s*\[[-+0-9eE.,\s]+\](?:[\s,]*\[[-+0-9eE.,\s]+\])*\s*\](?:[\s,;]*(?:and )?t\s*=?\s*\[[-+0-9eE.,\s]+\])?"
)
_TOLERANCE = re.compile(
    rf"(?:\b(?:within|give or take|plus or minus|up to|at most|less than|tolerance of)|±) {_N}(?: ?%| [a-z]+)?"
    rf"|{_N} ?(?:%|percent)"
)
_SAID = re.compile(SIGNED_LIST)
_NEGATIVE = re.compile(rf"({_N})(?= [a-z]+ (?:left|up|back|counterclockwise)\b)")
_MOST_NUMBERS = 24  # of one option or claim


@dataclass(frozen=True, slots=True)
class PrintedText:
    """One option, or one thing that could be claimed."""

    text: str
    values: tuple[float, ...] = ()
    """Its numbers in the order printed, or the place of the mark that it names."""
    row: int = 0
    """How many of the numbers stand in one pair of brackets, or make a corner of a mark."""


def find_number_tokens(text: str) -> list[str]:
    """Numbers of a text as printed."""
    return [token.rstrip(".") for token in NUMBER.findall(text.replace(_MINUS, "-"))]


def read_numbers(text: str) -> list[float]:
    """Numbers of a text; negative ones also where a word stands for the sign."""
    return [float(token) for token in find_number_tokens(_NEGATIVE.sub(r"-\1", text))]


def find_words(text: str) -> list[str]:
    """Words of a text in small letters, numbers among them."""
    return _WORD.findall(text.lower())


def name_numbers(question: Question) -> dict[str, float]:
    """Numbers around the options or the claim, each by the word before it: "fx 1", "at 1", "at 2"."""
    asked = question.question
    if question.form == "judgment":
        said, claimed = read_claim(question)
        asked = asked.replace(said[claimed].text or " ", " ")
    found: dict[str, float] = {}
    count: Counter[str] = Counter()
    for text in (question.context, asked):
        end, word, text = 0, "", _PLACE.sub(" ", text)
        for match in NUMBER.finditer(text):
            before = [w for w in find_words(text[end : match.start()]) if w.isalpha()]
            end, word = match.end(), before[-1] if before else word
            count[word] += 1
            found[f"{word} {count[word]}"] = float(match.group().rstrip("."))
    return found


def list_drawn(question: Question) -> list[tuple[float, ...]]:
    """Places of one or two named marks, unless these are what is chosen from."""
    places = [] if are_names(question) else [*_list_places(question).values()]
    return places if len(places) <= 2 else []


def are_names(question: Question) -> bool:
    """Whether every option names a mark or an image."""
    return bool(question.options) and all(_LABEL.match(option.strip()) for option in question.options)


def are_quantities(question: Question) -> bool:
    """Whether all options hold equally many numbers, which are more than names."""
    counts = {len(read_numbers(option)) for option in question.options}
    return len(counts) == 1 and 0 not in counts and not are_names(question)


def read_options(question: Question) -> list[PrintedText]:
    """Options as printed; those that name marks or images have the places of these, where they are known."""
    if are_names(question):
        places = _list_places(question)
        named = [_LABEL.findall(option.strip())[0].lower() for option in question.options]
        return [PrintedText(text, places.get(name, ()), 2) for text, name in zip(question.options, named, strict=True)]
    return [_read_said(option) for option in question.options]


def find_asked(question: Question, count: int) -> list[float]:
    """The first place of so many numbers in a question's sentence that belongs to no named mark; [] for none."""
    rows = map(read_numbers, _ROW.findall(_PLACE.sub(" ", question.question)))
    return next((row for row in rows if len(row) == count), [])


def read_claim(question: Question) -> tuple[list[PrintedText], int]:
    """(what a judgment could claim, the place of what it does): the marks where it names one, else its numbers."""
    text, places = question.question, _list_places(question)
    named = next((name for name in re.findall(rf"{_NAME}\b", text.lower()) if name in places), None)
    if named is not None:
        same = [name for name in sorted(places) if len(places[name]) == len(places[named])]
        if len(same) > 1:
            return [PrintedText(name, places[name], 2) for name in same], same.index(named)
    matrix = _MATRIX.search(text) or _SAID.search(text)
    triples = list(_TRIPLE.finditer(text))
    if matrix is not None:
        said = matrix.group()
    elif len(triples) > 1:
        said = text[triples[0].start() : triples[-1].end()]
    else:
        found = find_number_tokens(_TOLERANCE.sub(" ", re.sub(r"[\[(][-+0-9eE., ]+[\])]", " ", text)))
        said = next((token for token in found if "." in token), found[0] if found else "")
    return [_read_said(said)], 0


def _read_said(text: str) -> PrintedText:
    row = _ROW.search(text)
    return PrintedText(text, tuple(read_numbers(text)[:_MOST_NUMBERS]), len(read_numbers(row[1])) if row else 0)


def _list_places(question: Question) -> Mapping[str, tuple[float, ...]]:
    """Coordinates of the marks that have a name, as drawn, or as printed where the drawing is not known."""
    if question.marks:
        return question.marks
    found: dict[str, tuple[float, ...]] = {}
    for name, values in _PLACE.findall(f"{question.question}\n{question.context}"):
        found.setdefault(name.lower(), tuple(read_numbers(values)))
    return found


def pad(rows: Iterable[Iterable[float]], width: int) -> FloatArray:
    """(rows, width) rows of numbers as one array, NaN where one is shorter."""
    listed = [[*row][:width] for row in rows]
    full = [row + [np.nan] * (width - len(row)) for row in listed]
    return np.array(full, dtype=np.float64).reshape(len(full), width)
