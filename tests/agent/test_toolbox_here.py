"""Tools that run in the event loop: what they give, and what they cost where they hang, fail or give too much."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import warnings
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import (
    ImageName,
    PassingToolError,
    Place,
    Tier,
    Tool,
    ToolError,
    ToolInput,
    ToolOutput,
    tools,
)
from vgbench_gen.agent.toolbox import Toolbox
from vgbench_gen.agent.workers import MAX_OUTPUT_BYTES, Observation
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.store.pictures import encode_jpeg


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    how: str = Field(default="well", description="what happens")


class Echo(Tool):
    key = name = "Echo"
    tier: ClassVar[Tier] = "remote"
    runs: ClassVar[Place] = "here"
    does = "Says how large the image is in bytes."
    Arguments = _Arguments
    returns: ClassVar = {"size_bytes": "of the image"}
    timeout_s = 0.05

    def run(self, inputs: ToolInput) -> ToolOutput:
        raise AssertionError("never called")

    async def run_here(self, inputs: ToolInput) -> ToolOutput:
        assert isinstance(inputs.arguments, _Arguments)
        match inputs.arguments.how:
            case "hangs":
                await asyncio.sleep(10)
            case "refuses":
                raise ToolError("cannot")
            case "is down":
                raise PassingToolError("down")
            case "breaks":
                raise RuntimeError("defect")
            case "floods":
                return ToolOutput({"text": "x" * MAX_OUTPUT_BYTES})
            case "counts to infinity":
                return ToolOutput({"number": float("inf")})
        return ToolOutput({"size_bytes": len(inputs.images[0].data)})


def call(how: str, kept: ResultCache | None = None) -> tuple[Observation, int]:
    """(what a call gives, how many calls were made) of a new toolbox."""
    picture = encode_jpeg(np.zeros((8, 8, 3), np.uint8))
    box, book = Toolbox([Echo()], cache=kept), ImageBook([picture])
    read = box.read(ToolCall("echo", {"image": "image-0", "how": how}), book)
    assert isinstance(read, tuple)
    return asyncio.run(box.call(*read, book)), box.calls


@pytest.mark.parametrize(
    ("how", "failure", "said"),
    [
        ("hangs", "timeout", "0.05 seconds"),
        ("refuses", "tool_error", "cannot"),
        ("is down", "tool_error", "down"),
        ("breaks", "tool_error", "RuntimeError"),
        ("floods", "tool_error", "larger than"),
        ("counts to infinity", "tool_error", "JSON"),
    ],
)
def test_a_failure_costs_the_observation(how: str, failure: str, said: str) -> None:
    seen, _ = call(how)
    assert (seen.failure, said in seen.message, dict(seen.values)) == (failure, True, {})


def compute(expression: str) -> Mapping[str, Any]:
    tool = tools["Calculate"]
    return tool.run(ToolInput(tool.Arguments.model_validate({"expression": expression}), [])).values


@pytest.mark.parametrize(
    "expression",
    ["1 if '%9d' % 1 else 2", "1 if 'a' * 9 else 2", "1 if f'{1:9}' else 2", "1 if 'a' < 'b' else 2", "len('a')"]
    + ["0 * round(12345, -5000)", "0 * round(1.5, 10 ** 9)", "0 * 2 ** 5000", "0 * (1 << 5000)", "0 * 10 ** 9999"]
    + ["0 * 9999999999 ** 999", "1 if b'%9d' % 1 else 2", "max('abc')", "max([1, 2])", "max(1, 2, key=abs)", "1j * 1j"]
    + ["(1).real", "(1).__class__", "0 if abs else 1", "lambda: 1", "x", "[1][0]", "10 ** 400", "2 ** 0.5 ** -9999"],
)
def test_arithmetic_makes_nothing_but_numbers_of_bounded_size(expression: str) -> None:
    with pytest.raises(ToolError, match="cannot compute"):
        compute(expression)


@given(st.text("0123456789.+-*/%()^<>~ 'e", max_size=40))
def test_results_of_arithmetic_are_finite_numbers(expression: str) -> None:
    with suppress(ToolError), warnings.catch_warnings(action="ignore"):  # of literals that Python does not like
        made = compute(expression)
        assert type(made["result"]) in (int, float)
        assert len(json.dumps(made, allow_nan=False)) < 400


@pytest.mark.parametrize(
    ("expression", "result"),
    [
        ("round(2.567, 2)", 2.57),
        ("round(2.567, ndigits=1)", 2.6),
        ("round(2.5)", 2),
        ("2 ** 10 % 7", 2),
        ("2 ^ -1", 0.5),
    ]
    + [("-7 // 2", -4), ("3 if 2 > 1 else 4", 3), ("1 << 9", 512)],
)
def test_arithmetic_is_that_of_python(expression: str, result: float) -> None:
    assert compute(expression) == {"result": result}


@pytest.mark.parametrize(("how", "again"), [("well", 0), ("refuses", 0), ("is down", 1), ("breaks", 1), ("hangs", 1)])
def test_what_passes_is_not_kept(tmp_path: Path, how: str, again: int) -> None:
    kept = ResultCache(tmp_path / "tools")
    first, made = call(how, kept)
    second, anew = call(how, kept)
    values: dict[str, Any] = dict(second.values)
    assert (made, anew, values) == (1, again, dict(first.values))
    assert ("size_bytes" in values) == (how == "well")


def test_a_damaged_row_is_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "tools"
    first, _ = call("well", ResultCache(path))
    with closing(sqlite3.connect(path)) as file, file:
        (changed,) = [file.execute("UPDATE kept SET text = ?", (b"[{}, [], ",)).rowcount]
    assert (changed, *call("well", ResultCache(path))) == (1, first, 1)
    assert call("well", ResultCache(path)) == (first, 0)


def test_images_of_a_call_and_of_a_run_are_bounded_together(monkeypatch: pytest.MonkeyPatch) -> None:
    picture = encode_jpeg(np.zeros((8, 8, 3), np.uint8))
    monkeypatch.setattr("vgbench_gen.agent.toolbox.MAX_CALL_BYTES", len(picture) - 1)
    seen, _ = call("well")
    assert (seen.failure, "bytes" in seen.message) == ("tool_error", True)
    monkeypatch.setattr("vgbench_gen.agent.images.MAX_MADE_BYTES", 2 * len(picture))
    book = ImageBook([picture] * 5)  # those of the question do not count
    for _ in range(2):
        book.add(picture, "Crop")
    with pytest.raises(DatasetError, match="made by tools"):
        book.add(picture, "Crop")
    assert len(book) == 7
