"""What reading a reply can come to: five outcomes and their statuses (`docs/protocols.md#outcomes`)."""

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
    """What a reply says."""

    value: str | float | None
    """A letter, "Yes" or "No", a number, meters or a text, by the reader. None unless the status is "ok"."""
    status: Status
    """What the reading came to."""

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
    """A value that was read."""
    return ParsedAnswer(value, "ok")


def grade_outcome(reading: ParsedAnswer, score: float) -> Outcome:
    """A graded score is right only at 1."""
    if reading.status == "ok":
        return "right" if score >= 1 else "wrong"
    return _OUTCOMES[reading.status]


class AnswerReader:
    """Rules of one answer type; every method looks at cleaned text and never raises on it."""

    keys: ClassVar[re.Pattern[str] | None] = None
    """Keys of JSON, besides "answer" and its like, whose value is the answer."""

    def prepare(self, text: str) -> str:
        """The text in the form in which the other methods look at it."""
        return text

    def read_notation(self, text: str) -> ParsedAnswer:
        """Notations that only this type has; they go before everything else."""
        return NOTHING

    def read_segment(self, text: str) -> ParsedAnswer:
        """What stands in a container or after a phrase such as "the answer is"."""
        return self.read_opening(text)

    def read_opening(self, text: str) -> ParsedAnswer:
        """A value that opens the reply on its own."""
        return NOTHING

    def read_anywhere(self, text: str) -> ParsedAnswer:
        """A value anywhere in the text."""
        return NOTHING


def convert_to_json_value(value: str | float | None) -> str | float | None:
    """A value that was read, as it is written: numbers without rounding debris, whole ones without a point; what JSON
    cannot hold as a text."""
    if isinstance(value, str):
        # A broken pair of surrogates cannot be written as UTF-8. Scripts that find nothing return the whole reply.
        return value[:_MAX_EXTRACTED_CHARS].encode("utf-8", "replace").decode("utf-8")
    if value is None:
        return None
    if not math.isfinite(value):
        return str(value)
    rounded = round(value, 9)
    return int(rounded) if rounded.is_integer() and abs(rounded) < 1e15 else rounded
