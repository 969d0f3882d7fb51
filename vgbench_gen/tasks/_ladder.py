"""Ladders whose members are equally likely to be the truth, for a reader who knows how answers are spread.

A ladder drawn without looking at the answer leaks: rungs above the largest answer that is ever asked, or far from the
usual ones, are known to be wrong. So sets are weighed, not ranks: with density p of answers on a logarithmic scale,
find weights W >= 0 of sets such that every value x has sum of W over the sets that hold x equal to a(x) p(x), a <= 1. A
fact of value x is asked with probability a(x), by a set drawn in proportion to W; then P(truth = i | set) is W / W, the
same for all members. `docs/validity.md#exchangeable-by-construction`; the weights are found by multiplicative updates
after Richardson (1972) and Lucy (1974), with a harmonic power mean whose exponent grows in place of their mean: they go
where p is least used up. With a mean alone, a seventh fewer facts can be asked (a linear program finds 3 percent more).
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from vgbench_gen.core.types import FloatArray, IntArray

_CELL = 0.02  # of the logarithm; a tenth of the smallest step, and p is near constant within it
_STEPS = 8  # kinds of step between the smallest and the largest
_ROUNDS, _FILLING = 80, 10  # more gain less than a point of the facts
_EVEN, _STRICT = 1.0, 8.0  # exponents of the mean in the first and in the last round


class Density(Hashable, Protocol):
    """How the logarithm of an answer is spread between `low` and `high`. Hashable: weights of sets are kept by it."""

    @property
    def low(self) -> float:
        """Logarithm of the smallest answer that may be asked."""

    @property
    def high(self) -> float:
        """Logarithm of the largest answer that may be asked."""

    def density(self, x: FloatArray) -> FloatArray:
        """At logarithms x, up to a factor."""


@dataclass(frozen=True, slots=True)
class Prior:
    """What a reader of the text alone may know about an answer: how its logarithm is spread between `low` and
    `high`."""

    mean: float
    """Centre of the logarithm."""
    sd: float
    """Scale of the logarithm."""
    low: float
    """Logarithm of the smallest answer that may be asked."""
    high: float
    """Logarithm of the largest answer that may be asked."""
    freedom: float = math.inf
    """Degrees of freedom of a Student t distribution, whose tails are longer than normal ones; infinite for a normal
    distribution."""

    def density(self, x: FloatArray) -> FloatArray:
        """The density at logarithms x (n,), up to a factor."""
        z = (x - self.mean) / self.sd
        if math.isinf(self.freedom):
            return np.asarray(np.exp(-0.5 * z**2))
        return np.asarray((1 + z**2 / self.freedom) ** (-(self.freedom + 1) / 2))


@dataclass(frozen=True, slots=True)
class Rungs:
    """Options in equal steps of the logarithm, and the place of the truth among them."""

    step: float
    """Logarithm of the ratio of neighbouring options."""
    rank: int
    """Place of the truth among the options in order of size, 0 for the smallest."""


def draw_rungs(
    value: float,
    prior: Density,
    steps: tuple[float, float],
    count: int,
    rng: np.random.Generator,
    gap: float = 0.0,
    odds: float = 1.0,
) -> Rungs | None:
    """A set of `count` members in equal steps around a value, or None where the value has no balanced set.

    Args:
        value: the true answer, positive, not its logarithm.
        prior: of answers, given whatever all members of the set share.
        steps: smallest and largest step, logarithms of ratios.
        count: of members.
        rng: three numbers are drawn, whatever comes of it.
        gap: least difference of the two smallest members, in the unit of the value.
        odds: most that one member of a set may be likelier than another; more facts can be asked then. Infinite for a
            fact that was chosen by its chance before (`Task.is_redraw`): only which set is drawn then.
    """
    chances = rng.random(3)
    sets = _sets(prior, steps, count, gap)
    cell = round((math.log(value) - prior.low) / _CELL)
    if not 0 <= cell < len(sets.asked) or not chances[0] < odds * float(sets.asked[cell]):
        return None
    rows, ranks = np.nonzero(sets.cells == cell)
    weights = np.cumsum(sets.weights[rows])
    pick = min(int(np.searchsorted(weights, chances[1] * weights[-1], side="right")), len(rows) - 1)
    low, width = float(sets.steps[rows[pick]]), (steps[1] - steps[0]) / _STEPS
    return Rungs(low + float(chances[2]) * width, int(ranks[pick]))


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """Sets of options on a grid of logarithms, and how often each is drawn."""

    cells: IntArray
    """(n, count) places of the options of each set on the grid."""
    steps: FloatArray
    """(n,) smallest step of each set's range of steps, a logarithm of a ratio."""
    weights: FloatArray
    """(n,) weight with which each set is drawn."""
    asked: FloatArray
    """(cells,) share of the facts at each place of the grid that are asked."""


@lru_cache(maxsize=512)
def _sets(prior: Density, steps: tuple[float, float], count: int, gap: float) -> _Sets:
    grid, cells, lowest = _places(prior.low, prior.high, steps, count, gap)
    density = prior.density(grid)
    density = np.maximum(density, 1e-12 * density.max())  # nothing is impossible, and nothing divides by zero
    flat, by_rank = cells.ravel(), np.ascontiguousarray(cells.T)
    weights = np.ones(len(cells))
    members = np.empty(cells.shape)

    def room() -> FloatArray:
        members[:] = weights[:, None]
        taken = np.bincount(flat, members.ravel(), minlength=len(grid))
        return np.asarray(density / np.maximum(taken, 1e-300, out=taken))

    for exponent in np.linspace(_EVEN, _STRICT, _ROUNDS).tolist():
        free = room()
        np.minimum(np.maximum(free, 1e-30, out=free), 1e30, out=free)
        sums = np.add.reduce((free**-exponent)[by_rank], axis=0)
        sums /= count
        weights *= sums ** (-1 / exponent)
    # From here on nowhere more sets than facts: each round fills what the one before left. The rest is not asked.
    for _ in range(_FILLING):
        weights *= np.minimum.reduce(room()[by_rank], axis=0, initial=np.inf)
    held = np.bincount(flat, np.repeat(weights, count), minlength=len(grid))
    return _Sets(cells, lowest, weights, held / density)


@lru_cache(maxsize=512)
def _places(
    lowest: float, highest: float, steps: tuple[float, float], count: int, gap: float
) -> tuple[FloatArray, IntArray, FloatArray]:
    """(grid of logarithms, cells and steps as in `_Sets`) of all sets between two ends."""
    size = max(int((highest - lowest) / _CELL) + 1, 1)
    grid = np.asarray(lowest + _CELL * np.arange(size), dtype=np.float64)
    width = (steps[1] - steps[0]) / _STEPS
    members, lows = [], []
    for low in steps[0] + width * np.arange(_STEPS):
        middle, high = low + width / 2, low + width
        # Values and steps lie anywhere within their cells; every set drawn must pass.
        slack = _CELL + (count - 1) * width / 2
        offsets = np.round(middle * np.arange(count) / _CELL).astype(np.int64)
        fits = (grid + (count - 1) * high + slack <= highest) & (grid - slack >= lowest)
        fits &= np.exp(grid - slack) * np.expm1(low) >= gap
        members.append(np.flatnonzero(fits)[:, None] + offsets)
        lows.append(np.full(int(fits.sum()), low))
    return grid, np.concatenate(members), np.concatenate(lows)
