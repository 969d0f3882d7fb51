"""Many figures judged together: luck makes none of them fall, a leak does."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.family import LEVEL, find_smallest_excess, is_tested, judge_family
from vgbench_gen.quality.findings import ChanceTest, Finding
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.text_only import make_chance_test, misses_bar

SCENES, EACH = 60, 20  # as many questions as a pool holds


def figure(credit: FloatArray, sure: Clusters, name: str = "rule") -> Finding:
    """A rule's accuracy as the audit makes it, with a normal interval for the bootstrap's (a hundredth of the time)."""
    error = sure.measure_error(credit, 0.25)
    value = float(credit.mean())
    line = Finding("rule", name, "task", "multi-choice", n=len(credit), value=100 * value, chance=25.0)
    line = replace(line, low=100 * (value - 1.96 * error), high=100 * (value + 1.96 * error))
    return line.judge(not misses_bar(line), test=make_chance_test(sure, credit, 0.25))


def draw(rng: np.random.Generator, share: float = 0.25, spread: float = 0.0) -> FloatArray:
    """Credits of questions whose scenes differ by `spread`."""
    each = np.clip(share + spread * rng.choice([-1, 1], SCENES), 0, 1)
    return np.asarray((rng.random((SCENES, EACH)) < each[:, None]).ravel(), dtype=np.float64)


@pytest.mark.parametrize("spread", [0.0, 0.15])
def test_a_thousand_figures_of_a_fair_set_show_a_fallen_bar_in_one_audit_of_twenty(spread: float) -> None:
    rng = rng_for(0, "family", str(spread))
    sure = Clusters(np.repeat(np.arange(SCENES), EACH).tolist(), rng, draws=2)
    missed = alarms = 0
    audits = 25
    for _ in range(audits):
        alone = [figure(draw(rng, spread=spread), sure) for _ in range(1000)]
        judged = judge_family(alone)
        missed += sum(line.fell for line in alone)
        alarms += any(line.fell for line in judged)
        for before, after in zip(alone, judged, strict=True):
            assert after.verdict == before.verdict or (before.fell and after.verdict == "few")
    assert missed > 5 * audits  # judged one by one, every audit would show many
    # At most LEVEL of the audits, but for luck here: 5 of 25 has a chance below 1 in 100 where the level holds.
    assert alarms <= stats.binom.isf(0.01, audits, LEVEL)


def test_a_leak_falls_among_a_thousand_figures() -> None:
    rng = rng_for(1, "family")
    sure = Clusters(np.repeat(np.arange(SCENES), EACH).tolist(), rng, draws=2)
    judged = judge_family([figure(draw(rng, 0.25 + 0.1 * (k == 500)), sure, f"rule {k}") for k in range(1000)])
    (fallen,) = [line for line in judged if line.fell]
    assert fallen.name == "rule 500"
    assert fallen.p < LEVEL
    assert "(Holm)" in fallen.detail


def test_the_smallest_excess_is_where_a_figure_begins_to_fall() -> None:
    rng = rng_for(2, "family")
    sure = Clusters(np.repeat(np.arange(SCENES), EACH).tolist(), rng, draws=2)
    others = [figure(draw(rng, 0.2), sure) for _ in range(999)]
    points = SCENES * EACH
    for right in range(int(0.25 * points), int(0.40 * points), 6):
        credit = np.asarray(rng.permutation(np.arange(points) < right), dtype=np.float64)
        line = judge_family([figure(credit, sure), *others])[0]
        excess = line.value - 25
        if abs(excess - line.seen) > 0.6:  # the binomial tail is not quite the normal one
            assert line.fell == (excess > line.seen), (excess, line.seen)
    single = Finding("rule", "alone", n=900, value=40.0, chance=25.0)
    (unseen,) = judge_family([single.judge(False, test=ChanceTest(0.2, 20.0, 2, 3.0))])
    assert unseen.detail.endswith("no excess would have been seen")  # two scenes: more than all answers right
    assert math.isinf(unseen.seen)
    assert find_smallest_excess(ChanceTest(0.5, 1.0, 61, 3.0), 1) == 3.0  # never less than the bar allows
    assert find_smallest_excess(ChanceTest(0.5, 1.0, 61, 5.0, beyond=True), 1) == pytest.approx(5 + 1.67, abs=0.01)
    assert math.isnan(find_smallest_excess(ChanceTest(0.5), 10))


def test_a_small_cell_neither_falls_nor_counts_and_says_what_it_could_have_seen() -> None:
    rng = rng_for(3, "family")
    sure = Clusters(list(range(100)), rng, draws=2)
    small = figure(np.asarray(rng.random(100) < 0.9, dtype=np.float64), sure)
    (judged,) = judge_family([small])
    assert not is_tested(small)
    assert (judged.verdict, math.isnan(judged.p)) == ("few", True)
    assert 6 < judged.seen < 10  # 1.66 standard errors of 4.3 to 4.6 points
    assert f"an excess of {judged.seen:.1f} points would have been seen" in judged.detail


def test_tests_of_distributions_fall_at_any_size_and_counts_stay() -> None:
    p = Finding("exchange", "value", n=50, value=20, unit="KS").judge(False, 0, ChanceTest(0.0001))
    fair = Finding("exchange", "value", n=50, value=6, unit="KS").judge(False, 0, ChanceTest(0.4))
    slight = Finding("exchange", "value", n=900, value=2, unit="KS").judge(True, 0, ChanceTest(0.0001))
    count = Finding("duplicates", "identical", n=5, value=1, unit="count").judge(False, 1)
    judged = judge_family([p, fair, count, slight])
    assert [line.verdict for line in judged] == ["red", "few", "red", "green"]
    assert judged[0].p == judged[3].p == pytest.approx(0.0003)  # of three
    assert judged[2] == count
    assert judge_family([p, *[fair] * 999])[0].verdict == "few"
