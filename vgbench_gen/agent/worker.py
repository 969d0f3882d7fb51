"""What runs in the processes of tools: nothing that goes wrong there costs more than an observation."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
Packed = tuple[dict[str, Any], tuple[bytes, ...], str, bool]
"""(values, images, problem, whether the problem may be gone another time)."""


def run_tool(
    name: str, arguments: str, options: str, evidence: Mapping[str, Any], images: Sequence[bytes]
) -> tuple[dict[str, Any], tuple[bytes, ...], str]:
    """(values, images, problem) of one call; runs in a worker."""
    tool = tools[name]
    given = ToolInput(
        tool.Arguments.model_validate_json(arguments),
        open_images(images),
        tool.Options.model_validate_json(options),
        evidence,
    )
    try:
        made = tool.run(given)
        return check_values(made.values), made.images, ""
    except VGBenchError as error:
        return {}, (), str(error)[:SHOWN]
    except Exception as error:
        # A tool of somebody else may raise anything, and it costs no more than its observation.
        return {}, (), f"{name} failed ({type(error).__name__}: {error})"[:SHOWN]


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


def run_calls(name: str, options: str, asked: Sequence[tuple[str, Sequence[bytes]]]) -> list[Packed]:
    """What each call gave; runs in the process of the device.

    A pass that fails as a whole is halved, so that one call cannot spoil its neighbours'.
    """
    tool = tools[name]
    settled = tool.Options.model_validate_json(options)
    given = [
        ToolInput(tool.Arguments.model_validate_json(arguments), open_images(images), settled)
        for arguments, images in asked
    ]
    return [_pack(tool, outcome) for outcome in _run_halving(tool, given)]


def _run_halving(tool: Tool, given: Sequence[ToolInput]) -> list[ToolOutput | Exception]:
    try:
        return [*tool.run_batch(given)]
    except Exception as error:
        if len(given) == 1:
            return [error]
    half = len(given) // 2
    return _run_halving(tool, given[:half]) + _run_halving(tool, given[half:])


def _pack(tool: Tool, outcome: ToolOutput | Exception) -> Packed:
    if isinstance(outcome, ToolOutput):
        try:
            return check_values(outcome.values), outcome.images, "", False
        except (ToolError, ValueError, TypeError) as error:
            return {}, (), f"{tool.name}: {error}"[:SHOWN], False
    if isinstance(outcome, VGBenchError):
        return {}, (), str(outcome)[:SHOWN], isinstance(outcome, PassingToolError)
    return {}, (), f"{tool.name} failed ({type(outcome).__name__}: {outcome})"[:SHOWN], True


def open_images(images: Sequence[bytes]) -> list[Image]:
    """The images of a call, not yet decoded; what is computed is computed on at most `MAX_PIXELS` of each."""
    from vgbench_gen.tasks.solving import Image

    return [Image(data, f"image {k} of the call", MAX_PIXELS) for k, data in enumerate(images, 1)]


def check_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values as they come out of JSON.

    Raises:
        ToolError: they are too large.
        ValueError: they are no JSON.
    """
    text = json.dumps(values, allow_nan=False)
    if len(text) > MAX_OUTPUT_BYTES:
        raise ToolError(f"the result is larger than {MAX_OUTPUT_BYTES} bytes")
    checked: dict[str, Any] = json.loads(text)
    return checked
