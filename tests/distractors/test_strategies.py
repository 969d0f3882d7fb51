from __future__ import annotations

import itertools
from collections import Counter
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from tests.distractors.line_space import Line, line_fact
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.distractors.base import OptionSet, compatibility, draw_truth, strategies

POOL = [1.0, 1.3, 1.6, 3.0, 4.6, 5.9, 8.8]  # three that exclude each other, so that some have many more sets
DRAWS = 4000


def rank_of_truth(options: OptionSet) -> int:
    values = [option.value[0] for option in options.options]
    return int(np.argsort(np.argsort(values))[options.truth])


def shown(strategy: str, space: Line, draws: int = DRAWS, draw: bool = True, count: int = 4) -> list[OptionSet]:
    rng = np.random.default_rng(7)
    fact = line_fact(POOL)
    table = compatibility(fact.candidates, fact, space)
    out = []
    for k in range(draws):
        truth = draw_truth(table, 4, rng) if draw else int(rng.integers(len(POOL)))
        assert truth is not None
        with suppress(TooFewOptionsError):  # noise finds no set on every truth
            out.append(strategies[strategy].options(replace(fact, truth=truth, key=f"k{k}"), space, rng, count))
    return out


def uniform_p(counts: list[int]) -> float:
    return float(stats.chisquare(counts).pvalue)


@pytest.mark.parametrize(("count", "sets"), [(2, 18), (3, 22), (4, 13), (5, 3)])
def test_every_member_of_a_shown_set_is_as_likely_the_truth(count: int, sets: int) -> None:
    by_set: dict[tuple[str, ...], Counter[str]] = {}
    for options in shown("set_first", Line(), 6000, count=count):
        names = tuple(sorted(option.key for option in options.options))
        assert len(names) == count
        by_set.setdefault(names, Counter())[options.options[options.truth].key] += 1
    p_values = [uniform_p([counts[name] for name in names]) for names, counts in by_set.items()]
    assert len(p_values) == sets
    assert stats.combine_pvalues(np.maximum(p_values, 1e-12)).pvalue > 0.001
    if count >= 4:  # Sets themselves come out uniformly; smaller ones as often as they are parts of full ones.
        assert uniform_p([counts.total() for counts in by_set.values()]) > 0.001


def test_truth_rank_is_uniform_with_set_first_and_not_with_perturbed_or_a_uniform_truth() -> None:
    ranks = Counter(map(rank_of_truth, shown("set_first", Line())))
    assert uniform_p([ranks[r] for r in range(4)]) > 0.001
    ranks = Counter(map(rank_of_truth, shown("perturbed", Line(noise=2.0), 1000)))
    assert uniform_p([ranks[r] for r in range(4)]) < 1e-6
    assert ranks[1] + ranks[2] > 1.5 * (ranks[0] + ranks[3])  # noise puts the truth in the middle
    # What the draw is for: with a truth that is uniform over the pool, sets prefer some of their members.
    by_set: dict[tuple[str, ...], Counter[str]] = {}
    for options in shown("set_first", Line(), 6000, draw=False):
        names = tuple(sorted(option.key for option in options.options))
        by_set.setdefault(names, Counter())[options.options[options.truth].key] += 1
    p_values = [uniform_p([counts[name] for name in names]) for names, counts in by_set.items()]
    assert stats.combine_pvalues(np.maximum(p_values, 1e-12)).pvalue < 1e-6


def test_a_ladder_gives_every_rank_equally_often() -> None:
    rng = np.random.default_rng(0)
    fact = line_fact([20.0])
    sets = [strategies["set_first"].options(fact, Line(ladder_step=2.0), rng) for _ in range(3000)]
    ranks = Counter(map(rank_of_truth, sets))
    assert uniform_p([ranks[r] for r in range(4)]) > 0.001
    places = Counter(options.truth for options in sets)
    assert uniform_p([places[r] for r in range(4)]) > 0.001


def test_a_refused_ladder_is_not_drawn_again() -> None:
    # Only ranks 0 and 1 stay positive; drawing again until one passes would prefer these.
    rng = np.random.default_rng(0)
    fact = line_fact([2.5])
    refused = 0
    for _ in range(400):
        try:
            strategies["set_first"].options(fact, Line(ladder_step=2.0), rng)
        except TooFewOptionsError as error:
            refused += str(error) == "too_few_options: set_first on line k: invalid_member x1"
    assert 150 < refused < 250


@pytest.mark.parametrize("name", ["set_first", "sampled", "perturbed"])
@pytest.mark.parametrize("sampler", [False, True])
def test_all_pairs_keep_the_margins_whatever_the_strategy(name: str, sampler: bool) -> None:
    rng = np.random.default_rng(1)
    space = Line(sampler=sampler)
    sets = []
    for _ in range(150):
        with suppress(TooFewOptionsError):
            sets.append(strategies[name].options(line_fact(POOL, truth=3), space, rng))
    assert len(sets) > 50
    for options in sets:
        values = [option.value[0] for option in options.options]
        gaps = [abs(a - b) for a, b in itertools.combinations(values, 2)]
        assert min(gaps) >= 1 - 1e-9
        assert max(gaps) <= 8 + 1e-9
        assert min(values) > 0
        assert values[options.truth] == POOL[3]
        assert options.strategy == name


@pytest.mark.parametrize("name", ["sampled", "perturbed"])
def test_recorded_margins_may_be_missed_but_never_print_alike(name: str) -> None:
    rng = np.random.default_rng(1)
    space = Line(noise=0.2, sampler=True)
    fact = line_fact(POOL, truth=3)
    sets = [strategies[name].options(fact, space, rng, margins="recorded") for _ in range(100)]
    gaps = [[abs(a.value[0] - b.value[0]) for a, b in itertools.combinations(options.options, 2)] for options in sets]
    assert min(map(min, gaps)) < 1
    assert min(map(min, gaps)) > 0


def test_too_few_options_says_everything() -> None:
    rng = np.random.default_rng(0)
    with pytest.raises(TooFewOptionsError) as caught:
        strategies["perturbed"].options(line_fact(POOL), Line(noise=0.3), rng)
    assert caught.value.reason == "too_few_options"
    assert str(caught.value).startswith("too_few_options: perturbed on line k: ")
    counts = [int(part.rpartition("x")[2]) for part in str(caught.value).rpartition(": ")[2].split(", ")]
    assert sum(counts) == 64
    with pytest.raises(TooFewOptionsError, match=r"^too_few_options: set_first on line k: nothing to propose$"):
        strategies["set_first"].options(line_fact([1, 1.5, 5, 9]), Line(), rng)
    with pytest.raises(TooFewOptionsError, match=r"^too_few_options: sampled on line k: nothing to propose$"):
        strategies["sampled"].options(line_fact([1, 3, 5]), Line(), rng)


def test_options_follow_from_the_generator_alone() -> None:
    fact = line_fact(POOL, truth=2)
    first, again, other = (
        [o.key for o in strategies["set_first"].options(fact, Line(), np.random.default_rng(s)).options]
        for s in (1, 1, 2)
    )
    assert first == again
    assert first != other
