"""Set first, truth drawn among it: options that are exchangeable by construction.

Reasons and values: `docs/validity.md#exchangeable-by-construction`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import (
    MAX_PROPOSALS,
    AnswerSpace,
    Strategy,
    compatibility,
    strategies,
    valid_sets,
)


@strategies.register("set_first")
class SetFirst(Strategy):
    """Uniform over the valid sets of the fact's pool that contain the truth, or a ladder with uniform rank."""

    name = "set_first"
    balanced = True

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        rungs = space.ladder(fact, count, rng)
        if rungs is not None:
            # One proposal only: drawing again after a refusal would prefer the ranks that pass more easily.
            yield rungs
            return
        table = compatibility(fact.candidates, fact, space)
        # Only what may stand beside the truth can be in a set with it; the order of the sets stays the same.
        beside = np.flatnonzero(table[fact.truth])
        sets = beside[valid_sets(table[np.ix_(beside, beside)], count)]
        sets = sets[(sets == fact.truth).any(axis=1)]
        for row in rng.permutation(len(sets))[:MAX_PROPOSALS]:
            members = sets[row].tolist()
            yield [fact.candidates[i] for i in members], members.index(fact.truth)
