"""The processes in which tools run: several for short calls, and one per device that keeps weights.

While a pass on a device is under way calls wait; those of one tool with the same options that wait together share the
next pass (`Tool.run_batch`). A process that crashes or hangs costs the calls in it; the next one is started anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import TimeoutError as TookTooLong
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from pebble import ProcessExpired

from vgbench_gen.agent.tool import Tool, ToolError, ToolOutput, find_key
from vgbench_gen.agent.worker import Asked, load_tools, prepare_tool, run_calls, unpack
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.executors.base import Result
from vgbench_gen.executors.local import WorkerPool

LOAD_S = 900.0  # for weights to be read from a slow disk and put on a device
GATHER_S = 0.005  # what comes within this time of the first shares its pass; small beside any pass
BATCH = 8  # calls in a pass, where a tool's options do not say


class CrashError(Exception):
    """The process of a call ended, or took too long."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """crash or timeout."""


class Processes:
    """`count` processes for calls that share nothing, started with the first call."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._pool: WorkerPool | None = None

    async def call(self, tool: Tool, options: Config, asked: Asked) -> ToolOutput | ToolError:
        """The outcome of a call. Where it is cancelled, its process is ended.

        Args:
            tool: registered.
            options: settled.
            asked: the call.

        Raises:
            CrashError: its process crashed or hung.
            ConfigError: what the tool needs cannot be loaded, or no process starts.
        """
        failure = f"{tool.name} gave nothing"
        packed = await self._do(failure, tool.timeout_s, run_calls, find_key(tool), options.model_dump_json(), [asked])
        return unpack(packed[0])

    async def _do(self, failure: str, limit_s: float, function: Callable[..., Result], *args: Any) -> Result:
        """The result of a function in a process; `failure` begins the message of a `CrashError`."""
        if self._pool is None:
            self._pool = WorkerPool(self._count, load_tools)
        try:
            return await asyncio.wrap_future(self._pool.submit(function, *args, limit_s=limit_s))
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
        """End the processes."""
        if self._pool is not None:
            self._pool.stop()
            self._pool = None


class _Waiting(NamedTuple):
    """A call that waits for its pass."""

    tool: Tool
    options: Config
    asked: Asked
    outcome: asyncio.Future[ToolOutput | ToolError]


class DeviceProcess(Processes):
    """The process of one device, in which calls share passes."""

    def __init__(self) -> None:
        super().__init__(1)
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None
        self._prepared: set[tuple[str, str]] = set()

    async def call(self, tool: Tool, options: Config, asked: Asked) -> ToolOutput | ToolError:
        """As `Processes.call`; where it is cancelled, what its pass gives for it is dropped."""
        outcome: asyncio.Future[ToolOutput | ToolError] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(tool, options, asked, outcome))
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await outcome

    async def _do(self, failure: str, limit_s: float, function: Callable[..., Result], *args: Any) -> Result:
        try:
            return await super()._do(failure, limit_s, function, *args)
        except BaseException:
            self._prepared.clear()  # the process was ended, and its weights went with it
            raise

    async def _run(self) -> None:
        batch: list[_Waiting] = []
        try:
            await asyncio.sleep(GATHER_S)
            while batch := self._take_next():
                try:
                    outcomes: Sequence[ToolOutput | Exception] = await self._pass(batch)
                except Exception as error:
                    outcomes = [error] * len(batch)
                for call, outcome in zip(batch, outcomes, strict=True):
                    if call.outcome.done():
                        continue
                    if isinstance(outcome, ToolOutput | ToolError):
                        call.outcome.set_result(outcome)
                    else:
                        call.outcome.set_exception(outcome)
        finally:
            for call in (*batch, *self._waiting):
                call.outcome.cancel()
            self._waiting = []

    def _take_next(self) -> list[_Waiting]:
        """The call that waits longest and those that may go with it; what was cancelled is dropped."""
        self._waiting = [call for call in self._waiting if not call.outcome.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        alike = [call for call in self._waiting if call.tool is first.tool and call.options == first.options]
        alike = alike[: getattr(first.options, "batch_size", BATCH)]
        self._waiting = [call for call in self._waiting if call not in alike]
        return alike

    async def _pass(self, batch: Sequence[_Waiting]) -> Sequence[ToolOutput | ToolError]:
        tool, options = batch[0].tool, batch[0].options.model_dump_json()
        key = find_key(tool)
        if (key, options) not in self._prepared:
            problem = await self._do(f"{tool.name} was not loaded", LOAD_S, prepare_tool, key, options)
            if problem:
                raise ConfigError(problem)
            self._prepared.add((key, options))
        asked, limit_s = [call.asked for call in batch], tool.timeout_s * len(batch)
        return [*map(unpack, await self._do(f"{tool.name} gave nothing", limit_s, run_calls, key, options, asked))]


class Places:
    """Where tools run that do not run in the event loop, `count` short calls at once."""

    def __init__(self, count: int) -> None:
        self._shared = Processes(count)
        self._devices: dict[str, DeviceProcess] = {}

    async def call(
        self, tool: Tool, options: Config, arguments: str, images: Sequence[bytes], evidence: Mapping[str, Any]
    ) -> ToolOutput | ToolError:
        """As `Processes.call`; tools that run on a device are called in the process of the one that options name."""
        place = self._shared
        if tool.runs == "device":
            device = str(getattr(options, "device", ""))
            place = self._devices.setdefault("cuda:0" if device == "cuda" else device, DeviceProcess())
        return await place.call(tool, options, (arguments, tuple(images), dict(evidence)))

    def close(self) -> None:
        """End all processes."""
        for place in (self._shared, *self._devices.values()):
            place.close()
        self._devices.clear()
