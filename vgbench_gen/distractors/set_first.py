"""Set first, truth drawn among it: options that are exchangeable by construction (`benchmark-validity` 3.3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import (
    MAX_PROPOSALS,
    AnswerSpace,
    Strategy,
    compatibility,
    set_problem,
    strategies,
    valid_sets,
)


@strategies.register("set_first")
class SetFirst(Strategy):
    """Uniform over the valid sets of the fact's pool that contain the truth, or a ladder with uniform rank."""

    name = "set_first"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """See `Strategy.propose`."""
        rungs = space.ladder(fact, count, rng)
        if rungs is not None:
            # One proposal only: drawing again after a refusal would prefer the ranks that pass more easily.
            yield rungs
            return
        truth = fact.truth_candidate
        # Only what may stand beside the truth can be in a set with it; the order of the sets stays the same.
        pool = [c for c in fact.candidates if c is truth or not set_problem((truth, c), 2, fact, space)]
        place = next(i for i, c in enumerate(pool) if c is truth)
        sets = valid_sets(compatibility(pool, fact, space), count)
        sets = sets[(sets == place).any(axis=1)]
        for row in rng.permutation(len(sets))[:MAX_PROPOSALS]:
            members = sets[row].tolist()
            yield [pool[i] for i in members], members.index(place)
