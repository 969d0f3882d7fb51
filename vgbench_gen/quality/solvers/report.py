"""From outcomes to the figures of an audit (`docs/validity.md#solvers`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.findings import MAX_ITEMS, Finding, measure_accuracy
from vgbench_gen.quality.intervals import Clusters
from vgbench_gen.quality.rules import judge_best
from vgbench_gen.quality.solvers.jobs import SolverOutcome, find_solvers

WRONG_IMAGE_POINTS, IMAGE_RULE_POINTS = 3.0, 5.0  # off chance, and over chance, that are allowed
_FEWEST = 50  # questions below which nothing is judged


def make_findings(outcomes: Iterable[SolverOutcome], seed: int = 0) -> list[Finding]:
    """Per task and form: the first solver that the task declares, one with a goal where there is one; the same solver
    with the images of other questions, and the best image rule of those that must guess."""
    cells: dict[tuple[str, str], list[SolverOutcome]] = {}
    for outcome in outcomes:
        cells.setdefault((outcome.task, outcome.form), []).append(outcome)
    findings = []
    for (task, form), members in sorted(cells.items()):
        members = sorted(members, key=lambda o: (o.id, o.name, o.credit))
        for judged in sorted(find_solvers(task), key=lambda solver: np.isnan(solver.goal))[:1]:
            mine = [o for o in members if o.name == judged.name]
            findings += _judge_solver([o for o in mine if o.kind == "solver"], judged.goal, seed)
            findings += _judge_wrong_images([o for o in mine if o.kind == "wrong image"], seed)
        rules = [o for o in members if o.kind == "trivial" and not o.allowed_because]
        findings += [_judge_image_rules(Finding("image rule", task=task, form=form), rules, seed)] if rules else []
    return findings


def _measure(
    line: Finding, outcomes: Sequence[SolverOutcome], seed: int
) -> tuple[Finding, Clusters, FloatArray, FloatArray]:
    first = outcomes[0]
    credit, chance = (np.array([getattr(o, name) for o in outcomes]) for name in ("credit", "chance"))
    rng = rng_for(seed, "solvers", first.kind, first.task, first.form)
    shown = [o.shown for o in outcomes] if first.kind == "wrong image" else None
    clusters = Clusters([o.scene for o in outcomes], rng, shown=shown)
    line = replace(line, name=first.name, task=first.task, form=first.form, needed=_FEWEST)
    unread = sum(not o.read for o in outcomes)
    detail = f"{unread} not read (wording unknown), counted as guesses" if unread else ""
    return measure_accuracy(replace(line, detail=detail), clusters, credit, chance), clusters, credit, chance


def _judge_solver(outcomes: Sequence[SolverOutcome], goal: float, seed: int) -> list[Finding]:
    """Whether looking solves the questions; behind the figure stand those that the solver missed."""
    if not outcomes:
        return []
    line, clusters, credit, _ = _measure(Finding("solver"), outcomes, seed)
    missed = sorted((o.credit, o.id) for o in outcomes if o.credit < 1)
    line = replace(line, items=_list_ids(missed))
    if np.isnan(goal):
        return [replace(line, needed=0)]
    return [replace(line, limit=goal, p=clusters.test_below(credit, goal / 100)).judge(line.value >= goal)]


def _judge_wrong_images(outcomes: Sequence[SolverOutcome], seed: int) -> list[Finding]:
    """Whether the same solver falls to chance with the images of other questions; else options or texts tell."""
    if not outcomes:
        return []
    line, clusters, credit, chance = _measure(Finding("wrong image"), outcomes, seed)
    p = min(1.0, 2 * min(clusters.test_above(credit, chance), clusters.test_above(1 - credit, 1 - chance)))
    right = sorted((-o.credit, o.id) for o in outcomes if o.credit > o.chance)
    asked = len({o.id for o in outcomes})
    line = replace(line, n=asked, limit=line.chance + WRONG_IMAGE_POINTS, p=p, items=_list_ids(right))
    line = replace(line, detail="; ".join(filter(None, ["each with images of up to 4 others", line.detail])))
    return [line.judge(abs(line.value - line.chance) <= WRONG_IMAGE_POINTS)]


def _judge_image_rules(line: Finding, outcomes: Sequence[SolverOutcome], seed: int) -> Finding:
    """The best of the rules that look at the image and understand nothing."""
    first = {o.id: o for o in outcomes}
    ids = sorted(first)
    place = {name: k for k, name in enumerate(ids)}
    credits: dict[str, FloatArray] = {}
    for o in outcomes:
        credits.setdefault(o.name, np.full(len(ids), np.nan))[place[o.id]] = o.credit
    chance, scenes = np.array([first[name].chance for name in ids]), [first[name].scene for name in ids]
    line = replace(line, n=len(ids), needed=_FEWEST)
    return judge_best(line, credits, chance, ids, scenes, IMAGE_RULE_POINTS, seed)


def _list_ids(ranked: Sequence[tuple[float, str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, name in ranked))[:MAX_ITEMS]
