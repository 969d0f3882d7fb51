"""The rules of SpatialScore v2 for wrong options. They give the truth away; for comparison only.

Source: arXiv 2505.17012 v3, rules R3 to R7, R9, R10, R12 and R13; what they leak: `docs/comparison.md#published-rules`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import MAX_PROPOSALS, AnswerSpace, strategies
from vgbench_gen.distractors.sampled import Sampled


@strategies.register("published")
class PublishedRules(Sampled):
    """Truth plus what the published rule of its task gives, or random members of the pool where that is the rule."""

    name = "published"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        for _ in range(MAX_PROPOSALS):
            decoys = space.published(fact, count - 1, rng)
            if decoys is None:
                yield from super().propose(fact, space, rng, count)
                return
            yield [fact.truth_candidate, *decoys], 0
