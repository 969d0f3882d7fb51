"""Units of lengths, areas, angles and pixels, with their spellings in replies.

Rules: `docs/protocols.md#lengths-with-units`.
"""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Kind = Literal["length", "area", "angle", "pixels", "other"]
# Kinds of measures in questions; a reply in another kind of unit ("3 seconds") is no answer.
MEASURES: tuple[Kind, ...] = ("length", "area", "angle", "pixels")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit of measurement."""

    name: str
    """Symbol of the unit."""
    scale: float
    """Size of the unit in the base unit of its kind: meter, square meter, degree or pixel."""
    kind: Kind
    metric: bool = True
    """Whether compound measures combine it with metric units ("1 m 20 cm") rather than with feet and inches."""


_LENGTHS: dict[Unit, tuple[str, ...]] = {
    Unit("mm", 0.001, "length"): ("mm", "mms", "millimeter", "millimeters", "millimetre", "millimetres", "毫米"),
    Unit("cm", 0.01, "length"): (
        "cm",
        "cms",
        "centimeter",
        "centimeters",
        "centimetre",
        "centimetres",
        "centimetrs",
        "厘米",
        "公分",
    ),
    Unit("dm", 0.1, "length"): ("dm", "decimeter", "decimeters", "decimetre", "decimetres", "分米"),
    Unit("m", 1.0, "length"): (
        "m",
        "mtr",
        "mtrs",
        "meter",
        "meters",
        "metre",
        "metres",
        "metters",
        "meteres",
        "米",
        "公尺",
    ),
    Unit("km", 1000.0, "length"): ("km", "kms", "kilometer", "kilometers", "kilometre", "kilometres", "千米", "公里"),
    Unit("in", 0.0254, "length", False): ("in", "ins", "inch", "inches", "inchs", '"', "''", "英寸", "吋"),
    Unit("ft", 0.3048, "length", False): ("ft", "fts", "foot", "feet", "feets", "foots", "'", "英尺", "呎"),
    Unit("yd", 0.9144, "length", False): ("yd", "yds", "yard", "yards", "码"),
    Unit("mi", 1609.344, "length", False): ("mi", "mile", "miles", "英里"),
}
_AREAS: dict[Unit, tuple[str, ...]] = {
    Unit("mm2", 1e-6, "area"): ("平方毫米",),
    Unit("cm2", 1e-4, "area"): ("平方厘米",),
    Unit("m2", 1.0, "area"): ("sqm", "平方米", "平米"),
    Unit("in2", 0.0254**2, "area", False): ("平方英寸",),
    Unit("ft2", 0.3048**2, "area", False): ("sqft", "平方英尺"),
    Unit("yd2", 0.9144**2, "area", False): ("平方码",),
    Unit("km2", 1e6, "area"): ("平方公里", "平方千米"),
}
_OTHERS = {
    Unit("m3", 1.0, "other"): ("立方米",),
    Unit("%", 0.01, "other"): ("%", "percent", "per cent"),
    Unit("rad", 57.29577951308232, "angle"): ("rad", "rads", "radian", "radians", "弧度"),
    Unit("deg", 1.0, "angle"): ("°", "degree", "degrees", "deg", "度"),
    Unit("px", 1.0, "pixels"): ("px", "pixel", "pixels", "像素"),
    Unit("s", 1.0, "other"): ("seconds", "secs", "sec", "minutes", "min", "hours", "s", "秒"),
    Unit("kg", 1.0, "other"): ("kg", "kilograms", "g", "lbs", "pounds"),
}


def _list_spellings() -> dict[str, Unit]:
    found = {text: unit for table in (_LENGTHS, _AREAS, _OTHERS) for unit, texts in table.items() for text in texts}
    lengths = {unit.name: texts for unit, texts in _LENGTHS.items()}
    for area in _AREAS:
        for text in lengths[area.name[:-1]]:
            if text.isascii() and text.isalpha():
                written = (f"square {text}", f"sq {text}", f"sq. {text}", f"{text}^2", f"{text}2", f"{text} squared")
                found |= dict.fromkeys((*written, f"square-{text}", f"{text}^{{2}}", f"{text} ^2"), area)
    for text in lengths["m"]:
        if text.isascii():
            found |= dict.fromkeys((f"cubic {text}", f"{text}^3", f"{text}3"), Unit("m3", 1.0, "other"))
    return found


SPELLINGS = _list_spellings()
METER = SPELLINGS["m"]
FOOT, INCH = SPELLINGS["ft"], SPELLINGS["in"]

# "in" means inches only if no noun phrase follows: "3 in the image" is no length.
_IN = r"in(?=\.?(?:\s+(?:long|wide|tall|high|deep|thick|away|apart|from|or|and|by|x)\b|\s*[^\sa-z]|\s*$))"
_LONGEST_FIRST = sorted(SPELLINGS, key=len, reverse=True)
PATTERN = "|".join(
    _IN
    if text == "in"
    else re.escape(text) + (r"(?![A-Za-z0-9^])" if text[-1].isascii() and text[-1].isalnum() else "")
    for text in _LONGEST_FIRST
)

_WORDS = "|".join(
    re.escape(text)
    for text in _LONGEST_FIRST
    if SPELLINGS[text].kind != "other"
    and (len(text) > 3 or not text.isascii() or text in ("cm", "mm", "m", "ft", "km", "m2", "m^2"))
)
_ASKED = re.compile(
    rf"(?:\b(?:in|using|use|as|units?[\"']?(?: is| are|\s?[:=]| of)?)\s+(?:the\s+unit\s+(?:of\s+)?)?"
    rf"|[(\[]\s*(?:in\s+|unit:?\s*)?|(?<=[a-z])_(?:in_)?|单位[是为:：]?\s*|用|多少|几)"
    rf"[\"']?(?P<unit>{_WORDS})(?![A-Za-z0-9^/])",
)
_SPELLED = re.compile(rf"(?<![0-9A-Za-z.])(?<![0-9]\s)(?P<unit>{_WORDS})(?![A-Za-z0-9^/])")


def find_unit(text: str) -> Unit | None:
    """The unit with a spelling; None if there is none."""
    return SPELLINGS.get(text.strip().casefold())


def find_named_unit(text: str, kinds: tuple[Kind, ...]) -> Unit | None:
    """The only unit of these kinds that a reply names separately from its numbers, as in "Distance (m): 1.5"."""
    found = {SPELLINGS[match["unit"]] for match in _ASKED.finditer(text.lower())}
    found = {unit for unit in found if unit.kind in kinds}
    return found.pop() if len(found) == 1 else None


@lru_cache(maxsize=4096)
def find_asked_unit(question: str, kinds: tuple[Kind, ...] = ("length", "area")) -> Unit | None:
    """The unit of these kinds that a question asks for; None if it is not certain.

    It is the unit in a phrase such as "in metres", else the only unit that is spelled out without a number before it.
    """
    question = question[-8000:].lower()
    asked = [SPELLINGS[match["unit"]] for match in _ASKED.finditer(question)]
    found = {unit for unit in asked if unit.kind in kinds}
    if not found:
        spelled = [match["unit"] for match in _SPELLED.finditer(question)]
        units = [SPELLINGS[text] for text in spelled if len(text) > 2 or not text.isascii()]
        found = {unit for unit in units if unit.kind in kinds}
    return found.pop() if len(found) == 1 else None
