"""Intervals and tests against scipy and against simulated truth."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.quality.text_questions import question
from vgbench_gen.core.rng import rng_for
from vgbench_gen.quality.intervals import Clusters, adjust_by_holm, wilson_interval
from vgbench_gen.quality.questions import group_by_cell, group_by_scene


@pytest.mark.parametrize(("right", "n"), [(0, 7), (3, 7), (7, 7), (250, 1000), (999, 1000)])
def test_wilson_is_scipys(right: int, n: int) -> None:
    expected = stats.binomtest(right, n).proportion_ci(method="wilson")
    assert wilson_interval(right, n) == pytest.approx((expected.low, expected.high))


def test_wilson_takes_shared_credit_and_nothing() -> None:
    assert wilson_interval(2, 8)[0] < wilson_interval(2.5, 8)[0] < wilson_interval(3, 8)[0]
    assert wilson_interval(0, 0) == (0.0, 1.0)


def test_holm_steps_down_and_keeps_the_order() -> None:
    assert adjust_by_holm([0.04, 0.01, 0.03, 0.5]) == pytest.approx([0.09, 0.04, 0.09, 0.5])
    assert adjust_by_holm([0.9, 0.8]) == [1.0, 1.0]


def _scenes(rng: np.random.Generator, scenes: int, each: int, spread: float) -> tuple[list[int], np.ndarray]:
    """Credits at a mean of 0.25 whose scenes differ by `spread`."""
    share = np.clip(0.25 + spread * rng.choice([-1, 1], scenes), 0, 1)
    return np.repeat(np.arange(scenes), each).tolist(), (rng.random((scenes, each)) < share[:, None]).ravel() * 1.0


def test_interval_and_test_hold_their_level_where_scenes_differ() -> None:
    rng = rng_for(0, "level")
    covered, rejected, naive = 0, 0, 0
    rounds = 300
    for _ in range(rounds):
        labels, credit = _scenes(rng, 40, 12, 0.2)
        sure = Clusters(labels, rng, draws=400)
        low, high = sure.interval(credit)
        covered += low <= 0.25 <= high
        rejected += sure.test_above(credit, 0.25) < 0.05
        naive += stats.binomtest(int(credit.sum()), len(credit), 0.25, "greater").pvalue < 0.05
    assert covered / rounds > 0.91
    assert rejected / rounds < 0.08
    assert naive / rounds > 0.1  # what it would be without scenes


def _swap_images(rng: np.random.Generator, bias: float = 0.0) -> tuple[list[int], list[int], np.ndarray]:
    """(scenes of questions, scenes of images, credits) where scenes of four answers, alike but for some `bias`, swap
    images in groups of four and a question is right where both scenes have one answer: as often as chance, 0.25."""
    answer = rng.integers(4, size=60) * (rng.random(60) >= bias)
    pairs = [(a, b) for a in range(60) for b in range(a - a % 4, a - a % 4 + 4) if a != b for _ in range(2)]
    asked, shown = zip(*pairs, strict=True)
    return list(asked), list(shown), (answer[list(asked)] == answer[list(shown)]) * 1.0


def test_p_with_images_of_other_scenes_counts_each_swap_once() -> None:
    rng = rng_for(0, "swapped")
    rounds, naive, rejected, uncovered, found = 300, 0, 0, 0, 0
    for _ in range(rounds):
        asked, shown, credit = _swap_images(rng)
        naive += Clusters(asked, rng, draws=10).test_above(credit, 0.25) < 0.05
        sure = Clusters(asked, rng, draws=400, shown=shown)
        rejected += sure.test_above(credit, 0.25) < 0.05
        low, high = sure.interval(credit)
        uncovered += not low <= 0.25 <= high
        asked, shown, credit = _swap_images(rng, bias=0.7)
        found += Clusters(asked, rng, draws=10, shown=shown).test_above(credit, 0.25) < 0.001
    assert naive / rounds > 0.1  # as if only the scenes of questions shared their luck
    assert rejected / rounds < 0.07
    assert uncovered / rounds < 0.07
    assert found / rounds > 0.9


def test_p_is_the_binomial_one_for_single_questions() -> None:
    rng = rng_for(1, "binomial")
    credit = np.array([1.0] * 75 + [0.0] * 125)
    exact = stats.binomtest(75, 200, 0.25, "greater").pvalue
    assert Clusters([0] * 200, rng).test_above(credit, 0.25) == pytest.approx(exact)
    assert exact <= Clusters(list(range(200)), rng).test_above(credit, 0.25) < 3 * exact + 1e-4
    assert Clusters(list(range(200)), rng).test_above(credit, np.full(200, 0.5)) > 0.99
    # All scenes exactly at chance: nothing spreads, nothing is gained.
    assert Clusters([0, 0, 1, 1], rng).test_above([1, 0, 1, 0], 0.5) > 0.6


def test_interval_is_never_narrower_than_wilsons() -> None:
    sure = Clusters([0, 0, 1, 1, 2, 2], rng_for(2, "few"))
    low, high = sure.interval([1.0] * 6)
    assert low == pytest.approx(wilson_interval(6, 6)[0])
    assert high == pytest.approx(1.0)


def test_clusters_join_scenes_images_twins_and_groups() -> None:
    asked = [
        question("a", scene="s/1"),
        question("b", scene="s/1"),
        question("c", scene="s/2", twin="w"),
        question("d", scene="s/3", twin="w"),
        question("e", images=("x.jpg", "y.jpg")),
        question("f", images=("y.jpg",)),
        question("g", images=("z.jpg",)),
        question("h", group="shared", images=("q.jpg",)),
        question("i", group="shared", images=("r.jpg",)),
        # A picture in common says nothing where the scene is known.
        question("j", scene="s/4", images=("z.jpg",)),
    ]
    labels = group_by_scene(asked).tolist()
    assert [labels.index(label) for label in labels] == [0, 0, 2, 2, 4, 4, 6, 7, 7, 9]
    bare = question("k", group="", images=())
    assert group_by_scene([bare, bare]).tolist() == [0, 1]


def test_cells_are_ordered_and_keep_their_questions() -> None:
    asked = [
        question("a", task="z"),
        question("b", ["1", "2"], 0, task="z"),
        question("c", task="y"),
        question("d", task="z"),
    ]
    cells = group_by_cell(asked)
    assert list(cells) == [("y", "open-ended"), ("z", "multi-choice"), ("z", "open-ended")]
    assert [q.id for q in cells["z", "open-ended"]] == ["a", "d"]
