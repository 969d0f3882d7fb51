"""Answering without looking: learners that are trained on the questions of other scenes and see the text alone.

Source of the method: "Test-set Stress-Test" (arXiv 2511.04655), `docs/validity.md#text-only`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality import reading
from vgbench_gen.quality._learners import (
    LearnerRows,
    make_rows,
    name_important_features,
    pick_truth_probability,
    predict_numbers,
    predict_out_of_fold,
    score_credit,
    split_folds,
    state_of,
)
from vgbench_gen.quality.balance import DELTA, find_best_constants
from vgbench_gen.quality.findings import MAX_ITEMS, NEEDED, Finding, measure_accuracy
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_scene

FEWEST = 20  # questions below which nothing can be learnt
SPLITS = 3  # of the scenes into folds, over which answers are averaged
POINTS = 3.0  # over chance that a text may give away
CONTROL_POINTS, CONTROL_DRAWS = 2.0, 6
_CONTROL_TREES, _CONTROL_SHARE = 5, 0.35


def audit_text_only(
    questions: Sequence[Question], seed: int, rows: LearnerRows | None = None
) -> tuple[Finding, dict[str, float]]:
    """(the best learner on the questions of one task and form, id -> the share of belief that it puts on the right
    answer without having seen the question's scene; that of chance where the text gives nothing away).

    Tried are a forest on numbers and a linear model on words; of judgments also a forest that sees both claims of a
    pair of twins and says which is true, as a cheat with the whole set in hand can.

    The p of the best is that of its excess over chance, times the number of learners. Open-ended questions have no
    options: a forest predicts the number, and its share within a factor 1.25 stands beside that of the best constant.

    rows: those that `make_rows` gives, where they are made already.
    """
    task, form = questions[0].cell
    line = Finding("text", task=task, form=form, n=len(questions), needed=NEEDED)
    groups = group_by_scene(questions)
    if len(questions) < FEWEST or groups.max() == 0:
        return replace(line, verdict="not judged"), {}
    clusters = Clusters(groups, rng_for(seed, "blind", task, form, "bootstrap"))
    if form == "open-ended":
        return _audit_numbers(questions, groups, clusters, line, seed), {}
    rows, chance = rows or make_rows(questions), np.array([q.chance for q in questions])
    folds = _split(questions, groups, seed)
    beliefs = {
        name: [predict_out_of_fold(name, rows, fold, state_of(seed, task, form, name)) for fold in folds]
        for name in ("forest", "linear")
    }
    credits = {name: np.mean([score_credit(one, rows) for one in found], axis=0) for name, found in beliefs.items()}
    learner = max(credits, key=lambda name: float(credits[name].mean()))
    scores = np.mean([pick_truth_probability(one, rows) for one in beliefs[learner]], axis=0)
    if form == "judgment" and (twins := _tell_twins_apart(questions, seed)) is not None:
        credits["forest on both claims of twins"] = twins
    best = max(credits, key=lambda name: float(credits[name].mean()))
    credit = credits[best]
    line = measure_accuracy(replace(line, name=best), clusters, credit, chance)
    p = min(1.0, len(credits) * clusters.test_above(credit, chance))
    worst = np.argsort(-np.where(credit > 0, scores, -1), kind="stable")[:MAX_ITEMS]
    items = tuple(questions[i].id for i in worst if credit[i] > 0)
    line = replace(line, limit=line.chance + POINTS, p=p, items=items)
    line = line.judge(line.value <= line.limit)
    if line.failed:
        line = replace(line, detail=f"leans on {name_important_features(rows, folds[0], seed)}")
    return line, {q.id: round(float(s), 6) for q, s in zip(questions, scores, strict=True)}


def _split(questions: Sequence[Question], groups: IntArray, seed: int) -> list[IntArray]:
    """Folds of each question (n,), `SPLITS` times; by one split alone, a figure is off by up to two points."""
    return [split_folds(questions, groups, state_of(seed, *questions[0].cell, f"folds {k}")) for k in range(SPLITS)]


def join_claim_pairs(questions: Sequence[Question]) -> list[Question]:
    """Both claims of each pair of twins as one question with two options: which of them is true?

    Which half is the first option is drawn by the digest of its id.
    """
    pairs: dict[str, list[Question]] = {}
    for question in questions:
        if question.twin:
            pairs.setdefault(question.twin, []).append(question)
    found = []
    for halves in pairs.values():
        first, *rest = sorted(halves, key=lambda q: hash_stably("twin", q.id))
        if len(rest) == 1 and first.truth != rest[0].truth:
            texts = tuple(said[claimed].text for said, claimed in map(reading.read_claim, (first, rest[0])))
            # Numbers of the question itself belong to the marks and stay; the claim goes into the options.
            stem = first.question.replace(texts[0], "")
            found.append(replace(first, question=stem, form="multi-choice", options=texts, truth=int(first.truth != 0)))
    return found


def _tell_twins_apart(questions: Sequence[Question], seed: int) -> FloatArray | None:
    """(n,) whether a forest says which of a claim and its twin is true; half a credit where there is no twin."""
    pairs, (task, form) = join_claim_pairs(questions), questions[0].cell
    groups = group_by_scene(pairs)
    if len(pairs) < FEWEST or groups.max() == 0:
        return None
    rows, state = make_rows(pairs), state_of(seed, task, form, "twin")
    folds = _split(pairs, groups, seed)
    credit = np.mean([score_credit(predict_out_of_fold("forest", rows, fold, state), rows) for fold in folds], axis=0)
    by_twin = dict(zip((pair.twin for pair in pairs), credit.tolist(), strict=True))
    return np.array([by_twin.get(question.twin, 0.5) for question in questions])


def audit_control(questions: Sequence[Question], seed: int) -> Finding:
    """The forest on answers drawn at random: learners that beat chance here are broken, and with them the audit."""
    task, form = questions[0].cell
    line = Finding("control", "answers drawn at random", task, form, n=len(questions), needed=NEEDED)
    groups = group_by_scene(questions)
    if len(questions) < FEWEST or groups.max() == 0:
        return replace(line, verdict="not judged")
    rows, rng = make_rows(questions), rng_for(seed, "blind", task, form, "control")
    fold = _split(questions, groups, seed)[0]
    chance = 100 * float(np.mean([q.chance for q in questions]))
    states = [state_of(seed, task, form, "control", str(draw)) for draw in range(CONTROL_DRAWS)]
    values = [100 * _learn_random_answers(questions, rows, fold, rng, state) for state in states]
    mean, guessed = float(np.mean(values)), np.sqrt(chance * (100 - chance) / len(questions))
    error = float(max(np.std(values, ddof=1), guessed) / np.sqrt(len(values)))
    p = 2 * float(scipy.special.ndtr(-abs(mean - chance) / error))
    line = replace(line, value=mean, low=mean - 2 * error, high=mean + 2 * error, chance=chance, p=p)
    return replace(line, limit=chance + CONTROL_POINTS).judge(abs(mean - chance) <= CONTROL_POINTS)


def _learn_random_answers(
    questions: Sequence[Question], rows: LearnerRows, fold: IntArray, rng: np.random.Generator, state: int
) -> float:
    if questions[0].form == "judgment":  # twins stay twins
        twins = np.unique([q.twin or q.id for q in questions], return_inverse=True)[1]
        right = rows.right ^ (rng.random(twins.max() + 1) < 0.5)[twins]
    else:
        counts = np.bincount(rows.question)
        right = rows.option == (rng.random(len(counts)) * counts).astype(np.int64)[rows.question]
    drawn = replace(rows, right=right)
    belief = predict_out_of_fold("forest", drawn, fold, state, _CONTROL_TREES, _CONTROL_SHARE)
    return float(score_credit(belief, drawn).mean())


def _audit_numbers(
    questions: Sequence[Question], groups: IntArray, clusters: Clusters, line: Finding, seed: int
) -> Finding:
    """A forest that predicts an open-ended answer from the numbers of the text."""
    line = replace(line, name="forest, number", needed=0)
    guess = predict_numbers(questions, groups, state_of(seed, line.task, line.form, "regression"))
    if guess is None:
        return replace(line, detail="answers are not all positive numbers, or the text has none")
    ratio = np.exp(np.abs(np.log(guess) - np.log([q.value for q in questions])))
    constant = np.full(len(guess), find_best_constants(questions)[0])
    return replace(
        measure_accuracy(line, clusters, (ratio <= DELTA).astype(np.float64), constant),
        detail=f"within a factor {DELTA:g}, where the best constant stands for chance",
    )
