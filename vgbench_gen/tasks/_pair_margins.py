"""Margins that a task computes for all pairs of options at once."""

from __future__ import annotations

import abc
from collections.abc import Sequence

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.tasks.base import Task


class PairMarginsTask(Task):
    """A task that states its margins once, for all pairs; those of two options are read from the table of the two."""

    @abc.abstractmethod
    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """See `distractors.base.AnswerSpace`."""

    def margin_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Distance over the required margin, as `pair_margins` gives it."""
        return float(self.pair_margins((a, b), fact)[0][0, 1])

    def ceiling_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Distance over the ceiling, as `pair_margins` gives it."""
        return float(self.pair_margins((a, b), fact)[1][0, 1])
