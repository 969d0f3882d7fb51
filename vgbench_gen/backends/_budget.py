"""Prices of models, and budgets that stop requests before they are exceeded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic import Field

from vgbench_gen.backends.base import BackendError, Tally, Usage
from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.errors import ConfigError

_UNSURE_AT_ONCE = 4  # the most requests at once until the provider has reported usage
SHIPPED = Path(__file__).with_name("prices.toml")


class Price(Config):
    """The price of a model in USD per million tokens."""

    provider: str
    model: str
    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)
    cached: float | None = Field(default=None, ge=0)
    """The price of prompt tokens that the provider had in its cache; None for the full price."""
    as_of: str = ""
    """The day of the price."""
    source: str = ""

    def usd(self, usage: Usage) -> float:
        """The cost of these tokens."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        cached_price = self.prompt if self.cached is None else self.cached
        prompt = (usage.prompt_tokens - cached) * self.prompt + cached * cached_price
        return (prompt + usage.completion_tokens * self.completion) / 1e6


class Prices(Config):
    """A file of prices; if a model has several, the last one counts."""

    price: tuple[Price, ...] = ()


@cache
def _load_prices(path: Path) -> dict[tuple[str, str], Price]:
    return {(price.provider, price.model): price for price in load_toml(path, Prices).price}


def find_price(provider: str, model: str, path: Path | None) -> Price | None:
    """The model's price from the user's file, else from the shipped file; None if neither has it.

    Raises:
        ConfigError: a file cannot be read.
    """
    for file in (path, SHIPPED):
        if file is not None and (price := _load_prices(file).get((provider, model))) is not None:
            return price
    return None


@dataclass(slots=True)
class Reserved:
    """The part of a budget that one request reserves while it runs."""

    tokens: int
    usd: float
    spent_tokens: int = 0
    spent_usd: float = 0.0

    def settle(self, tokens: int, usd: float | None) -> None:
        """Set what the request has spent; without this call it has spent nothing."""
        self.spent_tokens, self.spent_usd = tokens, usd or 0.0


class Budget:
    """Lets a request start if the budget covers it, besides what is spent and what running requests reserve.

    Args:
        usd: bound in money, None for no bound.
        tokens: bound in tokens, None for no bound.
        price: of the model, if known.
        tally: counts what is spent.
        model: for messages.

    Attributes:
        usage_known: whether the provider has reported the usage of a request.

    Raises:
        ConfigError: a bound in money for a model without a price.
    """

    def __init__(self, usd: float | None, tokens: int | None, price: Price | None, tally: Tally, model: str) -> None:
        if usd is not None and price is None:
            raise ConfigError(
                f"{model}: a budget in money was set, but the model's price is unknown. Give a file with its price "
                "(--prices), or set the budget in tokens (--budget-tokens)."
            )
        self.usd, self.tokens, self.price, self.tally, self.model = usd, tokens, price, tally, model
        self.usage_known = False
        self._bounded = usd is not None or tokens is not None
        self._reserved_usd, self._reserved_tokens, self._running = 0.0, 0, 0
        self._guessed = 0  # requests that run on an estimate from before the first report of usage
        self._waiting: list[asyncio.Future[None]] = []

    @contextmanager
    def reserve(self, usage: Usage) -> Iterator[Reserved]:
        """Reserve the estimated usage of a request while it runs; what it settles is spent."""
        reserved = Reserved(usage.prompt_tokens + usage.completion_tokens, self.price.usd(usage) if self.price else 0.0)
        self._reserved_usd += reserved.usd
        self._reserved_tokens += reserved.tokens
        self._running += 1
        is_guess = not self.usage_known
        self._guessed += is_guess
        try:
            yield reserved
        finally:
            self._running -= 1
            self._guessed -= is_guess
            # Sums of floats do not cancel exactly, so the last request resets the sum.
            self._reserved_usd = self._reserved_usd - reserved.usd if self._running else 0.0
            self._reserved_tokens -= reserved.tokens
            self.tally.tokens += reserved.spent_tokens
            self.tally.usd += reserved.spent_usd
            waiting, self._waiting = self._waiting, []
            for turn in waiting:
                if not turn.done():
                    turn.set_result(None)

    async def wait_for_room(self, estimate: Callable[[], Usage]) -> Usage:
        """Wait until the budget covers an estimate, and return it; then call `reserve` without awaiting in between.

        Until the provider has reported usage once, only a few requests run at a time, and the next start when all of
        these have ended, because a wrong estimate could exceed the budget many times.

        Raises:
            BackendError: budget: it does not cover the request, and no running request can free a part of it.
        """
        while True:
            usage = estimate()
            shortage = self._describe_shortage(usage)
            is_unsure = self._bounded and self._guessed >= (1 if self.usage_known else _UNSURE_AT_ONCE)
            if shortage is None and not is_unsure:
                return usage
            if shortage is not None and not self._running:
                raise BackendError("budget", shortage)
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _describe_shortage(self, usage: Usage) -> str | None:
        tokens = usage.prompt_tokens + usage.completion_tokens
        if self.tokens is not None and self.tally.tokens + self._reserved_tokens + tokens > self.tokens:
            return (
                f"{self.model}: the budget of {self.tokens} tokens is spent: {self.tally.tokens} used, and one more "
                f"request may take {tokens}. Replies so far are kept; run again with a larger --budget-tokens."
            )
        usd = self.price.usd(usage) if self.price else 0.0
        if self.usd is not None and self.tally.usd + self._reserved_usd + usd > self.usd:
            return (
                f"{self.model}: the budget of {self.usd:g} USD is spent: {self.tally.usd:.4f} used, and one more "
                f"request may cost {usd:.4f}. Replies so far are kept; run again with a larger --budget."
            )
        return None
