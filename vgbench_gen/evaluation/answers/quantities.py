"""Numbers with their units in a text: ranges, compound lengths, fractions, thousands, sums."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from functools import lru_cache

from simpleeval import SimpleEval  # type: ignore[import-untyped]

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.number_words import replace_number_words
from vgbench_gen.evaluation.answers.units import Unit
from vgbench_gen.evaluation.answers.vocabulary import compile_pattern, match_any_of, read_words

_MAX_EXPRESSION = 60
_LARGEST = 1e15

# One anchored pattern for a number; what a comma or dot means follows from the digits after it.
NUMBER = (
    r"(?:(?P<whole>[0-9]{1,6})\s+(?P<top>[0-9]{1,4})/(?P<bottom>[0-9]{1,4})|(?P<over>[0-9]{1,6})\s*/\s*(?P<under>[0-9]{1,6})"
    r"|10\s?\^\s?[({]?\s?(?P<tens>[+-]?[0-9]{1,2})(?![0-9.])[)}]?"
    r"|(?P<digits>[0-9]{1,3}(?:,[0-9]{3}){1,5}(?:\.[0-9]{1,20})?|[0-9]{1,3}(?:\.[0-9]{3}){1,5},[0-9]{1,20}|[0-9]{1,12},[0-9]{1,2}(?![0-9])"
    r"|0,[0-9]{1,20}|[0-9]{1,40}(?:\.[0-9]{1,40})?|\.[0-9]{1,40})"
    r"(?:\s*[x×*·⋅]\s*10\s*\^?\s*[({]?\s*(?P<power>[+-]?[0-9]{1,2})[)}]?|[eE](?P<exponent>[+-]?[0-9]{1,2}))?)"
)
_QUANTITY = re.compile(
    rf"(?<![A-Za-z0-9_.])(?<![0-9],)(?<![0-9]/){NUMBER}(?:(?P<gap>\s*-?\s*)(?P<unit>{units.PATTERN})|(?![A-Za-z0-9_]|\.[0-9]))",
)
_RANGE = re.compile(r"\s*(?:-|~|–|—|to|through|up to|till|until|到|至)\s*")
_EITHER = re.compile(r"\s*,?\s*(?:or|或者?|/)\s*")
_BETWEEN = re.compile(r"\b(?:between|from)\s*$|在\s*$")
_AND = re.compile(r"\s*(?:and|和|与)\s*")
_PLUS_MINUS = re.compile(r"\s*\(?(?:±|\+/-|\+-|,?\s?(?:plus or (?:minus|-)|plus/minus|give or take))\s*")
_UNIT_IN_BRACKETS = re.compile(rf"(?<=[0-9])\s?[(\[]\s?(?:in\s)?(?P<unit>{units.PATTERN})\s?[)\]]")
# A length beside these says how well another one is known.
_PRECISION = match_any_of(read_words("precision", "lengths"))
_PRECISION_AFTER = compile_pattern(rf"\s*(?:-|\b)\s*(?:[a-z]+\s+)?{_PRECISION}\b")
_PRECISION_BEFORE = compile_pattern(
    rf"(?:\b{_PRECISION}(?:\s*(?:\b(?:of|is|was|within|about|around|approximately|up to)\b|大?约|[:=~≈±<(]))*"
    rf"|{match_any_of(read_words('precision_before', 'lengths'))})\s*\Z"
)
_JOINED = re.compile(r"\s*(?:,|\band\b|又|零)?\s*")
_LIST_MARKER = re.compile(r"^[ \t]*\(?([0-9]{1,2})[.)][ \t]+(?=\S)", re.MULTILINE)
_LABELS = compile_pattern(
    rf"(?<![A-Za-z0-9])(?:{match_any_of(read_words('labels', 'counts'))})\s*\.?\s*[#(]?\s*[0-9]{{1,4}}(?![0-9.]*[0-9])"
    r"(?:\s*(?:-|to|and|,|/)\s*[0-9]{1,4}(?![0-9]))?\)?"
)
_OF_MEDIA = compile_pattern(
    rf"\b[0-9]{{1,3}}\s*(?:{match_any_of(read_words('things_of_media', 'counts'))})(?![A-Za-z])"
)
_TUPLES = re.compile(r"[(\[]\s*-?[0-9.]{1,20}(?:\s*px)?\s*(?:,\s*-?[0-9.]{1,20}(?:\s*px)?\s*){1,15}[)\]]")
_NAMED = re.compile(
    r"\b[xyzuvwhft][0-9]?\s*=\s*-?[0-9.]{1,20}(?!\s*(?:m|cm|mm|ft|met|cent|feet|inch)\b)|\b[0-9]{1,2}:[0-9]{2}\b"
)
# "3, not 4"
_DENIED = compile_pattern(
    r"(?:,\s*)?\b(?:not|rather than|instead of)\s+(?:just\s+)?[0-9]{1,9}(?:[.,][0-9]{1,9})?(?![0-9/-])"
    rf"(?:\s*(?:{units.PATTERN}))?"
)
_EXPRESSION = re.compile(r"[\s(]*[0-9.][0-9.\s()+*×÷/-]{0,60}")
_MULTI = re.compile(r"[+*×÷/(]")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number in a text."""

    value: float
    """The number as it is written, without its sign. Of a range, its midpoint."""
    unit: Unit | None
    """The unit behind the number, None where none is written."""
    start: int
    """Where it begins in the text."""
    end: int
    """Where it ends in the text, its unit included."""
    negative: bool = False
    """Whether a minus sign stands before it."""
    kind: str = "one"
    """"one", "range" ("2 to 3") or "either" ("2 or 3")."""

    @property
    def signed(self) -> float:
        """The value with its sign."""
        return -self.value if self.negative else self.value

    @property
    def base(self) -> float:
        """The value in the base unit of its kind; the bare value without a unit."""
        return self.signed * self.unit.scale if self.unit else self.signed


@lru_cache(maxsize=256)
def prepare_text(text: str) -> str:
    """The text in lower case, with number words as digits, without numbers that name or count other things.

    Those are list markers, steps, images and frames, tuples of coordinates, times and named coordinates.
    """
    text = replace_number_words(text.lower())
    markers = list(_LIST_MARKER.finditer(text))
    if len(markers) > 1 or (markers and markers[0].group(1) == "1"):
        text = _LIST_MARKER.sub("", text)
    for pattern in (_TUPLES, _LABELS, _OF_MEDIA, _NAMED):
        text = pattern.sub(" ", text)
    if "not " in text or "rather than" in text or "instead of" in text:
        text = re.sub(" {3,}", " ", _DENIED.sub(" ", text))
    return _UNIT_IN_BRACKETS.sub(r" \g<unit>", text) if "(" in text or "[" in text else text


@lru_cache(maxsize=256)
def find_quantities(text: str) -> tuple[Quantity, ...]:
    """All numbers of a prepared text in order, with ranges and compound lengths merged."""
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


def is_precision(found: Quantity, text: str) -> bool:
    """Whether a quantity of a prepared text only says how well another is known: "at 10 m resolution"."""
    return bool(
        _PRECISION_AFTER.match(text, found.end)
        or _PRECISION_BEFORE.search(text[max(0, found.start - 60) : found.start])
    )


def find_result_of_sum(text: str) -> str:
    """What stands after the last "=" of a line of arithmetic; the text itself where there is none."""
    head, sign, tail = text.rpartition("=")
    return tail if sign and re.search("[0-9]", tail) and re.search("[0-9]", head) else text


def evaluate_sum(text: str) -> tuple[float, str] | None:
    """Value and the rest of the text where it opens with a sum or product such as "(1.2 + 0.3) m"; None otherwise."""
    match = _EXPRESSION.match(text)
    if match is None or not _MULTI.search(match.group()) or "**" in match.group() or "//" in match.group():
        return None
    written = match.group().replace("×", "*").replace("÷", "/").strip()
    rest = text[match.end() :]
    if len(written) > _MAX_EXPRESSION or re.match(r"[a-z]*[0-9]", rest):
        return None
    try:
        value = SimpleEval().eval(written)
    except Exception:  # whatever a stranger's sum does, it is no number
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not math.isfinite(value)
        or abs(value) > _LARGEST
    ):
        return None
    return float(value), rest


def _read_quantity(match: re.Match[str], text: str) -> Quantity | None:
    value = _parse_value(match)
    if value is None:
        return None
    written = match["unit"]
    unit = units.find_unit(written) if written else None
    start = match.start()
    if (
        unit is not None
        and written in ("'", '"', "''")
        and (text[max(0, start - 1) : start] in ("'", '"') or match["gap"])
    ):
        unit = None  # a quotation mark
    before = text[:start].rstrip(" ")
    signed = before.endswith("-") and len(before) == start and not before[:-1].rstrip()[-1:].isalnum()
    signed = signed and not before[:-1].endswith(("'", '"', ")", "-"))
    end = match.end() if unit or not written else match.start("gap")
    return Quantity(value, unit, start, end, negative=signed)


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
    """Digits with "." as the decimal point: "1,234" is a thousand, "1,25" and "0,125" are not, "1.234,5" is again."""
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
    if not kind or first.kind != "one":
        return None
    unit = second.unit or first.unit
    low = first.value
    if first.unit and unit and first.unit.kind == unit.kind:
        low = first.value * first.unit.scale / unit.scale
    return Quantity((low + second.value) / 2, unit, first.start, second.end, first.negative, kind)


def _sum_compound(first: Quantity, second: Quantity, gap: str) -> float | None:
    """The sum of "5 ft 4 in" in the first unit, None where the two do not belong together."""
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
    """The unit of a number without one right behind a length: inches after feet, tenths in 1米8."""
    if gap.strip(" -"):
        return None
    if large is units.METRE:
        return units.SPELLINGS["dm"] if not gap and value in range(1, 10) else None
    return units.INCH if large is units.FOOT and value < 12 else None


def _is_part(small: Unit, large: Unit, second: Quantity) -> bool:
    """Whether a quantity in a small unit completes one in a large unit: of the same system, and less than one of it."""
    same_system = small.kind == "length" and small.metric == large.metric and small.scale < large.scale
    return same_system and second.value * small.scale < large.scale
