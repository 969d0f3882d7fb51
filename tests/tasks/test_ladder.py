"""Balanced ladders: a reader who knows how answers are spread, and learns the rest, is no better than chance."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks._ladder import _EVEN, _FILLING, _ROUNDS, _STRICT, Prior, Rungs, _places, _sets, draw_rungs

Draw = Callable[[float], Rungs | None]
RUNGS = (float(np.log(1.3)), float(np.log(1.44)))
PAIRS = (float(np.log(1.5)), float(np.log(2.0)))
ENDS = (float(np.log(0.4)), float(np.log(5.0)))
NORMAL = Prior(0.2, 0.35, *ENDS)
LONG = Prior(-0.4, 0.3, *ENDS, freedom=5.0)
CLOSE_TO_THE_END = Prior(1.3, 0.4, *ENDS)


def truths(prior: Prior, rng: np.random.Generator, count: int) -> FloatArray:
    """Answers between the ends, by NumPy's own generators."""
    drawn = rng.standard_normal(count) if np.isinf(prior.freedom) else rng.standard_t(prior.freedom, count)
    logs = prior.mean + prior.sd * drawn
    return np.exp(logs[(logs > prior.low) & (logs < prior.high)])


def learnt(bottoms: FloatArray, ranks: FloatArray, count: int) -> float:
    """Share that the commonest rank of like sets gets right, learnt on one half of them and asked of the other."""
    cells = np.digitize(bottoms, np.quantile(bottoms, np.linspace(0, 1, 13)[1:-1]))
    first = np.arange(len(ranks)) % 2 == 0
    right = 0
    for cell in np.unique(cells):
        seen, asked = ranks[first & (cells == cell)], ranks[~first & (cells == cell)]
        right += int((asked == np.bincount(seen.astype(int), minlength=count).argmax()).sum())
    return right / int((~first).sum())


def sets_of(values: FloatArray, draw: Draw) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(bottoms, steps, ranks) of what is asked; bottoms are logarithms."""
    rows = [(np.log(v) - r.rank * r.step, r.step, r.rank) for v in values.tolist() if (r := draw(v)) is not None]
    bottoms, steps, ranks = np.array(rows).T
    return bottoms, steps, ranks


@pytest.mark.parametrize("prior", [NORMAL, LONG, CLOSE_TO_THE_END])
@pytest.mark.parametrize(("count", "steps"), [(4, RUNGS), (2, PAIRS)])
def test_knowing_the_spread_does_not_help(prior: Prior, count: int, steps: tuple[float, float]) -> None:
    rng = np.random.default_rng(3)
    values = truths(prior, rng, 12_000)
    bottoms, drawn, ranks = sets_of(values, lambda v: draw_rungs(v, prior, steps, count, rng))
    assert len(ranks) > 1_000
    members = bottoms[:, None] + drawn[:, None] * np.arange(count)
    likely = prior.density(members)
    bar = 1 / count + 0.03
    for guess in (likely.argmax(axis=1), likely.argmin(axis=1), *np.arange(count)[:, None]):
        assert (guess == ranks).mean() <= bar
    assert learnt(bottoms, ranks, count) <= bar
    # The same guesser reads ranks that were drawn without looking.
    blind = rng.integers(count, size=len(values))
    plain = np.log(values) - blind * steps[0]
    assert learnt(plain, blind.astype(np.float64), count) > bar + 0.02


def test_sets_stay_within_the_ends_and_keep_the_gap() -> None:
    rng = np.random.default_rng(4)
    values = np.exp(rng.uniform(*ENDS, 6_000))
    bottoms, drawn, ranks = sets_of(values, lambda v: draw_rungs(v, LONG, RUNGS, 4, rng, gap=0.16))
    assert set(ranks.tolist()) == {0, 1, 2, 3}
    assert bottoms.min() >= ENDS[0]
    assert (bottoms + 3 * drawn).max() <= ENDS[1]
    assert (np.exp(bottoms + drawn) - np.exp(bottoms)).min() >= 0.16
    assert drawn.min() >= RUNGS[0]
    assert drawn.max() <= RUNGS[1]
    assert np.ptp(drawn) > 0.9 * (RUNGS[1] - RUNGS[0])


def test_a_value_that_no_set_can_hide_is_not_asked() -> None:
    rng = np.random.default_rng(5)
    assert all(draw_rungs(value, NORMAL, RUNGS, 4, rng) is None for value in (0.3, 0.401, 4.99, 6.0) for _ in range(20))
    sharp = Prior(0.2, 0.02, *ENDS)  # everybody knows the answer
    assert sum(draw_rungs(float(np.exp(0.2)), sharp, RUNGS, 4, rng) is not None for _ in range(200)) <= 2


def test_few_facts_are_lost_where_answers_are_spread_as_widely_as_sets() -> None:
    rng = np.random.default_rng(6)
    values = truths(Prior(0.2, 0.45, *ENDS), rng, 3_000)
    asked = [draw_rungs(v, Prior(0.2, 0.45, *ENDS), RUNGS, 4, rng) for v in values.tolist()]
    assert np.mean([one is not None for one in asked]) > 0.75


@pytest.mark.parametrize(("prior", "count", "gap"), [(NORMAL, 4, 0.0), (LONG, 4, 0.25), (CLOSE_TO_THE_END, 2, 0.0)])
def test_weights_are_those_of_the_rule_written_out(prior: Prior, count: int, gap: float) -> None:
    grid, cells, _ = _places(prior.low, prior.high, RUNGS, count, gap)
    density = np.maximum(prior.density(grid), 1e-12 * prior.density(grid).max())
    weights = np.ones(len(cells))

    def free() -> FloatArray:
        held = np.zeros(len(grid))
        np.add.at(held, cells, weights[:, None])
        return np.asarray(density / np.maximum(held, 1e-300))

    for exponent in np.linspace(_EVEN, _STRICT, _ROUNDS):
        room = np.clip(free(), 1e-30, 1e30)
        weights = weights * np.mean(room[cells] ** -exponent, axis=1) ** (-1 / exponent)
    for _ in range(_FILLING):
        weights = weights * free()[cells].min(axis=1)
    found = _sets(prior, RUNGS, count, gap)
    assert len(found.weights) > 20
    assert found.weights == pytest.approx(weights, rel=1e-9, abs=1e-15)
    assert found.asked == pytest.approx(1 / free(), rel=1e-9, abs=1e-15)
