"""Numbers, cameras, marks and claims read out of questions, ours and foreign ones, as tolerantly as a cheat would.

Unlike `text.numbers`, which reads back only what is printed here, this reads exponents, glued units and broken rows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.questions import Question
from vgbench_gen.text.marks import compile_mark_names

# Not part of a name or size (X2, fx_1, 3D, 3x3); a unit may touch it (2.1m).
NUMBER = re.compile(r"(?<![\w.])[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![0-9]|[xX][0-9]|D\b)", re.ASCII)
WORD = re.compile(r"[^\W_]+(?:\.[0-9]+)?")

_MINUS = "\u2212"  # the typographic sign, which is not the one on keyboards
_N = r"[+-]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
_NAME = rf"(?:{compile_mark_names()}|\b[a-z]+ [0-9]{{1,2}})"
_LABEL = re.compile(rf"^(?:the )?({_NAME})\.?$", re.IGNORECASE)
_PLACE = re.compile(rf"({_NAME})(?: at| is| in)?[ :=]*[\[(]\s*({_N}(?:\s*,\s*{_N}){{1,3}})\s*[\])]", re.IGNORECASE)
_RECT = re.compile(rf"[\[(]\s*({_N})\s*,\s*({_N})\s*,\s*({_N})\s*,\s*({_N})\s*[\])]")
_POINT = re.compile(rf"[\[(]\s*({_N})\s*,\s*({_N})\s*[\])]")
_TRIPLE = re.compile(rf"[\[(]\s*{_N}\s*,\s*{_N}\s*,\s*{_N}\s*[\])]")
_MATRIX = re.compile(
    r"\[\s*\[[-+0-9eE.,\s]+\](?:[\s,]*\[[-+0-9eE.,\s]+\])*\s*\](?:[\s,;]*(?:and )?t\s*=?\s*\[[-+0-9eE.,\s]+\])?"
)
_SIZE = re.compile(
    r"\b([0-9]{2,5}) ?(?:[xX*\u00d7]|by) ?([0-9]{2,5})\b|\b([0-9]{2,5}) pixels wide and ([0-9]{2,5}) pixels high"
)
_FOCAL = (re.compile(rf"\bfx ?= ?({_N})"), re.compile(rf"\bfy ?= ?({_N})"))
_CENTRE = (re.compile(rf"\bcx ?= ?({_N})"), re.compile(rf"\bcy ?= ?({_N})"))
_PRINCIPAL = re.compile(rf"(?:\(cx, cy\) ?=|principal point(?: at| is)?)[^0-9(]{{0,20}}\(({_N}), ({_N})\)")
_INTRINSIC = re.compile(rf"\[\s*({_N}),?\s+0\.?0*,?\s+({_N})\s*\][,\s]*\[\s*0\.?0*,?\s+({_N}),?\s+({_N})\s*\]")
_TOLERANCE = re.compile(
    rf"(?:\b(?:within|give or take|plus or minus|up to|at most|less than|tolerance of)|±) {_N}(?: ?%| [a-z]+)?"
    rf"|{_N} ?(?:%|percent)"
)


@dataclass(frozen=True, slots=True)
class TextFeatures:
    """What the text of one question says about images and marks; NaN where it says nothing."""

    size: tuple[float, float] = (float("nan"), float("nan"))
    """Width and height of the (first) image, pixels."""
    camera: tuple[float, float, float, float] = (float("nan"),) * 4
    """fx, fy, cx and cy, pixels."""
    rects: tuple[tuple[float, ...], ...] = ()
    """At most two unnamed rectangles x1, y1, x2, y2, pixels."""
    point: tuple[float, float] = (float("nan"), float("nan"))
    """The unnamed point that is asked about, pixels."""
    places: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Coordinates of the marks that have a name ("the blue region", "point 3"), by name in small letters."""


@dataclass(frozen=True, slots=True)
class ClaimValues:
    """What a judgment claims."""

    text: str
    values: FloatArray
    """Its numbers, (k, d); k is above 1 where the claim names one of several marks."""
    claimed: int = 0
    """The row of `values` that is claimed."""


def find_number_tokens(text: str) -> list[str]:
    """Numbers of a text as printed."""
    return [token.rstrip(".") for token in NUMBER.findall(text.replace(_MINUS, "-"))]


def read_numbers(text: str) -> list[float]:
    """Numbers of a text."""
    return [float(token) for token in find_number_tokens(text)]


@lru_cache(maxsize=20_000)
def read(question: str, context: str) -> TextFeatures:
    """See `TextFeatures`."""
    text = f"{question}\n{context}"
    nan = float("nan")
    size = _SIZE.search(text)
    camera = [float(m[1]) if (m := pattern.search(text)) else nan for pattern in (*_FOCAL, *_CENTRE)]
    principal, matrix = _PRINCIPAL.search(text), _INTRINSIC.search(text)
    if principal is not None:
        camera[2:] = float(principal[1]), float(principal[2])
    if matrix is not None:
        camera = [float(matrix[i]) for i in (1, 3, 2, 4)]
    places: dict[str, tuple[float, ...]] = {}
    for name, values in _PLACE.findall(text):
        places.setdefault(name.lower(), tuple(read_numbers(values)))
    bare = _PLACE.sub(" ", text)
    rects = tuple(tuple(float(v) for v in found) for found in _RECT.findall(bare)[:2])
    point = _POINT.search(_PLACE.sub(" ", question))
    return TextFeatures(
        size=(float(size[1] or size[3]), float(size[2] or size[4])) if size else (nan, nan),
        camera=(camera[0], camera[1], camera[2], camera[3]),
        rects=rects,
        point=(float(point[1]), float(point[2])) if point else (nan, nan),
        places=places,
    )


def read_option_values(question: Question) -> tuple[str, FloatArray]:
    """(kind, values (k, d)) of the options of a question.

    kind: "mark" where options name marks whose coordinates stand in the text, "name" where they number something that
    does not (image 3), "numbers" where all hold equally many numbers, "text" (d = 0) otherwise.
    """
    labels = [_LABEL.match(option.strip()) for option in question.options]
    named = [label[1].lower() for label in labels if label]
    if len(named) == len(labels):
        places = _list_places(question)
        coordinates = [places[name] for name in named if name in places]
        if len(coordinates) == len(labels) and len({len(c) for c in coordinates}) == 1:
            return "mark", np.array(coordinates, dtype=np.float64)
        if all(name[-1].isdigit() for name in named):
            return "name", np.array([[float(name.split()[1])] for name in named], dtype=np.float64)
    rows = [read_numbers(option) for option in question.options]
    count = len(rows[0])
    if not count or any(len(row) != count for row in rows):
        return "text", np.zeros((len(rows), 0))
    return "numbers", np.array(rows, dtype=np.float64)


def list_rects(question: Question) -> list[tuple[float, ...]]:
    """The rectangles that are asked about: those that the text prints without a name, else the drawn ones, unless these
    are the options."""
    drawn = [place for place in question.marks.values() if len(place) == 4]
    printed = read(question.question, question.context).rects
    return list(printed or (drawn if len(drawn) <= 2 else ()))


def _list_places(question: Question) -> Mapping[str, tuple[float, ...]]:
    """Coordinates of the marks that have a name, as drawn, or as printed where the drawing is not known."""
    return question.marks or read(question.question, question.context).places


def read_claim(question: Question) -> ClaimValues:
    """What a judgment claims."""
    text, places = question.question, _list_places(question)
    named = next((name for name in re.findall(rf"{_NAME}\b", text.lower()) if name in places), None)
    if named is not None:
        same = [name for name in sorted(places) if len(places[name]) == len(places[named])]
        return ClaimValues(named, np.array([places[name] for name in same], dtype=np.float64), same.index(named))
    matrix = _MATRIX.search(text)
    triples = list(_TRIPLE.finditer(text))
    if matrix is not None:
        said = matrix.group()
    elif len(triples) > 1:
        said = text[triples[0].start() : triples[-1].end()]
    else:
        bare = _TOLERANCE.sub(" ", re.sub(r"[\[(][-+0-9eE., ]+[\])]", " ", text))
        found = find_number_tokens(bare)
        said = next((token for token in found if "." in token), found[0] if found else "")
    return ClaimValues(said, np.array([read_numbers(said)], dtype=np.float64).reshape(1, -1))
