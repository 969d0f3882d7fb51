"""A scripted model of a given strength, `baseline:noisy?accuracy=0.4&seed=3`: knows the key and errs on purpose.

For demonstrations and tests of what needs many models of different strength. Whether it is right is a draw of two
normal numbers, one of the question, which all such models share, and one of its own: what is hard for one is hard for
others.
"""

from __future__ import annotations

import math
from functools import cached_property
from statistics import NormalDist

import numpy as np
from pydantic import Field

from vgbench_gen.core.config import Config
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.base import Source
from vgbench_gen.evaluation.baselines import Baseline, write_number_like
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.evaluation.scoring import find_rules

_REFUSAL = "I'm sorry, but I can't help with that."
_FARTHEST, _NEAREST = 6.0, 2.5  # factors by which a wrong number is off


class Noise(Config):
    """What the spec of a noisy baseline says."""

    accuracy: float = Field(default=0.5, ge=0, le=1)
    """The share of right answers."""
    tasks: dict[str, float] = Field(default_factory=dict)
    """The same for single tasks, `accuracy.TASK` in the spec."""
    shared: float = Field(default=0.5, ge=0, le=1)
    """How much of the draw is the question's own, so that models fail alike, from 0 to 1."""
    unreadable: float = Field(default=0.0, ge=0, le=1)
    """The share of replies without an answer."""
    refused: float = Field(default=0.0, ge=0, le=1)
    """The share of refusals."""
    seed: int = Field(default=0, ge=0)
    """The seed of its own draws."""
    size: str = ""
    """The size of model that it stands for ("72B"); it changes no answer."""


class Noisy(Baseline):
    """Right as often as its settings say.

    Args:
        source: the questions.
        seed: of its own draws.
        noise: what its spec says.
    """

    def __init__(self, source: Source, seed: int, noise: Noise) -> None:
        super().__init__(source, seed)
        self.noise = noise
        self._hardness = ("", 0.0)  # questions about one truth come after each other

    @cached_property
    def _normal(self) -> NormalDist:
        return NormalDist()

    def answer(self, item: Item, asked: Asked) -> str:
        """As `Baseline.answer`; a question whose truth is a text is always answered by the key."""
        rng = rng_for(self.seed, "baseline", "noisy", *(str(part) for part in asked.key))
        kept = float(rng.random())
        if kept < self.noise.unreadable:
            return ""
        if kept < self.noise.unreadable + self.noise.refused:
            return _REFUSAL
        own, share = float(rng.standard_normal()), self.noise.shared
        drawn = math.sqrt(share) * self._of(item) + math.sqrt(1 - share) * own
        if self._normal.cdf(drawn) < self.noise.tasks.get(item.task, self.noise.accuracy):
            return asked.item.answer
        return _wrong(asked.item, rng)

    def _of(self, item: Item) -> float:
        name = item.group_id or item.id
        if self._hardness[0] != name:
            self._hardness = name, float(rng_for(0, "baseline", "hardness", name).standard_normal())
        return self._hardness[1]


def _wrong(item: Item, rng: np.random.Generator) -> str:
    if item.question_type == "multi-choice":
        others = [letter for letter in ALPHABET[: len(item.options)] if letter != item.answer]
        return others[int(rng.integers(len(others)))]
    if item.question_type == "judgment":
        return "No" if item.answer == "Yes" else "Yes"
    drawn = find_rules(item.benchmark).draw_answer(item, rng, other_than=item.answer)
    if drawn is not None:
        return drawn
    if not item.answer_value:
        return item.answer
    factor = math.exp(float(rng.uniform(math.log(_NEAREST), math.log(_FARTHEST))))
    return write_number_like(item.answer_value[0] * (factor if rng.random() < 0.5 else 1 / factor), item.answer)
