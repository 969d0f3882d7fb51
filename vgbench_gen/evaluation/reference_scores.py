"""What needs no model: a uniform guess, and the best constant answer (`docs/protocols.md#floors`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.evaluation import metrics
from vgbench_gen.evaluation.board import Entry

CHANCE, CONSTANT = "uniform guess", "best constant per column"
_MOST_CANDIDATES = 400  # of constants under mean relative accuracy, which no formula gives


def score_chance(questions: Sequence[Entry]) -> FloatArray:
    """What a uniform guess scores on each question, (n,)."""
    return np.array([entry.chance for entry in questions], dtype=np.float64)


def score_constant(questions: Sequence[Entry], measure: str = "score") -> FloatArray:
    """What the best constant answer scores on each question of a cell, (n,).

    One letter, one of yes and no, and one number per task and thing asked, each chosen for the cell: no rule that does
    not read the question does better there. measure: "headline" judges lengths by delta = 1.25; of others the
    benchmark's metric counts.
    """
    credit = np.empty(len(questions))
    groups: dict[Hashable, list[int]] = defaultdict(list)
    for k, entry in enumerate(questions):
        worded = entry.kind in ("letter", "yes_no")
        groups[(entry.kind, entry.rule) if worded else (entry.kind, entry.rule, entry.task, entry.ask)].append(k)
    for places in groups.values():
        credit[places] = _score_best_constant([questions[k] for k in places], measure)
    return credit


def _score_best_constant(entries: Sequence[Entry], measure: str) -> FloatArray:
    rule = entries[0].rule
    if rule == "exact":
        best, _ = metrics.find_most_common([str(entry.truth) for entry in entries])
        return np.array([float(str(entry.truth) == best) for entry in entries])
    truths = [float(entry.truth) for entry in entries]
    if rule == "mra":
        graded = [
            [metrics.compute_mean_relative_accuracy(value, truth) for truth in truths]
            for value in _list_candidates(truths)
        ]
        return np.asarray(max(graded, key=sum), dtype=np.float64)
    inclusive = rule == "delta_inclusive"
    factor = metrics.HEADLINE_DELTA if measure == "headline" and not inclusive else metrics.DELTA
    value, _ = metrics.find_best_constant([truth for truth in truths if truth > 0], factor, inclusive)
    return np.array([float(metrics.is_within_factor(value, truth, factor, inclusive)) for truth in truths])


def _list_candidates(truths: Sequence[float]) -> list[float]:
    """Ends of the tolerances around truths: the best constant can be moved to one without loss."""
    ends = {truth * (1 + side * limit) for truth in truths for limit in np.linspace(0, 0.5, 11) for side in (-1, 1)}
    ordered = sorted(ends)
    step = max(1, len(ordered) // _MOST_CANDIDATES)
    return ordered[::step]
