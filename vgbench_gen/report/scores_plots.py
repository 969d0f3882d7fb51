"""The plots of a page of scores as plain numbers: where to draw what."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.board import BASELINE, Board, BoardRun, count_confusion
from vgbench_gen.evaluation.cells import Cells
from vgbench_gen.evaluation.pooled import get_part
from vgbench_gen.evaluation.reference_scores import CONSTANT
from vgbench_gen.evaluation.tables import ColumnHead, Row, Table
from vgbench_gen.quality.review.log import FOLDER as REVIEW
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.report import make_report
from vgbench_gen.quality.review.status import count_verdicts
from vgbench_gen.report.scores_files import format_interval, format_value
from vgbench_gen.store.dataset import load

WIDTH, LEFT, RIGHT = 420.0, 8.0, 412.0
MOST = 8  # models of one plot: four colours with two shapes
_MODEL_SHAPES = ("circle", "square")
_FLOOR_SHAPES = ("diamond", "triangle", "wedge", "left", "right", "bar")
_STEP, _LABEL = 13, 20
_LEVELS = 4  # of shades in a confusion table


@dataclass(frozen=True, slots=True)
class PlotStyle:
    """How a run is drawn in every plot of a page."""

    name: str
    colour: str
    """The number of its colour, "0" to "3", or "floor" for what is no model and has none."""
    shape: str
    """The name of its mark; models and floors never share one."""
    part: bool = False
    """Whether it was asked a part of the questions alone, or got no reply at all."""
    note: str = ""
    """Which of them, such as "asked 100 of 400"; empty where it was asked all."""


def choose_styles(table: Table) -> tuple[list[PlotStyle], list[str]]:
    """Whom plots show, of a summary, and which of its rows they do not.

    Models by their first number, then those asked a part of the questions, then those all of whose requests failed, at
    most `MOST`; then floors that were asked as models are, baselines first. The best constant is a line of its own.
    """
    asked = [line for line in table.rows if any(cell.low == cell.low or cell.failed for cell in line.cells)]
    total = table.columns[0].total

    def rank(line: Row) -> tuple[bool, bool, float]:
        first = line.cells[0]
        return first.failed, first.asked < total, -first.value if first.n else math.inf

    models = sorted((line for line in asked if line.kind == "model"), key=rank)[:MOST]
    floors = sorted(
        (line for line in asked if line.kind == "floor"),
        key=lambda line: (not line.name.startswith(BASELINE), *rank(line)),
    )[: len(_FLOOR_SHAPES)]
    keys = [_make_style(line, str(k % 4), _MODEL_SHAPES[k // 4], total) for k, line in enumerate(models)]
    keys += [_make_style(line, "floor", shape, total) for line, shape in zip(floors, _FLOOR_SHAPES, strict=False)]
    shown = {CONSTANT, *(key.name for key in keys)}
    return keys, [line.name for line in table.rows if line.name not in shown]


def _make_style(line: Row, colour: str, shape: str, total: int) -> PlotStyle:
    first = line.cells[0]
    part = first.asked < total
    note = "all requests failed" if first.failed else f"asked {first.asked:,} of {total:,}" if part else ""
    return PlotStyle(line.name, colour, shape, part or first.failed, note)


def plot_dots(table: Table, keys: Sequence[PlotStyle]) -> dict[str, Any]:
    """A group of rows per column of a table, a row per run: the share with its interval, and the best constant."""
    lines = {line.name: line for line in table.rows}
    groups, y = [], 0
    for place, head in enumerate(table.columns):
        top = y
        y += _LABEL
        marks = []
        for key in keys:
            line = lines.get(key.name)
            if line is None:
                continue
            cell = line.cells[place]
            if not math.isnan(cell.value):
                told = f"{key.name}, {head.name}: {format_value(cell, head)} {format_interval(cell, head)} of {cell.n}"
                marks.append(
                    {"y": y + 6, "x": _place_x(cell.value), "low": _place_x(cell.low), "high": _place_x(cell.high),
                     "key": key,
                     "told": f"{told} ({key.note})" if key.note else told}
                )  # fmt: skip
            y += _STEP
        constant = lines[CONSTANT].cells[place].value if CONSTANT in lines else math.nan
        groups.append(
            {"label": f"{head.name} (n = {head.total:,})", "y": top + 14, "top": top + _LABEL - 2, "bottom": y + 2,
             "marks": marks, "constant": _place_x(constant)}
        )  # fmt: skip
        y += 8
    ticks = [{"x": _place_x(value / 100), "label": f"{value} %"} for value in range(0, 101, 25)]
    return {"title": table.title, "groups": groups, "height": y + 18, "ticks": ticks, "floor": y}


def _place_x(value: float) -> float | None:
    return round(LEFT + (RIGHT - LEFT) * min(max(value, 0.0), 1.0), 1) if math.isfinite(value) else None


def plot_costs(runs: Sequence[BoardRun], summary: Table, keys: Sequence[PlotStyle]) -> dict[str, Any] | None:
    """Accuracy over the logarithm of what a thousand replies cost; None unless two runs have a price above 0.

    keys: whom the legend shows; others are left out.
    """
    lines = {line.name: line.cells[0] for line in summary.rows}
    known = {key.name: key for key in keys}
    points = []
    for run in runs:
        cell = lines[run.name]
        if run.name in known and run.cost_known and run.cost_usd > 0 and not math.isnan(cell.value):
            points.append((run.name, 1000 * run.cost_usd / run.cost_known, cell))
    if len(points) < 2:
        return None
    low = math.floor(math.log10(min(cost for _, cost, _ in points)))
    high = max(math.ceil(math.log10(max(cost for _, cost, _ in points))), low + 1)
    head = summary.columns[0]

    def place(cost: float) -> float:
        return round(34 + 370 * (math.log10(cost) - low) / (high - low), 1)

    return {
        "title": "Cost against accuracy",
        "points": [
            {
                "x": place(cost),
                "y": _place_y(cell.value),
                "low": _place_y(cell.low),
                "high": _place_y(cell.high),
                "key": known[name],
                "told": f"{name}: {format_value(cell, head)} {format_interval(cell, head)}, "
                f"{cost:.3g} USD per thousand replies" + (f" ({known[name].note})" if known[name].note else ""),
            }
            for name, cost, cell in sorted(points, key=lambda point: point[1])
        ],
        "columns": [{"x": place(10.0**k), "label": f"{10.0**k:g}"} for k in range(low, high + 1)],
        "rows": [{"y": _place_y(value / 100), "label": f"{value}"} for value in range(0, 101, 25)],
    }


def _place_y(value: float) -> float | None:
    return round(250 - 240 * min(max(value, 0.0), 1.0), 1) if math.isfinite(value) else None


def plot_confusions(board: Board, runs: Sequence[BoardRun]) -> list[dict[str, Any]]:
    """For each run and kind of answer: how often each truth was answered by what; level: shade by share of the row."""
    found = []
    for kind, title in (("letter", "Letters"), ("yes_no", "Yes and no")):
        mask = board.mask(lambda entry, kind=kind: entry.kind == kind)  # type: ignore[misc]
        for run in runs:
            table = count_confusion(board, run, mask)
            if not table:
                continue
            said = sorted({answer for row in table.values() for answer in row} | set(table), key=_answer_order)
            rows = []
            for truth, counts in table.items():
                total = sum(counts.values())
                cells = [
                    {"said": answer, "n": counts.get(answer, 0), "right": answer == truth,
                     "level": math.ceil(_LEVELS * counts.get(answer, 0) / total)}
                    for answer in said
                ]  # fmt: skip
                rows.append({"truth": truth, "cells": cells, "total": total})
            sums = [sum(row.get(answer, 0) for row in table.values()) for answer in said]
            found.append({"title": f"{title}: {run.name}", "name": run.name, "said": said, "rows": rows, "sums": sums})
    return found


def _answer_order(answer: str) -> tuple[int, str]:
    return (("unreadable", "refused").index(answer) + 1 if answer in ("unreadable", "refused") else 0, answer)


_MODELS, _FLOORS = 4, 2  # bars of one panel, so that all panels fit a screen
_STEP_PX = 16
_INSIDE = 0.8  # from here the number stands inside its bar
_BLIND = f"{BASELINE}blind"
# They are lines across a panel, or close to one; as bars they would take the room of others.
_NO_BARS = (_BLIND, f"{BASELINE}constant", f"{BASELINE}random")
_REFUSED, _FAILED = OUTCOMES.index("refused"), OUTCOMES.index("failed")


def plot_parts(board: Board, keys: Sequence[PlotStyle], human: dict[str, float]) -> dict[str, Any]:
    """Panels with places in per cent of their width, those of a bar from 0.

    Args:
        board: with at least one question.
        keys: runs as `scores_plots.choose_styles` orders them; the first ones get bars.
        human: share right of people by task, where known.
    """
    barred = [key for key in keys if key.name not in _NO_BARS]
    drawn = [key for key in barred if key.colour != "floor"][:_MODELS]
    drawn += [key for key in barred if key.colour == "floor"][:_FLOORS]
    cells = Cells(board)
    parts = np.array([get_part(entry) for entry in board.questions])
    chance = reference_scores.score_chance(board)
    without_images = (run for run in board.runs.values() if run.stage == "blind")
    blind = board.runs.get(_BLIND) or next(without_images, None)
    panels = []
    for part in sorted(set(parts.tolist())):
        mask = parts == part
        name = part.replace("_", " ")
        references = {
            "chance": float(chance[mask].mean()),
            "constant": float(np.nanmean(reference_scores.score_constant(board, mask)[mask])),
            "human": human.get(part, math.nan),
        }
        if blind is not None:
            references["blind"] = cells.mean(blind, mask, blind.score).value
        panels.append(
            {
                "name": name,
                "total": int(mask.sum()),
                "bars": [
                    _make_bar(cells, board.runs[key.name], key, mask, name, 2 + k * _STEP_PX)
                    for k, key in enumerate(drawn)
                ],
                "references": [
                    {"name": one, "x": f"{100 * value:.1f}%", "text": f"{100 * value:.0f}"}
                    for one, value in sorted(references.items())
                    if not math.isnan(value)
                ],
            }
        )
    return {
        "panels": panels,
        "keys": drawn,
        "known": {one["name"] for panel in panels for one in panel["references"]},
        "height": 4 + _STEP_PX * max(len(drawn), 1),
        "left": len(barred) - len(drawn),
    }


def _make_bar(cells: Cells, run: BoardRun, key: PlotStyle, mask: Any, name: str, y: int) -> dict[str, Any]:
    cell, head = cells.mean(run, mask, run.score), ColumnHead("")
    tried = not math.isnan(cell.value)  # what a baseline tried nothing of has no number (`Cells.mean`)
    counts = run.counts[mask].sum(axis=0)
    if tried:
        text = format_value(cell, head) + (", all refused" if counts[_REFUSED] == counts.sum() else "")
    else:
        text = "not asked" if not counts.any() else "all requests failed" if counts[_FAILED] else "not attempted"
    numbers = f"{text} {format_interval(cell, head)} of {cell.n:,}" if tried else text
    bar = {"key": key, "y": y, "text": text, "told": f"{key.name}, {name}: {numbers}", "width": "", "span": None}
    if tried:
        ends = [min(max(value, 0.0), 1.0) for value in (cell.value, cell.low, cell.high)]
        bar["width"] = f"{100 * ends[0]:.1f}%"
        if not math.isnan(cell.low):
            bar["span"] = [f"{100 * end:.1f}%" for end in ends[1:]]
        bar["label"] = f"{100 * max(end for end in ends if not math.isnan(end)):.1f}%"
        bar["inside"] = max(ends) > _INSIDE
    return bar


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
