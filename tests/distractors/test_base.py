from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from tests.distractors.line_space import Line, line_fact
from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import compatibility, draw_truth, set_problem, valid_sets

POOL = [1.0, 1.4, 2.3, 3.5, 3.9, 5.0, 6.2, 8.0, 9.6]


def brute_sets(values: list[float]) -> list[tuple[int, ...]]:
    return [
        s
        for s in itertools.combinations(range(len(values)), 4)
        if all(1 <= round(abs(values[a] - values[b]), 9) <= 8 for a, b in itertools.combinations(s, 2))
        and all(values[i] > 0 for i in s)
    ]


def test_valid_sets_are_all_sets_with_all_pairs_apart() -> None:
    values = [*POOL, -1.0]
    fact = line_fact(values)
    table = compatibility(fact.candidates, fact, Line())
    assert [tuple(row) for row in valid_sets(table, 4).tolist()] == brute_sets(values)
    assert len(brute_sets(values)) > 20


def test_truth_is_drawn_in_proportion_to_its_sets() -> None:
    fact = line_fact(POOL)
    table = compatibility(fact.candidates, fact, Line())
    counts = np.bincount([i for s in brute_sets(POOL) for i in s], minlength=len(POOL))
    rng = np.random.default_rng(0)
    drawn = np.bincount([draw_truth(table, 4, rng) or 0 for _ in range(6000)], minlength=len(POOL))
    expected = 6000 * counts / counts.sum()
    assert ((drawn - expected) ** 2 / expected).sum() < 26  # chi-square, 8 degrees of freedom, p = 0.001
    assert counts.max() > 1.4 * counts.min()  # otherwise a uniform draw would pass too


def test_no_set_no_truth_and_only_eligible_members() -> None:
    fact = line_fact([1.0, 1.2, 5.0, 6.0])
    rng = np.random.default_rng(0)
    assert draw_truth(compatibility(fact.candidates, fact, Line()), 4, rng) is None
    fact = line_fact(POOL)
    table = compatibility(fact.candidates, fact, Line())
    eligible = np.zeros(len(POOL), dtype=bool)
    eligible[3] = True
    assert {draw_truth(table, 4, rng, eligible) for _ in range(20)} == {3}
    assert draw_truth(table, 4, rng, np.zeros(len(POOL), dtype=bool)) is None


@pytest.mark.parametrize(
    ("values", "enforced", "recorded"),
    [
        ([1, 2, 4, 6], "", ""),
        ([1, 2, 6, 6.5], "margin", ""),  # two decoys too near each other, both far from the truth
        ([1, 2, 4, 9.5], "ceiling", ""),
        ([1, 2, 4, 4], "printed_alike", "printed_alike"),
        ([1, 2, -4, 6], "invalid_member", "invalid_member"),
        ([1, 2, 4], "wrong_count", "wrong_count"),
    ],
)
def test_every_gate_of_a_set(values: list[float], enforced: str, recorded: str) -> None:
    fact = line_fact(values)
    assert set_problem(fact.candidates, 4, fact, Line(), "enforced") == enforced
    assert set_problem(fact.candidates, 4, fact, Line(), "recorded") == recorded


def test_a_metric_that_depends_on_the_direction_is_asked_both_ways() -> None:
    class OneWay(Line):
        def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
            values = np.array([candidate.value[0] for candidate in candidates])
            return np.where(values[:, None] < values, 2.0, 0.5), np.zeros((len(values), len(values)))

    fact = line_fact([1, 2, 4, 6])
    assert set_problem(fact.candidates, 4, fact, OneWay()) == "margin"
