"""Ctrl-C and SIGTERM while models are asked: nothing more is sent, and what is under way is waited for and kept."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from vgbench_gen.backends.base import Backend

INTERRUPTED = "interrupted"


class Stop:
    """Whether the user wants no more requests sent.

    Args:
        longest_s: so long requests under way are waited for.

    Attributes:
        asked: number of the signal that said so, 0 as long as none did.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s, self.asked = longest_s, 0
        self._said = asyncio.Event()

    @contextmanager
    def listening(self, told: Callable[[], None]) -> Iterator[None]:
        """Inside the block, in the task to end, the first signal calls `told`; a second one cancels the task.

        Outside the main thread nothing can listen, and a signal that the process ignores stays ignored.
        """
        loop, task = asyncio.get_running_loop(), asyncio.current_task()

        def heard(number: int) -> None:
            if self.asked:
                if task is not None:
                    task.cancel()
                return
            self.asked = number
            self._said.set()
            told()

        installed = []
        for number in (signal.SIGINT, signal.SIGTERM):
            before = signal.getsignal(number)
            if before is not signal.SIG_IGN:
                with suppress(ValueError, RuntimeError, NotImplementedError):
                    loop.add_signal_handler(number, heard, number)
                    installed.append((number, before))
        try:
            yield
        finally:
            for number, before in installed:
                loop.remove_signal_handler(number)
                signal.signal(number, before)

    async def first(self, work: asyncio.Future[Any]) -> None:
        """Wait until the work is done or nothing more is wanted; the work itself goes on."""
        said = asyncio.ensure_future(self._said.wait())
        try:
            await asyncio.wait([work, said], return_when=asyncio.FIRST_COMPLETED)
        finally:
            said.cancel()

    async def gathered(
        self,
        workers: Sequence[asyncio.Task[None]],
        backends: Sequence[Backend | None],
        drawings: Collection[asyncio.Task[Any]],
    ) -> None:
        """Wait for the workers. Once nothing more is wanted, only for those whose request, or drawing, was sent."""
        everyone = asyncio.gather(*workers)
        try:
            await self.first(everyone)
            if everyone.done():
                await everyone
                return
            asked = [backend for backend in backends if backend is not None]
            for backend in asked:
                backend.halt()
            tasks = [*workers, *(task for task in drawings if not task.done())]
            sent = [task for task in tasks if any(backend.is_sending(task) for backend in asked)]
            if sent:
                await asyncio.wait(sent, timeout=self._longest_s)
            for worker in workers:
                if worker.done() and not worker.cancelled() and (error := worker.exception()) is not None:
                    raise error
        finally:
            everyone.cancel()
            with suppress(asyncio.CancelledError, Exception):  # told above, or about to be raised
                await everyone
