"""Results of reading a reply: statuses and the five outcomes (`docs/protocols.md#outcomes`)."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import ClassVar, Literal

Status = Literal["ok", "no_answer", "ambiguous", "truncated", "refusal", "api_error"]
Outcome = Literal["right", "wrong", "unreadable", "refused", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("right", "wrong", "unreadable", "refused", "failed")

_MAX_EXTRACTED_CHARS = 1000
_OUTCOMES: dict[Status, Outcome] = {
    "no_answer": "unreadable",
    "ambiguous": "unreadable",
    "truncated": "unreadable",
    "refusal": "refused",
    "api_error": "failed",
}


@dataclass(frozen=True, slots=True)
class ParsedAnswer:
    """The answer read from a reply."""

    value: str | float | None
    """A letter, "Yes" or "No", a number, a length in meters or a text; None unless the status is "ok"."""
    status: Status

    @property
    def found(self) -> bool:
        """Whether there is a value."""
        return self.status == "ok"


NOTHING = ParsedAnswer(None, "no_answer")
AMBIGUOUS = ParsedAnswer(None, "ambiguous")
REFUSAL = ParsedAnswer(None, "refusal")
TRUNCATED = ParsedAnswer(None, "truncated")
API_ERROR = ParsedAnswer(None, "api_error")


def make_answer(value: str | float) -> ParsedAnswer:
    """A `ParsedAnswer` with a value."""
    return ParsedAnswer(value, "ok")


def grade_outcome(reading: ParsedAnswer, score: float) -> Outcome:
    """The outcome of a reading; a graded score below 1 is wrong."""
    if reading.status == "ok":
        return "right" if score >= 1 else "wrong"
    return _OUTCOMES[reading.status]


class AnswerReader:
    """Rules of one answer type; all methods take cleaned text and never raise."""

    keys: ClassVar[re.Pattern[str] | None] = None
    """JSON keys whose value is the answer, besides "answer" and similar keys."""

    def prepare(self, text: str) -> str:
        """Prepare the text for the other methods."""
        return text

    def read_notation(self, text: str) -> ParsedAnswer:
        """The value in a notation of this type; it takes precedence over all others."""
        return NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        """The value in a container or after a phrase such as "the answer is"."""
        return self.read_opening(text)

    def read_opening(self, text: str) -> ParsedAnswer:
        """The value at the start of the reply, if it stands alone."""
        return NOTHING

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """The value anywhere in the text."""
        return NOTHING


def convert_to_json_value(value: str | float | None) -> str | float | None:
    """A value for JSON: numbers rounded to 9 decimals, whole numbers as int, infinite numbers as text."""
    if isinstance(value, str):
        # Scripts that find no answer return the whole reply, which is shortened. Lone surrogates are not valid UTF-8.
        return value[:_MAX_EXTRACTED_CHARS].encode("utf-8", "replace").decode("utf-8")
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    rounded = round(value, 9)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
