"""Answering without looking by a fixed rule: what somebody writes down in a line after a look at the text.

Ties share the credit. Questions that a rule says nothing about count as guessed, so that its accuracy is that of a
cheat on all the questions. Source: `docs/validity.md#best-rule`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.quality._learners import (
    LearnerRows,
    list_quantities,
    make_rows,
    measure_unusual,
    scale_columns,
    split_folds,
    state_of,
)
from vgbench_gen.quality.description import rank
from vgbench_gen.quality.findings import LEVEL, MAX_ITEMS, NEEDED, Finding, measure_accuracy
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_scene

PIXELS = ("sharpness", *(f"energy {band}" for band in range(1, 5)))
POINTS = 3.0  # over chance that the best rule may reach
_TRIED = {
    *("norm", "extents together", "row spread", "from what is asked", "gap to the nearest", "gap to all", "unusual"),
    *("length", "significant", "shared words"),
}


def audit_rules(questions: Sequence[Question], seed: int, rows: LearnerRows | None = None) -> Finding:
    """The best fixed rule on the questions of one task and form, of which none is open-ended.

    Of each quantity of the options the least and the most are tried; of claims whether more than usual or less is
    true. The letter, text or answer that is right most often in other scenes is tried too.

    rows: those that `make_rows` gives, where they are made already.
    """
    task, form = questions[0].cell
    group = group_by_scene(questions)
    rows = rows or make_rows(questions)
    quantities = _list_tried(rows, split_folds(questions, group, state_of(seed, task, form, "rules")))
    truth = np.array([q.truth for q in questions], dtype=np.int64)
    credits = {"most frequent answer": share_credit(_count_elsewhere(truth, group), truth)}
    if form != "judgment":
        credits["most frequent text"] = share_credit(_count_texts_elsewhere(questions, truth, group), truth)
    credits |= _credit_quantities(quantities, questions, rows, group)
    credits = {name: credit for name, credit in credits.items() if not np.isnan(credit).all()}
    line = Finding("rule", task=task, form=form, n=len(questions), needed=NEEDED)
    return judge_best(line, credits, questions, group, POINTS, seed)


def credit_pixels(questions: Sequence[Question], pixels: Sequence[FloatArray], seed: int) -> dict[str, FloatArray]:
    """Rule -> (n,) credits of cheap pixels on the questions of one task and form.

    Where options are images, the one with the least and the most of each number, and of its distance from the first
    image's; else the option that is nearest to what such images make likely, or furthest from it.

    pixels: (images, numbers) of each question.
    """
    rows, group = make_rows(questions), group_by_scene(questions)
    places = np.full(rows.seen.there.shape, -1)
    for i, j in np.argwhere(rows.seen.there).tolist() if questions[0].form == "multi-choice" else ():
        if found := re.fullmatch(r"image ([0-9]+)", questions[i].options[j]):
            places[i, j] = min(int(found[1]), len(pixels[i])) - 1
    if (places[rows.seen.there] >= 0).all():
        own = np.stack([values[place] for values, place in zip(pixels, places, strict=True)])
        off = np.abs(own - np.stack([values[0] for values in pixels])[:, None])
        names = [f"{name}{of}" for of in ("", " off the first image's") for name in PIXELS]
        quantities = dict(zip(names, np.moveaxis(np.concatenate([own, off], axis=2), 2, 0), strict=True))
        quantities = {name: np.where(rows.seen.there, values, np.nan) for name, values in quantities.items()}
    else:
        shown = scale_columns(np.stack([values[: min(map(len, pixels))].ravel() for values in pixels]))
        fold = split_folds(questions, group, state_of(seed, *questions[0].cell, "pixels"))
        quantities = {
            "unusual for images": measure_unusual(replace(rows, asked=sparse.csr_array(shown)), fold)[..., -1]
        }
    return _credit_quantities(quantities, questions, rows, group)


def judge_best(
    line: Finding,
    credits: Mapping[str, FloatArray],
    questions: Sequence[Question],
    scenes: Sequence[int] | Sequence[str] | IntArray,
    points: float,
    seed: int,
) -> Finding:
    """The best of the rules that are surely above chance, else of all, of which at most `points` over chance are
    allowed; its p counts how many were tried (`Clusters.test_rules`).

    Args:
        line: kind, task, form and how many questions are needed.
        credits: rule -> (n,) credits on the questions, NaN where it says nothing.
        questions: n, in the same order.
        scenes: of the questions.
        points: over chance that are allowed.
        seed: of intervals and signs.
    """
    if not credits:
        return replace(line, verdict="not judged")
    rng, chance = rng_for(seed, line.kind, line.task, line.form), np.array([q.chance for q in questions])
    clusters, names = Clusters(scenes, rng), sorted(credits)
    table = np.stack([np.where(np.isnan(credits[name]), chance, credits[name]) for name in names])
    p, means = clusters.test_rules(table - chance, rng), table.mean(axis=1)
    best = max(range(len(names)), key=lambda k: (p[k] < LEVEL, means[k]))
    line = measure_accuracy(replace(line, name=names[best], p=float(p[best])), clusters, table[best], chance)
    hit = tuple(questions[i].id for i in np.flatnonzero(table[best] > chance)[:MAX_ITEMS])
    line = replace(line, limit=line.chance + points, items=hit, detail=f"the best of {len(names)} rules")
    return line.judge(line.value <= line.limit)


def share_credit(score: FloatArray, truth: IntArray) -> FloatArray:
    """Credit (n,) for choosing the highest score (n, k), shared among equals; NaN where all options score alike."""
    score = np.where(np.isnan(score), -np.inf, np.round(score, 9))
    best = score == score.max(axis=1, keepdims=True)
    credit = best[np.arange(len(truth)), truth] / best.sum(axis=1)
    return np.asarray(np.where((best | (score == -np.inf)).all(axis=1), np.nan, credit), dtype=np.float64)


def _list_tried(rows: LearnerRows, fold: IntArray) -> dict[str, FloatArray]:
    """Name -> (n, k) the quantities that somebody would try: few numbers one by one, of many what they make together,
    distances, how unusual they are, length and roundness."""
    names, own = list_quantities(rows, fold)
    tried = {f"number {name.removeprefix('size ')}" for name in names if name.startswith("size ")} | _TRIED
    return {name: own[..., k] for k, name in enumerate(names) if name in tried or re.fullmatch("row [0-9]+", name)}


def _credit_quantities(
    quantities: Mapping[str, FloatArray], questions: Sequence[Question], rows: LearnerRows, group: IntArray
) -> dict[str, FloatArray]:
    """Credits of the rules on each quantity (n, k)."""
    if questions[0].form == "judgment":
        return _credit_claims({name: v[rows.question, rows.option] for name, v in quantities.items()}, rows, group)
    truth, credits = np.array([q.truth for q in questions], dtype=np.int64), dict[str, FloatArray]()
    for name, values in quantities.items():
        credits |= _credit_ranks(name, values, rows.seen.there, truth)
    return credits


def _credit_ranks(name: str, values: FloatArray, there: BoolArray, truth: IntArray) -> dict[str, FloatArray]:
    """Credits of choosing the smallest or the largest by one quantity (n, k), or the middle of numbers."""
    places = np.where(there, rank(values, there), np.nan)
    scores = {f"smallest {name}": -places, f"largest {name}": places}
    if name == "number 1":
        scores["middle number 1"] = -np.abs(places - (there.sum(axis=1, keepdims=True) - 1) / 2)
    if name == "from what is asked":  # the nearest that moved
        scores["second smallest from what is asked"] = -np.abs(places - 1)
    return {rule: share_credit(score, truth) for rule, score in scores.items()}


def _count_elsewhere(values: IntArray, cluster: IntArray) -> FloatArray:
    """(n, values) how often each value occurs outside the cluster of each question."""
    place = np.unique(cluster, return_inverse=True)[1]
    counts = np.zeros((place.max() + 1, values.max() + 1))
    np.add.at(counts, (place, values), 1)
    return np.asarray((counts.sum(axis=0) - counts)[place])


def _count_texts_elsewhere(questions: Sequence[Question], truth: IntArray, group: IntArray) -> FloatArray:
    """(n, k) how often an option's text is right in other scenes; NaN where there are fewer options."""
    number = {text: k for k, text in enumerate(dict.fromkeys(q.options[q.truth] for q in questions))}
    counts = _count_elsewhere(np.array([number[q.options[q.truth]] for q in questions]), group)
    found = np.full((len(questions), max(len(q.options) for q in questions)), np.nan)
    for i, question in enumerate(questions):
        for j, text in enumerate(question.options):
            found[i, j] = counts[i, number[text]] if text in number else 0.0
    return found


def _credit_claims(quantities: Mapping[str, FloatArray], rows: LearnerRows, group: IntArray) -> dict[str, FloatArray]:
    """Rules for yes and no: each says yes above the median of what claims of other scenes show, or below it."""
    credits: dict[str, FloatArray] = {}
    for name, values in quantities.items():
        side = np.sign(np.nan_to_num(values - _find_median_elsewhere(values, rows.asks, group)))
        if side.any():
            right = np.where(side == 0, 0.5, (side > 0) == rows.right)
            known = np.where(np.isnan(values), np.nan, 0.0)
            credits |= {f"yes if {name} is large": right + known, f"yes if {name} is small": 1 - right + known}
    return credits


def _find_median_elsewhere(values: FloatArray, asks: IntArray, cluster: IntArray) -> FloatArray:
    """(n,) median of the values (n,) of the same ask in other scenes; NaN where there are none."""
    found = np.full(values.shape, np.nan)
    for ask, scene in np.unique(np.stack([asks, cluster], axis=1), axis=0).tolist():
        others = (asks == ask) & (cluster != scene) & ~np.isnan(values)
        if others.any():
            found[(asks == ask) & (cluster == scene)] = np.median(values[others])
    return found
