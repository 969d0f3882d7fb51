"""From outcomes to the lines of the audit table (`docs/validity.md#solvers`).

A line is judged by its bar alone here; `quality.family` judges it among all figures of an audit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.findings import MAX_ITEMS, ChanceTest, Finding, Verdict
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.solvers.jobs import (
    PER_CELL,
    RULES_PER_CELL,
    Kind,
    SolverJob,
    SolverOutcome,
    find_solvers,
    plan,
    run,
)

WRONG_IMAGE_POINTS = 3.0
TRIVIAL_POINTS = 5.0
_FEWEST = 50  # questions below which no verdict is given
_ORDER: tuple[Kind, ...] = ("solver", "wrong image", "trivial")

Mapper = Callable[[Callable[[SolverJob], list[SolverOutcome]], Sequence[SolverJob]], Iterable[list[SolverOutcome]]]


def solve(
    questions: Iterable[Question],
    folder: str,
    per_cell: int = PER_CELL,
    rules_per_cell: int = RULES_PER_CELL,
    mapper: Mapper = map,
    seed: int = 0,
) -> list[Finding]:
    """All lines of a dataset.

    Args:
        questions: what stands in the dataset, in its order.
        folder: the dataset, as `vgbench_gen.load` takes it.
        per_cell, rules_per_cell: see `jobs.plan`; 0 for every question.
        mapper: applies a function to all jobs, for example the `map` of a process pool; any order will do.
        seed: of the bootstrap intervals.

    Raises:
        DatasetError: the dataset or an image is missing or damaged.
    """
    jobs = plan(questions, folder, per_cell, rules_per_cell)
    return make_findings((outcome for done in mapper(run, jobs) for outcome in done), seed)


def make_findings(outcomes: Iterable[SolverOutcome], seed: int = 0) -> list[Finding]:
    """One line per kind, task, form and name; solvers first, then the control, then the trivial rules."""
    lines: dict[tuple[int, str, str, str], list[SolverOutcome]] = {}
    for outcome in outcomes:
        key = (_ORDER.index(outcome.kind), outcome.task, outcome.form, outcome.name)
        lines.setdefault(key, []).append(outcome)
    return [_make_finding(sorted(lines[key], key=lambda o: (o.id, o.credit)), seed) for key in sorted(lines)]


def _make_finding(outcomes: Sequence[SolverOutcome], seed: int) -> Finding:
    first = outcomes[0]
    credit = np.array([outcome.credit for outcome in outcomes])
    clusters = Clusters(
        [outcome.scene for outcome in outcomes], rng_for(seed, "solvers", first.kind, first.task, first.form)
    )
    value, (low, high) = 100 * float(credit.mean()), (100 * end for end in clusters.interval(credit))
    chance = 100 * float(np.mean([outcome.chance for outcome in outcomes]))
    ids = {outcome.id for outcome in outcomes}
    bar, verdict, test = _judge_value(first, clusters, credit, chance)
    return Finding(
        audit=first.kind,
        name=first.name,
        task=first.task,
        form=first.form,
        n=len(outcomes),
        value=value,
        low=low,
        high=high,
        chance=chance,
        bar=bar,
        verdict="few" if bar and len(ids) < _FEWEST else verdict,
        detail=_write_detail(outcomes, len(ids)),
        test=test,
        items=_list_questions_behind(outcomes),
    )


def _judge_value(
    line: SolverOutcome, clusters: Clusters, credit: FloatArray, chance: float
) -> tuple[str, Verdict, ChanceTest | None]:
    """(bar, verdict of the figure by itself, the test by which it is judged among others)."""
    value, error = 100 * float(credit.mean()), 100 * clusters.measure_error(credit, chance / 100)
    if line.kind == "solver":
        goal = next(solver.goal for solver in find_solvers(line.task) if solver.name == line.name)
        if np.isnan(goal):
            return "", "reported", None
        test = ChanceTest(clusters.test_below(credit, goal / 100))
        return f">= {goal:.1f}", "green" if value >= goal else "red", test
    if line.kind == "wrong image":
        lowest, highest = chance - WRONG_IMAGE_POINTS, chance + WRONG_IMAGE_POINTS
        p = min(clusters.test_above(credit, highest / 100), clusters.test_below(credit, lowest / 100))
        test = ChanceTest(min(2 * p, 1.0), error, clusters.count, WRONG_IMAGE_POINTS, beyond=True)
        return f"{lowest:.1f} to {highest:.1f}", "green" if lowest <= value <= highest else "red", test
    if line.allowed_because:
        return "", "reported", None
    most = chance + TRIVIAL_POINTS
    p = clusters.test_above(credit, most / 100)
    test = ChanceTest(p, error, clusters.count, TRIVIAL_POINTS, beyond=True)
    return f"<= {most:.1f}", "green" if value <= most else "red", test


def _write_detail(outcomes: Sequence[SolverOutcome], questions: int) -> str:
    unread = sum(not outcome.read for outcome in outcomes)
    parts = []
    if outcomes[0].kind == "wrong image":
        parts.append(f"{questions} questions, each with images of up to 4 others")
    if outcomes[0].allowed_because:
        parts.append(outcomes[0].allowed_because)
    if unread:
        parts.append(f"{unread} not read (wording unknown), counted as guesses")
    return "; ".join(parts)


def _list_questions_behind(outcomes: Sequence[SolverOutcome]) -> tuple[str, ...]:
    """Questions behind the line: those a solver missed, those a rule or the wrong image got right."""
    sign = 1 if outcomes[0].kind == "solver" else -1
    telling = [o for o in outcomes if (o.credit < 1 if sign > 0 else o.credit > o.chance)]
    ranked = sorted(telling, key=lambda o: (sign * o.credit, o.id))
    return tuple(dict.fromkeys(o.id for o in ranked))[:MAX_ITEMS]
