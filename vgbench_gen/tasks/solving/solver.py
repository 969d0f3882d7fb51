"""How a task says which classical program answers it, and which rules that understand nothing must not.

A solver and a rule get a `VisibleQuestion`: the images as delivered and the printed text, never the key, the evidence,
depth or poses. Both give one score per option, higher for the option that they would choose. In a judgment about marked
points the claimed point comes first, so the first place stands for "Yes".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving.seen import VisibleQuestion

Score = Callable[[VisibleQuestion], FloatArray]
"""Scores (options,) of a question. Raises `Unread` where the text holds none of the known wordings."""


@dataclass(frozen=True, slots=True)
class Solver:
    """A classical program that answers the questions of a task from their pixels."""

    name: str
    """As it stands in the audit's table."""
    score: Score
    """Function from a question to scores (options,); the option with the highest is its answer."""
    goal: float = float("nan")
    """Per cent of its questions that a solvable set lets it answer (`docs/validity.md#solvability`); NaN for no bar."""


@dataclass(frozen=True, slots=True)
class NoSolver:
    """The declaration that a task has no classical solver."""

    reason: str
    """Why there is none, as a full sentence."""


@dataclass(frozen=True, slots=True)
class ImageRule:
    """A rule that looks at the images without understanding them; it must do no better than chance."""

    name: str
    """As it stands in the audit's table."""
    score: Score
    """Function from a question to scores (options,); the option with the highest is its choice."""
