"""Votes counted: which questions are hard, which are not, and which the votes that are missing could still decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, IntArray
from vgbench_gen.quality.voting.rule import COUNTED_WRONG, VOTES, Rule, Voter

VoteMatrix = npt.NDArray[np.int8]
"""(questions, models): places in `VOTES`."""


@dataclass(frozen=True, slots=True, eq=False)
class VoteCounts:
    """Counts per question, each of shape (n,)."""

    right: IntArray
    """The votes that the answer was right."""
    wrong: IntArray
    large_wrong: IntArray
    """The votes of large models that it was wrong."""
    open: IntArray
    """The models without a vote."""
    hard: BoolArray
    """Whether enough votes are wrong."""
    undecided: BoolArray
    """Whether the question is not hard yet but would be if the models without a vote were wrong."""


def cast_votes(votes: VoteMatrix, rule: Rule) -> IntArray:
    """Votes (n, m) as 1 right, 0 wrong, -1 no vote."""
    wrong = np.isin(votes, [VOTES.index(vote) for vote in COUNTED_WRONG[rule.policy]])
    return np.asarray(np.where(votes == VOTES.index("right"), 1, np.where(wrong, 0, -1)), dtype=np.int64)


def count_by_question(votes: VoteMatrix, panel: Sequence[Voter], rule: Rule) -> VoteCounts:
    """Count votes by a rule.

    Args:
        votes: (n, m).
        panel: the m models, in the order of the columns.
        rule: fitted to this panel.
    """
    cast = cast_votes(votes, rule)
    wrong, without = cast == 0, cast < 0
    large = np.array([voter.is_large(rule) for voter in panel], dtype=np.bool_)
    n_wrong, n_large, n_open = _sum(wrong), _sum(wrong[:, large]), _sum(without)
    hard = (n_wrong >= rule.wrong) & (n_large >= rule.large)
    could = (n_wrong + n_open >= rule.wrong) & (n_large + _sum(without[:, large]) >= rule.large)
    return VoteCounts(_sum(cast == 1), n_wrong, n_large, n_open, hard, could & ~hard)


def _sum(chosen: BoolArray) -> IntArray:
    return np.asarray(chosen.sum(axis=1, dtype=np.int64))
