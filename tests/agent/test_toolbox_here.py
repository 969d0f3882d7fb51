"""Tools that run in the event loop: what they give, and what they cost where they hang, fail or give too much."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import Field

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.images import ImageBook
from vgbench_gen.agent.results import ResultCache
from vgbench_gen.agent.tool import ImageName, PassingToolError, Place, Tier, Tool, ToolError, ToolInput, ToolOutput
from vgbench_gen.agent.toolbox import Observation, Toolbox
from vgbench_gen.agent.worker import MAX_OUTPUT_BYTES
from vgbench_gen.core.config import Config
from vgbench_gen.store.pictures import encode_jpeg


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    how: str = Field(default="well", description="what happens")


class Echo(Tool):
    name = "Echo"
    tier: ClassVar[Tier] = "remote"
    runs: ClassVar[Place] = "here"
    does = "Says how large the image is in bytes."
    Arguments = _Arguments
    returns: ClassVar = {"size_bytes": "of the image"}
    timeout_s = 0.05

    def run(self, given: ToolInput) -> ToolOutput:
        raise AssertionError("never called")

    async def run_here(self, given: ToolInput) -> ToolOutput:
        assert isinstance(given.arguments, _Arguments)
        match given.arguments.how:
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
        return ToolOutput({"size_bytes": len(given.images[0].data)})


def call(how: str, kept: ResultCache | None = None) -> tuple[Observation, int]:
    """(what a call gives, how many calls were made) of a new toolbox."""
    picture = encode_jpeg(np.zeros((8, 8, 3), np.uint8))
    box, book = Toolbox([Echo()], kept=kept), ImageBook([picture])
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


@pytest.mark.parametrize(("how", "again"), [("well", 0), ("refuses", 0), ("is down", 1), ("breaks", 1), ("hangs", 1)])
def test_what_passes_is_not_kept(tmp_path: Path, how: str, again: int) -> None:
    kept = ResultCache(tmp_path / "tools")
    first, made = call(how, kept)
    second, anew = call(how, kept)
    values: dict[str, Any] = dict(second.values)
    assert (made, anew, values) == (1, again, dict(first.values))
    assert ("size_bytes" in values) == (how == "well")
