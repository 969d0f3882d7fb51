"""Tables of questions with several labels: SalBench's leaderboard and its table of macro F1.

Source: `docs/protocols.md#salbench`.

A request that failed counts as one that named nothing, in every figure: this is SalBench's exception to the rule that
failed requests are left out.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vgbench_gen.core.lines import guard_formula
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.evaluation import stats
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.benchmarks.salbench.scoring import KIND
from vgbench_gen.evaluation.board import Board, BoardRun
from vgbench_gen.evaluation.cells import NONE, Cell, Statistic
from vgbench_gen.evaluation.options import SHOTS
from vgbench_gen.evaluation.tables import ColumnHead, Table, TableColumn, TableMaker

if TYPE_CHECKING:
    import pandas as pd

TASKS = {"detection": "D", "referring": "R", "visual_referring": "VR"}
# Columns of a leaderboard after the two overall ones, in its order.
ORDER = {
    "synthetic": ("orientation", "color", "size"),
    "natural": ("orientation", "color", "size", "focus", "shape", "location", "pattern"),
}
_CSV = {"detection": "Detection", "referring": "Referring", "visual_referring": "VisualRef"}
_CSV_SPLITS = {"natural": "NAT", "synthetic": "SYN"}
Figure = Callable[["Sums"], FloatArray]


class Sums:
    """Sums over questions, one row per draw.

    Args:
        sums: (d, 5 + 3 L): questions, exact ones, precision, recall and F1 of single questions, then per label how
            often it was rightly named, named, and true.
    """

    def __init__(self, sums: FloatArray) -> None:
        self.n, self.exact, self.precision, self.recall, self.f1 = sums[:, :5].T
        self.hits, self.said, self.true = np.split(sums[:, 5:], 3, axis=1)


def make_sums_table(rows: pd.DataFrame, split: str) -> FloatArray:
    """(n, 5 + 3 L), a row per answer as `Sums` adds them up; a request that failed named nothing.

    rows: of `Board.answers`.
    """
    known = tuple(labels.SPLITS[split])
    found = []
    for entry, extracted, answered in rows[["question", "extracted", "answered"]].to_numpy(dtype=object):
        said = labels.convert_to_set(extracted) if answered else frozenset[str]()
        true = labels.convert_to_set(entry.truth)
        of = labels.measure_labels(said, true)
        counted = [[label in one for label in known] for one in (said & true, said, true)]
        found.append(
            [1.0, of["exact_match"], of["precision"], of["recall"], of["f1"], *(x for c in counted for x in c)]
        )
    return np.asarray(found, dtype=np.float64)


def compute_class_f1(sums: Sums) -> FloatArray:
    """(d, L): F1 per label, counted over all questions; 0 for one that was neither true nor named."""
    return _compute_f1(sums.hits, sums.said + sums.true)


def compute_macro_f1(sums: Sums) -> FloatArray:
    """Mean of the labels' F1 over all labels of the split."""
    return np.asarray(compute_class_f1(sums).mean(axis=1))


def compute_micro_f1(sums: Sums) -> FloatArray:
    """F1 of all labels counted together."""
    return _compute_f1(sums.hits.sum(axis=1), (sums.said + sums.true).sum(axis=1))


def _compute_f1(hits: FloatArray, named: FloatArray) -> FloatArray:
    return np.asarray(np.divide(2 * hits, named, out=np.zeros_like(hits), where=named > 0))


def compute_exact_match(sums: Sums) -> FloatArray:
    """Share of questions with just the right labels."""
    return np.asarray(sums.exact / sums.n)


def sample_f1(sums: Sums) -> FloatArray:
    """Mean F1 of single questions."""
    return np.asarray(sums.f1 / sums.n)


def _label_figure(split: str, label: str) -> Figure:
    place = tuple(labels.SPLITS[split]).index(label)
    return lambda sums: compute_class_f1(sums)[:, place]


def list_columns(split: str) -> list[tuple[str, Figure]]:
    """(head, figure) of a leaderboard without the task: exact match, macro F1, the labels', then those of samples."""
    return [
        ("EM", compute_exact_match),
        ("macro F1", compute_macro_f1),
        *((label.capitalize(), _label_figure(split, label)) for label in ORDER[split]),
        ("micro F1", compute_micro_f1),
        ("sample P", lambda sums: sums.precision / sums.n),
        ("sample R", lambda sums: sums.recall / sums.n),
        ("sample F1", sample_f1),
    ]


def list_splits(board: Board) -> list[str]:
    """The splits that a board has questions of."""
    return [split for split in ORDER if any(e.kind == KIND and e.scans == split for e in board.questions)]


def measure(split: str, figure: Figure) -> Statistic:
    """One figure with its interval over images; n counts the failed ones, too."""

    def measure_rows(rows: pd.DataFrame, value: str, seed: int) -> Cell:
        asked = rows[rows["asked"]]
        if not len(asked):
            return NONE
        sums, scenes = make_sums_table(asked, split), asked["scene"].to_numpy()
        found = stats.estimate_interval_of_sums(lambda drawn: figure(Sums(drawn)), sums, scenes, seed)
        return Cell(found.value, found.low, found.high, len(asked), len(asked), found.value)

    return measure_rows


def make_leaderboards(maker: TableMaker) -> list[Table]:
    """Make SalBench's leaderboards, one per split of the board; a column per figure and task."""
    found = []
    for split in list_splits(maker.board):
        masks = {task: mask for task in TASKS if (mask := mask_task(maker.board, split, task)).any()}
        kinds = [
            (f"{head} {TASKS[task]}", masks[task], figure) for head, figure in list_columns(split) for task in masks
        ]
        caption = (
            "EM: all labels right and no other. macro F1: mean of the labels' F1 over all labels of the split. "
            "D: detection, R: referring, VR: visual referring. Failed requests count as having named nothing."
        )
        name = {"synthetic": "P3, synthetic", "natural": "O3, natural"}[split]
        found.append(_make_table(maker, f"salbench-{split}", f"SalBench ({name})", caption, split, kinds))
        masks = {one: mask_difficulty(maker.board, split, one) for one in list_difficulties(maker.board, split)}
        if masks:
            figures: tuple[tuple[str, Figure], ...] = (("EM", compute_exact_match), ("macro F1", compute_macro_f1))
            kinds = [(f"{head} {one}", masks[one], figure) for head, figure in figures for one in masks]
            caption = (
                "Difficulty as the rows name it, all tasks together. Failed requests count as having named nothing."
            )
            title = f"SalBench ({name}) by difficulty"
            found.append(_make_table(maker, f"salbench-{split}-difficulty", title, caption, split, kinds))
    return found


def _make_table(
    maker: TableMaker, key: str, title: str, caption: str, split: str, kinds: Sequence[tuple[str, BoolArray, Figure]]
) -> Table:
    columns = [
        TableColumn(ColumnHead(head, "%", int(wanted.sum())), wanted, measure(split, figure))
        for head, wanted, figure in kinds
    ]
    return maker.table(key, title, caption, columns)


def make_summary_note(board: Board) -> str:
    """Return what the caption of the summary adds, where the board has questions of SalBench."""
    told = " SalBench's own tables count a failed request as having named nothing, and so as missed."
    return told if list_splits(board) else ""


def mask_task(board: Board, split: str, task: str) -> BoolArray:
    """Questions of one task of a split."""
    return board.mask(lambda entry: entry.kind == KIND and entry.scans == split and entry.task == task)


DIFFICULTIES = ("easy", "medium", "hard")


def list_difficulties(board: Board, split: str) -> list[str]:
    """The difficulties that a split names, known ones first; none where all its questions have the same."""
    found = {e.difficulty for e in board.questions if e.kind == KIND and e.scans == split} - {""}
    known = [name for name in DIFFICULTIES if name in found]
    return [*known, *sorted(found - set(known))] if len(found) > 1 else []


def mask_difficulty(board: Board, split: str, difficulty: str) -> BoolArray:
    """Questions of one difficulty of a split, over all tasks."""
    return board.mask(lambda e: e.kind == KIND and e.scans == split and e.difficulty == difficulty)


def format_macro_csv(board: Board, runs: Sequence[BoardRun]) -> str:
    """Macro F1 in per cent, a line per model and number of examples; sample F1 and exact match beside it."""
    out = io.StringIO()
    kinds: tuple[tuple[str, Figure], ...] = (
        ("", compute_macro_f1),
        ("_sampleF1", sample_f1),
        ("_EM", compute_exact_match),
    )
    cells = [(task, split, ending, figure) for ending, figure in kinds for task in TASKS for split in _CSV_SPLITS]
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["Model", "Shot", *(f"{_CSV[task]}_{_CSV_SPLITS[split]}{end}" for task, split, end, _ in cells)])
    for run in runs:
        row = [guard_formula(run.model), run.stage.removesuffix(SHOTS) or "0"]
        answers = board.answers_of(run.name)
        for task, split, _, figure in cells:
            asked = answers[mask_task(board, split, task) & answers["asked"]]
            sums = make_sums_table(asked, split).sum(axis=0, keepdims=True)
            row.append(f"{100 * figure(Sums(sums))[0]:.1f}" if len(asked) else "")
        writer.writerow(row)
    return out.getvalue()
