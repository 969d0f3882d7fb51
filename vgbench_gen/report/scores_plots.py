"""The charts of a page of scores as plain numbers: accuracy by task, cost against accuracy, and confusion."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgbench_gen.evaluation.board import BASELINE, Board, BoardRun, count_confusion
from vgbench_gen.evaluation.reference_scores import CHANCE, CONSTANT
from vgbench_gen.evaluation.tables import Row, Table
from vgbench_gen.quality.review.log import FOLDER as REVIEW
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.report import make_report
from vgbench_gen.quality.review.status import count_verdicts
from vgbench_gen.report.charts import FEWEST
from vgbench_gen.report.scores_files import NONE, format_interval, format_value
from vgbench_gen.store.dataset import load

_MODELS, _FLOORS = 4, 2  # bars of one panel: as many as there are colors, so that all panels fit a screen
_BLIND = f"{BASELINE}blind"
# These are lines across a panel, or close to one.
_NO_BARS = (CONSTANT, CHANCE, _BLIND, f"{BASELINE}constant", f"{BASELINE}random")
_LEVELS = 4  # shades of a confusion table


@dataclass(frozen=True, slots=True)
class BarStyle:
    """How a run is drawn in every panel."""

    name: str
    color: str
    """"0" to "3" for models, "floor-0" and "floor-1" for what they are compared with."""
    note: str = ""
    """Why it does not compare with the others, such as "asked 100 of 400"; empty where it was asked everything."""


def choose_bars(summary: Table) -> tuple[list[BarStyle], list[str]]:
    """(runs with bars, names of those left out) of a summary: the best models, then baselines that see the images.

    Models that were asked a part of the questions come after the others, those whose requests all failed last.
    """
    total = summary.columns[0].total

    def rank(line: Row) -> tuple[bool, bool, bool, float]:
        first = line.cells[0]
        return (
            not line.name.startswith(BASELINE) and line.kind == "floor",
            first.failed,
            first.asked < total,
            -first.value if first.n else math.inf,
        )

    lines = sorted((line for line in summary.rows if line.name not in _NO_BARS), key=rank)
    models = [line for line in lines if line.kind == "model"]
    floors = [line for line in lines if line.kind == "floor"]
    styles = [_make_style(line, str(k), total) for k, line in enumerate(models[:_MODELS])]
    styles += [_make_style(line, f"floor-{k}", total) for k, line in enumerate(floors[:_FLOORS])]
    return styles, [line.name for line in (*models[_MODELS:], *floors[_FLOORS:])]


def _make_style(line: Row, color: str, total: int) -> BarStyle:
    first = line.cells[0]
    note = "all requests failed" if first.failed else f"asked {first.asked:,} of {total:,}"
    return BarStyle(line.name, color, note if first.failed or first.asked < total else "")


def plot_panels(
    table: Table, styles: Sequence[BarStyle], human: Mapping[str, float], blind: str = _BLIND
) -> dict[str, Any]:
    """A panel for each column of a table with `FEWEST` questions or more; places are per cent of its width.

    Keys: panels [{name, total, bars, references}], few (names and sizes of the columns without a panel), known (the
    references that some panel has).

    Args:
        table: of accuracies, with a row for each style.
        styles: of `choose_bars`.
        human: accuracy of people by task, where known.
        blind: name of the run without images.
    """
    lines = {line.name: line for line in table.rows}
    people = {task.replace("_", " "): value for task, value in human.items()}
    panels: list[dict[str, Any]] = []
    for place, head in enumerate(table.columns):
        cells = {name: line.cells[place] for name, line in lines.items()}
        named = {"chance": CHANCE, "constant": CONSTANT, "blind": blind}
        values = {kind: cells[name].value for kind, name in named.items() if name in cells}
        values["human"] = people.get(head.name, math.nan)
        bars = []
        for style in styles:
            cell = cells[style.name]
            text = format_value(cell, head)
            if math.isnan(cell.value):
                told = "all requests failed" if cell.failed else "not attempted" if cell.asked else "not asked"
            else:
                told = f"{text} {format_interval(cell, head)} of {cell.n:,}"
            bars.append(
                {"style": style, "text": text if cell.n else NONE, "told": f"{style.name}, {head.name}: {told}",
                 "width": _place(cell.value), "span": [*filter(None, map(_place, (cell.low, cell.high)))]}
            )  # fmt: skip
        references = [
            {"name": kind, "x": _place(value), "text": f"{100 * value:.0f}"}
            for kind, value in sorted(values.items())
            if not math.isnan(value)
        ]
        panels.append({"name": head.name, "total": head.total, "bars": bars, "references": references})
    shown = [panel for panel in panels if panel["total"] >= FEWEST]
    return {
        "panels": shown,
        "few": [(panel["name"], panel["total"]) for panel in panels if panel["total"] < FEWEST],
        "known": {one["name"] for panel in shown for one in panel["references"]},
    }


def _place(share: float) -> str:
    return "" if math.isnan(share) else f"{100 * min(max(share, 0.0), 1.0):.1f}%"


def plot_costs(runs: Sequence[BoardRun], summary: Table) -> dict[str, Any] | None:
    """Accuracy over the logarithm of what a thousand replies cost, in per cent of width and height; None unless two
    runs have a price above 0. Points are numbered, the cheapest first."""
    cells = {line.name: line.cells[0] for line in summary.rows}
    points = sorted(
        (1000 * run.cost_usd / run.cost_known, run.name)
        for run in runs
        if run.cost_known and run.cost_usd > 0 and not math.isnan(cells[run.name].value)
    )
    if len(points) < 2:
        return None
    low = math.floor(math.log10(points[0][0]))
    high = max(math.ceil(math.log10(points[-1][0])), low + 1)
    head = summary.columns[0]

    def place(cost: float) -> str:
        return f"{100 * (math.log10(cost) - low) / (high - low):.1f}%"

    return {
        "points": [
            {"x": place(cost), "y": _place(1 - cells[name].value), "number": number,
             "span": [*filter(None, (_place(1 - end) for end in (cells[name].low, cells[name].high)))],
             "told": f"{name}: {format_value(cells[name], head)} {format_interval(cells[name], head)}, "
             f"{cost:.3g} USD per thousand replies"}
            for number, (cost, name) in enumerate(points, 1)
        ],
        "columns": [{"x": place(10.0**k), "label": f"{10.0**k:g}"} for k in range(low, high + 1)],
    }  # fmt: skip


def plot_confusions(board: Board, runs: Sequence[BoardRun]) -> list[dict[str, Any]]:
    """For each run and kind of answer: how often each truth was answered by what; level: shade by share of the row."""
    found = []
    for kind, title in (("letter", "Letters"), ("yes_no", "Yes and no")):
        mask = board.mask(lambda entry, kind=kind: entry.kind == kind)  # type: ignore[misc]
        for run in runs:
            table = count_confusion(board, run.name, mask)
            said = sorted({answer for row in table.values() for answer in row} | set(table), key=_rank_answer)
            rows = [
                {"truth": truth, "cells": [
                    {"n": counts.get(answer, 0), "right": answer == truth,
                     "level": math.ceil(_LEVELS * counts.get(answer, 0) / sum(counts.values()))}
                    for answer in said
                ]}
                for truth, counts in table.items()
            ]  # fmt: skip
            sums = [sum(row.get(answer, 0) for row in table.values()) for answer in said]
            if rows:
                found.append({"title": f"{title}: {run.name}", "said": said, "rows": rows, "sums": sums})
    return found


def _rank_answer(answer: str) -> tuple[bool, str]:
    return answer in ("unreadable", "refused"), answer


def read_human_scores(homes: Iterable[Path]) -> dict[str, float]:
    """By task, the share of right blind answers of people, where a review was held; over data sets by their questions.

    Raises:
        DatasetError: what reviewers wrote, or a data set that they reviewed, cannot be read.
    """
    found: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for home in homes:
        logs = read_logs(home / REVIEW)
        if logs:
            entries = list_items(load(home))
            for row in make_report(entries, count_verdicts(logs, entries)).tasks:
                if not math.isnan(row.human):
                    found[row.task].append((row.n, row.human))
    return {task: sum(n * value for n, value in rows) / sum(n for n, _ in rows) for task, rows in found.items()}
