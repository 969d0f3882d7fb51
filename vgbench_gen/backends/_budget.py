"""What a request may cost, what it did cost, and when to stop."""

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

_UNSURE_AT_ONCE = 4
SHIPPED = Path(__file__).with_name("prices.toml")


class Price(Config):
    """The price of a model in USD per million tokens."""

    provider: str
    model: str
    """The model's name, as the provider says it."""
    prompt: float = Field(ge=0)
    """Of tokens that are sent."""
    completion: float = Field(ge=0)
    """Of tokens that are written."""
    cached: float | None = Field(default=None, ge=0)
    """Of sent tokens that the provider had in its cache; None for the full price."""
    as_of: str = ""
    """The day on which it was looked up."""
    source: str = ""

    def usd(self, usage: Usage) -> float:
        """What these tokens cost."""
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        of_cached = self.prompt if self.cached is None else self.cached
        whole = (usage.prompt_tokens - cached) * self.prompt + cached * of_cached
        return (whole + usage.completion_tokens * self.completion) / 1e6


class Prices(Config):
    """A file of prices."""

    price: tuple[Price, ...] = ()
    """Prices, one for each model; where a model comes twice, the last one counts."""


@cache
def _load_prices(path: Path) -> dict[tuple[str, str], Price]:
    return {(price.provider, price.model): price for price in load_toml(path, Prices).price}


def find_price(provider: str, model: str, path: Path | None) -> Price | None:
    """The model's price from the user's file, else from the shipped one; None where neither has it.

    Raises:
        ConfigError: a file cannot be read.
    """
    for file in (path, SHIPPED):
        if file is not None and (price := _load_prices(file).get((provider, model))) is not None:
            return price
    return None


@dataclass(slots=True)
class Reserved:
    """What one request may use, until it is settled."""

    tokens: int
    """How many tokens are set aside for it."""
    usd: float
    """How much money is set aside for it."""
    spent_tokens: int = 0
    """How many tokens its attempts have used."""
    spent_usd: float = 0.0
    """How much money its attempts have cost."""

    def settle(self, tokens: int, usd: float | None) -> None:
        """It used this; what is not settled counts as nothing."""
        self.spent_tokens, self.spent_usd = tokens, usd or 0.0


class Budget:
    """Lets requests start while what was spent and what those under way may cost leave room for one more.

    Args:
        usd: bound in money, None for no bound.
        tokens: bound in tokens, None for no bound.
        price: of the model, if known.
        tally: where what was spent is counted.
        model: for messages.

    Attributes:
        told: whether the provider has said what a request used.

    Raises:
        ConfigError: a bound in money for a model without a price.
    """

    def __init__(self, usd: float | None, tokens: int | None, price: Price | None, tally: Tally, model: str) -> None:
        if usd is not None and price is None:
            raise ConfigError(
                f"{model}: a budget in money was set, but no price is known for it. Give a file with its price "
                "(--prices), or set the budget in tokens (--budget-tokens)."
            )
        self.usd, self.tokens, self.price, self.tally, self.model = usd, tokens, price, tally, model
        self.told = False
        self._bounded = usd is not None or tokens is not None
        self._held_usd, self._held_tokens, self._held = 0.0, 0, 0
        self._waiting: list[asyncio.Future[None]] = []

    @contextmanager
    def hold(self, usage: Usage) -> Iterator[Reserved]:
        """Hold back what a request may use while it is under way; what it settles on is spent."""
        held = Reserved(usage.prompt_tokens + usage.completion_tokens, self.price.usd(usage) if self.price else 0.0)
        self._held_usd += held.usd
        self._held_tokens += held.tokens
        self._held += 1
        try:
            yield held
        finally:
            self._held -= 1
            # Sums of floats do not cancel exactly; with nobody holding there is nothing held.
            self._held_usd = self._held_usd - held.usd if self._held else 0.0
            self._held_tokens -= held.tokens
            self.tally.tokens += held.spent_tokens
            self.tally.usd += held.spent_usd
            waiting, self._waiting = self._waiting, []
            for one in waiting:
                if not one.done():
                    one.set_result(None)

    async def room_for(self, thought: Callable[[], Usage]) -> Usage:
        """Wait until a request may start that uses what is thought; call `hold` right after, without waiting.

        Until the provider has said once what a request really uses, only a few are let through: a rule of thumb that
        is far off must not spend the budget many times over.

        Raises:
            BackendError: budget: there is no room and none will come from requests under way.
        """
        while True:
            usage = thought()
            found = self._describe_shortage(usage)
            unsure = self._bounded and not self.told and self._held >= _UNSURE_AT_ONCE
            if found is None and not unsure:
                return usage
            if found is not None and not self._held:
                raise BackendError("budget", found)
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn

    def _describe_shortage(self, usage: Usage) -> str | None:
        tokens = usage.prompt_tokens + usage.completion_tokens
        if self.tokens is not None and self.tally.tokens + self._held_tokens + tokens > self.tokens:
            return (
                f"{self.model}: the budget of {self.tokens} tokens is spent: {self.tally.tokens} used, and one more "
                f"request may take {tokens}. Replies so far are kept; run again with a larger --budget-tokens."
            )
        usd = self.price.usd(usage) if self.price else 0.0
        if self.usd is not None and self.tally.usd + self._held_usd + usd > self.usd:
            return (
                f"{self.model}: the budget of {self.usd:g} USD is spent: {self.tally.usd:.4f} used, and one more "
                f"request may cost {usd:.4f}. Replies so far are kept; run again with a larger --budget."
            )
        return None
