"""How right answers are spread: letters, yes and no, and the best constant. Nobody has to read anything to use it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.findings import MAX_ITEMS, Finding
from vgbench_gen.quality.questions import Question
from vgbench_gen.text.numbers import parse_numbers

LETTER_POINTS = 2.0
DELTA, CONSTANT_MOST = 1.25, 25.0
FEW_CONSTANT = 100  # a constant is chosen with all answers in hand, so its score is no estimate; fewer say little


def audit_answers(questions: Sequence[Question]) -> Finding:
    """The most frequent letter, the share of "yes", or the best constant of the questions of one task and form."""
    line = Finding("answers", "", *questions[0].cell, n=len(questions))
    judge = {"multi-choice": _audit_letters, "judgment": _audit_yes_no, "open-ended": _audit_constant}[line.form]
    return judge(questions, line)


def _audit_letters(questions: Sequence[Question], line: Finding) -> Finding:
    """Letters are dealt within each source, so the most frequent one is at most 2 points, or one question of a source,
    above its share. Questions with another number of options than most are left out."""
    k = Counter(len(q.options) for q in questions).most_common(1)[0][0]
    alike = [q for q in questions if len(q.options) == k]
    counts = np.bincount([q.truth for q in alike], minlength=k)
    most, n = int(counts.argmax()), len(alike)
    dealt = sum(-(-count // k) for count in Counter(q.source for q in alike).values())
    limit = max(100 * dealt / n, 100 / k + LETTER_POINTS)
    share, detail = 100 * int(counts[most]) / n, "counts " + ", ".join(map(str, counts.tolist()))
    items = tuple(q.id for q in alike if q.truth == most)[:MAX_ITEMS] if share > limit else ()
    line = replace(line, name="most frequent letter", n=n, value=share, chance=100 / k, limit=limit, detail=detail)
    return replace(line, items=items).judge(share <= limit)


def _audit_yes_no(questions: Sequence[Question], line: Finding) -> Finding:
    """Exactly as many yes as no, and one of each in every pair of twins.

    Claims that name no twin are counted alone: in a choice of questions the twin may be absent, and in a set that is
    whole `verify_set` finds them.
    """
    yes, n = sum(q.truth == 0 for q in questions), len(questions)
    pairs: dict[str, list[Question]] = defaultdict(list)
    for q in questions:
        pairs[q.twin].append(q)
    broken = [q.id for twin, two in pairs.items() if twin and sorted(q.truth for q in two) != [0, 1] for q in two]
    more = [q.id for q in questions if q.truth == int(2 * yes <= n)] if 2 * yes != n else []
    said = f"{yes} yes, {n - yes} no" + (f"; {len(broken)} claims whose twin has the same answer" if broken else "")
    line = replace(line, name="yes", value=100 * yes / n, chance=50.0, limit=50.0, detail=said)
    return replace(line, items=tuple([*broken, *more][:MAX_ITEMS])).judge(not broken and not more)


def _audit_constant(questions: Sequence[Question], line: Finding) -> Finding:
    """What one number, chosen with all answers in hand for each quantity asked, gets within a factor 1.25."""
    line = replace(line, name=f"best constant, within a factor {DELTA:g}", needed=FEW_CONSTANT)
    if not all(np.isfinite(q.value) and q.value > 0 for q in questions):
        return replace(line, needed=0, detail="not all positive numbers")
    share, constants = find_best_constants(questions)
    line = replace(line, value=100 * share, limit=CONSTANT_MOST, detail="constant " + ", ".join(constants))
    return replace(line, verdict="not judged") if line.n < FEW_CONSTANT else line.judge(line.value <= CONSTANT_MOST)


def find_best_constants(questions: Sequence[Question]) -> tuple[float, list[str]]:
    """(share of the positive answers within a factor 1.25 of the best constant of each quantity, these constants)."""
    by_ask: dict[str, list[float]] = defaultdict(list)
    for q in questions:
        by_ask[q.ask].append(q.value)
    best = [find_constant_within(np.array(values), DELTA) for _, values in sorted(by_ask.items())]
    return sum(right for _, right in best) / len(questions), [f"{constant:.3g}" for constant, _ in best]


def find_constant_within(values: FloatArray, delta: float) -> tuple[float, int]:
    """(constant, how many of the positive `values` (n,) lie within a factor `delta` of it); exact."""
    logs = np.sort(np.log(values))
    reach = np.searchsorted(logs, logs + 2 * np.log(delta) + 1e-12, side="right") - np.arange(len(logs))
    start = int(reach.argmax())
    last = logs[start + reach[start] - 1]
    return float(np.exp((logs[start] + last) / 2)), int(reach.max())


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
