"""What runs in the processes of tools: nothing that goes wrong there costs more than an observation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vgbench_gen.agent.tool import PassingToolError, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.errors import ConfigError, VGBenchError

if TYPE_CHECKING:
    from vgbench_gen.tasks.solving import Image

MAX_OUTPUT_BYTES = 1 << 20  # of the values of one call
# Of an image that a tool computes on: SIFT takes 234 bytes for each, and a process shall stay below 1 GB. The images of
# all our data sets are smaller.
MAX_PIXELS = 3_000_000
SHOWN = 400  # characters of a name or problem that is told back
Asked = tuple[str, tuple[bytes, ...], dict[str, Any]]
"""(arguments as JSON, images, evidence) of one call."""
Packed = tuple[dict[str, Any], tuple[bytes, ...], str, bool]
"""(values, images, problem, whether the problem may be gone another time)."""


def load_tools() -> None:
    """Import all tools; when a process starts, so that no call's time limit pays for it."""
    tools.names()


def prepare_tool(name: str, options: str) -> str:
    """Why a tool cannot be loaded, or ""; runs in the process of the device."""
    tool = tools[name]
    try:
        tool.prepare(tool.Options.model_validate_json(options))
    except ConfigError as error:
        return str(error)
    except Exception as error:
        return f"{tool.name} cannot be loaded ({type(error).__name__}: {error})"
    return ""


def run_calls(name: str, options: str, asked: Sequence[Asked]) -> list[Packed]:
    """What each call gave; runs in a process of its own.

    A pass that fails as a whole is halved, so that one call cannot spoil its neighbours'.
    """
    tool = tools[name]
    settled = tool.Options.model_validate_json(options)
    given = [
        ToolInput(tool.Arguments.model_validate_json(arguments), open_images(images), settled, evidence)
        for arguments, images, evidence in asked
    ]
    return [pack(tool, outcome) for outcome in _run_halving(tool, given)]


def _run_halving(tool: Tool, given: Sequence[ToolInput]) -> list[ToolOutput | Exception]:
    try:
        return [*tool.run_batch(given)]
    except Exception as error:
        if len(given) == 1:
            return [error]
    half = len(given) // 2
    return _run_halving(tool, given[:half]) + _run_halving(tool, given[half:])


def pack(tool: Tool, outcome: ToolOutput | Exception) -> Packed:
    """What a call gave, or why it gave nothing, as it goes from process to process."""
    if isinstance(outcome, ToolOutput):
        try:
            text = json.dumps(outcome.values, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            return {}, (), f"{tool.name}: {error}"[:SHOWN], False
        if len(text) > MAX_OUTPUT_BYTES:
            return {}, (), f"{tool.name}: the result is larger than {MAX_OUTPUT_BYTES} bytes", False
        return json.loads(text), outcome.images, "", False
    if isinstance(outcome, VGBenchError):
        return {}, (), str(outcome)[:SHOWN] or type(outcome).__name__, isinstance(outcome, PassingToolError)
    return {}, (), f"{tool.name} failed ({type(outcome).__name__}: {outcome})"[:SHOWN], True


def unpack(answer: Packed) -> ToolOutput | ToolError:
    """The inverse of `pack`."""
    values, made, problem, passes = answer
    if problem:
        return PassingToolError(problem) if passes else ToolError(problem)
    return ToolOutput(values, made)


def open_images(images: Sequence[bytes]) -> list[Image]:
    """The images of a call, not yet decoded; what is computed is computed on at most `MAX_PIXELS` of each."""
    from vgbench_gen.tasks.solving import Image

    return [Image(data, f"image {k} of the call", MAX_PIXELS) for k, data in enumerate(images, 1)]
