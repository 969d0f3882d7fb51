"""Answering without looking by a fixed rule: what somebody writes down in a line after a look at the text.

Ties share the credit. Questions that a rule says nothing about count as guessed, so that its accuracy is that of a
cheat on all the questions. Source: `docs/validity.md#best-rule`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality._blocks import (
    Block,
    list_claim_sets,
    list_option_sets,
    make_blocks,
    rank_options,
    read_text_context,
    summarise_gaps,
)
from vgbench_gen.quality.findings import LEVEL, MAX_ITEMS, NEEDED, Finding, measure_accuracy
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_scene

POINTS = 3.0  # over chance that the best rule may reach
# Quantity whose extremes and middle are tried, by kind of option; the first one is the size of the answer.
_SIZES: Mapping[str, tuple[str, ...]] = {
    "scalar": ("value",),
    "vector": ("norm",),
    "matrix": ("corner_move", "scale"),
    "pose": ("angle", "move"),
    "box": ("depth", "volume"),
    "rect": ("area",),
    "point": ("from_query",),
}

Scores = dict[str, FloatArray]
"""Rule -> (n, k) how much it likes each option of a block; all alike where it has nothing to say."""


@dataclass(frozen=True, slots=True, eq=False)
class _Past:
    """What can be learnt from the keys of other scenes."""

    questions: list[Question]
    """The questions of one block; empty where only their numbers are needed."""
    cluster: IntArray
    """The number of the scene of each question, (n,)."""
    truth: IntArray
    """The place of the right option of each question, (n,)."""


def audit_rules(questions: Sequence[Question], seed: int) -> Finding:
    """The best fixed rule on the questions of one task and form, of which none is open-ended."""
    task, form = questions[0].cell
    group = np.array(group_by_scene(questions), dtype=np.int64)
    credits = _credit_claims(questions, group) if form == "judgment" else _credit_options(questions, group)
    line = Finding("rule", task=task, form=form, n=len(questions), needed=NEEDED)
    chance = np.array([q.chance for q in questions])
    return judge_best(line, credits, chance, [q.id for q in questions], group.tolist(), POINTS, seed)


def judge_best(
    line: Finding,
    credits: Mapping[str, FloatArray],
    chance: FloatArray,
    ids: Sequence[str],
    scenes: Sequence[int] | Sequence[str],
    points: float,
    seed: int,
) -> Finding:
    """The best of the rules that are surely above chance, else of all, of which at most `points` over chance are
    allowed; its p counts how many were tried (`Clusters.test_rules`).

    Args:
        line: kind, task, form and how many questions are needed.
        credits: rule -> (n,) credits on the questions, NaN where it says nothing.
        chance: (n,) the credits of guessing.
        ids: of the questions.
        scenes: of the questions.
        points: over chance that are allowed.
        seed: of intervals and signs.
    """
    if not credits:
        return replace(line, verdict="not judged")
    rng = rng_for(seed, line.kind, line.task, line.form)
    clusters, names = Clusters(scenes, rng), sorted(credits)
    table = np.stack([np.where(np.isnan(credits[name]), chance, credits[name]) for name in names])
    p, means = clusters.test_rules(table - chance, rng), table.mean(axis=1)
    best = max(range(len(names)), key=lambda k: (p[k] < LEVEL, means[k]))
    line = measure_accuracy(replace(line, name=names[best], p=float(p[best])), clusters, table[best], chance)
    hit = np.flatnonzero(table[best] > chance)[:MAX_ITEMS]
    detail = f"the best of {len(names)} rules"
    line = replace(line, limit=line.chance + points, items=tuple(ids[i] for i in hit), detail=detail)
    return line.judge(line.value <= line.limit)


def _credit_options(questions: Sequence[Question], group: IntArray) -> dict[str, FloatArray]:
    """Rule -> (questions,) credit, NaN where it says nothing."""
    truth = np.array([q.truth for q in questions], dtype=np.int64)
    credits: dict[str, FloatArray] = {}
    for block in make_blocks(questions, list_option_sets(questions)):
        if block.gaps.shape[1] < 2:
            continue
        mine = [questions[row] for row in block.rows]
        past = _Past(mine, group[block.rows], truth[block.rows])
        for name, score in _score_options(block, past).items():
            credit = credits.setdefault(name, np.full(len(questions), np.nan))
            credit[block.rows] = share_credit(score, past.truth)
    return {name: c for name, c in credits.items() if not np.isnan(c).all()}


def share_credit(score: FloatArray, truth: IntArray) -> FloatArray:
    """Credit (n,) for choosing the highest score (n, k), shared among equals; NaN where all options score alike."""
    score = np.round(score, 9)
    best = score == score.max(axis=1, keepdims=True)
    credit = best[np.arange(len(truth)), truth] / best.sum(axis=1)
    return np.asarray(np.where(best.all(axis=1), np.nan, credit), dtype=np.float64)


def _score_options(block: Block, past: _Past) -> Scores:
    columns = block.columns
    scores: Scores = {
        "longest": columns["length"],
        "shortest": -columns["length"],
        "most shared words": columns["shared_words"],
        "roundest": -columns["significant"],
        "least round": columns["significant"],
        "most frequent letter": _count_elsewhere(past.truth, past.cluster, len(block.texts[0])),
        "most frequent text": _score_most_frequent_text(block, past),
    }
    if block.kind in ("name", "text"):
        return scores
    nearest, mean = summarise_gaps(block.gaps)
    scores |= {"medoid": -mean, "most isolated": nearest, "one of the closest pair": -nearest}
    for name in _SIZES[block.kind]:
        scores |= {f"largest {name}": columns[name], f"smallest {name}": -columns[name]}
    if block.kind in ("scalar", "box"):
        rank = rank_options(columns[_SIZES[block.kind][0]])
        scores["middle"] = -np.abs(rank - (rank.shape[1] - 1) / 2)
    if block.kind == "scalar":
        scores |= _score_by_picture_size(block, past)
    if block.kind in ("scalar", "box", "pose", "matrix", "vector"):
        scores["nearest to other scenes' answers"] = _score_prior(block, past)
    for column, name in (("not_cuboid", "best cuboid"), ("deviation", "best rotation")):
        if column in columns:
            scores[name] = -columns[column]
    if block.kind == "box":
        scores["projection"] = columns["projection"]
    if block.kind in ("rect", "point"):
        scores |= {"top-most": -columns["y"], "lowest": columns["y"], "nearest the centre": -columns["from_centre"]}
    if block.kind == "point":
        moved = np.where(columns["from_query"] < 1e-6, np.inf, columns["from_query"])
        scores["nearest that moved"] = -np.minimum(moved, 1e3)
    return scores


def _score_most_frequent_text(block: Block, past: _Past) -> FloatArray:
    """(n, k) how often an option's text is right in other scenes."""
    right = [texts[place] for texts, place in zip(block.texts, past.truth.tolist(), strict=True)]
    number = {text: k for k, text in enumerate(dict.fromkeys(right), 1)}
    index = np.array([[number.get(text, 0) for text in texts] for texts in block.texts])
    counts = _count_elsewhere(index[np.arange(len(index)), past.truth], past.cluster, len(number) + 1)
    counts[:, 0] = 0
    return np.asarray(np.take_along_axis(counts, index, axis=1))


def _count_elsewhere(values: IntArray, cluster: IntArray, size: int) -> FloatArray:
    """(n, size) how often each value occurs outside the cluster of each question."""
    place = np.unique(cluster, return_inverse=True)[1]
    counts = np.zeros((place.max() + 1, size))
    np.add.at(counts, (place, values), 1)
    return np.asarray((counts.sum(axis=0) - counts)[place])


def _find_median_elsewhere(
    values: FloatArray, kinds: Sequence[str], cluster: IntArray, among: BoolArray | None = None
) -> FloatArray:
    """(n, d) median of the values (n, d) of the same kind in other scenes, of questions `among` alone; NaN where there
    are none."""
    kind = np.unique(kinds, return_inverse=True)[1]
    found = np.full(values.shape, np.nan)
    for one, scene in np.unique(np.stack([kind, cluster], axis=1), axis=0).tolist():
        others = (kind == one) & (cluster != scene) & (True if among is None else among) & ~np.isnan(values).any(axis=1)
        if others.any():
            found[(kind == one) & (cluster == scene)] = np.median(values[others], axis=0)
    return found


def _score_prior(block: Block, past: _Past) -> FloatArray:
    """(n, k) how near an option is to the median right answer of other scenes, for the same quantity and source."""
    n = len(block.values)
    positive = block.values.shape[2] == 1 and (block.values > 0).all()
    values = np.log(block.values) if positive else block.values
    right = values[np.arange(n), past.truth]
    scale = right.std(axis=0)
    middle = _find_median_elsewhere(right, [f"{q.ask}|{q.source}" for q in past.questions], past.cluster)
    gaps = np.linalg.norm((values - middle[:, None]) / np.where(scale > 0, scale, 1.0), axis=2)
    return np.asarray(-np.nan_to_num(gaps))


def _score_by_picture_size(block: Block, past: _Past) -> Scores:
    """Lengths from the text's rectangles alone: distance as pixels apart (two), depth from the height in the image
    (one), by a straight line in logarithms drawn through the other scenes."""
    value = block.values[..., 0]
    context = read_text_context(past.questions)
    if (value <= 0).any():
        return {}
    found: Scores = {}
    for name, column in (
        ("pixels apart", "rects_apart"),
        ("height in the image", "rect1_bottom"),
        ("size in the image", "rect1_angle"),
    ):
        x = context[column]
        known = np.isfinite(x) & (x > 0)
        if known.sum() < 10:
            continue
        x = np.log(np.where(known, x, 1.0))
        y = np.log(value[np.arange(len(value)), past.truth])
        score = np.zeros_like(value)
        for cluster in np.unique(past.cluster):
            mine, others = known & (past.cluster == cluster), known & (past.cluster != cluster)
            if mine.any() and others.any() and np.ptp(x[others]) > 0:
                slope, start = np.polyfit(x[others], y[others], 1)
                score[mine] = -np.abs(np.log(value[mine]) - (slope * x[mine] + start)[:, None])
        found[name] = score
    return found


def _credit_claims(questions: Sequence[Question], group: IntArray) -> dict[str, FloatArray]:
    """Rules for yes and no: each says yes above the median of what the claims of other scenes show, or below it."""
    truth = np.array([q.truth for q in questions], dtype=np.int64)
    credits = {"most frequent answer": share_credit(_count_elsewhere(truth, group, 2), truth)}
    sets, claimed = list_claim_sets(questions)
    quantities: dict[str, FloatArray] = {}
    for block in make_blocks(questions, sets):
        mine = np.arange(len(block.rows)), claimed[block.rows]
        names = [*_SIZES.get(block.kind, ()), "significant", "length"]
        names += [n for n in ("projection", "not_cuboid", "deviation", "y", "from_centre") if n in block.columns]
        found = {name: block.columns[name][mine] for name in names}
        if block.kind == "scalar":
            value = np.log(np.maximum(np.abs(block.values[mine]), 1e-9))
            kinds = [f"{questions[row].ask}|{questions[row].source}" for row in block.rows]
            middle = _find_median_elsewhere(value, kinds, group[block.rows], truth[block.rows] == 0)
            found["distance from other scenes' answers"] = np.abs(value - middle)[:, 0]
        for name, values in found.items():
            quantities.setdefault(name, np.full(len(questions), np.nan))[block.rows] = values
    asks = [q.ask for q in questions]
    for name, values in quantities.items():
        side = np.sign(np.nan_to_num(values - _find_median_elsewhere(values[:, None], asks, group)[:, 0]))
        if not side.any():
            continue
        for label, says_yes in ((f"yes if {name} is large", side), (f"yes if {name} is small", -side)):
            right = np.where(says_yes == 0, 0.5, (says_yes > 0) == (truth == 0))
            credits[label] = np.where(np.isnan(values), np.nan, right)
    return credits
