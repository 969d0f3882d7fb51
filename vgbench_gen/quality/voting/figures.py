"""The figures of a vote: models, agreement, rates, and where the truths of hard questions stand."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from vgbench_gen.quality.review import agreement
from vgbench_gen.quality.voting.choice import ABOVE_CHANCE, Subject
from vgbench_gen.quality.voting.rule import VOTES, Rule, Voter
from vgbench_gen.quality.voting.tally import VoteCounts, VoteMatrix, cast_votes


def count_by_model(votes: VoteMatrix, panel: Sequence[Voter], rule: Rule) -> list[dict[str, Any]]:
    """One record per model: its size, its number of votes of each kind, and its share of right ones (None of none)."""
    found = []
    for voter, column, cast in zip(panel, votes.T, cast_votes(votes, rule).T, strict=True):
        share = float((cast[cast >= 0] == 1).mean()) if (cast >= 0).any() else None
        record = {"model": voter.name, "billions": voter.billions, "large": voter.is_large(rule), "right_share": share}
        found.append(record | dict(zip(VOTES, np.bincount(column, minlength=len(VOTES)).tolist(), strict=True)))
    return found


def measure_agreement(votes: VoteMatrix, panel: Sequence[Voter], rule: Rule) -> dict[str, Any]:
    """How far models agree on what they get right, beyond chance, together and two by two.

    Returns:
        n (questions with two votes or more), raw, ac1 and alpha (None where undefined); pairs: Cohen's kappa of every
        two models, the most alike first.
    """
    from sklearn.metrics import cohen_kappa_score

    cast = cast_votes(votes, rule)
    units = [[("wrong", "right")[vote] for vote in row if vote >= 0] for row in cast.tolist()]
    together = agreement.measure_agreement([unit for unit in units if len(unit) > 1], ("right", "wrong"))
    pairs: list[dict[str, Any]] = []
    for a, b in itertools.combinations(range(len(panel)), 2):
        both = cast[(cast[:, a] >= 0) & (cast[:, b] >= 0)][:, [a, b]]
        if len(both) > 1 and np.ptp(both):  # kappa has no value where both always said the same
            kappa = float(cohen_kappa_score(both[:, 0], both[:, 1]))
            pairs.append({"models": [panel[a].name, panel[b].name], "kappa": kappa, "n": len(both)})
    found = {name: None if math.isnan(value) else value for name, value in asdict(together).items()}
    return found | {"pairs": sorted(pairs, key=lambda pair: -pair["kappa"])}


def measure_hard_rates(
    subjects: Sequence[Subject], tally: VoteCounts, of: Callable[[Subject], str]
) -> list[dict[str, Any]]:
    """Per category (or whatever `of` says): questions, hard, undecided, and the share of wrong votes."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, one in enumerate(subjects):
        places[of(one)].append(k)
    found = []
    for name, mine in sorted(places.items()):
        hard, undecided, wrong, right = (
            int(counts[mine].sum()) for counts in (tally.hard, tally.undecided, tally.wrong, tally.right)
        )
        share = wrong / (wrong + right) if wrong + right else None
        found.append({"name": name, "n": len(mine), "hard": hard, "undecided": undecided, "wrong_share": share})
    return found


def count_truth_positions(subjects: Sequence[Subject]) -> dict[str, Any]:
    """Where right answers stand: letters by number of options, yes and no, ranks by size; and the best constants."""
    letters: dict[str, list[int]] = {}
    ranks: dict[str, list[int]] = {}
    yes_no = [0, 0]
    for one in subjects:
        if one.kind == "letter":
            letters.setdefault(str(one.options), [0] * one.options)[one.place] += 1
            if one.rank >= 0:
                ranks.setdefault(str(one.options), [0] * one.options)[one.rank] += 1
        elif one.kind == "yes_no":
            yes_no[one.place] += 1
    constant = {}
    for kind in ("letter", "yes_no"):
        mine = [one for one in subjects if one.kind == kind]
        if mine:
            best = Counter(one.place for one in mine).most_common(1)[0][1] / len(mine)
            chance = math.fsum(one.chance for one in mine) / len(mine)
            holds = best <= chance + ABOVE_CHANCE + 1e-9
            constant[kind] = {"n": len(mine), "best": best, "chance": chance, "holds": holds}
    by_options = {"letters": dict(sorted(letters.items())), "ranks": dict(sorted(ranks.items()))}
    return by_options | {"yes_no": yes_no, "constant": constant}
