"""Calls of tools that keep weights on a device: one process per device, shared by all tools and questions of a run.

While a pass is under way calls wait; those of one tool with the same options that wait together share the next pass
(`Tool.run_batch`). A process that crashes or hangs costs the calls of its pass; the next pass starts it anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import TimeoutError as TookTooLong
from dataclasses import dataclass
from typing import Any

from vgbench_gen.agent.tool import PassingToolError, Tool, ToolError, ToolOutput, find_key
from vgbench_gen.agent.worker import Packed, prepare_tool, run_calls
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError

LOAD_S = 900.0  # for weights to be read from a slow disk and put on a device
GATHER_S = 0.005  # what comes within this time of the first shares its pass; small beside any pass
BATCH = 8  # calls in a pass, where a tool's options do not say


class CrashError(Exception):
    """The process of a device ended, or took too long."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        """crash or timeout."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A call that waits for its pass."""

    tool: Tool
    options: Config
    asked: tuple[str, tuple[bytes, ...]]
    """(arguments as JSON, images)."""
    outcome: asyncio.Future[ToolOutput | ToolError]


class DeviceProcess:
    """The process of one device, started with the first call."""

    def __init__(self) -> None:
        self._waiting: list[_Waiting] = []
        self._runner: asyncio.Task[None] | None = None
        self._pool: Any = None
        self._prepared: set[tuple[str, str]] = set()

    async def call(
        self, tool: Tool, options: Config, arguments: str, images: Sequence[bytes]
    ) -> ToolOutput | ToolError:
        """What a call gives, in the company of others.

        Args:
            tool: a registered one.
            options: settled.
            arguments: as JSON.
            images: encoded.

        Raises:
            CrashError: the process crashed or hung in this pass.
            ConfigError: what the tool needs cannot be loaded.
        """
        outcome: asyncio.Future[ToolOutput | ToolError] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(tool, options, (arguments, tuple(images)), outcome))
        if self._runner is None or self._runner.done():
            self._runner = asyncio.create_task(self._run())
        return await outcome

    def close(self) -> None:
        """End the process."""
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
        self._pool = None
        self._prepared.clear()

    async def _run(self) -> None:
        batch: list[_Waiting] = []
        try:
            await asyncio.sleep(GATHER_S)
            while batch := self._take_next():
                try:
                    outcomes: Sequence[ToolOutput | Exception] = await self._pass(batch)
                except Exception as error:
                    outcomes = [error] * len(batch)
                for one, outcome in zip(batch, outcomes, strict=True):
                    if one.outcome.done():
                        continue
                    if isinstance(outcome, ToolOutput | ToolError):
                        one.outcome.set_result(outcome)
                    else:
                        one.outcome.set_exception(outcome)
        finally:
            for one in (*batch, *self._waiting):
                one.outcome.cancel()
            self._waiting = []

    def _take_next(self) -> list[_Waiting]:
        """The call that waits longest and those that may go with it; what was cancelled is dropped."""
        self._waiting = [one for one in self._waiting if not one.outcome.done()]
        if not self._waiting:
            return []
        first = self._waiting[0]
        alike = [one for one in self._waiting if one.tool is first.tool and one.options == first.options]
        alike = alike[: getattr(first.options, "batch_size", BATCH)]
        self._waiting = [one for one in self._waiting if one not in alike]
        return alike

    async def _pass(self, batch: Sequence[_Waiting]) -> Sequence[ToolOutput | ToolError]:
        tool, options = batch[0].tool, batch[0].options.model_dump_json()
        key = find_key(tool)
        if (key, options) not in self._prepared:
            problem = await self._do(prepare_tool, (key, options), LOAD_S, f"{tool.name} was not loaded")
            if problem:
                raise ConfigError(problem)
            self._prepared.add((key, options))
        limit_s = tool.timeout_s * len(batch)
        told = f"{tool.name} gave nothing"
        answers = await self._do(run_calls, (key, options, [one.asked for one in batch]), limit_s, told)
        return [_unpack(answer) for answer in answers]

    async def _do(self, function: Any, args: tuple[Any, ...], limit_s: float, told: str) -> Any:
        from pebble import ProcessExpired

        try:
            return await asyncio.wrap_future(self._open().schedule(function, args=args, timeout=limit_s))
        except asyncio.CancelledError:
            self._prepared.clear()  # pebble ends the process of what is cancelled
            raise
        except TookTooLong:
            self._prepared.clear()  # the process was ended, and its weights went with it
            raise CrashError("timeout", f"{told} in {limit_s:g} seconds") from None
        except ProcessExpired as error:
            self._prepared.clear()
            raise CrashError("crash", f"{told}: its process crashed (status {error.exitcode})") from None

    def _open(self) -> Any:
        if self._pool is None:
            import multiprocessing

            from pebble import ProcessPool

            self._pool = ProcessPool(1, context=multiprocessing.get_context("forkserver"))
        return self._pool


class Devices:
    """The processes of all devices."""

    def __init__(self) -> None:
        self._processes: dict[str, DeviceProcess] = {}

    async def call(
        self, tool: Tool, options: Config, arguments: str, images: Sequence[bytes]
    ) -> ToolOutput | ToolError:
        """As `DeviceProcess.call`, in the process of the device that the options name."""
        device = str(getattr(options, "device", ""))
        device = "cuda:0" if device == "cuda" else device
        return await self._processes.setdefault(device, DeviceProcess()).call(tool, options, arguments, images)

    def close(self) -> None:
        """End the processes."""
        for process in self._processes.values():
            process.close()
        self._processes.clear()


def _unpack(answer: Packed) -> ToolOutput | ToolError:
    values, made, problem, passes = answer
    if problem:
        return PassingToolError(problem) if passes else ToolError(problem)
    return ToolOutput(values, made)
