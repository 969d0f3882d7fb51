"""Finds tool calls in a model's text, also with code fences, prose, trailing commas, single quotes, Python literals.

Text is parsed, never run. A text without calls gives a sentence that is sent back to the model. Complete calls are
also found inside brackets of prose and in replies that were cut off.
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
MAX_CALLS = 20  # the most calls in a plan
_MAX_READ = 10 * MAX_CHARACTERS  # characters that may be parsed in total, because brackets are tried from each opening
_EACH = 1000  # characters added to the cost of each try, so that their number is bounded too
_THOUGHT = re.compile(r"</(?:think|thinking|reasoning|analysis|reflection)>", re.IGNORECASE)
# Strings and escaped characters are skipped; a quote without a second one, such as an apostrophe, begins no string.
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
    """A call as a model wrote it, unchecked."""

    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ParsedCalls:
    """The calls in a reply, or why it cannot be parsed."""

    calls: tuple[ToolCall, ...] = ()
    thought: str = ""
    """The text of the field "thought", where the reply has one."""
    problem: str = ""
    """Why the reply cannot be parsed; "" if it can."""


def parse_plan(text: str) -> ParsedCalls:
    """The calls of a plan: the last list of calls, or all calls outside lists, in order. An empty list calls none."""
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
    """The calls of a step of ReAct, {"thought": ..., "actions": [...]}, and of further steps that a model wrote without
    waiting for results. Calls outside such objects are read too."""
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
            written = value.get("thought") if isinstance(value, Mapping) else None
            thought = written if isinstance(written, str) else ""
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
    """The calls in a list; None if one of its members is no call."""
    calls = [_read_call(value) for value in values]
    return None if None in calls else [call for call in calls if call is not None]


def _read_call(value: Any) -> ToolCall | None:
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("function"), Mapping):  # the form of chat completions
        value = value["function"]
    name = value.get("name", value.get("tool"))
    if not isinstance(name, str) or not name.strip():
        return None
    key = next((key for key in _ARGUMENTS if key in value), None)
    if key is None:  # a name alone is a call without arguments; a name with other fields is no call
        return ToolCall(name.strip(), {}) if set(value) <= {"name", "tool", "thought"} else None
    arguments = value[key]
    if isinstance(arguments, str):  # some models write the arguments as JSON in a string
        arguments = next(iter(_list_values(arguments)), {} if not arguments.strip() else None)
    return ToolCall(name.strip(), arguments or {}) if isinstance(arguments, Mapping | None) else None


def _list_values(text: str) -> list[Any]:
    """Lists and objects of a text in order: those after the last block of thoughts, or all if none come after it."""
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
    """The index after the bracket that closes the one at `start`, ignoring brackets in strings; None if none does."""
    stack: list[str] = []
    unclosed: set[str] = set()  # quote characters that have no second one in the rest, such as an apostrophe
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
    """The value of a JSON or Python literal, restricted to JSON types; None if it is neither."""
    for attempt in (text, _PARTS.sub(lambda part: "" if part["comma"] else part[0], text)):
        try:
            return _make_plain(json.loads(attempt, parse_constant=lambda name: None))
        except (ValueError, RecursionError):
            continue
    python = _PARTS.sub(lambda part: _PYTHON.get(part["word"] or "", part[0]), text)
    try:
        with warnings.catch_warnings(action="ignore"):  # Python warns of unknown escapes
            return _make_plain(ast.literal_eval(python))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _make_plain(value: Any) -> Any:
    """The value as JSON and UTF-8 can represent it: sets and infinite numbers raise, lone surrogates become "?"."""
    return json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace"))
