"""What each model's scored replies vote on each question: a function of saved scores, which are what is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.evaluation.scoring import Rule
from vgbench_gen.quality.voting.rule import Vote

FOLDER = "votes"
_READ: Mapping[str, Vote] = {"unreadable": "unreadable", "refused": "refused", "failed": "failed"}


def count_model_votes(saved: SavedScores, prompt_set: str, rules: Mapping[str, Rule]) -> dict[str, Vote]:
    """Return what one model votes, by question; questions that it was not asked are not in.

    Args:
        saved: the model's scored replies.
        prompt_set: whose replies count; those of controls, of other orders of options and of later repeats do not.
        rules: how each question is graded.

    Raises:
        ConfigError: the model has no replies to this prompt set.
    """
    found: dict[str, tuple[bool, int, Vote]] = {}
    sets: Counter[str] = Counter()
    for row in saved.rows:
        if row.stage or row.rotation:
            continue
        sets[row.prompt_set] += 1
        if row.prompt_set != prompt_set or row.id not in rules:
            continue
        # The first repeat that got a reply; repeats in a file come in any order.
        cast = (row.outcome == "failed", row.epoch, vote_of(row, rules[row.id]))
        if row.id not in found or cast[:2] < found[row.id][:2]:
            found[row.id] = cast
    if sets and not sets[prompt_set]:
        there = ", ".join(sorted(sets))
        raise ConfigError(
            f"{saved.header.spec}: found no reply to prompt set {prompt_set!r}; there are: {there}. Say which with "
            "--prompt-set."
        )
    return {name: vote for name, (_, _, vote) in found.items()}


def vote_of(row: ScoreRow, rule: Rule) -> Vote:
    """Return what a scored reply votes.

    Graded scores, which are seldom 1, vote by the factor of 2 that lengths are held to.
    """
    if row.outcome in _READ:
        return _READ[row.outcome]
    return "right" if (row.delta_2 if rule == "mra" else row.score) >= 1 else "wrong"
