"""The plots of the pages of an audit as plain numbers: where to draw what, in per cent of a row's width."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vgbench_gen.core.types import ALPHABET
from vgbench_gen.pipeline.audit import AuditLine, AuditReport
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import format_interval, format_value, name_cell
from vgbench_gen.report.charts import RANKS, make_bar, make_bars, make_histogram

_BINS = 20
_FIRST_NUMBER = re.compile(r"[<>]= (\d+(?:\.\d+)?)")
_MOST_MARKS = 60


def plot_forests(report: AuditReport, families: Sequence[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """One forest plot per (where, family, title): the figures in per cent, each with interval, chance and bar."""
    plots = []
    for where, family, title in families:
        lines = [
            line
            for line in report.lines
            if line.where == where
            and line.finding.audit == family
            and line.finding.unit == "%"
            and math.isfinite(line.finding.value)
        ]
        lines = [line for line in lines if line.finding.bar] or lines  # what has a bar is what a reader looks for
        if lines:
            controls = {
                (line.finding.task, line.finding.form, line.finding.name): line.finding.value
                for line in report.lines
                if family == "solver" and line.finding.audit == "wrong image"
            }
            plots.append(
                _plot_forest(title, _find_worst_per_cell(lines) if len(lines) > _MOST_MARKS else lines, controls)
            )
    return plots


def _find_worst_per_cell(lines: Iterable[AuditLine]) -> list[AuditLine]:
    worst: dict[tuple[str, str], AuditLine] = {}
    for line in lines:
        found = line.finding
        known = worst.get((found.task, found.form))
        if known is None or _measure_excess(found) > _measure_excess(known.finding):
            worst[found.task, found.form] = line
    return list(worst.values())


def _measure_excess(found: Finding) -> float:
    return found.value - (found.chance if math.isfinite(found.chance) else 0.0)


def _plot_forest(
    title: str, lines: Sequence[AuditLine], controls: Mapping[tuple[str, str, str], float]
) -> dict[str, Any]:
    marks = []
    for line in lines:
        found = line.finding
        marks.append(
            {
                "label": _label(found),
                "x": place(found.value),
                "low": place(found.low),
                "high": place(found.high),
                "chance": place(found.chance),
                "limit": place(find_limit(found)),
                "wrong": place(controls.get((found.task, found.form, found.name), math.nan)),
                "verdict": found.verdict,
                "caption": f"{name_cell(found)}, {found.name}: {format_value(found)} "
                f"{format_interval(found)} of {found.n}",
            }
        )
    return {
        "title": title,
        "marks": marks,
        "chances": any(mark["chance"] for mark in marks),
        "limits": any(mark["limit"] for mark in marks),
        "controls": bool(controls),
    }


def _label(found: Finding) -> str:
    parts = [found.task, found.form, found.source, found.name]
    return " · ".join(part.replace("_", " ") for part in parts if part)


def find_limit(found: Finding) -> float:
    """The number in the figure's bar, NaN where there is none."""
    match = _FIRST_NUMBER.search(found.bar)
    return float(match[1]) if match else math.nan


def place(value: float) -> str:
    """A figure in per cent as a place on an axis from 0 to 100 %, "" where there is none."""
    return f"{min(max(value, 0.0), 100.0):.1f}%" if math.isfinite(value) else ""


def plot_distributions(report: AuditReport) -> list[dict[str, Any]]:
    """Places of the right answer per cell, its rank by size, and the bias scores of the dataset's questions."""
    found: list[dict[str, Any] | None] = []
    for kind, title, names in (
        ("letters", "Right letter per cell of the dataset", ALPHABET),
        ("yes_no", "Right answer of judgments", ("yes", "no")),
        ("ranks", "Rank of the true number among the options", RANKS),
    ):
        cells = sorted(report.tallies.get(kind, {}).items())
        bars = [make_bar(cell.replace("_", " "), counts) for cell, counts in cells]
        most = max((len(counts) for _, counts in cells), default=0)
        chart = make_bars(title, bars, names[:most], alike=True)
        found.append(chart if chart["rows"] else None)
    title = "Bias score: share that text-only classifiers give to the right answer (chance: the text tells nothing)"
    found.append(make_histogram(title, "", list(report.bias.values()), _BINS, (0.0, 1.0)))
    return [chart for chart in found if chart]
