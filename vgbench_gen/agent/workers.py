"""Runs tools: in processes for short calls, in one process per device that keeps weights, or in the event loop.

A tool that crashes or hangs loses its own observation only; its process is started again.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pebble import ProcessExpired
from pydantic import ConfigDict

from vgbench_gen.agent.tool import PassingToolError, Tool, ToolInput, ToolOptions, ToolOutput, tools
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.executors.base import Result
from vgbench_gen.executors.local import WorkerPool

if TYPE_CHECKING:
    from vgbench_gen.tasks.solving import Image

LOAD_S = 900.0  # the time limit for reading weights from a slow disk and moving them to a device
MAX_OUTPUT_BYTES = 1 << 20  # the largest size of the values of one call, as JSON
# Larger images are shrunk before tools compute on them: SIFT takes 234 bytes a pixel, and a process must stay below
# 1 GB. The images of all our datasets are smaller.
MAX_PIXELS = 3_000_000
SHOWN = 400  # the most characters of a name or message that a model reads


@dataclass(frozen=True, slots=True)
class Observation:
    """The outcome of a call: the tool's result or a failure."""

    __pydantic_config__ = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")
    name: str
    """The tool's name, or an unknown name as the model wrote it."""
    arguments: Mapping[str, Any]
    """The arguments under their proper names."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """As `ToolOutput.values`."""
    images: tuple[bytes, ...] = ()
    """As `ToolOutput.images`."""
    failure: str = ""
    """unknown_tool, wrong_arguments, tool_error, timeout or crash; "" if the call succeeded."""
    message: str = ""
    """The error message for the model."""
    is_passing: bool = False
    """Whether the same call may have another outcome later; it is not kept then."""


class _CrashError(Exception):
    """The process of a call ended (crash), or the call took too long (timeout)."""


class Turns:
    """Lets `count` tasks through at once in each event loop."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def take(self) -> asyncio.Semaphore:
        """The semaphore of the running loop."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._count))


class Workers:
    """Runs calls of tools, `count` short ones at once; processes start with the first call that needs one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pools: dict[str, WorkerPool] = {}
        """By device; "" for short calls."""
        self._turns: dict[str, Turns] = {}
        """By device."""
        self._loaded: set[tuple[str, str, str]] = set()
        """(device, tool, options) whose weights are loaded."""

    async def call(
        self,
        tool: Tool,
        options: ToolOptions,
        arguments: Mapping[str, Any],
        images: Sequence[bytes],
        evidence: Mapping[str, Any],
    ) -> Observation:
        """Run a call. If it is cancelled its process is ended, unless the process keeps weights.

        Args:
            tool: registered, unless it runs in the event loop.
            options: settled.
            arguments: JSON-ready.
            images: JPEG or PNG.
            evidence: of the row, for oracle tools.

        Raises:
            ConfigError: the tool's models cannot be loaded, or no process starts.
        """
        inputs = (dict(arguments), tuple(images), dict(evidence))
        try:
            if tool.runs == "here":
                return await _run_here(tool, options, *inputs)
            if tool.runs == "process":
                return await self._call("", tool, options, inputs)
            # A cancelled call goes on, because ending the process would drop the weights that other calls need.
            running = asyncio.ensure_future(self._call_on_device(tool, options, inputs))
            running.add_done_callback(lambda done: done.cancelled() or done.exception())
            return await asyncio.shield(running)
        except _CrashError as error:
            return Observation(tool.name, arguments, failure=error.args[0], message=str(error.args[1])[:SHOWN])

    async def _call_on_device(self, tool: Tool, options: ToolOptions, inputs: tuple[Any, ...]) -> Observation:
        device = str(getattr(options, "device", "")) or "cpu"
        device = "cuda:0" if device == "cuda" else device
        loaded = (device, tool.key, options.model_dump_json())
        async with self._turns.setdefault(device, Turns(1)).take():
            try:
                if loaded not in self._loaded:
                    failure = f"{tool.name} was not loaded"
                    if problem := await self._submit(device, failure, LOAD_S, prepare_tool, tool.key, options):
                        raise ConfigError(problem)
                    self._loaded.add(loaded)
                return await self._call(device, tool, options, inputs)
            except BaseException:  # the process may have ended, and its weights with it
                self._loaded = {entry for entry in self._loaded if entry[0] != device}
                raise

    async def _call(self, device: str, tool: Tool, options: ToolOptions, inputs: tuple[Any, ...]) -> Observation:
        failure = f"{tool.name} gave nothing"
        return await self._submit(device, failure, tool.timeout_s, run_call, tool.key, options, *inputs)

    async def _submit(
        self, device: str, failure: str, limit_s: float, function: Callable[..., Result], *args: Any
    ) -> Result:
        """The result of a function in a process; `failure` starts the message of a crash or a timeout."""
        if device not in self._pools:
            self._pools[device] = WorkerPool(1 if device else self._count, load_tools)
        try:
            return await asyncio.wrap_future(self._pools[device].submit(function, *args, limit_s=limit_s))
        except BrokenProcessPool:
            raise ConfigError(
                "tools: their processes do not start. In a script of your own, put the calls under "
                '`if __name__ == "__main__":`, because each process imports the script again.'
            ) from None
        except TookTooLong:
            raise _CrashError("timeout", f"{failure} in {limit_s:g} seconds") from None
        except ProcessExpired as error:
            raise _CrashError("crash", f"{failure}: its process crashed (status {error.exitcode})") from None

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools.values():
            pool.stop()
        self._pools.clear()
        self._loaded.clear()


async def _run_here(
    tool: Tool, options: ToolOptions, arguments: Mapping[str, Any], images: Sequence[bytes], evidence: Mapping[str, Any]
) -> Observation:
    outcome: ToolOutput | Exception
    try:
        async with asyncio.timeout(tool.timeout_s):
            outcome = await tool.run_here(_open_input(tool, options, arguments, images, evidence))
    except TimeoutError as error:
        raise _CrashError("timeout", str(error) or f"{tool.name} gave nothing in {tool.timeout_s:g} seconds") from None
    except Exception as error:
        outcome = error
    return _describe(tool, arguments, outcome)


def load_tools() -> None:
    """Import all tools; done when a process starts, so that it does not count against a call's time limit."""
    tools.names()


def prepare_tool(key: str, options: ToolOptions) -> str:
    """Load a tool's models, in the process of the device; an error message, or ""."""
    try:
        options.prepare()
    except ConfigError as error:
        return str(error)
    except Exception as error:
        return f"{tools[key].name} cannot be loaded ({type(error).__name__}: {error})"
    return ""


def run_call(
    key: str, options: ToolOptions, arguments: Mapping[str, Any], images: Sequence[bytes], evidence: Mapping[str, Any]
) -> Observation:
    """Run a call; this function runs in a process."""
    tool = tools[key]
    outcome: ToolOutput | Exception
    try:
        outcome = tool.run(_open_input(tool, options, arguments, images, evidence))
    except Exception as error:
        outcome = error
    return _describe(tool, arguments, outcome)


def _open_input(
    tool: Tool, options: ToolOptions, arguments: Mapping[str, Any], images: Sequence[bytes], evidence: Mapping[str, Any]
) -> ToolInput:
    return ToolInput(tool.Arguments.model_validate_json(json.dumps(arguments)), open_images(images), options, evidence)


def _describe(tool: Tool, arguments: Mapping[str, Any], outcome: ToolOutput | Exception) -> Observation:
    message, is_passing = "", False
    if isinstance(outcome, ToolOutput):
        try:
            text = json.dumps(outcome.values, allow_nan=False)
        except (ValueError, TypeError, RecursionError) as error:
            message = f"{tool.name}: {error}"
        else:
            if len(text) <= MAX_OUTPUT_BYTES:
                return Observation(tool.name, arguments, json.loads(text), outcome.images)
            message = f"{tool.name}: the result is larger than {MAX_OUTPUT_BYTES} bytes"
    elif isinstance(outcome, VGBenchError):
        message, is_passing = str(outcome) or type(outcome).__name__, isinstance(outcome, PassingToolError)
    else:
        message, is_passing = f"{tool.name} failed ({type(outcome).__name__}: {outcome})", True
    return Observation(tool.name, arguments, failure="tool_error", message=message[:SHOWN], is_passing=is_passing)


def open_images(images: Sequence[bytes]) -> list[Image]:
    """The images of a call, undecoded; tools compute on at most `MAX_PIXELS` of each."""
    from vgbench_gen.tasks.solving import Image

    return [Image(data, f"image {k} of the call", MAX_PIXELS) for k, data in enumerate(images, 1)]
