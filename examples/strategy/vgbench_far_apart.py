"""Options that lie as far apart as the candidates of a fact allow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import AnswerSpace, Strategy, compatibility, strategies, valid_sets


@strategies.register("far_apart")
class FarApart(Strategy):
    """Sets of the pool that contain the truth, the one with the largest smallest distance first."""

    name = "far_apart"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        """See `Strategy.propose`."""
        around_truth = space.ladder(fact, count, rng)
        if around_truth is not None:  # the image fixes the truth, and the task itself knows fair values around it
            yield around_truth
            return
        sets = valid_sets(compatibility(fact.candidates, fact, space), count)
        with_truth = [row for row in sets.tolist() if fact.truth in row]
        apart, _ = space.pair_margins(fact.candidates, fact)

        def smallest_distance(row: list[int]) -> float:
            return min(float(apart[i, j]) for i, j in itertools.combinations(row, 2))

        for row in sorted(with_truth, key=smallest_distance, reverse=True):
            yield [fact.candidates[index] for index in row], row.index(fact.truth)
