"""Reads the score in a judge's reply, a whole number from 1 to 5 (`docs/protocols.md#judge-scores`).

Source of `read_as_released`: cheryyunl/ROVER, `base_metric.py`, with its mistakes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from vgbench_gen.evaluation.answers.clean import clean_reply
from vgbench_gen.evaluation.answers.official import OfficialScore

LOW, HIGH = 1, 5
MAX_CHARS = 100_000
_GENERIC = "score"
_REASON = "reasoning"
# A score is not part of a longer number or a range: "4.5", "4/10" and "1-5" are none; "4 - good" is a 4.
_WHOLE = (
    r"(?P<n>[0-9]{1,6})(?:\.0+)?"
    r"(?![0-9]|[.,][0-9]|\s*[-–—]+\s*[0-9]|\s*[/%]|\s+(?:to|or|out\s+of|percent)\b)"  # noqa: RUF001
)
_OF_FIVE = re.compile(
    r"(?<![-–—0-9.,/])(?P<n>[0-9]{1,6})(?:\.0+)?\s*(?:/|out\s+of)\s*(?P<of>[0-9]+)(?![0-9]|[.,][0-9]|%)"  # noqa: RUF001
)
# The scale in brackets, which a judge may repeat between the name and the score.
_SCALE = (
    r"(?:\s*[(\[]\s*(?:score|rating|integer|from|on|a|scale|of|:|\s){0,12}"
    r"(?:1\s*(?:-|–|—|to)\s*5|(?:out\s+of|/|max\.?)\s*5)\s*[)\]])?"  # noqa: RUF001
)
_SIGN = re.compile(r"(?:[:=]|\b(?:is|of))\W*[-–—]\s*\Z", re.IGNORECASE)  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Judged:
    """The content of a judge's reply."""

    score: int | None
    """The score, 1 to 5; None if the reply has no valid one."""
    reasoning: str = ""
    """The judge's reasoning; "" if there is none."""


def read(reply: str | None, key: str) -> Judged:
    """Read the score of a metric from a judge's reply.

    Args:
        reply: the judge's reply.
        key: name of the score, such as "reasoning_visual_score".
    """
    if reply is None or not reply.strip():
        return Judged(None)
    cleaned = clean_reply(reply[-MAX_CHARS:])
    text = cleaned.texts[0] if cleaned.texts else ""
    if cleaned.cut and not text.strip():
        return Judged(None)
    for found in (_find_in_objects(text, key), _find_in_words(text, key)):
        if found is not None:
            return found
    return Judged(None)


def _find_in_objects(text: str, key: str) -> Judged | None:
    """Read the last JSON object with the key, intact or damaged, else the only one with a plain `score`."""
    trees = list(_parse_trees(text))
    for name, only in ((key, False), (_GENERIC, True)):
        found = [
            (start, _read_valid_score(one[name]), _join_words(one.get(_REASON)))
            for start, _, tree in trees
            for one in _walk_dicts(tree)
            if name in one
        ]
        found += _find_in_damaged(text, name, trees)
        if found and not (only and len(found) > 1):
            _, score, words = max(found, key=lambda one: one[0])
            return Judged(score, words)
    return None


def _parse_trees(text: str) -> Iterator[tuple[int, int, Any]]:
    """(start, end, value) of the outermost JSON objects."""
    decoder, at = json.JSONDecoder(), 0
    while (at := text.find("{", at)) >= 0:
        start = at
        try:
            tree, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            at += 1
        else:
            yield start, at, tree


def _walk_dicts(tree: Any, depth: int = 8) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
    for part in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        if depth:
            yield from _walk_dicts(part, depth - 1)


def read_whole_score(value: object) -> int | None:
    """A score from 1 to 5 that is a number or a text of digits; None for other values."""
    return None if isinstance(value, str) and not re.fullmatch(_WHOLE, value.strip()) else _read_valid_score(value)


def _read_valid_score(value: object) -> int | None:
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        whole = float(value).is_integer() if abs(value) < 1e9 else False
        return _check_range(int(value)) if whole else None
    if isinstance(value, str):
        if match := re.fullmatch(_WHOLE, value.strip()):
            return _check_range(int(match["n"]))
        return _find_score_of_five(value)
    return None


def _check_range(value: int) -> int | None:
    return value if LOW <= value <= HIGH else None


def _find_score_of_five(text: str) -> int | None:
    """The only score out of five in a text; None if there is none, several, or one on another scale."""
    found = {(int(match["n"]), int(match["of"])) for match in _OF_FIVE.finditer(text)}
    if len(found) != 1:
        return None
    value, of = found.pop()
    return _check_range(value) if of == HIGH else None


def _join_words(value: object) -> str:
    return value if isinstance(value, str) else ""


def _find_in_damaged(text: str, name: str, trees: list[tuple[int, int, Any]]) -> Iterator[tuple[int, int | None, str]]:
    """(start, score, reasoning) from invalid JSON: single quotes, an extra comma, an unescaped quote, or a truncated
    object."""
    quoted = re.compile(rf"(?P<q>[\"'])\s*{re.escape(name)}\s*(?P=q)\s*:\s*(?P<value>[^,}}\]\n]*)")
    for match in quoted.finditer(text):
        if any(start < match.start() < end for start, end, _ in trees):
            continue  # a text inside an intact object
        before = max((end for _, end, _ in trees if end <= match.start()), default=0)
        brace = max(text.rfind("{", before, match.start()), before)
        reasons = _find_reasoning(text[brace:]) or _find_reasoning(text[before:])
        yield match.start(), _read_valid_score(_parse_plain_value(match["value"])), reasons


def _parse_plain_value(value: str) -> object:
    """The value after a colon: a number, or a text without its quotation marks."""
    value = value.strip().strip("\"'").strip()
    if re.fullmatch(r"-?[0-9]+(?:\.[0-9]+)?", value):
        return float(value)
    return value


def _find_in_words(text: str, key: str) -> Judged | None:
    """Read `key: 4`, with or without Markdown and underscores, else "4/5" or "4 out of 5"."""
    spoken = re.escape(key).replace("_", r"[_\s]+")
    between = r"\W{0,6}?\s*(?:is|of|=|:)?\W{0,4}?\s*"
    pattern = re.compile(rf"{spoken}{_SCALE}(?P<between>{between})(?<![-0-9.,]){_WHOLE}", re.IGNORECASE)
    named = {int(match["n"]) for match in pattern.finditer(text) if _is_said_plainly(match, text)}
    if len(named) == 1:
        return Judged(_check_range(named.pop()), _find_reasoning(text))
    found = _find_score_of_five(text)
    return None if found is None or len(named) > 1 else Judged(found, _find_reasoning(text))


def _is_said_plainly(match: re.Match[str], text: str) -> bool:
    """Whether the number has no sign and is not part of a scale in brackets, as in "(1 - poor, 5 - perfect)"."""
    between = match["between"]
    inside = max(map(between.rfind, "([")) > max(map(between.rfind, ")]"))
    alone = text[match.end() :].lstrip()[:1] in (")", "]", "")
    return _SIGN.search(between) is None and (alone or not inside)


def _find_reasoning(text: str) -> str:
    match = re.search(r"[\"']?\breasoning[\"']?\s*[:=]\s*[\"']?(.+)", text, re.IGNORECASE | re.DOTALL)
    return match.group(1).strip().rstrip("}] \n").strip("\"'").strip() if match else ""


# --- as released


def read_as_released(reply: str | None, key: str) -> OfficialScore:
    """Read a score as the released parser does; it may be a number out of range, or a text."""
    if reply is None or not reply.strip():
        return OfficialScore(None, 0.0)
    text, state = reply.strip(), _State()
    spoken = key.replace("_", " ")
    for step in (_read_whole_reply, _read_double_braces, _read_first_braces):
        if (value := _try_step(step, text, key, state)) is not None:
            return _make_official_score(value)
    patterns = (
        rf"{key}\s*[:：]?\s*([1-5])", rf"{spoken}\s*[:：]?\s*([1-5])", rf"{spoken}\s+is\s+([1-5])",  # noqa: RUF001
        rf"{spoken}\s+=\s*([1-5])", r"([1-5])\s*/\s*5", r"([1-5])\s+out\s+of\s+5", r"score\s*[:：]?\s*([1-5])",  # noqa: RUF001
        r"rating\s*[:：]?\s*([1-5])", r"([1-5])\s+points?", r"([1-5])\s+stars?",  # noqa: RUF001
    )  # fmt: skip
    for pattern in patterns:
        if match := re.search(pattern, text, re.IGNORECASE):
            return _make_official_score(int(match.group(1)))
    return _make_official_score(state.value)


class _State:
    """A variable of the published script, which keeps the value of a failed step."""

    value: Any = None
    """The value of any type that the last step read as the score; None if there was none."""


def _try_step(step: Callable[[str, str, _State], int | None], text: str, key: str, state: _State) -> int | None:
    try:
        return step(text, key, state)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, OverflowError):
        return None


def _read_whole_reply(text: str, key: str, state: _State) -> int | None:
    state.value = json.loads(text).get(key)
    if state.value is None:
        return None
    value = int(state.value)
    return value if LOW <= value <= HIGH else None


def _read_double_braces(text: str, key: str, state: _State) -> int | None:
    if not (text.startswith("{{") and text.endswith("}}")):
        return None
    state.value = json.loads(text[1:-1]).get(key)
    return None if state.value is None else int(state.value)


def _read_first_braces(text: str, key: str, state: _State) -> int | None:
    match = re.search(r'\{[^{}]*"' + re.escape(key) + r'"[^{}]*\}', text, re.IGNORECASE)
    if match is None:
        return None
    state.value = json.loads(match.group(0)).get(key)
    return None if state.value is None else int(state.value)


def _make_official_score(value: Any) -> OfficialScore:
    if isinstance(value, bool):
        value = int(value)
    extracted = value if isinstance(value, int | float | str) or value is None else str(value)
    try:
        number = float(value) if isinstance(value, int | float) else 0.0
    except OverflowError:  # a whole number of hundreds of digits
        number = 0.0
    return OfficialScore(extracted, number)
