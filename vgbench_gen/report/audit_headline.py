"""What an audit comes to for each task, in the few figures that a reader looks for first."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from vgbench_gen.pipeline.audit import AuditReport
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_plots import find_limit, place
from vgbench_gen.report.audit_table import format_interval

Badness = Callable[[Finding], float]


def _measure_sure_excess(found: Finding) -> float:
    """Points by which a figure is surely over chance: the end of its interval, so that few questions prove little."""
    end = found.value if math.isnan(found.low) else found.low
    return end - (0.0 if math.isnan(found.chance) else found.chance)


def _measure_failure(found: Finding) -> float:
    return -found.value


def _measure_distance_to_chance(found: Finding) -> float:
    return abs(found.value - found.chance)


# (title, what it means, families, which of their figures is shown: the largest by this, what of)
_MEASURES: tuple[tuple[str, str, tuple[str, ...], Badness, str], ...] = (
    ("Text only", "Learners that read question and options and see no image.", ("blind",), _measure_sure_excess,
     "learner"),
    ("No skill", "Fixed rules, such as the middle value or the brighter image.", ("rule", "trivial"),
     _measure_sure_excess, "rule"),
    ("Solver", "Classical computer vision that looks at the images: it should be right.", ("solver",),
     _measure_failure, "solver"),
    ("Wrong image", "The same solver with another question's images: it should fall to chance.", ("wrong image",),
     _measure_distance_to_chance, "solver"),
)  # fmt: skip
_WHERE = {"pool": 0, "solvers": 0, "release": 1, "set": 2}  # text is judged on the pool where there is one


def make_headline(report: AuditReport) -> dict[str, Any] | None:
    """Per task the figure of each measure that says most against the set; None where no figure is of a task.

    Of many figures the one that is most surely beyond chance is shown, and how many there are: the largest of many
    numbers is large by luck.
    """
    tasks = sorted({line.finding.task for line in report.lines} - {""})
    measures = [
        (title, told, families, badness, what)
        for title, told, families, badness, what in _MEASURES
        if any(line.finding.audit in families for line in report.lines)
    ]
    rows = []
    for task in tasks:
        cells = [
            _make_cell(_choose(report, task, families), badness, what) for _, _, families, badness, what in measures
        ]
        if any(cell is not None for cell in cells):
            rows.append({"task": task.replace("_", " "), "cells": cells})
    if not rows:
        return None
    return {"measures": [{"title": title, "told": told} for title, told, *_ in measures], "rows": rows}


def _choose(report: AuditReport, task: str, families: Sequence[str]) -> list[Finding]:
    """The figures of these families that have a bar, where one has; on the pool, where they are judged there."""
    lines = [
        line
        for line in report.lines
        if line.finding.task == task
        and line.finding.audit in families
        and line.finding.unit == "%"
        and math.isfinite(line.finding.value)
    ]
    first = min((_WHERE[line.where] for line in lines), default=0)
    found = [line.finding for line in lines if _WHERE[line.where] == first]
    return [one for one in found if one.bar] or found


def _make_cell(found: Sequence[Finding], badness: Badness, what: str) -> dict[str, Any] | None:
    if not found:
        return None
    shown = max(found, key=lambda one: (one.fell, badness(one), one.name))
    bar = shown.bar.partition(",")[0].replace("<=", "≤").replace(">=", "≥")
    told = [f"{shown.name.replace('_', ' ')}, {shown.form}", f"n = {shown.n:,}"]
    if not math.isnan(shown.chance):
        told.append(f"chance {shown.chance:.0f}")
    if bar:
        told.append(f"bar {bar}")
    if len(found) > 1:
        told.append(f"worst of {len(found)} {what}s")
    return {
        "value": f"{shown.value:.0f}",
        "interval": format_interval(shown),
        "verdict": shown.verdict,
        "told": told,
        "x": place(shown.value),
        "low": place(shown.low),
        "high": place(shown.high),
        "chance": place(shown.chance),
        "limit": place(find_limit(shown)),
        "wrong": "",
    }
