"""The strict reader: accepts only a last line in a fixed form (`docs/validity.md#one-last-line`)."""

from __future__ import annotations

import re

from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.outcomes import NOTHING, ParsedAnswer, make_answer
from vgbench_gen.evaluation.answers.units import Unit

_MAX_LINE = 300
_PREFIX = re.compile(r"(?:final\s+)?answer\s*:\s*", re.IGNORECASE)
_PLAIN_NUMBER = r"[+-]?(?:[0-9]{1,15}(?:\.[0-9]{1,15})?|\.[0-9]{1,15})"
_NUMBER = re.compile(rf"({_PLAIN_NUMBER})\s*([A-Za-z%°\"'][A-Za-z^ ]{{0,20}}2?)?\.?")
_SCALAR = re.compile(
    rf"\\?scalar\s*\{{\s*({_PLAIN_NUMBER})\s*\}}\s*\\?distance_unit\s*\{{\s*([A-Za-z ]{{1,20}}?)\s*\}}\.?"
)
_YES_NO = re.compile(r"(yes|no)[.!]?", re.IGNORECASE)


def read_final_line(reply: str, kind: str, letters: str = "", unit: Unit | None = None) -> ParsedAnswer:
    """The value of a reply that ends in the requested form.

    The last line that is not empty must contain only the value, with or without "Answer:" before it: a letter (with or
    without brackets), Yes or No, a number with or without a unit, or the paper's scalar notation. Markdown and further
    words are not accepted.

    Args:
        reply: the model's reply.
        kind: "letter", "yes_no", "count", "number", "text", or a kind of measure ("length", "angle", ...).
        letters: the valid letters, for "letter".
        unit: the unit in the question, used for a length without a unit; None rejects such a length.
    """
    line = find_last_line(reply)
    if not line:
        return NOTHING
    if kind == "letter":
        match = re.fullmatch(rf"\(?([{letters}])\)?\.?", line)
        return make_answer(match.group(1)) if match else NOTHING
    if kind == "yes_no":
        match = _YES_NO.fullmatch(line)
        return make_answer(match.group(1).capitalize()) if match else NOTHING
    if kind == "text":
        return make_answer(line.strip(" .").casefold()) if line else NOTHING
    match = _SCALAR.fullmatch(line) or _NUMBER.fullmatch(line)
    return _read_value(match, kind, unit) if match else NOTHING


def find_last_line(reply: str) -> str:
    """The last line that is not empty, without "Answer:" before it; "" if it is too long for an answer."""
    line = reply[-4 * _MAX_LINE :].strip().rsplit("\n", 1)[-1].strip()
    if len(line) > _MAX_LINE:
        return ""
    return _PREFIX.sub("", line, count=1) if _PREFIX.match(line) else line


def _read_value(match: re.Match[str], kind: str, unit: Unit | None) -> ParsedAnswer:
    value, word = float(match.group(1)), (match.group(2) or "").strip()
    written = units.find_unit(word)
    if word and written is None and kind != "count":
        return NOTHING
    if kind == "count":
        return make_answer(value)
    if kind == "number":
        if unit and written and written.kind == unit.kind:
            value *= written.scale / unit.scale
        return make_answer(value)
    used, wanted = written or unit, kind
    return make_answer(value * used.scale) if used is not None and used.kind == wanted and value >= 0 else NOTHING
