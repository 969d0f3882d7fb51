"""What the rules of SpatialScore v2 give away; the same figures of our own strategies are in `test_strategies`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest

from tests.distractors.line_space import Line, line_fact
from vgbench_gen.core.types import FloatArray
from vgbench_gen.distractors.base import strategies
from vgbench_gen.tasks.base import tasks

PUBLISHED = strategies["published"]


def metric_sets(task: str, count: int = 3000) -> Iterator[FloatArray]:
    """(4,) printed values of each set, the truth first."""
    rng = np.random.default_rng(3)
    for _ in range(count):
        fact = line_fact([float(np.round(rng.uniform(1.5, 4), 2))])
        members, truth = PUBLISHED.find_set(fact, tasks[task], rng, 4, "recorded")
        values = np.array([member.value[0] for member in members])
        yield values[[truth, *(k for k in range(4) if k != truth)]]


@pytest.mark.parametrize("task", ["metric_depth", "object_distance"])
def test_a_metric_truth_has_an_inner_rank_and_a_near_neighbour(task: str) -> None:
    """Figures of a simulation of the rule: 75, 42 and 67 %; by chance 50, 25 and 50 %."""
    sets = np.array(list(metric_sets(task)))
    inner = np.mean((sets[:, 0] > sets.min(axis=1)) & (sets[:, 0] < sets.max(axis=1)))
    central = np.mean(np.abs(sets - sets.mean(axis=1, keepdims=True)).argmin(axis=1) == 0)
    pairs = list(combinations(range(4), 2))
    ratios = np.array([np.abs(np.log(sets[:, a] / sets[:, b])) for a, b in pairs])
    closest = np.mean([0 in pairs[k] for k in ratios.argmin(axis=0)])
    assert inner == pytest.approx(0.75, abs=0.03)
    assert central == pytest.approx(0.42, abs=0.04)
    assert closest == pytest.approx(0.67, abs=0.04)
    off = sets[:, 1:] / sets[:, :1]
    assert ((off[:, 0] > 0.84) & (off[:, 0] < 1.16)).all()
    assert ((off > 0.49) & (off < 1.81)).mean() > 0.99


def test_equal_prints_are_half_a_unit_or_a_whole_one_off() -> None:
    rng, seen = np.random.default_rng(0), set()
    for _ in range(60):
        (truth, *wrong), _ = PUBLISHED.find_set(line_fact([0.03]), tasks["metric_depth"], rng, 4, "recorded")
        values = [float(one.value[0]) for one in (truth, *wrong)]
        assert len(set(values)) == 4
        seen |= {round(value - 0.03, 2) for value in values}
    assert {0.5, 1.0} <= seen


def test_without_a_rule_others_of_the_pool_are_taken() -> None:
    rng = np.random.default_rng(0)
    sets = [PUBLISHED.options(line_fact([1.0, 1.2, 3, 9, 30]), Line(), rng, margins="recorded") for _ in range(40)]
    assert {option.key for one in sets for option in one.options} == {"v0", "v1", "v2", "v3", "v4"}  # and no margins
    assert {one.strategy for one in sets} == {"published"}
