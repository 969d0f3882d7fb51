from __future__ import annotations

import math

import numpy as np
import pytest

from vgbench_gen.core.rng import rng_for
from vgbench_gen.evaluation import metrics


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (100, 1.0), (105, 1.0), (110, 0.9), (115, 0.8), (120, 0.6), (125, 0.6), (130, 0.5), (135, 0.4), (140, 0.3),
        (145, 0.1), (150, 0.1), (151, 0.0), (95, 1.0), (80, 0.6), (50, 0.1), (49, 0.0), (0, 0.0), (-100, 0.0),
        (math.inf, 0.0), (math.nan, 0.0),
    ],
)  # fmt: skip
def test_mean_relative_accuracy_of_a_truth_of_100(value: float, expected: float) -> None:
    """The steps of the published code, where rounding decides on exact multiples of 5 %."""
    assert metrics.compute_mean_relative_accuracy(value, 100.0) == pytest.approx(expected, abs=1e-12)


def test_mean_relative_accuracy_of_zero() -> None:
    assert metrics.compute_mean_relative_accuracy(0.0, 0.0) == 1
    assert metrics.compute_mean_relative_accuracy(0.1, 0.0) == 0


@pytest.mark.parametrize(
    ("value", "truth", "strict", "inclusive"),
    [
        (1.99, 1.0, True, True), (2.0, 1.0, False, True), (0.5, 1.0, False, True), (0.501, 1.0, True, True),
        (2.001, 1.0, False, False), (30 * 0.01, 0.15, False, True), (2 * 0.3048, 0.3048, False, True),
        (0.0, 0.0, True, True), (0.0, 1.0, False, False), (1.0, 0.0, False, False), (-1.0, 1.0, False, False),
        (-1.0, -1.0, False, False), (math.inf, 1.0, False, False), (math.nan, 1.0, False, False),
        (7 * 0.0254, 14 * 0.0254, False, True),
    ],
)  # fmt: skip
def test_within_a_factor_of_two(value: float, truth: float, strict: bool, inclusive: bool) -> None:
    assert metrics.is_within_factor(value, truth) is strict
    assert metrics.is_within_factor(value, truth, inclusive=True) is inclusive


def test_within_the_headline_factor() -> None:
    near, far = (metrics.is_within_factor(v, 2.0, metrics.HEADLINE_DELTA) for v in (2.49, 2.5))
    assert (near, far) == (True, False)


def test_micro_and_macro() -> None:
    groups = {"a": [1.0, 1.0, 1.0, 0.0], "b": [0.0], "c": []}
    assert metrics.average_micro(s for scores in groups.values() for s in scores) == pytest.approx(0.6)
    assert metrics.average_macro(groups) == pytest.approx(0.375)
    assert math.isnan(metrics.average_micro([]))


@pytest.mark.parametrize(("factor", "inclusive"), [(2.0, False), (2.0, True), (1.25, False)])
def test_no_constant_beats_the_best_one(factor: float, inclusive: bool) -> None:
    truths = np.exp(rng_for(3, "constants").uniform(math.log(0.4), math.log(5), 60)).round(2).tolist()
    value, accuracy = metrics.find_best_constant(truths, factor, inclusive)
    scored = metrics.average_micro(float(metrics.is_within_factor(value, t, factor, inclusive)) for t in truths)
    assert scored == pytest.approx(accuracy)
    tried = np.linspace(0.2, 11, 3000)
    others = [
        metrics.average_micro(float(metrics.is_within_factor(c, t, factor, inclusive)) for t in truths) for c in tried
    ]
    assert accuracy >= max(others)


def test_best_constant_of_few_truths() -> None:
    assert metrics.find_best_constant([1.0, 2.0], 2.0)[1] == 1.0
    assert metrics.find_best_constant([1.0, 4.0], 2.0)[1] == 0.5
    assert metrics.find_best_constant([1.0, 4.0], 2.0, inclusive=True) == (2.0, 1.0)
    assert math.isnan(metrics.find_best_constant([], 2.0)[1])


def test_floors_and_skill() -> None:
    assert metrics.find_most_common(["B", "A", "B", "A", "C"]) == ("A", 0.4)
    assert metrics.compute_skill(0.55, 0.55) == 0
    assert metrics.compute_skill(1.0, 0.55) == 1
    assert metrics.compute_skill(0.10, 0.55) == pytest.approx(-1)
    assert math.isnan(metrics.compute_skill(1.0, 1.0))
