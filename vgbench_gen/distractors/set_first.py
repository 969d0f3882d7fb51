"""Set first, truth drawn among it: options that are exchangeable by construction.

Reasons and values: `docs/validity.md#exchangeable-by-construction`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import LETTERS, BoolArray, Candidate, Fact
from vgbench_gen.distractors.base import (
    MAX_PROPOSALS,
    AnswerSpace,
    Strategy,
    compatibility,
    leave_out,
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
        if not _keep_fact(table, fact, count):
            return
        # Only what may stand beside the truth can be in a set with it; the order of the sets stays the same.
        beside = np.flatnonzero(table[fact.truth])
        sets = beside[valid_sets(table[np.ix_(beside, beside)], max(count, len(LETTERS)))]
        sets = sets[(sets == fact.truth).any(axis=1)]
        for row in rng.permutation(len(sets))[:MAX_PROPOSALS]:
            members = sets[row].tolist()
            yield leave_out([fact.candidates[i] for i in members], members.index(fact.truth), count, rng)


def _keep_fact(table: BoolArray, fact: Fact, count: int) -> bool:
    """Whether a fact may have a set larger than a full one; by a number that is drawn from its name.

    Truths were drawn in proportion to the full sets that they belong to. Kept in proportion to their larger sets over
    those, they are as if drawn for the larger ones.
    """
    if count <= len(LETTERS):
        return True
    full, larger = (
        np.bincount(valid_sets(table, size).ravel(), minlength=len(table)).astype(float)
        for size in (len(LETTERS), count)
    )
    share = np.divide(larger, full, out=np.zeros_like(full), where=full > 0)
    drawn = rng_for(0, "larger set", fact.task, fact.dataset, fact.scene_id, fact.key).random()
    return bool(drawn * share.max() < share[fact.truth])
