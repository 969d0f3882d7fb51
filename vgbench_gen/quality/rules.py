"""Answering without looking by a fixed rule: what somebody writes down in a line after a look at the text.

The rules are those of `docs/validity.md#fixed-rules` (defects of published sets:
`docs/validity.md#what-published-questions-give-away`). A rule misses its bar when its accuracy lies above chance + 3
points or its upper end above chance + 6, and is red when a one-sided test over scenes says so too, corrected over all
figures of the audit. Both are needed: of twenty rules one stands 3 points above chance by luck alone, and a cell with
few scenes has wide intervals at an accuracy of chance. Rules that need no understanding of numbers but only of places
(same pixel, nearest the centre, top-most) may reach chance + 5, without a bar for the upper end.

Ties share the credit. Questions that a rule says nothing about count as guessed, so that its accuracy is that of a
cheat on the whole cell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.distance import cdist

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality._blocks import (
    Block,
    list_claim_sets,
    list_option_sets,
    make_blocks,
    read_text_context,
    summarise_gaps,
)
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_scene
from vgbench_gen.quality.text_only import format_leak_bar, make_chance_test, misses_bar

PLACE_POINTS = 5.0
_PLACE_RULES = frozenset({"same pixel", "nearest the centre", "top-most", "lowest"})
_BANDS = ((0.05, 0.15), (0.0, 0.5))
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
_MIDDLE = frozenset({"scalar", "box"})

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


def audit_rules(questions: Sequence[Question], seed: int) -> list[Finding]:
    """All fixed rules on the questions of one task and form; nothing for open-ended ones."""
    task, form = questions[0].cell
    if form == "open-ended":
        return []
    group = np.array(group_by_scene(questions), dtype=np.int64)
    chance = np.array([q.chance for q in questions])
    credits = _credit_claims(questions, group) if form == "judgment" else _credit_options(questions, group)
    sure = Clusters(group.tolist(), rng_for(seed, "rules", task, form))
    findings = []
    for name, credit in credits.items():
        spoken = ~np.isnan(credit)
        values = np.where(spoken, credit, chance)
        low, high = sure.interval(values)
        points, upper = (PLACE_POINTS, None) if name in _PLACE_RULES else (3.0, 6.0)
        expected = 100 * float(chance.mean())
        line = Finding(
            audit="rule",
            name=name,
            task=task,
            form=form,
            n=len(questions),
            value=100 * float(values.mean()),
            low=100 * low,
            high=100 * high,
            chance=expected,
            bar=format_leak_bar(expected, points, upper),
            detail=f"says something on {int(spoken.sum())}, {sure.count} scenes",
        )
        hit = np.flatnonzero(spoken & (credit > chance))[:MAX_ITEMS]
        line = replace(line, items=tuple(questions[i].id for i in hit))
        test = make_chance_test(sure, values, chance, points)
        findings.append(line.judge(not misses_bar(line, points, upper), test=test))
    return sorted(findings, key=lambda f: -f.value)


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
    scores = _print_rules(block) | _score_most_frequent(block, past)
    if block.kind in ("name", "text"):
        return scores
    nearest, mean = summarise_gaps(block.gaps)
    scores |= {"medoid": -mean, "most isolated": nearest, "one of the closest pair": -nearest}
    for name in _SIZES[block.kind]:
        scores |= {f"largest {name}": block.columns[name], f"smallest {name}": -block.columns[name]}
    first = block.columns[_SIZES[block.kind][0]]
    if block.kind in _MIDDLE:
        scores |= _score_middle(first)
    if block.kind == "scalar":
        scores |= _score_bands(first) | _score_by_picture_size(block, past)
    if block.kind in ("scalar", "box", "pose", "matrix", "vector"):
        scores |= _score_prior(block, past)
    for column, name in (("not_cuboid", "best cuboid"), ("deviation", "best rotation")):
        if column in block.columns:
            scores[name] = -block.columns[column]
    if block.kind == "box":
        scores["projection"] = block.columns["projection"]
    if block.kind in ("rect", "point"):
        scores |= {"top-most": -block.columns["y"], "lowest": block.columns["y"]}
        scores["nearest the centre"] = -block.columns["from_centre"]
    if block.kind == "point":
        query = scores.pop("smallest from_query")
        scores |= {"same pixel": (query > -1e-6).astype(np.float64), "nearest the query": query}
        scores["furthest from the query"] = scores.pop("largest from_query")
        moved = np.where(query > -1e-6, -np.inf, query)
        scores["nearest that moved"] = np.maximum(moved, -1e3)
    return scores


def _print_rules(block: Block) -> Scores:
    columns = block.columns
    return {
        "longest": columns["length"],
        "shortest": -columns["length"],
        "most shared words": columns["shared_words"],
        "roundest": -columns["significant"],
        "least round": columns["significant"],
    }


def _score_middle(value: FloatArray) -> Scores:
    """Middle by size, and each rank next to an end (of published answers, 69 % were the second largest)."""
    k = value.shape[1]
    rank = np.argsort(np.argsort(value, axis=1, kind="stable"), axis=1, kind="stable")
    found = {"middle": -np.abs(rank - (k - 1) / 2)}
    if k > 3:
        found |= {"second largest": -np.abs(rank - (k - 2)), "second smallest": -np.abs(rank - 1)}
    return {name: score.astype(np.float64) for name, score in found.items()}


def _score_bands(value: FloatArray) -> Scores:
    """The option whose noise band holds most of the others: wrong options made as truth x (1 +- u)."""
    k = value.shape[1]
    off = np.abs(value[:, None, :] - value[:, :, None]) / np.maximum(np.abs(value), 1e-12)[:, :, None]
    off[:, np.arange(k), np.arange(k)] = np.inf
    slack = 1e-3  # printed values are rounded
    return {
        f"noise band {low:.0%} to {high:.0%}": ((off >= low - slack) & (off <= high + slack)).sum(axis=2).astype(float)
        for low, high in _BANDS
    }


def _score_most_frequent(block: Block, past: _Past) -> Scores:
    """The place, and the text, that is right most often in other scenes."""
    k = len(block.texts[0])
    counts = _count_elsewhere(past.truth, past.cluster, k)
    scores = {"most frequent letter": counts}
    if block.kind in ("name", "text", "point", "rect"):
        names, index = np.unique([text for texts in block.texts for text in texts], return_inverse=True)
        index = index.reshape(-1, k)
        right = index[np.arange(len(index)), past.truth]
        if len(names) <= len(index):
            scores["most frequent text"] = np.take_along_axis(
                _count_elsewhere(right, past.cluster, len(names)), index, axis=1
            )
    return scores


def _count_elsewhere(values: IntArray, cluster: IntArray, size: int) -> FloatArray:
    """(n, size) how often each value occurs outside the cluster of each question."""
    place = np.unique(cluster, return_inverse=True)[1]
    counts = np.zeros((place.max() + 1, size))
    np.add.at(counts, (place, values), 1)
    return np.asarray((counts.sum(axis=0) - counts)[place])


def _score_prior(block: Block, past: _Past) -> Scores:
    """The option nearest the median right answer of other scenes, for the same quantity and source (image size where
    the source is unknown), and the value that is right most often there."""
    n, k, d = block.values.shape
    right = block.values[np.arange(n), past.truth]
    scale = right.std(axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    near, often = np.zeros((n, k)), np.zeros((n, k))
    kinds = np.unique([f"{q.ask}|{q.source}" for q in past.questions], return_inverse=True)[1]
    for kind in range(kinds.max() + 1):
        of_kind = kinds == kind
        for cluster in np.unique(past.cluster[of_kind]):
            mine = of_kind & (past.cluster == cluster)
            others = right[of_kind & (past.cluster != cluster)]
            if len(others) == 0:
                continue
            if d == 1:
                middle = np.median(others[:, 0])
                near[mine] = -_measure_log_gap(block.values[mine, :, 0], middle)
                often[mine] = (block.values[mine, :, :1] == others[:, 0]).sum(axis=2)
            else:
                middle = np.median(others, axis=0)
                near[mine] = -np.linalg.norm((block.values[mine] - middle) / scale, axis=2)
    if d == 1:
        return {"prior of other scenes": near, "repeated value": often}
    known = _list_recurring_values(block)
    return {
        "prior of other scenes": near,
        "known elsewhere": -_measure_distance_elsewhere(known, known[np.arange(n), past.truth], past),
    }


def _list_recurring_values(block: Block) -> FloatArray:
    """(n, k, m) what of an option may return in another scene: sizes of a box, otherwise the numbers themselves."""
    if block.kind == "box":
        return np.log(np.maximum(np.stack([block.columns[f"size {i}"] for i in range(3)], axis=2), 0.01))
    spread = block.values.reshape(-1, block.values.shape[2]).std(axis=0)
    return np.asarray(block.values / np.where(spread > 0, spread, 1.0))


def _measure_distance_elsewhere(
    known: FloatArray, right: FloatArray, past: _Past, among: BoolArray | None = None
) -> FloatArray:
    """(n, k) distance of each option (n, k, m) to the closest right answer (n, m) of another scene: things of one make
    stand in many rooms. `among` tells which questions give right answers."""
    n, k, m = known.shape
    found = np.zeros((n, k))
    for cluster in np.unique(past.cluster):
        mine = past.cluster == cluster
        others = right[~mine if among is None else ~mine & among]
        if len(others):
            found[mine] = cdist(known[mine].reshape(-1, m), others).min(axis=1).reshape(-1, k)
    return found


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


def _measure_log_gap(values: FloatArray, middle: float) -> FloatArray:
    if middle > 0 and (values > 0).all():
        return np.asarray(np.abs(np.log(values) - np.log(middle)))
    return np.asarray(np.abs(values - middle))


def _credit_claims(questions: Sequence[Question], group: IntArray) -> dict[str, FloatArray]:
    """Rules for yes and no: each says yes above the median of what the claims of other scenes show, or below it."""
    truth = np.array([q.truth for q in questions], dtype=np.int64)
    yes = truth == 0
    counts = _count_elsewhere(truth, group, 2)
    credits = {"most frequent answer": share_credit(counts, truth)}
    sets, claimed = list_claim_sets(questions)
    quantities: dict[str, FloatArray] = {}
    for block in make_blocks(questions, sets):
        mine = np.arange(len(block.rows)), claimed[block.rows]
        names = [*_SIZES.get(block.kind, ()), "significant", "length"]
        names += [
            name for name in ("projection", "not_cuboid", "deviation", "y", "from_centre") if name in block.columns
        ]
        found = {name: block.columns[name][mine] for name in names}
        if block.kind == "scalar":
            found["distance from the prior"] = _measure_distance_to_median(
                block, [questions[r] for r in block.rows], group[block.rows], yes[block.rows]
            )
        if block.kind in ("box", "pose", "matrix", "vector"):
            known, mine_past = (
                _list_recurring_values(block)[mine][:, None],
                _Past([], group[block.rows], truth[block.rows]),
            )
            found["distance from known"] = _measure_distance_elsewhere(known, known[:, 0], mine_past, yes[block.rows])[
                :, 0
            ]
        for name, values in found.items():
            quantities.setdefault(name, np.full(len(questions), np.nan))[block.rows] = values
    for name, values in quantities.items():
        if len(np.unique(values[~np.isnan(values)])) < 2:
            continue
        above = _compare_with_median(values, group, questions)
        for label, side in ((f"yes if {name} is large", above), (f"yes if {name} is small", -above)):
            right = np.where(side == 0, 0.5, (side > 0) == yes)
            credits[label] = np.where(np.isnan(values), np.nan, right)
    return credits


def _compare_with_median(values: FloatArray, group: IntArray, questions: Sequence[Question]) -> FloatArray:
    """1 above, -1 below, 0 at the median of the same quantity over other scenes."""
    asks = np.unique([q.ask for q in questions], return_inverse=True)[1]
    side = np.zeros(len(values))
    for ask in range(asks.max() + 1):
        for cluster in np.unique(group[asks == ask]):
            mine = (asks == ask) & (group == cluster)
            others = values[(asks == ask) & (group != cluster)]
            others = others[~np.isnan(others)]
            if len(others):
                side[mine] = np.sign(np.nan_to_num(values[mine] - np.median(others)))
    return side


def _measure_distance_to_median(
    block: Block, questions: Sequence[Question], group: IntArray, yes: BoolArray
) -> FloatArray:
    """Distance of a claimed number from the median of true claims in other scenes, same quantity and source."""
    value = block.values[:, 0, 0]
    kinds = np.unique([f"{q.ask}|{q.source}" for q in questions], return_inverse=True)[1]
    gap = np.zeros(len(value))
    for kind in range(kinds.max() + 1):
        for cluster in np.unique(group[kinds == kind]):
            mine = (kinds == kind) & (group == cluster)
            others = value[(kinds == kind) & (group != cluster) & yes]
            if len(others):
                gap[mine] = _measure_log_gap(value[mine], float(np.median(others)))
    return gap
