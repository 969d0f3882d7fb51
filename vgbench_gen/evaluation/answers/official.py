"""The released SpatialScore script (`docs/protocols.md#the-released-script`) with its mistakes, in linear time.

Source of the rules: haoningwu3639/SpatialScore, `utils/util.py` and `version_0/test_qwen.py`. A reply on which the
script raises an exception scores 0, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from vgbench_gen.evaluation.metrics import compute_mean_relative_accuracy

_LETTER = "([A-Fa-f])"
_TAGS = re.compile(r"</?(?:CONCLUSION|conclusion|ANSWER|answer|ASSISTANT|assistant)>")
_ASSISTANT = re.compile(rf"ASSISTANT:\s*\(?{_LETTER}\)?")
_OPTION_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:answer|option)[:\s]*\(?{_LETTER}\)?\.?",
        rf"(?:^|\s)\(?{_LETTER}\)\.?(?:$|\s|\.)",
        rf"(?:^|\s){_LETTER}\.?(?:$|\s|\.|,)",
        rf"(?:^|\s){_LETTER}\.(?:$|\s)",
    )
)
_CONCLUDED = re.compile(r"<conclusion>\s*", re.IGNORECASE)
_CONCLUSION_END = re.compile("</conclusion>", re.IGNORECASE)
_BRACKETED, _BARE = re.compile(rf"\({_LETTER}\)"), re.compile(rf"\(?{_LETTER}\)?\.?\s*</conclusion>", re.IGNORECASE)
_CONCLUDED_YES_NO = re.compile(r"<conclusion>\s*(yes|no)\s*</conclusion>", re.IGNORECASE)
_CONCLUDED_NUMBER = re.compile(r"<conclusion>\s*(\d+)\s*</conclusion>", re.IGNORECASE)
_SAYS_YES = re.compile(r"\b(?:yes|yeah|yep|correct|true|right|agreed?)\b")
_SAYS_NO = re.compile(r"\b(?:no|nope|not|false|wrong|incorrect|disagreed?)\b")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
# The order is the script's: the first word of this list that occurs in a reply is used.
_NUMBER_WORDS = {
    "zero": 0, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9,
    "ten": 10, "eleven": 11, "twelve": 12, "thirteen": 13, "fourteen": 14, "fifteen": 15, "sixteen": 16,
    "seventeen": 17, "eighteen": 18, "nineteen": 19, "twenty": 20, "first": 1, "second": 2, "third": 3, "fourth": 4,
    "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9, "tenth": 10,
}  # fmt: skip

# A number as the script matches it. Possessive quantifiers and a start outside runs of digits give the same first match
# in linear time, even for a reply of a hundred thousand digits.
_DIGITS = r"(?<!\d)\d++(?:\.\d*+)?+"
_VALUES = (
    re.compile(r"\\scalar\{([^}]+)\}"),
    re.compile(r"\*\*([\d.]++)\s*+[a-zA-Z]++\*\*"),
    re.compile(r"(?:approximately|about|roughly)\s*+\*{0,1000}+([\d.]++)\s*+[a-zA-Z]", re.IGNORECASE),
    re.compile(rf"({_DIGITS})\s*+[a-zA-Z]"),
)
_UNITS = (
    re.compile(r"\\distance_unit\{([^}]+)\}"),
    re.compile(r"\*\*\d++(?:\.\d*+)?+\s*+([a-zA-Z]++)\*\*"),
    re.compile(r"(?:approximately|about|roughly)\s*+\*{0,1000}+\d++(?:\.\d*+)?+\s*+([a-zA-Z]++)", re.IGNORECASE),
    re.compile(rf"{_DIGITS}\s*+([a-zA-Z]++)"),
)
_TRUTH = re.compile(rf"({_DIGITS})\s*+([a-zA-Z]++)")
_FIRST_VALUE = re.compile(_DIGITS)
# The script treats a truth that contains any of these as a length; "m" covers most of its own list.
_LENGTH_SIGNS = ("m", "inch", "ft", "foot", "feet")
_CENTIMETRES = {
    **dict.fromkeys(("m", "meter", "meters", "metre", "metres"), 100),
    **dict.fromkeys(("cm", "centimeter", "centimeters"), 1),
    "mm": 0.1,
    **dict.fromkeys(("ft", "foot", "feet"), 30.48),
    **dict.fromkeys(("in", "inch", "inches"), 2.54),
}
_MAX_CHARS = 200_000
VSI_SOURCE = "VSI-Bench_8"


@dataclass(frozen=True, slots=True)
class OfficialScore:
    """The result of a published scoring function."""

    extracted: str | float | None
    """The extracted answer; None if the function finds none or fails."""
    score: float
    """Between 0 and 1."""
    error: str = ""
    """The exception that the function would have raised; "" if none."""


def score_spatialscore(response: str | None, truth: str, question_type: str, source: str) -> OfficialScore:
    """Score a reply as the script does.

    Args:
        response: the reply; the script strips it when it decodes it.
        truth: the column `answer`.
        question_type: "multi-choice", "judgment"; any other is open-ended.
        source: the column `source`; RealWorldQA is compared as text, and numbers of VSI-Bench_8 are graded.
    """
    if response is None:
        return OfficialScore(None, 0.0, "the reply is None")
    reply = response[:_MAX_CHARS].strip()
    if question_type == "multi-choice":
        letter = find_letter(reply)
        return OfficialScore(letter, float(letter.upper() == find_letter(truth).upper()))
    if question_type == "judgment":
        answer = find_yes_no(reply)
        return OfficialScore(answer, float(answer.lower() == find_yes_no(truth).lower()))
    if any(sign in truth.lower() for sign in _LENGTH_SIGNS):
        return _score_length(reply, truth)
    if source == "RealWorldQA":
        return OfficialScore(reply, float(reply.lower() == truth.lower()))
    return _score_number(reply, truth, graded=source == VSI_SOURCE)


def find_letter(text: str) -> str:
    """The letter in upper case; the text without tags if it contains no letter from a to f."""
    text = text.strip()
    if re.fullmatch(rf"{_LETTER}\.?", text):
        return text[0].upper()
    match = _ASSISTANT.search(text) or next(_find_concluded(text), None)
    for pattern in _OPTION_PATTERNS:
        match = match or pattern.search(text)
    match = match or re.search(_LETTER, text)
    return match.group(1).upper() if match else _TAGS.sub("", text).strip()


def find_yes_no(text: str) -> str:
    """ "Yes" or "No", else the text without tags; a letter after "ASSISTANT:" takes precedence."""
    text = text.strip()
    if text.lower() in ("yes", "no"):
        return text.capitalize()
    match = _ASSISTANT.search(text)
    if match:
        return match.group(1).upper()
    match = _CONCLUDED_YES_NO.search(text)
    if match:
        return match.group(1).capitalize()
    stripped = _TAGS.sub("", text).strip()
    lower = stripped.lower()
    return "Yes" if _SAYS_YES.search(lower) else "No" if _SAYS_NO.search(lower) else stripped


def find_number(text: str) -> str:
    """The first digits of a text, else a number word in the script's order, else the text without tags."""
    text = text.strip()
    if text.isdigit():
        return text
    match = _ASSISTANT.search(text)
    if match:
        return match.group(1).upper()
    match = _CONCLUDED_NUMBER.search(text)
    if match:
        return match.group(1)
    stripped = _TAGS.sub("", text).strip()
    lower = stripped.lower()
    digits = _NUMBER.search(lower)
    if digits:
        return digits.group()
    split = set(lower.split())
    for word, value in _NUMBER_WORDS.items():
        near = (f" {word} ", f"there are {word}", f"there is {word}", f"shows {word}")
        if lower.startswith(word) or lower.endswith(f" {word}") or any(text in lower for text in near):
            return str(value)
    return next((str(value) for word, value in _NUMBER_WORDS.items() if word in split), stripped)


def convert_to_centimeters(unit: str) -> float:
    """A unit in centimeters by the script's table, which is QSpatialBench's; 1 for an unknown unit."""
    return _CENTIMETRES.get(unit, 1)


def _find_concluded(text: str) -> Iterator[re.Match[str]]:
    """Letters in conclusion tags: first those in brackets with other text on the line, then those alone."""
    openings = list(_CONCLUDED.finditer(text))
    for opening in openings:
        match = _BRACKETED.match(text, opening.end())
        if match:
            line_end = text.find("\n", match.end())
            if _CONCLUSION_END.search(text, match.end(), len(text) if line_end < 0 else line_end):
                yield match
    for opening in openings:
        match = _BARE.match(text, opening.end())
        if match:
            yield match


def _score_number(reply: str, truth: str, graded: bool) -> OfficialScore:
    try:
        value = float(find_number(reply))
    except ValueError:
        value = 0.0
    try:
        expected = float(find_number(truth))
    except ValueError as error:
        return OfficialScore(value, 0.0, str(error)[:200])
    if not graded:
        return OfficialScore(value, float(value == expected))
    if value == 0:
        return OfficialScore(value, float(expected == 0))
    return OfficialScore(value, compute_mean_relative_accuracy(value, expected))


def _score_length(reply: str, truth: str) -> OfficialScore:
    text = _TAGS.sub("", reply).strip()
    valued = next((match for pattern in _VALUES if (match := pattern.search(text))), None)
    with_unit = next((match for pattern in _UNITS if (match := pattern.search(text))), None)
    first = _FIRST_VALUE.search(valued.group(1)) if valued else None
    if first is None or with_unit is None:
        return OfficialScore(None, 0.0)
    value, unit = float(first.group()), with_unit.group(1).lower().strip()
    extracted = f"{value:g} {unit}"[:100]
    expected = _TRUTH.search(truth)
    if expected is None:
        return OfficialScore(extracted, 0.0)
    wanted, wanted_unit = float(expected.group(1)), expected.group(2).lower()
    if value == 0 or wanted == 0:
        return OfficialScore(extracted, float(value == wanted == 0))
    value, wanted = value * convert_to_centimeters(unit), wanted * convert_to_centimeters(wanted_unit)
    try:
        return OfficialScore(extracted, float(max(value / wanted, wanted / value) < 2.0))
    except ZeroDivisionError:
        return OfficialScore(extracted, 0.0)
