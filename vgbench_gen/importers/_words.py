"""The exact text of another benchmark's question with the positions of its options, so that they can be permuted."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from vgbench_gen.core.types import ALPHABET

# The letter before an option: "A: …", "A. …", "A) …", "(A) …". It is at the start of a line or, if options follow a
# sentence on the same line, after a space.
_MARK = r"(?:\((?P<in>[A-Ja-j])\)|(?P<out>[A-J])[.:)])(?=\s|$)"
_MEASURE = re.compile(r"([-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*(\D*)")
_AT_LINE = re.compile(r"^[ \t]*" + _MARK, re.MULTILINE)
_IN_LINE = re.compile(r"(?:^|(?<=\s))" + _MARK)
_HEADING = re.compile(
    r"\s*(?:(?:select from the following )?(?:options|choices)|select from the following)\s*[:.]?\s*\Z", re.IGNORECASE
)
_EDGES = " \t\r\n,;"


@dataclass(frozen=True, slots=True)
class QuestionWords:
    """The wording of a question in its benchmark."""

    text: str
    """The whole text with the options."""
    lead: str
    """The text before the options, without a heading such as "Options:"."""
    tail: str = ""
    """The text after the options."""
    options: tuple[str, ...] = ()
    """The texts of the options, without letters."""
    options_at: tuple[tuple[int, int], ...] = ()
    """(start, end) of each option in `text`."""


def plain_words(text: str) -> QuestionWords:
    """A question without options."""
    return QuestionWords(text, text.strip())


def lettered_words(
    lead: str, options: Sequence[str], mark: str = "({}) ", *, between: str = "\n", before: str = "\n"
) -> QuestionWords:
    """A question composed of its parts: `lead + before + mark option between mark option ...`.

    Args:
        lead: the question.
        options: texts without letters.
        mark: text before each option, with {} for its letter: "({}) ", "{}: ", "{}. ".
        between, before: text between options, and between `lead` and the first option.

    Raises:
        ValueError: more options than letters.
    """
    if len(options) > len(ALPHABET):
        raise ValueError(f"{len(options)} options, more than {len(ALPHABET)} letters")
    text, spans = lead + before, []
    for place, option in enumerate(options):
        text += (between if place else "") + mark.format(ALPHABET[place])
        spans.append((len(text), len(text) + len(option)))
        text += option
    return QuestionWords(text, lead.strip(), "", tuple(options), tuple(spans))


def find_options(text: str) -> QuestionWords:
    """Split a text into question and options; without options if no lettered list is found.

    Letters must run from A without a gap. An option ends where the next begins, so it may span lines. The last one has
    at most as many lines as the longest of the others; the rest is the tail.
    """
    for pattern in (_AT_LINE, _IN_LINE):
        marks = _select_last_run(list(pattern.finditer(text)))
        if len(marks) >= 2:
            ends = [mark.start() for mark in marks[1:]] + [len(text)]
            spans = [_trim(text, mark.end(), end) for mark, end in zip(marks, ends, strict=True)]
            most_lines = max(text.count("\n", *span) for span in spans[:-1])
            spans[-1] = _keep_first_lines(text, spans[-1], most_lines + 1)
            lead = _HEADING.sub("", text[: marks[0].start()]).strip()
            options = tuple(text[start:end] for start, end in spans)
            return QuestionWords(text, lead, text[spans[-1][1] :].strip(), options, tuple(spans))
    return plain_words(text)


def _select_last_run(marks: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """The last of the longest runs A, B, C, …; a question may mention "(A)" before its options."""
    best: list[re.Match[str]] = []
    current: list[re.Match[str]] = []
    for mark in marks:
        letter = (mark["in"] or mark["out"]).upper()
        if letter == "A":
            current = [mark]
        elif current and letter == ALPHABET[len(current)]:
            current.append(mark)
        if len(current) >= max(2, len(best)):
            best = list(current)
    return best


def _trim(text: str, start: int, end: int) -> tuple[int, int]:
    while start < end and text[start] in _EDGES:
        start += 1
    while start < end and text[end - 1] in _EDGES:
        end -= 1
    return start, end


def _keep_first_lines(text: str, span: tuple[int, int], lines: int) -> tuple[int, int]:
    start, end = span
    cut = start
    for _ in range(lines):
        cut = text.find("\n", cut, end) + 1
        if not cut:
            return span
    return _trim(text, start, cut)


def parse_measure(answer: str) -> tuple[float, str]:
    """(number, unit) of an answer such as "1.51 meters" or "3"; the number of a word is NaN."""
    match = _MEASURE.fullmatch(answer.strip())
    if match is None or not re.search(r"\d", match[1]):
        return math.nan, ""
    return float(match[1].replace(",", "")), match[2].strip(" .")
