"""Tool calls in what models write: fences, prose around, trailing commas, single quotes, Python literals.

Text is read, never run. What cannot be read is said in a sentence that goes back to the model. Brackets of prose and
of replies that were cut off are looked into, so that calls that are whole are found there.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

MAX_CHARACTERS = 100_000
MAX_DEPTH = 40
MAX_CALLS = 20  # of a plan
_MAX_READ = 10 * MAX_CHARACTERS  # of parts that may turn out to be no values, all together
_EACH = 1000  # that each part counts on top, so that there are not too many
_THOUGHT = re.compile(r"</(?:think|thinking|reasoning|analysis|reflection)>", re.IGNORECASE)
# Strings and escaped signs are passed over; a quote without a second one, such as an apostrophe, begins no string.
_PARTS = re.compile(
    r"""\\.|"(?:[^"\\]|\\.)*+"|'(?:[^'\\]|\\.)*+'|(?P<comma>,)(?=\s*[\]}])|\b(?P<word>true|false|null|NaN)\b""",
    re.DOTALL,
)
_PYTHON = {"true": "True", "false": "False", "null": "None", "NaN": "None"}
_SIGNS = re.compile(r"[\[\]{}\"']")
_STRINGS = {'"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL), "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.DOTALL)}
_OPENING = re.compile(r"[\[{]")
_CLOSING = {"{": "}", "[": "]"}
_LISTS = ("actions", "action", "plan", "calls", "tool_calls")
_ARGUMENTS = ("arguments", "parameters", "args")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a model wrote it; nothing of it is checked yet."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedCalls:
    """What was read in a reply."""

    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    """What the model says it thinks."""
    problem: str = ""
    """Why there is no reading it; "" where there is."""


def parse_plan(text: str) -> ParsedCalls:
    """The calls of a plan: the last list of calls, or all that stand alone, in order. An empty list calls none."""
    values = [_open_list(value) for value in _list_values(text)]
    lists = [calls for value in values if isinstance(value, list) and (calls := _read_calls(value)) is not None]
    alone = [call for call in map(_read_call, values) if call is not None]
    calls = next((calls for calls in lists[::-1] if calls), alone)
    if not calls and not lists:
        return ParsedCalls(problem='found no JSON list of {"name": ..., "arguments": {...}}')
    if len(calls) > MAX_CALLS:
        return ParsedCalls(problem=f"found {len(calls)} calls; expected at most {MAX_CALLS}")
    return ParsedCalls(tuple(calls))


def parse_step(text: str) -> ParsedCalls:
    """The calls of a step of ReAct, {"thought": ..., "actions": [...]}, and of the steps that a model wrote after it
    without waiting; bare calls are read as well."""
    calls: list[ToolCall] = []
    thought: str | None = None
    for value in _list_values(text):
        if isinstance(value, Mapping) and isinstance(listed := _open_list(value), list):
            read = _read_calls(listed)
            if read is None and not calls:
                return ParsedCalls(problem='found an action that is not {"name": ..., "arguments": {...}}')
            calls += read or []
        elif (call := _read_call(value)) is not None:
            calls.append(call)
        else:
            read = _read_calls(value) if isinstance(value, list) else None
            if not read:
                continue
            calls += read
        if thought is None:
            said = value.get("thought") if isinstance(value, Mapping) else None
            thought = said if isinstance(said, str) else ""
    if thought is None:
        return ParsedCalls(problem='found no JSON object {"thought": ..., "actions": [...]}')
    return ParsedCalls(tuple(calls), thought)


def _open_list(value: Any) -> Any:
    """The list of calls in an object that holds one; any other value as it is."""
    if not isinstance(value, Mapping) or _read_call(value) is not None:
        return value
    for key in _LISTS:
        if isinstance(value.get(key), list | Mapping):
            return value[key] if isinstance(value[key], list) else [value[key]]
    return value


def _read_calls(values: list[Any]) -> list[ToolCall] | None:
    """None where one of them is no call."""
    calls = [_read_call(value) for value in values]
    return None if None in calls else [call for call in calls if call is not None]


def _read_call(value: Any) -> ToolCall | None:
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("function"), Mapping):  # as servers wrap calls
        value = value["function"]
    name = value.get("name", value.get("tool"))
    if not isinstance(name, str) or not name.strip():
        return None
    key = next((key for key in _ARGUMENTS if key in value), None)
    if key is None:  # a bare name calls without arguments; names with other things are no calls
        return ToolCall(name.strip(), {}) if set(value) <= {"name", "tool", "thought"} else None
    arguments = value[key]
    if isinstance(arguments, str):  # some servers' models write the arguments as JSON in a text
        arguments = next(iter(_list_values(arguments)), {} if not arguments.strip() else None)
    return ToolCall(name.strip(), arguments or {}) if isinstance(arguments, Mapping | None) else None


def _list_values(text: str) -> list[Any]:
    """Lists and objects of a text in order, those after the last block of thoughts where there are any."""
    text = text[-MAX_CHARACTERS:]
    ends = [match.end() for match in _THOUGHT.finditer(text)]
    return (ends and [*_find_values(text[ends[-1] :])]) or [*_find_values(text)]


def _find_values(text: str) -> Iterator[Any]:
    left, k = _MAX_READ, 0
    while left > 0 and (match := _OPENING.search(text, k)):
        k = match.start()
        end = _find_end(text, k)
        left -= _EACH + (end or len(text)) - k
        value = _read_value(text[k:end]) if end else None
        if isinstance(value, list | dict):
            yield value
            k = end or k
        else:
            k += 1


def _find_end(text: str, start: int) -> int | None:
    """Behind the bracket that closes the one at `start`; None where none does. Brackets within strings do not count."""
    stack: list[str] = []
    unclosed: set[str] = set()  # quotes without a second one, such as the apostrophe of a word
    k = start
    while match := _SIGNS.search(text, k):
        sign, k = match[0], match.end()
        if sign in _CLOSING:
            stack.append(_CLOSING[sign])
            if len(stack) > MAX_DEPTH:
                return None
        elif sign not in _STRINGS:
            if sign != stack.pop():
                return None
            if not stack:
                return k
        elif sign not in unclosed:
            string = _STRINGS[sign].match(text, k - 1)
            if string is None:
                unclosed.add(sign)
            else:
                k = string.end()
    return None


def _read_value(text: str) -> Any:
    """A JSON or Python literal as plain JSON has it; None where it is neither."""
    for attempt in (text, _PARTS.sub(lambda part: "" if part["comma"] else part[0], text)):
        try:
            return _make_plain(json.loads(attempt, parse_constant=lambda name: None))
        except (ValueError, RecursionError):
            continue
    python = _PARTS.sub(lambda part: _PYTHON.get(part["word"] or "", part[0]), text)
    try:
        with warnings.catch_warnings(action="ignore"):  # of escapes that Python does not know
            return _make_plain(ast.literal_eval(python))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _make_plain(value: Any) -> Any:
    """Without what JSON and UTF-8 cannot say: sets and infinite numbers raise, half a surrogate pair becomes "?"."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
