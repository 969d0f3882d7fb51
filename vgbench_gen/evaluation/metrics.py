"""Scores of single answers and of many: formulas of `docs/protocols.md#metrics`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from vgbench_gen.core.types import FloatArray

DELTA, HEADLINE_DELTA = 2.0, 1.25  # the paper's tolerance and ours
# A ratio that is the tolerance on paper may miss it by rounding (0.3 m over 15 cm); it counts as equal to it.
_ROUNDING = 1e-9
# VSI-Bench: 0.50 to 0.95 in steps of 0.05. Its script computes the number of points as int(0.45 / 0.05 + 2), which is
# 10 and not 11 because the quotient falls short of 9.
_MRA_LIMITS: FloatArray = 1 - np.linspace(0.5, 0.95, 10)


def is_within_factor(value: float, truth: float, factor: float = DELTA, inclusive: bool = False) -> bool:
    """Whether value and truth, both in one unit, differ by less than a factor (strictly, unless `inclusive`).

    Both zero is right, one zero is wrong, and so is anything negative or not finite.
    """
    if not (math.isfinite(value) and math.isfinite(truth)):
        return False
    if value == 0 or truth == 0:
        return value == truth
    if value < 0 or truth < 0:
        return False
    ratio = max(value / truth, truth / value)
    return ratio <= factor * (1 + _ROUNDING) if inclusive else ratio < factor * (1 - _ROUNDING)


def compute_mean_relative_accuracy(value: float, truth: float) -> float:
    """VSI-Bench's MRA, 0 to 1: the share of ten tolerances (50 % down to 5 %) that the relative error does not exceed.

    Compared in float64 without slack, as published: an error of exactly 20 % scores 0.6. A truth of 0, where the
    published code divides by it, scores 1 for 0 and 0 for anything else.
    """
    if truth == 0:
        return float(value == 0)
    with np.errstate(invalid="ignore"):
        error = np.float64(abs(value - truth) / truth)
        return float((error <= _MRA_LIMITS).mean())


def compute_relative_error(value: float, truth: float) -> float:
    """|value - truth| / |truth|; infinite where the truth is 0 and the value is not."""
    if truth == 0:
        return 0.0 if value == 0 else math.inf
    return abs(value - truth) / abs(truth)


def average_micro(scores: Iterable[float]) -> float:
    """Mean over all items; NaN for none."""
    pooled = list(scores)
    return math.fsum(pooled) / len(pooled) if pooled else math.nan


def average_macro(groups: Mapping[str, Sequence[float]]) -> float:
    """Mean of the groups' means, empty groups left out; NaN for none."""
    return average_micro(average_micro(scores) for scores in groups.values() if len(scores))


def find_best_constant(truths: Sequence[float], factor: float, inclusive: bool = False) -> tuple[float, float]:
    """(value, accuracy) of the constant answer that is within `factor` of most truths (positive, one unit).

    The best constant can always be moved until its range begins at a truth, so those places are enough.
    """
    if not truths:
        return math.nan, math.nan
    ordered = np.sort(np.asarray(truths, dtype=np.float64))
    slack = 1 + _ROUNDING if inclusive else 1 - _ROUNDING
    candidates = ordered * factor * (1 if inclusive else 1 - 10 * _ROUNDING)
    low = np.searchsorted(ordered, candidates / (factor * slack), side="left" if inclusive else "right")
    high = np.searchsorted(ordered, candidates * factor * slack, side="right" if inclusive else "left")
    place = int(np.argmax(high - low))
    return float(candidates[place]), float((high - low)[place] / len(ordered))


def find_most_common(truths: Sequence[str]) -> tuple[str, float]:
    """(answer, accuracy) of the best constant letter or word; the first in the alphabet among equals."""
    if not truths:
        return "", math.nan
    best = min(set(truths), key=lambda truth: (-truths.count(truth), truth))
    return best, truths.count(best) / len(truths)


def compute_skill(accuracy: float, constant: float) -> float:
    """How much of the way from the best constant to perfect an accuracy goes: 0 at the constant, 1 at perfect.

    NaN where the constant is perfect.
    """
    return (accuracy - constant) / (1 - constant) if constant < 1 else math.nan
