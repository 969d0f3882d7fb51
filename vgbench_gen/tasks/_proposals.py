"""What a task tells a language model that names wrong options, and what it makes of the numbers that come back.

Numbers come back with the digits that a model likes, which are rounder than measured ones and would mark the truth
(`docs/validity.md#options-from-a-language-model`); so each is moved by up to `JITTER` of itself before it is printed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.distractors.base import Proposal

JITTER = 0.03  # relative noise, far below margins and far above the last digit


class Proposals:
    """The part of a `Task` that strategy `llm` asks; nothing can be named unless a task says how."""

    def proposal(self, fact: Fact) -> Proposal | None:
        """See `distractors.base.AnswerSpace`."""
        return None

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """See `distractors.base.AnswerSpace`."""
        return None

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """See `distractors.base.AnswerSpace`."""
        return float(value.ravel()[0])


def move_numbers(numbers: Sequence[float], rng: np.random.Generator) -> list[float]:
    """Each number, off by up to `JITTER` of itself."""
    return [float(x * (1 + JITTER * u)) for x, u in zip(numbers, rng.uniform(-1, 1, len(numbers)), strict=True)]


def make_range(kind: str, low: float, high: float, decimals: int, **slots: str) -> Proposal:
    """One number between two ends."""
    slots |= {"low": f"{low:.{decimals}f}", "high": f"{high:.{decimals}f}"}
    return Proposal(kind, slots, ends=(low, high))


def make_pose(numbers: Sequence[float], rng: np.random.Generator) -> FloatArray:
    """(3, 4) [R|t] of a rotation vector in degrees and a translation in meters, moved by the jitter."""
    values = move_numbers(numbers, rng)
    R = Rotation.from_rotvec(np.radians(values[:3])).as_matrix()
    return np.concatenate([R, np.array(values[3:])[:, None]], axis=1)
