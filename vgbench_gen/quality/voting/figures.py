"""What a vote says in figures: models, agreement, rates, and where the truths of hard questions stand."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from vgbench_gen.core.types import IntArray
from vgbench_gen.quality.review.agreement import gwet_ac1, krippendorff_alpha, raw_agreement
from vgbench_gen.quality.voting.choice import ABOVE_CHANCE, Subject
from vgbench_gen.quality.voting.rule import COUNTED_WRONG, VOTES, Rule, Voter
from vgbench_gen.quality.voting.tally import VoteCounts, VoteMatrix

_FEWEST = 2  # questions that two models both voted on, below which their agreement says nothing


def cast_votes(votes: VoteMatrix, rule: Rule) -> IntArray:
    """(n, m): 1 right, 0 wrong, -1 no vote."""
    wrong = np.isin(votes, [VOTES.index(vote) for vote in COUNTED_WRONG[rule.policy]])
    return np.asarray(np.where(votes == VOTES.index("right"), 1, np.where(wrong, 0, -1)), dtype=np.int64)


def count_by_model(votes: VoteMatrix, panel: Sequence[Voter], rule: Rule) -> list[dict[str, Any]]:
    """One record per model: its size, how often it was what, and its share of right votes (None without votes)."""
    found = []
    for voter, column in zip(panel, votes.T, strict=True):
        counts = np.bincount(column, minlength=len(VOTES)).tolist()
        cast = counts[0] + sum(counts[VOTES.index(vote)] for vote in COUNTED_WRONG[rule.policy])
        record: dict[str, Any] = {"model": voter.name, "billions": voter.billions, "large": voter.is_large(rule)}
        record["right_share"] = counts[0] / cast if cast else None
        found.append(record | dict(zip(VOTES, counts, strict=True)))
    return found


def measure_agreement(cast: IntArray, names: Sequence[str]) -> dict[str, Any]:
    """How far models agree on what they get right, beyond chance, together and two by two.

    Args:
        cast: as `cast_votes` gives it.
        names: of the models.

    Returns:
        n (questions with two votes or more), raw, ac1 and alpha (None where undefined); pairs: Cohen's kappa of every
        two models, the most alike first.
    """
    from sklearn.metrics import cohen_kappa_score

    words = {1: "right", 0: "wrong"}
    units = [[words[v] for v in row if v >= 0] for row in cast.tolist()]
    units = [unit for unit in units if len(unit) > 1]
    ac1 = gwet_ac1(units, ("right", "wrong"))
    measured = {"raw": raw_agreement(units), "alpha": krippendorff_alpha(units), "ac1": ac1}
    found: dict[str, Any] = {"n": len(units)}
    found |= {name: None if math.isnan(value) else value for name, value in measured.items()}
    pairs = []
    for a, b in itertools.combinations(range(len(names)), 2):
        both = (cast[:, a] >= 0) & (cast[:, b] >= 0)
        one, other = cast[both, a], cast[both, b]
        if len(one) < _FEWEST or (len(set(one.tolist())) == 1 and set(one.tolist()) == set(other.tolist())):
            continue  # kappa has no value where both always said the same one thing
        pairs.append({"models": [names[a], names[b]], "kappa": float(cohen_kappa_score(one, other)), "n": len(one)})
    found["pairs"] = sorted(pairs, key=lambda pair: -pair["kappa"])
    return found


def measure_hard_rates(
    subjects: Sequence[Subject], tally: VoteCounts, of: Callable[[Subject], str]
) -> list[dict[str, Any]]:
    """Per category (or whatever `of` says): questions, hard, undecided, and the share of wrong votes."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, one in enumerate(subjects):
        places[of(one)].append(k)
    found = []
    for name, mine in sorted(places.items()):
        hard, undecided = int(tally.hard[mine].sum()), int(tally.undecided[mine].sum())
        wrong, cast = int(tally.wrong[mine].sum()), int((tally.wrong + tally.right)[mine].sum())
        share = wrong / cast if cast else None
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
    found: dict[str, Any] = {"letters": dict(sorted(letters.items())), "yes_no": yes_no}
    found |= {"ranks": dict(sorted(ranks.items())), "constant": {}}
    for kind in ("letter", "yes_no"):
        mine = [one for one in subjects if one.kind == kind]
        if mine:
            best = Counter(one.place for one in mine).most_common(1)[0][1] / len(mine)
            chance = math.fsum(one.chance for one in mine) / len(mine)
            found["constant"][kind] = {
                "n": len(mine), "best": best, "chance": chance, "holds": best <= chance + ABOVE_CHANCE + 1e-9
            }  # fmt: skip
    return found
