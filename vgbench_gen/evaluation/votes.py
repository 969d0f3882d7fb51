"""What each model's scored replies vote on each question, written to `votes/models/<model>.jsonl`.

Votes are a function of saved scores, which are what is kept from run to run; files of votes are written for those who
look at them and never read. The first line says what the votes rest on: the replies, the dataset, the scorer and the
prompt set; then comes a line with the ids for each of `VOTES`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.evaluation.scoring import Rule
from vgbench_gen.quality.voting.rule import VOTES, Vote
from vgbench_gen.store.files import replace_file

SCHEMA = 1
FOLDER = "votes"
MODELS = "models"
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


def write_model_votes(folder: Path, saved: SavedScores, prompt_set: str, votes: Mapping[str, Vote]) -> None:
    """Write the votes of one model into the folder of the dataset."""
    header = saved.header
    basis = {
        "schema": SCHEMA,
        "scorer_version": header.scorer_version,
        "dataset": header.dataset,
        "replies": header.replies,
        "prompt_set": prompt_set,
        "spec": header.spec,
        "model": header.model,
        "ignored": header.ignored,
    }
    by_vote = [{"vote": vote, "ids": [name for name, cast in votes.items() if cast == vote]} for vote in VOTES]
    with replace_file(folder / FOLDER / MODELS / saved.path.name) as temporary:
        lines = (json.dumps(record, separators=(",", ":")) + "\n" for record in (basis, *by_vote))
        temporary.write_text("".join(lines), encoding="utf-8")
