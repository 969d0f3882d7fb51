"""Finds numbers with units in a text: ranges, compound lengths, fractions, thousands separators, sums."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import lru_cache

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.number_words import replace_number_words
from vgbench_gen.evaluation.answers.units import Unit
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

_LARGEST = 1e15

# A number. The digits that follow decide whether a comma, dot, blank or apostrophe separates decimals or thousands.
NUMBER = (
    r"(?:(?P<whole>[0-9]{1,6})(?:\s+(?:and\s+|&\s*)?|\s?-\s?)(?P<top>[0-9]{1,4})/(?P<bottom>[0-9]{1,4})"
    r"|(?P<over>[0-9]{1,6})\s*/\s*(?P<under>[0-9]{1,6})"
    r"|10\s?\^\s?[({]?\s?(?P<tens>[+-]?[0-9]{1,2})(?![0-9.])[)}]?"
    r"|(?P<digits>[1-9][0-9]{0,2}(?:[ '][0-9]{3}){1,4}(?![0-9'])(?:[.,][0-9]{1,20})?"
    r"|[0-9]{1,3}(?:,[0-9]{3}){1,5}(?:\.[0-9]{1,20})?|[0-9]{1,3}(?:\.[0-9]{3}){1,5},[0-9]{1,20}|[0-9]{1,12},[0-9]{1,2}(?![0-9])"
    r"|0,[0-9]{1,20}|[0-9]{1,40}(?:\.[0-9]{1,40})?|\.[0-9]{1,40})"
    r"(?:\s*[x×*·⋅]\s*10\s*\^?\s*[({]?\s*(?P<power>[+-]?[0-9]{1,2})[)}]?|[eE](?P<exponent>[+-]?[0-9]{1,2}))?)"
)
UNNAMED_NUMBER = re.sub(r"\?P<[a-z]+>", "?:", NUMBER)
_QUANTITY = re.compile(
    rf"(?<![A-Za-z0-9_.])(?<![0-9],)(?<![0-9]/){NUMBER}"
    rf"(?:(?P<gap>\s*(?:-?ish\b|[-+])?\s*)(?P<unit>{units.PATTERN})|(?:-?ish\b)?(?![A-Za-z0-9_]|\.[0-9]))",
)
_HEDGES = rf"(?:(?:{match_any_of(read_words('hedges', 'lengths'))})\s*)*"
_RANGE = re.compile(rf"\s*(?:-|~|–|—|\.\.\.?|-?to\b-?|through|up to|till|until|到|至)\s*{_HEDGES}")
_EITHER = re.compile(rf"\s*,?\s*(?:or|或者?|/)\s*{_HEDGES}")
_BETWEEN = re.compile(rf"\b(?:between|from)\s*{_HEDGES}$|在\s*$")
_AND = re.compile(rf"\s*(?:and|和|与)\s*{_HEDGES}")
_BY = re.compile(r"\s*(?:[x×*+]|by)\s*")
_PLUS_MINUS = re.compile(r"\s*[,(]?\s?(?:±|\+/-|\+-|plus or (?:minus|-)|plus/minus|give or take)\s*")
# The unit of a number may be in brackets or in the next table cell, "2.5 (m)", or in the label or key before it,
# '"depth_cm": 230'.
_UNIT_BESIDE = re.compile(rf"(?<=[0-9])\s?(?:[(\[]\s?(?:in\s)?|\|\s*)(?P<unit>{units.PATTERN})\s?(?:[)\]]|(?=\|))")
_UNIT_IN_KEY = re.compile(
    rf"(?:(?<=[a-z])(?:_(?:in_)?|\s+in\s+|\s?[(\[]\s?(?:in\s)?|,\s?)|(?:^|(?<=[\n.;,{{]))[\s\"'-]*(?:in\s+)?)(?P<unit>{units.PATTERN})\s?[)\]]?"
    rf"(?P<link>[\"'*]*\s*(?:\||:|=|—|-|is)\s*[\"'*~≈]*{_HEDGES})(?P<number>{UNNAMED_NUMBER})"
    rf"(?![0-9.,]*[0-9]|\s*(?:{units.PATTERN}))"
)
_MIDDLE_DOT = re.compile("(?<=[0-9])·(?=[0-9]{1,2}(?![0-9^]))")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][A-Za-z]*[\"']\s*:)")
# Compound lengths without spaces: "7ft6in", "2m30".
_GLUED = re.compile(
    r"(?<=[0-9])\s?(ft|foot|feet|m|cm|yd)(?=[0-9]{2}(?![0-9])|[0-9]{1,2}(?:\.[0-9]+)?\s?(?:in|cm|mm|\"|'')|(?<=t)[0-9](?![0-9]))"
)
_JOINED = re.compile(r"\s*(?:,|\band\b|又|零)?\s*")
_LABELS = compile_pattern(
    rf"(?<![A-Za-z0-9])(?:{match_any_of(read_words('labels', 'counts'))})\s*\.?\s*[#(]?\s*[0-9]{{1,4}}(?![0-9.]*[0-9])"
    r"(?:\s*(?:-|to|and|,|/)\s*[0-9]{1,4}(?![0-9]))?\)?"
)
_OF_MEDIA = compile_pattern(
    rf"\b[0-9]{{1,3}}\s*(?:{match_any_of(read_words('things_of_media', 'counts'))})(?![A-Za-z])"
)
_TUPLES = re.compile(r"[(\[]\s*-?[0-9.]{1,20}(?:\s*px)?\s*(?:,\s*-?[0-9.]{1,20}(?:\s*px)?\s*){1,15}[)\]]")
# A number that is denied: "3, not 4".
_DENIED = compile_pattern(
    r"(?:,\s*)?\b(?:not|rather than|instead of)\s+(?:just\s+)?[0-9]{1,9}(?:[.,][0-9]{1,9})?(?![0-9/-])"
    rf"(?:\s*(?:{units.PATTERN}))?"
)


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text."""

    value: float
    """The number without its sign; the midpoint of a range."""
    unit: Unit | None
    """The unit after the number; None if there is none."""
    start: int
    """Index of its first character in the text."""
    end: int
    """Index after its last character, the unit included."""
    negative: bool = False
    """Whether it has a minus sign."""
    kind: str = "one"
    """"one", "range" ("2 to 3"), "either" ("2 or 3") or "product" ("2 x 3", "2 + 3")."""

    @property
    def signed(self) -> float:
        """The value with its sign."""
        return -self.value if self.negative else self.value

    @property
    def base(self) -> float:
        """The value in the base unit of its kind; the signed value if it has no unit."""
        return self.signed * self.unit.scale if self.unit else self.signed


@lru_cache(maxsize=256)
def prepare_text(text: str) -> str:
    """The text in lower case, with number words as digits, and without numbers that are never an answer.

    These are the numbers of steps, images and frames, tuples of coordinates, and denied numbers.
    """
    text = replace_number_words(_MIDDLE_DOT.sub(".", _CAMEL.sub("_", text)).lower())
    for pattern in (_TUPLES, _LABELS, _OF_MEDIA):
        text = pattern.sub(" ", text)
    if "not " in text or "rather than" in text or "instead of" in text:
        text = re.sub(" {3,}", " ", _DENIED.sub(" ", text))
    text = re.sub("_(?![0-9])", " ", _UNIT_IN_KEY.sub(r"\g<link>\g<number> \g<unit>", text))
    return _GLUED.sub(r"\1 ", _UNIT_BESIDE.sub(r" \g<unit>", text))


@lru_cache(maxsize=256)
def find_quantities(text: str) -> tuple[Quantity, ...]:
    """All numbers of a prepared text in order; ranges and compound lengths are one quantity each."""
    found: list[Quantity] = []
    for match in _QUANTITY.finditer(text):
        one = _read_quantity(match, text)
        if one is None:
            continue
        merged = _merge(found[-1], one, text) if found else None
        if merged is None:
            found.append(one)
        else:
            found[-1] = merged
    return tuple(found)


def _read_quantity(match: re.Match[str], text: str) -> Quantity | None:
    value = _parse_value(match)
    if value is None:
        return None
    written = match["unit"]
    unit = units.find_unit(written) if written else None
    start = match.start()
    if written in ("'", '"', "''") and _is_quoted(text, start, written, match["gap"]):
        unit = None
    before = text[:start].rstrip(" ")
    signed = before.endswith("-") and len(before) == start and not before[:-1].rstrip()[-1:].isalnum()
    signed = signed and not before[:-1].endswith(("'", '"', ")", "-"))
    end = match.end() if unit or not written else match.start("gap")
    return Quantity(value, unit, start, end, negative=signed)


def _is_quoted(text: str, start: int, mark: str, gap: str) -> bool:
    """Whether the mark after a number is a closing quotation mark, and not the sign of feet or inches."""
    return text[max(0, start - 1) : start] in ("'", '"') or bool(gap and text.count(mark, 0, start) % 2)


def _parse_value(match: re.Match[str]) -> float | None:
    try:
        if match["whole"]:
            value = int(match["whole"]) + int(match["top"]) / int(match["bottom"])
        elif match["over"]:
            value = int(match["over"]) / int(match["under"])
        elif match["tens"]:
            value = 10.0 ** int(match["tens"])
        else:
            value = float(_write_decimal(match["digits"])) * 10.0 ** int(match["power"] or match["exponent"] or 0)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None
    return value if value < _LARGEST else None


def _write_decimal(digits: str) -> str:
    """The number with "." as decimal point: "1,234" -> "1234", "1,25" -> "1.25", "1.234,5" -> "1234.5"."""
    digits = digits.replace(" ", "").replace("'", "")
    if "," not in digits:
        return digits
    if "." in digits:
        if digits.rindex(",") > digits.rindex("."):
            return digits.replace(".", "").replace(",", ".")
        return digits.replace(",", "")
    head, _, tail = digits.rpartition(",")
    if head == "0" or len(tail) != 3:
        return f"{head}.{tail}"
    return digits.replace(",", "")


def _merge(first: Quantity, second: Quantity, text: str) -> Quantity | None:
    gap = text[first.end : second.start]
    if len(gap) > 20:
        return None
    if _PLUS_MINUS.fullmatch(gap):
        return replace(first, unit=first.unit or second.unit, end=second.end)
    joined = _sum_compound(first, second, gap)
    if joined is not None:
        return replace(first, value=joined, end=second.end)
    kind = ""
    if _RANGE.fullmatch(gap) or (_AND.fullmatch(gap) and _BETWEEN.search(text[: first.start])):
        kind = "range"
    elif _EITHER.fullmatch(gap):
        kind = "either"
    elif _BY.fullmatch(gap):
        kind = "product"
    if not kind or (first.kind != "one" and kind != "product"):
        return None
    unit = second.unit or first.unit
    low = first.value
    if first.unit and unit and first.unit.kind == unit.kind:
        low = first.value * first.unit.scale / unit.scale
    if kind == "range" and low > second.value:  # a subtraction
        return None
    return Quantity((low + second.value) / 2, unit, first.start, second.end, first.negative, kind)


def _sum_compound(first: Quantity, second: Quantity, gap: str) -> float | None:
    """The sum of a compound length such as "5 ft 4 in" in the first unit; None if the two are separate quantities."""
    large = first.unit
    if large is None or large.kind != "length" or first.kind != "one" or second.negative:
        return None
    if large is units.FOOT:
        gap = gap.removeprefix(".")  # "3 ft. 4 in."
    inches = large is units.FOOT and gap == "-" and second.unit in (None, units.INCH)  # 5'-4"
    if not (inches or _JOINED.fullmatch(gap)):
        return None
    small = second.unit or _guess_smaller(large, second.value, gap)
    if small is None or not _is_part(small, large, second):
        return None
    return first.value + second.value * small.scale / large.scale


def _guess_smaller(large: Unit, value: float, gap: str) -> Unit | None:
    """The unit of a number without a unit that follows a length: inches after feet, tenths in 1米8."""
    if gap.strip(" -"):
        return None
    if large is units.METER:
        if value in range(10, 100):
            return units.SPELLINGS["cm"]
        return units.SPELLINGS["dm"] if not gap and value in range(1, 10) else None
    return units.INCH if large is units.FOOT and value < 12 else None


def _is_part(small: Unit, large: Unit, second: Quantity) -> bool:
    """Whether a quantity can complete one in a larger unit: same system of units, and less than one large unit."""
    same_system = small.kind == "length" and small.metric == large.metric and small.scale < large.scale
    return same_system and second.value * small.scale < large.scale
