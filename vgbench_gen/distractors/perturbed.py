"""The paper's rule (ii): wrong options are the truth with noise. Gives the truth away; for comparison only.

Source: VGBench (SpatialScore, arXiv 2505.17012, section D.2); why it leaks:
`docs/validity.md#rules-that-leak-by-construction`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.types import Candidate, Fact
from vgbench_gen.distractors.base import MAX_PROPOSALS, AnswerSpace, Strategy, strategies


@strategies.register("perturbed")
class Perturbed(Strategy):
    """Truth plus noisy copies of it, by each task's published noise."""

    name = "perturbed"

    def propose(
        self, fact: Fact, space: AnswerSpace, rng: np.random.Generator, count: int
    ) -> Iterator[tuple[list[Candidate], int]]:
        for _ in range(MAX_PROPOSALS):
            decoys = [c for c in (space.perturbed(fact, rng) for _ in range(count - 1)) if c is not None]
            if not decoys:
                raise TooFewOptionsError("no_rule", f"perturbed: the paper has no noise for this of {fact.task}")
            if len(decoys) < count - 1:
                return
            yield [fact.truth_candidate, *decoys], 0
