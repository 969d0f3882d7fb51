"""What models write is read as they mean it; what cannot be read ends in a sentence, at once and never as code."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vgbench_gen.agent.calls import MAX_CALLS, ToolCall, parse_plan, parse_step

CROP: dict[str, Any] = {"name": "Crop", "arguments": {"image": "image-0", "bbox": [0, 0, 0.5, 1]}}
LOOK: dict[str, Any] = {"name": "SelfThinking", "arguments": {"image": "image-0", "query": "What's [left] of it?"}}
PLAN = [CROP, LOOK]
READ = tuple(ToolCall(str(call["name"]), dict(call["arguments"])) for call in PLAN)
TEXT = json.dumps(PLAN)


@pytest.mark.parametrize(
    "text",
    [
        TEXT,
        f"```json\n{TEXT}\n```",
        f'"json\n{TEXT}\n"',
        f"First I'd [try] {{this}}:\n```json\n[{json.dumps(LOOK)}]\n```\nNo, better:\n```json\n{TEXT}\n```\nThat's it.",
        f"<think>[{json.dumps(LOOK)}]</think>{TEXT}",
        f"```json\n{json.dumps(CROP)}\n```\nand then\n```json\n{json.dumps(LOOK)}\n```",
        f"{TEXT[:-1]},]",
        TEXT.replace("}}", ",},}"),
        repr(PLAN),
        f"{{'plan': {PLAN!r}}}",
        json.dumps([{**CROP, "arguments": json.dumps(CROP["arguments"])}, LOOK]),
        json.dumps([{"function": CROP}, {"tool": "SelfThinking", "parameters": LOOK["arguments"]}]),
        f"An interval [0, 1) and an unclosed {{ before {TEXT}",
        f'{TEXT[:-1]}, {{"name": "Crop", "argum',
    ],
)
def test_a_plan_is_read_however_it_is_written(text: str) -> None:
    assert parse_plan(text).calls == READ


def test_json_and_python_words_may_be_mixed() -> None:
    found = parse_plan(
        """[{'name': 'A', "arguments": {"a": True, 'b': null, "c": "None, true", 'd': false, "e": (1, 2)}}]"""
    )
    assert found.calls == (ToolCall("A", {"a": True, "b": None, "c": "None, true", "d": False, "e": [1, 2]}),)


@pytest.mark.parametrize(
    "text", ["", "I cannot plan this.", "[1, 2]", '[{"label": "dog", "name": "dog"}]', "{'a': {1, 2}}"]
)
def test_what_holds_no_calls_is_said(text: str) -> None:
    assert parse_plan(text).problem
    assert parse_step(text).problem


def test_an_empty_list_calls_none_and_endless_ones_are_refused() -> None:
    assert parse_plan("```json\n[]\n```") == parse_plan("[]")
    assert not parse_plan("[]").problem
    assert str(MAX_CALLS) in parse_plan(json.dumps([CROP] * (MAX_CALLS + 1))).problem


def test_the_first_action_of_a_step_comes_first_whatever_follows() -> None:
    step = {"thought": "It's near", "actions": [CROP, LOOK]}
    end = {"thought": "", "actions": [{"name": "Terminate", "arguments": {"answer": "<answer>B</answer>"}}]}
    found = parse_step(f"Well:\n{json.dumps(step)}\nOBSERVATION: {{'result': 1}}\n{json.dumps(end)}")
    assert found.thought == "It's near"
    assert [call.name for call in found.calls] == ["Crop", "SelfThinking", "Terminate"]
    assert parse_step(json.dumps({"thought": "x", "action": CROP})).calls == READ[:1]
    assert parse_step(f"{json.dumps(step)[:-2]}").calls == READ  # a model that forgets to close its brackets
    assert parse_step('{"thought": "x", "actions": []}').problem == ""
    assert parse_step('{"thought": "x", "actions": [{"image": "image-0"}]}').problem


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000, "{" * 100_000, "[]" * 50_000, "[x]" * 33_000, "[" * 39 + "[x] " * 25_000, '["' + '\\"' * 50_000,
        "{'" * 50_000, "[" + "(" * 90_000, "[" + "-" * 90_000 + "1]", '{"a":' * 20_000, "```" + " " * 100_000,
        "[9**9**9**9]", "</think>" * 12_000, '{"name": "A", "arguments": {"n": ' + "9" * 50_000 + "}}",
    ],
    ids=str.split("brackets braces empty words nested quotes apostrophes parens signs keys fence power tags digits"),
)  # fmt: skip
def test_bombs_end_in_a_line_at_once(text: str) -> None:
    started = time.process_time()
    assert parse_plan(text).problem or not parse_plan(text).calls
    parse_step(text)
    assert time.process_time() - started < 2


def test_text_is_never_run(tmp_path: Path) -> None:
    mark = tmp_path / "made"
    text = f"[{{'name': __import__('pathlib').Path({str(mark)!r}).touch() or 'A', 'arguments': {{}}}}]"
    assert parse_plan(text).problem
    assert not mark.exists()


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), values, max_size=4), st.text(), st.text(), st.booleans())
def test_every_object_is_read_back_from_prose(arguments: dict[str, Any], before: str, after: str, ascii: bool) -> None:
    before, after = (text.translate({ord(sign): None for sign in "[]{}<>"}) for text in (before, after))
    call = json.dumps({"name": "A", "arguments": arguments}, ensure_ascii=ascii)
    read = (ToolCall("A", json.loads(json.dumps(arguments).encode("utf-8", "replace"))),)
    assert parse_plan(f"{before}[{call}]{after}").calls == read
    assert parse_step(f'{before}{{"thought": "", "actions": [{call}]}}{after}').calls == read


@given(st.text(st.sampled_from("[]{}\",':\\ naA1-e.\n"), max_size=60))
def test_nothing_raises(text: str) -> None:
    parse_plan(text)
    parse_step(text)
