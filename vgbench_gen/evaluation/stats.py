"""How sure a score or a difference is: items of one scene are right or wrong together, models share the items.

Sources: cluster bootstrap as in Cameron and Miller, "A Practitioner's Guide to Cluster-Robust Inference" (2015);
McNemar 1947 in its exact binomial form; Holm 1979; the number of items after Connor, "Sample size for testing
differences in proportions for the paired-sample design" (1987).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy  # its rooms load when used: scipy.stats takes a second and 40 MB

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality.intervals import CONFIDENCE, wilson_interval

DRAWS = 2000
_FEWEST_DRAWS, _MOST_WEIGHTS = 400, 8_000_000  # of a mean: 32 MB; with thousands of scenes the ends hardly move
_LEVELS = ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2)
Scenes = Sequence[str] | IntArray  # by name or by number


@dataclass(frozen=True, slots=True)
class Interval:
    """A number with its 95 % interval over scenes."""

    value: float
    low: float
    """The lower end of the interval."""
    high: float
    """The upper end of the interval."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One model less another on the same items."""

    value: float
    """The difference of mean scores, first less second."""
    low: float
    """The lower end of its 95 % interval over scenes."""
    high: float
    """The upper end of that interval."""
    p: float
    """The two-sided p value of the paired bootstrap over scenes, adjusted where `compare` made it."""
    only_a: int
    """How many items the first alone got right."""
    only_b: int
    """How many items the second alone got right."""
    p_mcnemar: float
    """The exact p value of McNemar's test over independent items, which is too small where scenes matter."""
    needed: float
    """How many items, at the same number per scene, would show this difference; infinite where there is none."""


def estimate_mean(scores: npt.ArrayLike, scenes: Scenes, seed: int = 0) -> Interval:
    """Mean score (n,) and its interval; scores from 0 to 1, at least one.

    Never narrower than Wilson's interval of independent items: few scenes make a bootstrap too sure of itself.
    """
    values = np.asarray(scores, dtype=np.float64)
    low, high = wilson_interval(float(values.sum()), len(values))
    index, count = _index(scenes)
    if count > 1:
        weights = _draw_weights(count, seed, "mean")
        right, sizes = (np.bincount(index, one, count).astype(np.float32) for one in (values, np.ones(len(index))))
        drawn = np.quantile(weights @ right / (weights @ sizes), _LEVELS)
        low, high = min(low, float(drawn[0])), max(high, float(drawn[1]))
    return Interval(float(values.mean()), low, high)


def estimate_interval(statistic: Callable[[FloatArray], float], scenes: Scenes, seed: int = 0) -> Interval:
    """Any composite (macro averages, pairs, skill) with its interval over scenes.

    Args:
        statistic: takes how often each item was drawn, (n,) float64, and returns the number; NaN where a draw leaves
            nothing to average, which is left out.
        scenes: cluster of each item, n of them, at least one.
        seed: of the draws.
    """
    index, count = _index(scenes)
    value = statistic(np.ones(len(index)))
    if count < 2:
        return Interval(value, math.nan, math.nan)
    drawn = np.asarray([statistic(weights[index]) for weights in _draw_weights(count, seed, "composite")])
    drawn = drawn[np.isfinite(drawn)]
    if not len(drawn):
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(drawn, _LEVELS)
    return Interval(value, float(low), float(high))


def estimate_interval_of_sums(
    figure: Callable[[FloatArray], FloatArray], columns: FloatArray, scenes: Scenes, seed: int = 0
) -> Interval:
    """As `estimate_interval` for a number that is made of sums over items, with all draws at once.

    Args:
        figure: takes the sums of all draws, (d, c), and returns a number for each, (d,).
        columns: what is summed, (n, c), at least one row.
        scenes: cluster of each item, n of them.
        seed: of the draws.
    """
    index, count = _index(scenes)
    sums = np.stack([np.bincount(index, weights=column, minlength=count) for column in columns.T], axis=1)
    value = float(figure(sums.sum(axis=0, keepdims=True))[0])
    if count < 2:
        return Interval(value, math.nan, math.nan)
    low, high = np.quantile(figure(_draw_weights(count, seed, "composite") @ sums), _LEVELS)
    return Interval(value, float(low), float(high))


def compute_mcnemar(a: npt.ArrayLike, b: npt.ArrayLike) -> tuple[int, int, float]:
    """(items only a got right, only b, exact two-sided p) for scores (n,); right is 1, anything less is not."""
    right_a, right_b = np.asarray(a) >= 1, np.asarray(b) >= 1
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    if only_a + only_b == 0:
        return 0, 0, 1.0
    return only_a, only_b, float(scipy.stats.binomtest(only_a, only_a + only_b, 0.5).pvalue)


def compare_paired(a: npt.ArrayLike, b: npt.ArrayLike, scenes: Scenes, seed: int = 0) -> Difference:
    """Compare two models on the same items, in the same order.

    Raises:
        ValueError: the lengths differ or there is no item.
    """
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.shape != second.shape or len(first) != len(scenes) or not len(first):
        raise ValueError(f"scores {first.shape} and {second.shape} of {len(scenes)} items: expected as many of each")
    gain = first - second
    index, count = _index(scenes)
    value = float(gain.mean())
    only_a, only_b, p_mcnemar = compute_mcnemar(first, second)
    low, high, p = math.nan, math.nan, 1.0
    if not gain.any():
        low, high = 0.0, 0.0
    elif count > 1:
        sums = np.bincount(index, weights=gain, minlength=count)
        sizes = np.bincount(index, minlength=count).astype(np.float64)
        weights = _draw_weights(count, seed, "paired")
        drawn = (weights @ sums) / (weights @ sizes)
        low, high = (float(x) for x in np.quantile(drawn, _LEVELS))
        # Counted with the sample itself among the draws, so that p is never 0.
        tail = min((drawn <= 0).sum(), (drawn >= 0).sum())
        p = min(1.0, 2 * float(tail + 1) / (len(drawn) + 1))
    return Difference(value, low, high, p, only_a, only_b, p_mcnemar, _compute_needed(gain, index, count))


def compute_items_needed(difference: float, discordant: float, power: float = 0.8, alpha: float = 0.05) -> float:
    """Items that show a difference in accuracy by McNemar's test with the power given; infinite for none.

    Args:
        difference: of the two accuracies.
        discordant: share of items that exactly one of the two gets right, at least |difference|.
        power: probability of seeing it.
        alpha: two-sided level of the test.
    """
    if difference == 0:
        return math.inf
    z_alpha, z_power = scipy.special.ndtri(1 - alpha / 2), scipy.special.ndtri(power)
    spread = math.sqrt(max(discordant - difference**2, 0.0))
    return float(math.ceil(((z_alpha * math.sqrt(discordant) + z_power * spread) / difference) ** 2))


def _compute_needed(gain: FloatArray, index: IntArray, count: int) -> float:
    """Compute `compute_items_needed` for graded scores and scenes as they are.

    The mean square of graded scores stands for the discordant share.
    """
    needed = compute_items_needed(float(gain.mean()), float((gain**2).mean()))
    return needed if math.isinf(needed) else float(math.ceil(needed * _compute_design_effect(gain, index, count)))


def _compute_design_effect(gain: FloatArray, index: IntArray, count: int) -> float:
    """Variance of the mean over scenes over its variance over independent items; at least 1."""
    residual = gain - gain.mean()
    independent = float((residual**2).sum())
    if count < 2 or independent == 0:
        return 1.0
    sums = np.bincount(index, weights=residual, minlength=count)
    return max(1.0, float((sums**2).sum()) * count / (count - 1) / independent)


def _index(scenes: Scenes) -> tuple[IntArray, int]:
    names, index = np.unique(np.asarray(scenes), return_inverse=True)
    return index.astype(np.int64), len(names)


@lru_cache(maxsize=8)
def _draw_weights(count: int, seed: int, purpose: str) -> npt.NDArray[Any]:
    """How often each scene is drawn, (draws, count); for means fewer draws of many scenes, in half the memory."""
    light = purpose == "mean"
    draws = min(DRAWS, max(_FEWEST_DRAWS, _MOST_WEIGHTS // count)) if light else DRAWS
    drawn = rng_for(seed, "evaluation", purpose).multinomial(count, np.full(count, 1 / count), size=draws)
    found = drawn.astype(np.float32 if light else np.float64)
    found.flags.writeable = False
    return found
