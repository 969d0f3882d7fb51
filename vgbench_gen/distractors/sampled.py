"""The paper's rule (i): wrong options are random values of the same kind. For comparison, never the default.

Source: VGBench (SpatialScore, arXiv 2505.17012, section D.2).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import MAX_PROPOSALS, AnswerSpace, Strategy, strategies


@strategies.register("sampled")
class Sampled(Strategy):
    """Truth plus random members of the pool, or random values where the task has a sampler."""

    name = "sampled"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        others = [c for i, c in enumerate(fact.candidates) if i != fact.truth]
        for _ in range(MAX_PROPOSALS):
            drawn = [space.sampled(fact, rng) for _ in range(count - 1)]
            decoys = [c for c in drawn if c is not None]
            if len(decoys) < count - 1:
                if len(others) < count - 1:
                    return
                decoys = [others[i] for i in rng.choice(len(others), count - 1, replace=False)]
            yield [fact.truth_candidate, *decoys], 0
