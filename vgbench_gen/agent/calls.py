"""Tool calls in what models write: several fences, prose around, trailing commas, single quotes, Python literals.

Text is read, never run. What cannot be read is said in a sentence that goes back to the model.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 100_000
MAX_DEPTH = 40
MAX_CALLS = 20  # of a plan
_FENCE = re.compile(r"```[a-zA-Z]*\s*\n?(.*?)```", re.DOTALL)
_WORDS = re.compile(r"\b(true|false|null|NaN)\b")
_PYTHON = {"true": "True", "false": "False", "null": "None", "NaN": "None"}
_TRAILING = re.compile(r",(\s*[\]}])")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'', re.DOTALL)
_CLOSING = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a model wrote it; nothing of it is checked yet."""

    name: str
    """Of the tool."""
    arguments: Mapping[str, Any]
    """By name."""


@dataclass(frozen=True, slots=True)
class ParsedCalls:
    """What was read in a reply."""

    calls: tuple[ToolCall, ...] = ()
    """In order."""
    thought: str = ""
    """What the model says it thinks."""
    problem: str = ""
    """Why there is no reading it; "" where there is."""


def parse_plan(text: str) -> ParsedCalls:
    """A list of calls: the last value that is one, fenced ones first; a single call stands for a list of it."""
    for value in _find_values(text):
        listed = value if isinstance(value, list) else [value]
        calls = [call for call in map(_read_call, listed) if call is not None]
        if calls and len(calls) == len(listed):
            if len(calls) > MAX_CALLS:
                return ParsedCalls(problem=f"found {len(calls)} calls; expected at most {MAX_CALLS}")
            return ParsedCalls(tuple(calls))
    return ParsedCalls(problem='found no JSON list of {"name": ..., "arguments": {...}}')


def parse_step(text: str) -> ParsedCalls:
    """A step of ReAct: {"thought": ..., "actions": [...]}. `action` and a bare call are read as well."""
    for value in _find_values(text):
        if not isinstance(value, Mapping):
            continue
        thought = value.get("thought", "")
        listed = value.get("actions", value.get("action"))
        if listed is None:
            listed = [value] if _read_call(value) is not None else None
        listed = [listed] if isinstance(listed, Mapping) else listed
        if not isinstance(listed, list):
            continue
        calls = [_read_call(each) for each in listed]
        if None in calls:
            return ParsedCalls(problem='found an action without a name; expected {"name": ..., "arguments": {...}}')
        return ParsedCalls(tuple(call for call in calls if call), thought if isinstance(thought, str) else "")
    return ParsedCalls(problem='found no JSON object {"thought": ..., "actions": [...]}')


def _read_call(value: object) -> ToolCall | None:
    if not isinstance(value, Mapping) or not isinstance(name := value.get("name"), str) or not name.strip():
        return None
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):  # some servers' models write the arguments as JSON in a text
        arguments = next(_find_values(arguments), None)
    return ToolCall(name.strip(), arguments) if isinstance(arguments, Mapping) else None


def _find_values(text: str) -> Iterator[Any]:
    """Lists and objects in a text: those of fences first, then those anywhere, the outermost and the last first."""
    text = text[:MAX_CHARACTERS]
    fenced = [match[1] for match in _FENCE.finditer(text)]
    for part in [*fenced[::-1], text]:
        for found in [*_find_brackets(part)][::-1]:
            value = _read_value(found)
            if isinstance(value, list | dict):
                yield value


def _find_brackets(text: str) -> Iterator[str]:
    """Outermost bracketed parts in order; brackets within strings do not count."""
    stack: list[str] = []
    start = k = 0
    while k < len(text):
        sign = text[k]
        if stack and sign in "\"'" and (string := _STRING.match(text, k)):
            # An apostrophe in prose opens no string that ends at another one beyond a bracket.
            k = string.end()
            continue
        if sign in _CLOSING:
            if not stack:
                start = k
            stack.append(_CLOSING[sign])
            if len(stack) > MAX_DEPTH:
                return
        elif stack and sign == stack[-1]:
            stack.pop()
            if not stack:
                yield text[start : k + 1]
        k += 1


def _read_value(text: str) -> Any:
    """A JSON or Python literal as plain JSON has it; None where it is neither."""
    for attempt in (text, _outside_strings(text, lambda part: _TRAILING.sub(r"\1", part))):
        try:
            return _make_plain(json.loads(attempt, parse_constant=lambda name: None))
        except (ValueError, RecursionError):
            continue
    python = _outside_strings(text, lambda part: _WORDS.sub(lambda match: _PYTHON[match[1]], part))
    try:
        return _make_plain(ast.literal_eval(python))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _make_plain(value: Any) -> Any:
    """Without what JSON and UTF-8 cannot say: sets and infinite numbers raise, half a surrogate pair becomes "?"."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))


def _outside_strings(text: str, change: Callable[[str], str]) -> str:
    parts, at = [], 0
    for match in _STRING.finditer(text):
        parts += [change(text[at : match.start()]), match[0]]
        at = match.end()
    return "".join([*parts, change(text[at:])])
