from __future__ import annotations

import math

import numpy as np
import pytest

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.evaluation import stats

SCENES = [f"s{k // 10}" for k in range(400)]


def clustered(share: float, seed: int) -> FloatArray:
    """400 scores of 40 scenes, whole scenes right or wrong together in nine of ten items."""
    rng = rng_for(seed, "scores")
    whole = np.repeat(rng.random(40) < share, 10)
    return np.where(rng.random(400) < 0.9, whole, rng.random(400) < share).astype(np.float64)


def test_mcnemar_by_hand() -> None:
    """10 against 2 discordant items: 2 * (1 + 12 + 66) / 4096."""
    a = np.array([1.0] * 10 + [0.0] * 2 + [1.0] * 30)
    b = np.array([0.0] * 10 + [1.0] * 2 + [1.0] * 30)
    only_a, only_b, p = stats.compute_mcnemar(a, b)
    assert (only_a, only_b) == (10, 2)
    assert p == pytest.approx(158 / 4096)
    assert stats.compute_mcnemar(a, a) == (0, 0, 1.0)
    assert stats.compute_mcnemar([0.9], [0.1])[:2] == (0, 0)


def test_items_needed_by_hand() -> None:
    """Connor 1987: (1.95996 sqrt(0.2) + 0.84162 sqrt(0.19))^2 / 0.01 = 154.6."""
    assert stats.compute_items_needed(0.1, 0.2) == 155
    assert stats.compute_items_needed(-0.1, 0.2) == 155
    assert math.isinf(stats.compute_items_needed(0.0, 0.2))


def test_items_needed_give_the_power_they_promise() -> None:
    n, seen = int(stats.compute_items_needed(0.1, 0.2)), 0
    draws = rng_for(1, "power").multinomial(n, [0.15, 0.05, 0.8], size=2000)
    for only_a, only_b, _ in draws:
        z = (only_a - only_b) / math.sqrt(max(only_a + only_b, 1))
        seen += abs(z) > 1.959964
    assert seen / 2000 == pytest.approx(0.8, abs=0.03)


def test_intervals_know_about_scenes() -> None:
    scores = clustered(0.5, 2)
    alone = stats.estimate_mean(scores, [str(k) for k in range(400)])
    together = stats.estimate_mean(scores, SCENES)
    assert together.low < alone.low < scores.mean() < alone.high < together.high
    # 40 scenes that agree nearly within themselves carry little more than 40 items: sd sqrt(0.25/40) = 0.079.
    assert together.high - together.low == pytest.approx(2 * 1.96 * 0.079, rel=0.2)


def test_the_mean_as_a_composite_has_the_interval_of_the_mean() -> None:
    scores = clustered(0.5, 2)
    composite = stats.estimate_interval(lambda w: float((w * scores).sum() / w.sum()), SCENES)
    direct = stats.estimate_mean(scores, SCENES)
    assert composite.value == direct.value
    assert (composite.low, composite.high) == pytest.approx((direct.low, direct.high), abs=0.02)
    assert math.isnan(stats.estimate_interval(lambda w: float(w.sum()), ["one"]).low)


def test_an_interval_leaves_out_draws_without_items() -> None:
    part = np.array([k < 10 for k in range(400)])  # all of one scene
    found = stats.estimate_interval(lambda w: float(w[part].mean()) / float(w[part].sum() > 0 or math.nan), SCENES)
    assert found.low >= 1


def test_pairing_sees_what_separate_intervals_do_not() -> None:
    b = clustered(0.5, 4)
    a = b.copy()
    a[np.flatnonzero(b == 0)[::8]] = 1  # a gets an eighth more of what b misses
    found = stats.compare_paired(a, b, SCENES)
    assert found.value == pytest.approx((a - b).mean())
    assert 0 < found.low < found.value < found.high
    assert found.p < 0.01
    assert found.only_b == 0
    separate = stats.estimate_mean(a, SCENES), stats.estimate_mean(b, SCENES)
    assert separate[0].low < separate[1].high
    assert stats.compare_paired(b, a, SCENES).value == -found.value


def test_scenes_make_a_difference_less_sure() -> None:
    """30 items of 3 scenes: McNemar takes them for independent, the bootstrap over scenes does not."""
    b = np.zeros(400)
    a = b.copy()
    a[:30] = 1
    found = stats.compare_paired(a, b, SCENES)
    assert found.p_mcnemar < 1e-6
    assert found.p > 0.02
    assert found.needed > 5 * stats.compute_items_needed(0.075, 0.075)


def test_no_difference_is_never_significant() -> None:
    scores = clustered(0.4, 5)
    same = stats.compare_paired(scores, scores, SCENES)
    assert (same.value, same.low, same.high, same.p, same.p_mcnemar) == (0, 0, 0, 1, 1)
    assert math.isinf(same.needed)
    assert stats.compare_paired([1.0, 0.0], [0.0, 0.0], ["one", "one"]).p == 1
    with pytest.raises(ValueError, match="as many"):
        stats.compare_paired([1.0], [1.0, 0.0], ["a", "b"])


def test_null_models_are_called_different_as_often_as_they_should() -> None:
    """Two models alike up to noise that scenes share: about 5 % of p values fall below 0.05."""
    low = 0
    for k in range(100):
        rng = rng_for(k, "null")
        base = np.repeat(rng.random(40), 10)
        a, b = ((rng.random(400) < np.repeat(rng.random(40), 10) * 0.5 + base * 0.5).astype(float) for _ in "ab")
        low += stats.compare_paired(a, b, SCENES, seed=k).p < 0.05
    assert 1 <= low <= 12
