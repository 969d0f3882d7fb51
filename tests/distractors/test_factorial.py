"""Two parts with two values each: all combinations, the wrong parts named, every letter alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.distractors.line_space import Line, line_fact
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import FactorPair, OptionSet, strategies
from vgbench_gen.distractors.factorial import list_wrong_parts


@dataclass
class Plane(Line):
    """Sums of tens and ones: two parts of a number."""

    widest: float = np.inf
    other: tuple[float, float] = (20.0, 4.0)

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        tens, ones = divmod(float(fact.truth_candidate.value[0]), 10)
        others = [
            Candidate("", np.array([t + o])) for t, o in ((10 * tens, self.other[1]), (self.other[0], ones), self.other)
        ]
        yield FactorPair(("tens", "ones"), (others[0], others[1], others[2]))


def drawn(space: Plane, seed: int = 0) -> OptionSet:
    return strategies["factorial"].options(line_fact([37.0]), space, np.random.default_rng(seed))


def test_options_are_the_four_combinations_and_say_what_they_get_wrong() -> None:
    options = drawn(Plane())
    by_value = dict(zip((float(o.value[0]) for o in options.options), list_wrong_parts(options), strict=True))
    assert by_value == {37.0: "", 34.0: "ones", 27.0: "tens", 24.0: "tens+ones"}
    assert options.strategy == "factorial"
    assert options.options[options.truth].value[0] == 37


def test_the_truth_has_every_place_alike() -> None:
    places = Counter(drawn(Plane(), seed).truth for seed in range(2000))
    assert all(430 < places[k] < 570 for k in range(4))


def test_margins_hold_between_all_pairs() -> None:
    with pytest.raises(TooFewOptionsError, match="margin x1"):
        drawn(Plane(other=(20.0, 7.5)))  # the ones would be half a margin apart
    with pytest.raises(TooFewOptionsError, match="printed_alike x1"):
        drawn(Plane(other=(30.0, 4.0)))


def test_answers_without_parts_give_no_set() -> None:
    with pytest.raises(TooFewOptionsError, match="nothing to propose"):
        strategies["factorial"].options(line_fact([1.0]), Line(), np.random.default_rng(0))
    with pytest.raises(TooFewOptionsError, match="nothing to propose"):
        strategies["factorial"].options(line_fact([37.0]), Plane(), np.random.default_rng(0), count=5)


def test_sets_of_other_strategies_name_no_parts() -> None:
    assert list_wrong_parts(replace(drawn(Plane()), strategy="set_first")) == ()
