"""A made-up task: answers are numbers on a line that must be 1 apart and at most 8 apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import FactorPair, Proposal


@dataclass(eq=False)
class Line:
    """ladder_ratio: step of the ladder, None for a pool task. noise: of the perturbed strategy."""

    ladder_step: float | None = None
    noise: float = 3.0
    sampler: bool = False

    def rounded(self, value: FloatArray) -> FloatArray:
        return np.round(value, 1)

    widest: float = 8.0

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        values = np.array([candidate.value[0] for candidate in candidates])
        apart = np.abs(values[:, None] - values)
        return apart, apart / self.widest

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        return bool(candidate.value[0] > 0)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        if self.ladder_step is None:
            return None
        rank = int(rng.integers(count))
        truth = fact.truth_candidate
        steps = [self.ladder_step * (k - rank) for k in range(count)]
        return [truth if s == 0 else Candidate("", truth.value + s) for s in steps], rank

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        return iter(())

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        return Candidate("", self.rounded(fact.truth_candidate.value + rng.normal(0, self.noise, 1)))

    def sampled(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        return Candidate("", self.rounded(rng.uniform(0, 12, 1))) if self.sampler else None

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        return None

    def proposal(self, fact: Fact) -> Proposal | None:
        return Proposal("depth", {"low": "1.00", "high": "9.00"}, ends=(1.0, 9.0))

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        return Candidate("", self.rounded(np.array(numbers)))

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        return float(value[0])


def line_fact(values: Sequence[float], truth: int = 0) -> Fact:
    pool = tuple(Candidate(f"v{i}", np.array([float(v)])) for i, v in enumerate(values))
    return Fact("line", 1, "", "scannet", "s", "val", "k", ("1",), pool, truth, pool[truth].value, 1.0, {}, "cc0-1.0")
