"""The chart that a page of scores opens on: a panel per task, bars of the runs, lines of what they stand against."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.answers.outcomes import OUTCOMES
from vgbench_gen.evaluation.board import BASELINE, Board, BoardRun
from vgbench_gen.evaluation.cells import Cells
from vgbench_gen.evaluation.pooled import get_part
from vgbench_gen.evaluation.tables import ColumnHead
from vgbench_gen.quality.review.log import FOLDER as REVIEW
from vgbench_gen.quality.review.log import read_logs
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.quality.review.report import make_report
from vgbench_gen.quality.review.status import count_verdicts
from vgbench_gen.report.scores_files import format_interval, format_value
from vgbench_gen.report.scores_plots import PlotStyle
from vgbench_gen.store.dataset import load

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
