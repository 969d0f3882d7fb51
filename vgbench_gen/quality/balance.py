"""Letters, yes and no, and the best constant answer: what is right without reading the question at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import stats

from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.questions import Question
from vgbench_gen.text.numbers import parse_numbers

LETTERS_P, LETTERS_POINTS, LETTERS_FROM = 0.05, 2.0, 100
DELTA, DELTA_BAR, WIDE_DELTA = 1.25, 25.0, 2.0
MRA_BAR = 40.0
FEW_CONSTANT = 100  # a constant is chosen with all answers in hand, so its score is no estimate; fewer say little
MRA_LEVELS = np.arange(0.5, 0.96, 0.05)
"""Confidence levels of the mean relative accuracy, as in VSI-Bench: a reply counts at level c when its relative error
is below 1 - c."""
_MRA_GRID = 400


def audit_balance(questions: Sequence[Question], seed: int) -> list[Finding]:
    """The audit of this module that fits the form of the questions, which are of one task and form.

    `seed` is not used: nothing is drawn.
    """
    form = questions[0].form
    if form == "multi-choice":
        return audit_letters(questions)
    return audit_yes_no(questions) if form == "judgment" else audit_best_constants(questions)


def audit_letters(questions: Sequence[Question]) -> list[Finding]:
    """One line per source: from 100 questions on chi-square p > 0.05 and no letter more than 2 points off; below,
    counts differ by at most 1. Questions with another number of options than most are left out."""
    task, form = questions[0].cell
    findings = []
    for source in sorted({q.source for q in questions}):
        mine = [q for q in questions if q.source == source]
        k = int(np.argmax(np.bincount([len(q.options) for q in mine])))
        alike = [q for q in mine if len(q.options) == k]
        truth = np.array([q.truth for q in alike], dtype=np.int64)
        counts = np.bincount(truth, minlength=k)
        n = len(alike)
        off = round(float(100 * np.abs(counts / n - 1 / k).max()), 9)  # 2 points are 2, not a rounding error more
        line = Finding(audit="letters", name="letters", task=task, form=form, source=source, n=n, chance=0.0)
        said = "counts " + ", ".join(map(str, counts.tolist()))
        if n >= LETTERS_FROM:
            p = float(stats.chisquare(counts).pvalue)
            holds = p > LETTERS_P and off <= LETTERS_POINTS
            bar = f"p > {LETTERS_P:g}, <= {LETTERS_POINTS:g} points off"
            line = replace(line, value=off, bar=bar, detail=f"{said}; chi-square p = {p:.3g}")
        else:
            holds = int(np.ptp(counts)) <= 1
            line = replace(line, value=off, bar="counts differ by <= 1", detail=said)
        most = [q.id for q in alike if q.truth == int(counts.argmax())]
        findings.append(replace(line, items=() if holds else tuple(most[:MAX_ITEMS])).judge(holds, conclusive=1))
    return findings


def audit_yes_no(questions: Sequence[Question]) -> list[Finding]:
    """Exactly as many yes as no per source, and every pair of twins has one of each.

    Claims that name no twin are counted and not judged: in a choice of questions the twin may be absent, and in a set
    that is whole `verify_set` finds them.
    """
    task, form = questions[0].cell
    findings = []
    for source in sorted({q.source for q in questions}):
        mine = [q for q in questions if q.source == source]
        yes = sum(q.truth == 0 for q in mine)
        line = Finding(audit="yes_no", name="yes", task=task, form=form, source=source, n=len(mine), chance=50.0)
        holds = 2 * yes == len(mine)
        line = replace(line, value=100 * yes / len(mine), bar="exactly 50", detail=f"{yes} yes, {len(mine) - yes} no")
        more = 0 if 2 * yes > len(mine) else 1
        items = () if holds else tuple(q.id for q in mine if q.truth == more)[:MAX_ITEMS]
        findings.append(replace(line, items=items).judge(holds, conclusive=1))
    return [*findings, _audit_twins(questions)]


def _audit_twins(questions: Sequence[Question]) -> Finding:
    """How many claims stand in pairs of twins that are not one yes and one no."""
    task, form = questions[0].cell
    pairs: dict[str, list[Question]] = {}
    for q in questions:
        if q.twin:
            pairs.setdefault(q.twin, []).append(q)
    line = Finding(audit="yes_no", name="twins", task=task, form=form, n=len(questions), unit="count", bar="0")
    if not pairs:
        return replace(line, verdict="skipped", detail="no twins are known")
    broken = [q.id for half in pairs.values() if sorted(q.truth for q in half) != [0, 1] for q in half]
    alone = [q.id for q in questions if not q.twin]
    line = replace(line, value=float(len(broken)), items=tuple(broken[:MAX_ITEMS]))
    line = replace(
        line, detail=f"{len(pairs)} pairs; {len(broken)} not one yes and one no; {len(alone)} without a twin"
    )
    return line.judge(not broken, conclusive=1)


def audit_best_constants(questions: Sequence[Question]) -> list[Finding]:
    """What one number, chosen with all answers in hand for each quantity asked, scores on open-ended questions."""
    task, form = questions[0].cell
    base = Finding(audit="constant", name="", task=task, form=form, n=len(questions))
    values = np.array([q.value for q in questions])
    if not (np.isfinite(values) & (values > 0)).all():
        bad = tuple(q.id for q, v in zip(questions, values, strict=True) if not v > 0)[:MAX_ITEMS]
        return [replace(base, name="within x1.25", verdict="skipped", detail="not all positive numbers", items=bad)]
    asks = np.array([q.ask for q in questions])
    parts = [values[asks == ask] for ask in sorted(set(asks.tolist()))]
    findings = []
    for delta, bar in ((DELTA, DELTA_BAR), (WIDE_DELTA, None)):
        best = [find_constant_within(part, delta) for part in parts]
        share = 100 * sum(right for _, right in best) / len(values)
        line = replace(base, name=f"within x{delta:g}", value=share, detail=_format_constants(best))
        findings.append(line if bar is None else replace(line, bar=f"<= {bar:g}").judge(share <= bar, FEW_CONSTANT))
    fair = [find_constant_relative(part) for part in parts]
    score = 100 * sum(mean * len(part) for (_, mean), part in zip(fair, parts, strict=True)) / len(values)
    line = replace(
        base, name="mean relative accuracy", value=score, bar=f"<= {MRA_BAR:g}", detail=_format_constants(fair)
    )
    return [*findings, line.judge(score <= MRA_BAR, FEW_CONSTANT)]


def find_constant_within(values: FloatArray, delta: float) -> tuple[float, int]:
    """(constant, how many of the positive `values` (n,) lie within a factor `delta` of it); exact."""
    logs = np.sort(np.log(values))
    reach = np.searchsorted(logs, logs + 2 * np.log(delta) + 1e-12, side="right") - np.arange(len(logs))
    start = int(reach.argmax())
    last = logs[start + reach[start] - 1]
    return float(np.exp((logs[start] + last) / 2)), int(reach.max())


def find_constant_relative(values: FloatArray) -> tuple[float, float]:
    """(constant, its mean relative accuracy over the positive `values` (n,)), on a grid of 400 constants."""
    grid = np.exp(np.linspace(np.log(values.min()), np.log(values.max()), _MRA_GRID))
    error = np.abs(grid[:, None] - values) / values
    score = np.mean([(error < 1 - level).mean(axis=1) for level in MRA_LEVELS], axis=0)
    return float(grid[score.argmax()]), float(score.max())


def rank_of(options: Sequence[str], truth: int) -> int | None:
    """Place by size of the right option; None unless all are one number each, and no labels as in "image 2"."""
    numbers = [parse_numbers(text) for text in options]
    if len(numbers) < 2 or any(found.size != 1 for found in numbers):
        return None
    values = [float(found[0]) for found in numbers]
    ordered = sorted(values)
    if len(set(values)) < len(values) or ordered == [ordered[0] + k for k in range(len(values))]:
        return None
    return ordered.index(values[truth])


def _format_constants(best: Sequence[tuple[float, float]]) -> str:
    return "constant " + ", ".join(f"{constant:.3g}" for constant, _ in best)
