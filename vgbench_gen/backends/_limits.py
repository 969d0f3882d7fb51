"""How many requests run at once, and how many may start in a minute. Time is passed in, so that tests need none."""

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
    """Returns seconds that never run backwards."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits that many seconds."""


class RateGate:
    """The gate before one model of one server: requests under way, and requests and tokens that begin in a minute.

    "Too many requests" halves how many may be under way, successes widen it one by one.

    Args:
        most: requests under way, at most and in the beginning.
        clock: where time comes from.
        rpm: requests in a minute; 0 for no limit.
        tpm: tokens in a minute; 0 for no limit.

    Attributes:
        pauses: how often it was narrowed since a request last went well.
    """

    def __init__(self, most: int, clock: Clock, rpm: int = 0, tpm: int = 0) -> None:
        self.most, self.limit, self.active, self.pauses = most, float(most), 0, 0
        self._requests, self.tokens = Pace(rpm, clock), Pace(tpm, clock)
        self._clock = clock
        self._queue: deque[asyncio.Future[None]] = deque()
        self._cut_at = self._opens_at = float("-inf")

    @asynccontextmanager
    async def slot(self, tokens: int = 0) -> AsyncIterator[None]:
        """Inside the block, one request of so many tokens may be under way. Waits until it may, pauses included."""
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
        """A request went well."""
        self.pauses = 0
        self.limit = min(float(self.most), self.limit + 1.0 / self.limit)
        self._wake()

    def slowed(self, started_s: float, pause_s: float) -> None:
        """The provider said "too many requests" to a request that was sent at `started_s`.

        Of many such answers to requests of one moment only the first one narrows the gate. Nothing new is sent for
        `pause_s`.
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
    """At most so many units in any minute, evenly spread: each start waits for the room of those before it.

    Args:
        per_minute: units (requests or tokens) in a minute; 0 for no limit.
        clock: where time comes from.
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
        """Take so many more units than was thought (fewer, where negative)."""
        self._free_at += units * self._each_s
