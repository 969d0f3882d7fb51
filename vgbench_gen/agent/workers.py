"""Where tools run: in processes for short calls, in one process per device that keeps weights, or in the event loop.

A tool that crashes or hangs costs its observation and nothing else; the process is started anew.
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

from vgbench_gen.agent.tool import PassingToolError, Tool, ToolInput, ToolOptions, ToolOutput, tools
from vgbench_gen.core.errors import ConfigError, VGBenchError
from vgbench_gen.executors.base import Result
from vgbench_gen.executors.local import WorkerPool

if TYPE_CHECKING:
    from vgbench_gen.tasks.solving import Image

LOAD_S = 900.0  # for weights to be read from a slow disk and put on a device
MAX_OUTPUT_BYTES = 1 << 20  # of the values of one call
# Of an image that a tool computes on: SIFT takes 234 bytes for each, and a process shall stay below 1 GB. The images of
# all our data sets are smaller.
MAX_PIXELS = 3_000_000
SHOWN = 400  # characters of a name or problem that is told back


@dataclass(frozen=True, slots=True)
class Observation:
    """What a call gave."""

    name: str
    """The tool, by its own name; as the model wrote it where there is none such."""
    arguments: Mapping[str, Any]
    """As the model wrote them, aliases put right."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the tool says."""
    images: tuple[bytes, ...] = ()
    """What it made."""
    failure: str = ""
    """unknown_tool, wrong_arguments, tool_error, timeout or crash; "" where it succeeded."""
    message: str = ""
    """What a model is told of the failure."""
    is_passing: bool = False
    """Whether the same call may give something else another time; it is not kept then."""


class _CrashError(Exception):
    """The process of a call ended (crash), or the call took too long (timeout)."""


class Turns:
    """Lets `count` tasks through at once in each event loop."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()

    def take(self) -> asyncio.Semaphore:
        """What a task of this loop waits for."""
        return self._turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(self._count))


class Workers:
    """Runs calls of tools, `count` short ones at once; processes start with the first call that needs one."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pools: dict[str, WorkerPool] = {}
        """By device; "" for short calls."""
        self._turns: dict[str, Turns] = {}
        self._loaded: set[tuple[str, str, str]] = set()
        """(device, tool, options) of what the processes of devices hold."""

    async def call(
        self,
        tool: Tool,
        options: ToolOptions,
        arguments: Mapping[str, Any],
        images: Sequence[bytes],
        evidence: Mapping[str, Any],
    ) -> Observation:
        """What a call gives. Where it is cancelled its process is ended, unless that keeps weights.

        Args:
            tool: registered, unless it runs in the event loop.
            options: settled.
            arguments: JSON-ready.
            images: JPEG or PNG.
            evidence: of the row, for oracle tools.

        Raises:
            ConfigError: what the tool needs cannot be loaded, or no process starts.
        """
        asked = (dict(arguments), tuple(images), dict(evidence))
        try:
            if tool.runs == "here":
                return await _run_here(tool, options, *asked)
            if tool.runs == "process":
                return await self._call("", tool, options, asked)
            # Who no longer waits for a call leaves the process and its weights to the others.
            running = asyncio.ensure_future(self._call_on_device(tool, options, asked))
            running.add_done_callback(lambda done: done.cancelled() or done.exception())
            return await asyncio.shield(running)
        except _CrashError as error:
            return Observation(tool.name, arguments, failure=error.args[0], message=str(error.args[1])[:SHOWN])

    async def _call_on_device(self, tool: Tool, options: ToolOptions, asked: tuple[Any, ...]) -> Observation:
        device = str(getattr(options, "device", "")) or "cpu"
        device = "cuda:0" if device == "cuda" else device
        loaded = (device, tool.key, options.model_dump_json())
        async with self._turns.setdefault(device, Turns(1)).take():
            try:
                if loaded not in self._loaded:
                    failure = f"{tool.name} was not loaded"
                    if problem := await self._do(device, failure, LOAD_S, prepare_tool, tool.key, options):
                        raise ConfigError(problem)
                    self._loaded.add(loaded)
                return await self._call(device, tool, options, asked)
            except BaseException:  # the weights went with the process
                self._loaded = {one for one in self._loaded if one[0] != device}
                raise

    async def _call(self, device: str, tool: Tool, options: ToolOptions, asked: tuple[Any, ...]) -> Observation:
        failure = f"{tool.name} gave nothing"
        return await self._do(device, failure, tool.timeout_s, run_call, tool.key, options, *asked)

    async def _do(
        self, device: str, failure: str, limit_s: float, function: Callable[..., Result], *args: Any
    ) -> Result:
        """The result of a function in a process; `failure` begins what is said of a crash."""
        if device not in self._pools:
            self._pools[device] = WorkerPool(1 if device else self._count, load_tools)
        try:
            return await asyncio.wrap_future(self._pools[device].submit(function, *args, limit_s=limit_s))
        except BrokenProcessPool:
            raise ConfigError(
                "tools: their processes do not start. In a script of your own, put what runs under "
                '`if __name__ == "__main__":`, for each process reads the script again.'
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
    """Import all tools; when a process starts, so that no call's time limit pays for it."""
    tools.names()


def prepare_tool(key: str, options: ToolOptions) -> str:
    """Why a tool cannot be loaded, or ""; runs in the process of the device."""
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
    """What a call gives; runs in a process of its own."""
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
    read = tool.Arguments.model_validate_json(json.dumps(arguments))
    return ToolInput(read, open_images(images), options, evidence)


def _describe(tool: Tool, arguments: Mapping[str, Any], outcome: ToolOutput | Exception) -> Observation:
    message, passes = "", False
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
        message, passes = str(outcome) or type(outcome).__name__, isinstance(outcome, PassingToolError)
    else:
        message, passes = f"{tool.name} failed ({type(outcome).__name__}: {outcome})", True
    return Observation(tool.name, arguments, failure="tool_error", message=message[:SHOWN], is_passing=passes)


def open_images(images: Sequence[bytes]) -> list[Image]:
    """The images of a call, not yet decoded; what is computed is computed on at most `MAX_PIXELS` of each."""
    from vgbench_gen.tasks.solving import Image

    return [Image(data, f"image {k} of the call", MAX_PIXELS) for k, data in enumerate(images, 1)]
