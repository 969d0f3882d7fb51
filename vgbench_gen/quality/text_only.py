"""Answering without looking: classifiers that learn on the released questions and see their text alone.

Source of the method: "Test-set Stress-Test" (arXiv 2511.04655), `docs/validity.md#text-only-models`. Folds never
split a scene. An accuracy misses its bar when its point lies above chance + 3 or its upper end above chance + 6. It
counts as a leak when a one-sided test over scenes says so too, corrected over all figures of the audit
(`quality.family`): the best of several classifiers lies above chance by luck alone, and a cell with few scenes has an
upper end far above its point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import scipy
from scipy import sparse

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.quality import _values, features
from vgbench_gen.quality._learners import (
    LearnerRows,
    make_rows,
    name_important_features,
    pick_truth_probability,
    predict_out_of_fold,
    score_credit,
    split_folds,
    state_of,
)
from vgbench_gen.quality.family import LEVEL
from vgbench_gen.quality.findings import MAX_ITEMS, ChanceTest, Finding
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question, group_by_scene

FEWEST = 20  # questions below which nothing can be learnt or concluded
POINT, UPPER = 3.0, 6.0
CLAIM_BAR = 53.0
CONTROL_POINTS, CONTROL_DRAWS = 2.0, 6
_CONTROL_TREES, _CONTROL_SHARE = 5, 0.35
_REPEATED_BELOW = 600  # small cells are cheap, and one split into folds is a matter of luck there
_SOURCE_QUESTIONS = 100
_DELTA = 1.25


@dataclass(frozen=True, slots=True)
class TextOnlyResult:
    """What text-only classifiers reach on the questions of one task and form."""

    findings: list[Finding]
    """One line for each classifier."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """For each question id the share of belief s(x) that the best classifier puts on the right answer. That classifier
    has not seen the question's scene. Where the text gives nothing away the share is that of chance."""


def audit_text_only(questions: Sequence[Question], seed: int) -> TextOnlyResult:
    """Text-only classifiers on the questions of one task and form, with the control on random answers.

    Open-ended questions have no options: a forest predicts the number instead, and is reported beside the best
    constant.
    """
    task, form = questions[0].cell
    base = Finding(audit="blind", name="forest", task=task, form=form, n=len(questions))
    groups = np.array(group_by_scene(questions), dtype=np.int64)
    if len(questions) < FEWEST or len(np.unique(groups)) < 2:
        return TextOnlyResult([replace(base, verdict="skipped", detail="too few questions or scenes to learn from")])
    if form == "open-ended":
        return TextOnlyResult([_fit_regression(questions, groups, base, seed)])
    rows = make_rows(questions)
    chance = np.array([q.chance for q in questions])
    sure = Clusters(groups.tolist(), rng_for(seed, "blind", task, form, "bootstrap"))
    repeats = int(np.clip(_REPEATED_BELOW // len(questions), 1, 2))
    splits = [split_folds(questions, groups, state_of(seed, task, form, "folds", str(r))) for r in range(repeats)]
    beliefs = {
        name: np.mean(
            [predict_out_of_fold(name, rows, split, state_of(seed, task, form, name)) for split in splits], axis=0
        )
        for name in ("forest", "linear")
    }
    credits = {name: score_credit(belief, rows) for name, belief in beliefs.items()}
    findings = [
        _audit_cell(
            replace(base, name=name),
            credits[name],
            chance,
            sure,
            pick_truth_probability(beliefs[name], rows),
            questions,
        )
        for name in credits
    ]
    findings = [
        replace(f, detail=f"{f.detail}; leans on {name_important_features(rows, seed)}")
        if f.name == "forest" and misses_bar(f)
        else f
        for f in findings
    ]
    best = max(credits, key=lambda name: float(credits[name].mean()))
    findings += _split_by_source(questions, groups, credits[best], replace(base, name=best), seed)
    if form == "judgment":
        findings.append(_audit_claim_number(questions, groups, splits[0], base, sure, seed))
        findings += _tell_twins_apart(questions, base, seed)
    findings.append(_run_control(questions, rows, splits[0], base, seed))
    scores = pick_truth_probability(beliefs[best], rows)
    return TextOnlyResult(findings, {q.id: round(float(s), 6) for q, s in zip(questions, scores, strict=True)})


def format_leak_bar(chance: float, points: float = POINT, upper: float | None = UPPER) -> str:
    """The bar of a text-only accuracy in words, per cent."""
    bound = "" if upper is None else f", upper <= {chance + upper:.1f}"
    return f"<= {chance + points:.1f}{bound}, or p >= {LEVEL:g} (Holm)"


def misses_bar(finding: Finding, points: float = POINT, upper: float | None = UPPER) -> bool:
    """Whether an accuracy, taken by itself, misses its bar; see the module's docstring."""
    above = finding.value > finding.chance + points
    return above or (upper is not None and finding.high > finding.chance + upper)


def make_chance_test(
    sure: Clusters, credit: FloatArray, chance: FloatArray | float, points: float = POINT
) -> ChanceTest:
    """The test of an accuracy over scenes: credit (n,) against that of guessing, where the bar allows some points."""
    p, error = sure.test_above(credit, chance), 100 * sure.measure_error(credit, chance)
    return ChanceTest(p, error, sure.count, points)


def _audit_cell(
    base: Finding,
    credit: FloatArray,
    chance: FloatArray,
    sure: Clusters,
    belief: FloatArray,
    questions: Sequence[Question],
) -> Finding:
    low, high = sure.interval(credit)
    expected = 100 * float(chance.mean())
    line = replace(
        base,
        value=100 * float(credit.mean()),
        low=100 * low,
        high=100 * high,
        chance=expected,
        bar=format_leak_bar(expected),
        detail=f"{sure.count} scenes",
    )
    worst = np.argsort(-np.where(credit > 0, belief, -1), kind="stable")[:MAX_ITEMS]
    line = replace(line, items=tuple(questions[i].id for i in worst if credit[i] > 0))
    return line.judge(not misses_bar(line), test=make_chance_test(sure, credit, chance))


def _split_by_source(
    questions: Sequence[Question], groups: IntArray, credit: FloatArray, base: Finding, seed: int
) -> list[Finding]:
    """The best classifier on the questions of each source; reported, since one cell is judged once."""
    found = []
    sources = np.array([q.source for q in questions])
    for source in sorted(set(sources.tolist())):
        mine = sources == source
        if not source or mine.all() or mine.sum() < _SOURCE_QUESTIONS:
            continue
        sure = Clusters(groups[mine].tolist(), rng_for(seed, "blind", base.task, base.form, source))
        low, high = sure.interval(credit[mine])
        chance = float(np.mean([q.chance for q, of_it in zip(questions, mine, strict=True) if of_it]))
        found.append(
            replace(
                base,
                source=source,
                n=int(mine.sum()),
                value=100 * float(credit[mine].mean()),
                low=100 * low,
                high=100 * high,
                chance=100 * chance,
                detail=f"{sure.count} scenes",
            )
        )
    return found


def _audit_claim_number(
    questions: Sequence[Question], groups: IntArray, fold: IntArray, base: Finding, sure: Clusters, seed: int
) -> Finding:
    """A forest that sees the number a judgment claims and nothing else."""
    table = features.make_claim_table(questions, number_only=True)
    right = np.array([q.truth == 0 for q in questions])
    rows = LearnerRows(table.X, table.names, sparse.csr_array((len(right), 1)), table.question, right)
    belief = predict_out_of_fold("forest", rows, fold, state_of(seed, base.task, base.form, "claim"))
    credit = score_credit(belief, rows)
    low, high = sure.interval(credit)
    value = 100 * float(credit.mean())
    line = replace(base, name="claim number", value=value, low=100 * low, high=100 * high, chance=50.0)
    line = replace(line, bar=f"<= {CLAIM_BAR:g}, or p >= {LEVEL:g} (Holm)", detail=f"{sure.count} scenes")
    return line.judge(value <= CLAIM_BAR, test=make_chance_test(sure, credit, 0.5, CLAIM_BAR - 50))


def join_claim_pairs(questions: Sequence[Question]) -> list[Question]:
    """Both claims of each pair of twins as one question with two options: which of them is true?

    What a cheat with the whole set in hand can ask; the first half of a pair by id is the first option.
    """
    pairs: dict[str, list[Question]] = {}
    for question in questions:
        if question.twin:
            pairs.setdefault(question.twin, []).append(question)
    found = []
    for halves in pairs.values():
        first, *rest = sorted(halves, key=lambda q: q.id)
        if len(rest) == 1 and first.truth != rest[0].truth:
            texts = (_values.read_claim(first).text, _values.read_claim(rest[0]).text)
            # Numbers of the question itself belong to the marks and stay; the claim goes into the options.
            stem = first.question.replace(texts[0], "")
            found.append(replace(first, question=stem, form="multi-choice", options=texts, truth=int(first.truth != 0)))
    return found


def _tell_twins_apart(questions: Sequence[Question], base: Finding, seed: int) -> list[Finding]:
    pairs = join_claim_pairs(questions)
    groups = np.array(group_by_scene(pairs), dtype=np.int64)
    if len(pairs) < FEWEST or len(np.unique(groups)) < 2:
        return []
    rows = make_rows(pairs)
    fold = split_folds(pairs, groups, state_of(seed, base.task, base.form, "twin folds"))
    credit = score_credit(predict_out_of_fold("forest", rows, fold, state_of(seed, base.task, base.form, "twin")), rows)
    sure = Clusters(groups.tolist(), rng_for(seed, "blind", base.task, base.form, "twin bootstrap"))
    low, high = sure.interval(credit)
    return [
        replace(
            base,
            name="which twin",
            n=len(pairs),
            value=100 * float(credit.mean()),
            low=100 * low,
            high=100 * high,
            chance=50.0,
            detail=f"p = {sure.test_above(credit, 0.5):.3g}; both claims of a pair seen together",
        )
    ]


def _run_control(questions: Sequence[Question], rows: LearnerRows, fold: IntArray, base: Finding, seed: int) -> Finding:
    """The forest on answers drawn at random: an audit that beats chance here is broken."""
    rng = rng_for(seed, "blind", base.task, base.form, "control")
    chance = 100 * float(np.mean([q.chance for q in questions]))
    counts = np.bincount(rows.question)
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    if base.form == "judgment":  # twins stay twins
        twins = np.unique([q.twin or q.id for q in questions], return_inverse=True)[1]
    values = []
    for draw in range(CONTROL_DRAWS):
        if base.form == "judgment":
            right = rows.right ^ (rng.random(twins.max() + 1) < 0.5)[twins]
        else:
            right = np.zeros(len(rows.right), dtype=bool)
            right[starts + (rng.random(len(counts)) * counts).astype(np.int64)] = True
        drawn = replace(rows, right=right)
        belief = predict_out_of_fold(
            "forest",
            drawn,
            fold,
            state_of(seed, base.task, base.form, "control", str(draw)),
            _CONTROL_TREES,
            _CONTROL_SHARE,
        )
        values.append(100 * float(score_credit(belief, drawn).mean()))
    mean, guessed = float(np.mean(values)), np.sqrt(chance * (100 - chance) / len(questions))
    error = float(max(np.std(values, ddof=1), guessed) / np.sqrt(len(values)))
    line = replace(
        base, audit="control", name="random answers", value=mean, low=mean - 2 * error, high=mean + 2 * error
    )
    bar = f"within {CONTROL_POINTS:g} of {chance:.1f}, or p >= {LEVEL:g} (Holm)"
    line = replace(line, chance=chance, bar=bar, detail=f"mean of {CONTROL_DRAWS} draws")
    p = 2 * float(scipy.special.ndtr(-abs(mean - chance) / error)) if error else float(mean == chance)
    return line.judge(abs(mean - chance) <= CONTROL_POINTS, test=ChanceTest(p, error, allowed=CONTROL_POINTS))


def _fit_regression(questions: Sequence[Question], groups: IntArray, base: Finding, seed: int) -> Finding:
    """A forest that predicts an open-ended answer from the text (coordinates, camera)."""
    from sklearn.ensemble import RandomForestRegressor

    base = replace(base, name="forest, number")
    value = np.array([q.value for q in questions])
    table = features.make_question_table(questions)
    if not (np.isfinite(value) & (value > 0)).all() or table.X.shape[1] == 0:
        return replace(base, verdict="skipped", detail="answers are not all positive numbers, or the text has none")
    state = state_of(seed, base.task, base.form, "regression")
    fold = split_folds(questions, groups, state)
    guess = np.zeros(len(value))
    for number in np.unique(fold):
        test = fold == number
        model = RandomForestRegressor(80, min_samples_leaf=5, max_features=0.5, n_jobs=1, random_state=state)
        guess[test] = model.fit(table.X[~test], np.log(value[~test])).predict(table.X[test])
    ratio = np.exp(np.abs(guess - np.log(value)))
    credit = (ratio <= _DELTA).astype(np.float64)
    low, high = Clusters(groups.tolist(), rng_for(seed, "blind", base.task, base.form)).interval(credit)
    return replace(
        base,
        value=100 * float(credit.mean()),
        low=100 * low,
        high=100 * high,
        detail=f"within x{_DELTA:g}; compare with the best constant; median ratio {np.median(ratio):.2f}",
    )
