"""The plots of an audit page as plain numbers: where to draw what."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vgbench_gen.core.types import LETTERS
from vgbench_gen.pipeline.audit import AuditLine, AuditReport
from vgbench_gen.quality.findings import Finding
from vgbench_gen.report.audit_table import format_interval, format_value, name_cell

LEFT, RIGHT = 330.0, 695.0  # of the axis from 0 to 100 %, in the 720 units that a plot is wide
_STEP = 24
_BINS = 20
_FIRST_NUMBER = re.compile(r"[<>]= (\d+(?:\.\d+)?)")
_MOST_MARKS = 60
_RANKS = ("smallest", "second", "third", "largest")


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
    for k, line in enumerate(lines):
        found = line.finding
        marks.append(
            {
                "y": 14 + k * _STEP,
                "label": _shorten(f"{name_cell(found)} {found.name}"),
                "x": _place_x(found.value),
                "low": _place_x(found.low),
                "high": _place_x(found.high),
                "chance": _place_x(found.chance),
                "limit": _limit(found),
                "wrong": _place_x(controls.get((found.task, found.form, found.name), math.nan)),
                "verdict": found.verdict,
                "caption": f"{name_cell(found)}, {found.name}: {format_value(found)} "
                f"{format_interval(found)} of {found.n}",
            }
        )
    ticks = [{"x": _place_x(value), "label": f"{value} %"} for value in range(0, 101, 25)]
    return {
        "title": title,
        "marks": marks,
        "height": 14 + len(marks) * _STEP + 20,
        "ticks": ticks,
        "chances": any(mark["chance"] is not None for mark in marks),
        "limits": any(mark["limit"] is not None for mark in marks),
        "controls": bool(controls),
    }


def _limit(found: Finding) -> float | None:
    match = _FIRST_NUMBER.search(found.bar)
    return _place_x(float(match[1])) if match else None


def _place_x(value: float) -> float | None:
    if not math.isfinite(value):
        return None
    return round(LEFT + (RIGHT - LEFT) * min(max(value, 0.0), 100.0) / 100, 1)


def _shorten(text: str, most: int = 44) -> str:
    text = text.replace("_", " ")
    return text if len(text) <= most else text[: most - 1] + "…"


def plot_stacks(tallies: Mapping[str, Mapping[str, Sequence[int]]]) -> list[dict[str, Any]]:
    """Stacked bars of counts: places of the right answer per cell, and its rank by size."""
    titles = {"letters": "Right letter per cell of the dataset", "yes_no": "Right answer of judgments",
              "ranks": "Rank of the true number among the options"}  # fmt: skip
    names: dict[str, Sequence[str]] = {"letters": LETTERS, "yes_no": ("yes", "no"), "ranks": _RANKS}
    return [
        _stack(titles[kind], names[kind], cells)
        for kind, cells in tallies.items()
        if any(sum(counts) for counts in cells.values())
    ]


def _stack(title: str, names: Sequence[str], cells: Mapping[str, Sequence[int]]) -> dict[str, Any]:
    rows = []
    for k, (cell, counts) in enumerate(sorted(cells.items())):
        total, x, parts = sum(counts), LEFT, []
        for series, count in enumerate(counts):
            width = (RIGHT - 32 - LEFT) * count / max(total, 1)
            parts.append({"series": series % 4, "x": round(x, 1), "width": round(width, 1)})
            x += width
        caption = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=False))
        rows.append(
            {"y": k * _STEP, "label": _shorten(cell), "parts": parts, "total": total, "caption": f"{cell}: {caption}"}
        )
    return {"title": title, "names": list(names), "rows": rows, "height": len(rows) * _STEP}


def plot_bias(bias: Mapping[str, float]) -> dict[str, Any] | None:
    """How the bias scores of the dataset's questions lie between 0 and 1; None where there are none."""
    if not bias:
        return None
    counts = [0] * _BINS
    for score in bias.values():
        counts[min(int(score * _BINS), _BINS - 1)] += 1
    most, width = max(counts), 540 / _BINS
    bins = [
        {
            "x": round(10 + k * width + 1, 1),
            "width": round(width - 2, 1),
            "y": round(165 - 150 * count / most, 1),
            "height": round(150 * count / most, 1),
            "caption": f"{k / _BINS:.2f} to {(k + 1) / _BINS:.2f}: {count}",
        }
        for k, count in enumerate(counts)
    ]
    ticks = [{"x": 10 + 540 * value, "label": f"{value:g}"} for value in (0.1, 0.25, 0.5, 0.75, 0.9)]
    return {"title": "Bias scores of the dataset's questions", "bins": bins, "ticks": ticks,
            "caption": f"Share that text-only classifiers give to the right answer, over {len(bias)} questions: "
                    "at chance where the text gives nothing away, at 1 where it gives the answer away."}  # fmt: skip
