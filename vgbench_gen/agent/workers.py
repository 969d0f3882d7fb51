"""Where tools run: in processes for short calls, in one process per device that keeps weights, or in the event loop.

A tool that crashes or hangs costs its observation and nothing else; the process is started anew.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from concurrent.futures.process import BrokenProcessPool
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from pebble import ProcessExpired

from vgbench_gen.agent.tool import PassingToolError, Tool, ToolError, ToolInput, ToolOptions, ToolOutput, tools
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
Packed = tuple[dict[str, Any], tuple[bytes, ...], str, bool]
"""(values, images, problem, whether the problem may be gone another time), as it goes from process to process."""


class CrashError(Exception):
    """The process of a call ended, or took too long."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """crash or timeout."""


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
        arguments: str,
        images: Sequence[bytes],
        evidence: Mapping[str, Any],
    ) -> ToolOutput | ToolError:
        """The outcome of a call. Where it is cancelled its process is ended, unless that keeps weights.

        Args:
            tool: registered, unless it runs in the event loop.
            options: settled.
            arguments: JSON.
            images: JPEG or PNG.
            evidence: of the row, for oracle tools.

        Raises:
            CrashError: its process crashed or hung.
            ConfigError: what the tool needs cannot be loaded, or no process starts.
        """
        asked = (arguments, tuple(images), dict(evidence))
        if tool.runs == "here":
            return unpack(pack(tool, await _run_here(tool, _open_input(tool, options, *asked))))
        if tool.runs == "process":
            return await self._call("", tool, options.model_dump_json(), *asked)
        device = str(getattr(options, "device", ""))
        device = "cuda:0" if device == "cuda" else device or "cpu"
        # Who no longer waits for a call leaves the process and its weights to the others.
        running = asyncio.ensure_future(self._call_on_device(device, tool, options.model_dump_json(), *asked))
        running.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(running)

    async def _call_on_device(self, device: str, tool: Tool, options: str, *asked: Any) -> ToolOutput | ToolError:
        async with self._turns.setdefault(device, Turns(1)).take():
            try:
                if (device, tool.key, options) not in self._loaded:
                    failure = f"{tool.name} was not loaded"
                    if problem := await self._do(device, failure, LOAD_S, prepare_tool, tool.key, options):
                        raise ConfigError(problem)
                    self._loaded.add((device, tool.key, options))
                return await self._call(device, tool, options, *asked)
            except BaseException:  # the weights went with the process
                self._loaded = {one for one in self._loaded if one[0] != device}
                raise

    async def _call(self, device: str, tool: Tool, options: str, *asked: Any) -> ToolOutput | ToolError:
        failure = f"{tool.name} gave nothing"
        return unpack(await self._do(device, failure, tool.timeout_s, run_call, tool.key, options, *asked))

    async def _do(
        self, device: str, failure: str, limit_s: float, function: Callable[..., Result], *args: Any
    ) -> Result:
        """The result of a function in a process; `failure` begins the message of a `CrashError`."""
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
            raise CrashError("timeout", f"{failure} in {limit_s:g} seconds") from None
        except ProcessExpired as error:
            raise CrashError("crash", f"{failure}: its process crashed (status {error.exitcode})") from None

    def close(self) -> None:
        """End all processes."""
        for pool in self._pools.values():
            pool.stop()
        self._pools.clear()
        self._loaded.clear()


async def _run_here(tool: Tool, given: ToolInput) -> ToolOutput | Exception:
    try:
        async with asyncio.timeout(tool.timeout_s):
            return await tool.run_here(given)
    except TimeoutError as error:
        raise CrashError("timeout", str(error) or f"{tool.name} gave nothing in {tool.timeout_s:g} seconds") from None
    except Exception as error:
        return error


def load_tools() -> None:
    """Import all tools; when a process starts, so that no call's time limit pays for it."""
    tools.names()


def prepare_tool(key: str, options: str) -> str:
    """Why a tool cannot be loaded, or ""; runs in the process of the device."""
    tool = tools[key]
    try:
        tool.Options.model_validate_json(options).prepare()
    except ConfigError as error:
        return str(error)
    except Exception as error:
        return f"{tool.name} cannot be loaded ({type(error).__name__}: {error})"
    return ""


def run_call(key: str, options: str, *asked: Any) -> Packed:
    """What a call gave; runs in a process of its own."""
    tool = tools[key]
    outcome: ToolOutput | Exception
    try:
        outcome = tool.run(_open_input(tool, tool.Options.model_validate_json(options), *asked))
    except Exception as error:
        outcome = error
    return pack(tool, outcome)


def _open_input(
    tool: Tool, options: ToolOptions, arguments: str, images: Sequence[bytes], evidence: Mapping[str, Any]
) -> ToolInput:
    return ToolInput(tool.Arguments.model_validate_json(arguments), open_images(images), options, evidence)


def pack(tool: Tool, outcome: ToolOutput | Exception) -> Packed:
    """What a call gave, or why it gave nothing."""
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
