"""Limits the requests that run at once, and the requests and tokens that start per minute."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

_CUT = 0.5  # additive increase, multiplicative decrease, as TCP does (Chiu and Jain 1989)


@dataclass(frozen=True, slots=True)
class Clock:
    """Time, which tests may replace."""

    now: Callable[[], float] = time.monotonic
    """Returns seconds that never decrease."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits a number of seconds."""


class RateGate:
    """Limits the requests to one model: those that run at once, and requests and tokens that start per minute.

    "Too many requests" halves the number of requests at once; successes raise it again, one by one.

    Args:
        most: the largest and first number of requests at once.
        clock: the source of time.
        rpm: requests per minute; 0 for no limit.
        tpm: tokens per minute; 0 for no limit.

    Attributes:
        pauses: the number of cuts since the last success.
    """

    def __init__(self, most: int, clock: Clock, rpm: int = 0, tpm: int = 0) -> None:
        self.most, self.limit, self.active, self.pauses = most, float(most), 0, 0
        self._requests, self.tokens = Pace(rpm, clock), Pace(tpm, clock)
        self._clock = clock
        self._queue: deque[asyncio.Future[None]] = deque()
        self._cut_at = self._opens_at = float("-inf")

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[None]:
        """A context in which one request with this many tokens may run; entering it waits for the limits and pauses."""
        await self._enter()
        try:
            while (wait_s := self._opens_at - self._clock.now()) > 0:
                await self._clock.sleep(wait_s)
            await self._requests.wait(1)
            await self.tokens.wait(tokens)
            yield
        finally:
            self._leave()

    def succeeded(self) -> None:
        """Report that a request succeeded."""
        self.pauses = 0
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
        self._wake()

    def slowed(self, started_s: float, pause_s: float) -> None:
        """Report "too many requests" for a request that was sent at `started_s`, and send nothing for `pause_s`.

        If several requests were sent before a cut, only the first report cuts the number of requests.
        """
        now = self._clock.now()
        self._opens_at = max(self._opens_at, now + pause_s)
        if started_s > self._cut_at:
            self._cut_at = now
            self.pauses += 1
            self.limit = max(1.0, self.limit * _CUT)

    async def _enter(self) -> None:
        if not self._queue and self.active < int(self.limit):
            self.active += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()
            raise

    def _leave(self) -> None:
        self.active -= 1
        self._wake()

    def _wake(self) -> None:
        while self._queue and self.active < int(self.limit):
            turn = self._queue.popleft()
            if not turn.done():
                self.active += 1
                turn.set_result(None)


class Pace:
    """Spreads units evenly over time: each start waits until the units before it are used up.

    Args:
        per_minute: units (requests or tokens) per minute; 0 for no limit.
        clock: the source of time.
    """

    def __init__(self, per_minute: int, clock: Clock) -> None:
        self._each_s = 60.0 / per_minute if per_minute else 0.0
        self._clock = clock
        self._free_at = float("-inf")

    async def wait(self, units: int) -> None:
        """Take `units` and wait until they are due."""
        if not self._each_s:
            return
        due = max(self._clock.now(), self._free_at)
        self._free_at = due + units * self._each_s
        while (wait_s := due - self._clock.now()) > 0:
            await self._clock.sleep(wait_s)

    def correct(self, units: int) -> None:
        """Take more units after the fact; fewer if negative."""
        self._free_at += units * self._each_s
