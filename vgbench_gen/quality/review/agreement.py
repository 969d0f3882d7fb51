"""How far reviewers agree, beyond what chance gives them.

Raw agreement and Krippendorff's alpha are what the field knows; Gwet's AC1 stays meaningful where nearly all verdicts
are the same and kappa and alpha collapse. Each unit is the sequence of what its raters said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

CONFIDENCE = 0.95

Level = Literal["nominal", "ordinal", "ratio"]


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far several people agree on the same units."""

    n: int
    """The units with two ratings or more."""
    raw: float
    """The share of equal pairs of ratings, averaged over units; NaN where it is not defined."""
    ac1: float
    """Gwet's AC1; NaN where it is not defined."""
    alpha: float
    """Krippendorff's alpha; NaN where it is not defined."""


def raw_agreement(units: Sequence[Sequence[str]]) -> float:
    """Share of agreeing pairs of ratings, averaged over units with at least two; NaN where there is none."""
    shares = [_measure_agreeing_share(unit) for unit in units if len(unit) > 1]
    return float(np.mean(shares)) if shares else float("nan")


def gwet_ac1(units: Sequence[Sequence[str]], categories: Sequence[str]) -> float:
    """Gwet's first-order agreement coefficient for any number of raters.

    Source: K. L. Gwet, "Computing inter-rater reliability and its variance in the presence of high agreement", British
    Journal of Mathematical and Statistical Psychology 61 (2008) 29-48, equations 9 to 11: chance agreement is
    sum pi_k (1 - pi_k) / (q - 1), with pi_k the mean share of category k over units.

    Args:
        units: ratings of each unit; those with one rating count for pi_k only.
        categories: all that could have been given, used or not; at least two.

    Returns:
        -1 to 1; NaN where no unit has two ratings.
    """
    if len(categories) < 2:
        raise ValueError(f"AC1 needs at least two categories, got {list(categories)}")
    observed = raw_agreement(units)
    rated = [unit for unit in units if unit]
    if not rated or np.isnan(observed):
        return float("nan")
    shares = [float(np.mean([unit.count(category) / len(unit) for unit in rated])) for category in categories]
    expected = sum(share * (1 - share) for share in shares) / (len(categories) - 1)
    return (observed - expected) / (1 - expected)


def krippendorff_alpha(units: Sequence[Sequence[str | float]], level: Level = "nominal") -> float:
    """Krippendorff's alpha for any number of raters, each of whom may have left units out.

    Source: K. Krippendorff, "Computing Krippendorff's Alpha-Reliability" (2011): one minus observed over expected
    disagreement, both sums over pairs of values of how often they coincide, times their squared difference.

    Args:
        units: ratings of each unit; those with one rating count for nothing.
        level: what a difference is. nominal: equal or not; ordinal: how many ratings lie between the two, for numbers;
            ratio: the difference over the sum, for positive numbers.

    Returns:
        At most 1; NaN where it is undefined, that is where all ratings are equal or no unit has two.
    """
    paired = [unit for unit in units if len(unit) > 1]
    values = sorted({value for unit in paired for value in unit})
    if len(values) < 2:
        return float("nan")
    counts = np.array([[list(unit).count(value) for value in values] for unit in paired], dtype=np.float64)
    totals, sizes = counts.sum(axis=0), counts.sum(axis=1)
    observed = np.zeros((len(values), len(values)))
    for size in np.unique(sizes):
        alike = counts[sizes == size]
        observed += (alike.T @ alike - np.diag(alike.sum(axis=0))) / (size - 1)
    expected = np.outer(totals, totals) - np.diag(totals)
    differences = 1 - np.eye(len(values))
    if level == "ordinal":
        ranks = np.cumsum(totals) - totals / 2
        differences = np.subtract.outer(ranks, ranks)
    elif level == "ratio":
        numbers = np.array(values, dtype=np.float64)
        differences = np.subtract.outer(numbers, numbers) / np.add.outer(numbers, numbers)
    return float(1 - (totals.sum() - 1) * np.sum(observed * differences**2) / np.sum(expected * differences**2))


def measure_agreement(units: Sequence[Sequence[str]], categories: Sequence[str]) -> Agreement:
    """All three measures for ratings in categories."""
    return Agreement(
        sum(len(unit) > 1 for unit in units),
        raw_agreement(units),
        gwet_ac1(units, categories),
        krippendorff_alpha(units),
    )


def rate_bound(defects: int, n: int) -> float:
    """Upper end of the exact one-sided 95 % interval of a rate of which `defects` were found in `n` (Clopper-Pearson).

    For no defects this is 1 - 0.05 ** (1 / n): 3 % at 99 items, 1 % at 299. 1 for n = 0.
    """
    if n == 0:
        return 1.0
    interval = stats.binomtest(defects, n, alternative="less").proportion_ci(CONFIDENCE, method="exact")
    return float(interval.high)


def _measure_agreeing_share(unit: Sequence[str]) -> float:
    size = len(unit)
    return sum(unit.count(value) * (unit.count(value) - 1) for value in set(unit)) / (size * (size - 1))
