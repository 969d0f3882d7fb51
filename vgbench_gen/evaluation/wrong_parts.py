"""Which part of the geometry a wrong letter gets wrong, for questions whose options combine two parts of the answer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from vgbench_gen.core.types import ALPHABET, BoolArray, FloatArray
from vgbench_gen.evaluation import reference_scores
from vgbench_gen.evaluation.board import Board, BoardRun, Entry
from vgbench_gen.evaluation.cells import Cell

if TYPE_CHECKING:
    from vgbench_gen.evaluation.tables import Table, TableMaker


def make_wrong_parts(maker: TableMaker) -> Table | None:
    """Per task the share of wrong letters by the parts that they get wrong; None where no question tells parts."""
    from vgbench_gen.evaluation.tables import ColumnHead, Row, Table

    board = maker.board
    kinds = sorted({(e.task, part) for e in board.questions for part in e.error_parts if part}, key=_sort_kind)
    if not kinds:
        return None
    told = board.mask(lambda e: bool(e.error_parts))
    tasks = np.array([entry.task for entry in board.questions])
    masks = {task: told & (tasks == task) for task, _ in kinds}
    heads = [ColumnHead(f"{task}: {part}".replace("_", " "), "%", int(masks[task].sum())) for task, part in kinds]
    lines = [
        maker.line(run, [_make_cell(maker, run, masks[task], mark_wrong(board, run, part)) for task, part in kinds])
        for run in maker.runs
    ]
    guesses = [
        float(np.mean([_guess(entry, part) for entry in board.questions if entry.task == task and entry.error_parts]))
        for task, part in kinds
    ]
    lines.append(Row(reference_scores.CHANCE, "floor", tuple(Cell(guess) for guess in guesses)))
    caption = (
        "Of the wrong letters of a task, the share that gets these parts of the answer wrong and the others right "
        "(column error_parts). Options combine two values of two parts, so a wrong guess misses each as often as both."
    )
    return Table("wrong-parts", "Which part is wrong", caption, tuple(heads), tuple(lines))


def _make_cell(maker: TableMaker, run: BoardRun, mask: BoolArray, marks: FloatArray) -> Cell:
    """The mean over the wrong letters; no number where a run answered and none was wrong."""
    return maker.cells.mean(run, mask & ~np.isnan(marks) if run.answered[mask].any() else mask, marks)


def mark_wrong(board: Board, run: BoardRun, part: str) -> FloatArray:
    """(n,) 1 where the letter that was answered gets exactly these parts wrong, 0 where it gets others wrong; NaN where
    it is right, where no letter was read and where options are no combinations."""
    marks = np.full(len(board.questions), math.nan)
    for k, entry in enumerate(board.questions):
        said = run.extracted[k]
        missed = dict(zip(ALPHABET, entry.error_parts, strict=False)).get(str(said), "")
        if missed:
            marks[k] = float(missed == part)
    return marks


def _guess(entry: Entry, part: str) -> float:
    return entry.error_parts.count(part) / sum(bool(parts) for parts in entry.error_parts)


def _sort_kind(kind: tuple[str, str]) -> tuple[str, int, str]:
    task, part = kind
    return task, part.count("+"), part
