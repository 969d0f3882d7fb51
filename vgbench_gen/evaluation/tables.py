"""Tables of several models: one number per cell with its interval, floors beside them, marks where they are earned."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.evaluation import metrics, reference_scores, stats
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.board import BASELINE, ORACLE, Board, BoardRun
from vgbench_gen.evaluation.cells import Cell, Cells, group_by_part
from vgbench_gen.evaluation.layouts import TableLayout, find_paper_layouts, make_breakdowns
from vgbench_gen.evaluation.options import SHOTS, VISUAL_COT
from vgbench_gen.evaluation.pooled import (
    OFFICIAL,
    ONCE,
    OPEN,
    POOLED,
    REPLIES,
    SCORE,
    SUMMARY,
    SUMMARY_WITHOUT_LENGTHS,
    UNREADABLE,
    Unit,
    get_part,
)
from vgbench_gen.evaluation.sizes import read_sizes
from vgbench_gen.evaluation.wrong_parts import make_wrong_parts
from vgbench_gen.quality.intervals import adjust_by_holm

LEVEL = 0.05


@dataclass(frozen=True, slots=True)
class Row:
    """One row of a table."""

    name: str
    """The run, or what it is compared with."""
    kind: Literal["model", "floor"]
    """"model", or "floor" for what a model should beat."""
    cells: tuple[Cell, ...]
    note: str = ""
    """Why its numbers are not final."""
    group: str = ""
    """The group of models of its size; "" where all models are in one."""


@dataclass(frozen=True, slots=True)
class ColumnHead:
    """The head of a column."""

    name: str
    unit: Unit = "%"
    total: int = 0
    """How many questions it holds."""


@dataclass(frozen=True, slots=True)
class Table:
    """One table: models below each other, with one cell per column."""

    key: str
    """Its name in files."""
    title: str
    """Its name for readers."""
    caption: str
    """What a reader must know of it."""
    columns: tuple[ColumnHead, ...]
    rows: tuple[Row, ...]
    """The rows, each with as many cells as there are columns."""


@dataclass(frozen=True, slots=True)
class ModelPair:
    """Two models on the questions that both answered."""

    first: str
    second: str
    n: int
    """How many questions both answered."""
    difference: stats.Difference
    """By how much the first is ahead, with p values that are adjusted by Holm's method over all pairs."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that `vgbench compare` prints."""

    summary: Table
    """One row per run with everything that is over all questions."""
    replies: Table
    """How replies were read, by whom, and what they cost."""
    papers: tuple[Table, ...]
    """The benchmarks' own tables."""
    open_ended: Table | None
    """Numbers by every metric in use; None where no answer is a number."""
    parts: tuple[Table, ...]
    """Scores by task, form, difficulty and source."""
    pairs: tuple[ModelPair, ...]
    wrong_parts: Table | None = None
    """Which part of an answer wrong letters get wrong; None where no question tells."""
    agents: tuple[Table, ...] = ()
    """What tools are worth, see `agent_tables.make_agent_tables`; none where no agent was asked."""

    @property
    def tables(self) -> tuple[Table, ...]:
        """All of them, in order."""
        some = [table for table in (self.open_ended, self.wrong_parts) if table]
        return (self.summary, *self.agents, *self.papers, *some, *self.parts, self.replies)


def compare_models(board: Board, seed: int = 0) -> Comparison:
    """All tables of a board.

    Args:
        board: with at least one question.
        seed: of the bootstrap.
    """
    maker = TableMaker(board, seed)
    papers = [maker.table(layout, "score", unread=True) for layout in find_paper_layouts(board)]
    if any(entry.rule == "delta" for entry in board.questions) and papers:
        headline = maker.table(find_paper_layouts(board)[0], "headline", unread=True)
        papers.insert(1, replace(headline, key=f"{headline.key}-1.25", title=f"{headline.title}, delta = 1.25"))
        papers[0] = replace(papers[0], title=f"{papers[0].title}, delta = 2 as in the paper")
    own = [table for benchmark in benchmarks.values() for table in benchmark.tables(maker)]
    return Comparison(
        summary=maker.summary(),
        replies=maker.replies(),
        papers=(*own, *papers, *maker.drawn()),
        open_ended=maker.open_ended(),
        parts=tuple(maker.table(layout, "score") for layout in make_breakdowns(board)),
        pairs=maker.pairs(),
        wrong_parts=make_wrong_parts(maker),
    )


def split_runs(board: Board) -> tuple[list[BoardRun], list[BoardRun]]:
    """(models by groups of size, what stands beside them) of a board.

    Beside them stand baselines, agents with oracle tools, and models that did not see the right images. Where nobody
    else was asked, they are compared like models, baselines before agents.
    """
    sighted = [
        run for run in board.runs.values() if not run.stage or run.stage == VISUAL_COT or run.stage.endswith(SHOTS)
    ]
    fair = [run for run in sighted if not run.model.endswith(ORACLE)]
    models = [run for run in fair if not run.model.startswith(BASELINE)] or fair or sighted
    models.sort(key=lambda run: read_sizes().group(run.model)[0])
    return models, [run for run in board.runs.values() if run not in models]


class TableMaker:
    """Makes the tables of one board; benchmarks make theirs with it (`Benchmark.tables`).

    Args:
        board: with at least one question.
        seed: of the bootstrap.
    """

    def __init__(self, board: Board, seed: int) -> None:
        self.board, self.seed, self.cells = board, seed, Cells(board, seed)
        self.models, self.floors = split_runs(board)
        groups = {run.name: read_sizes().group(run.model)[1] for run in self.models}
        self.groups = groups if len(set(groups.values())) > 1 else {}

    @property
    def runs(self) -> tuple[BoardRun, ...]:
        """All runs in the order of the rows: models by size, then what stands beside them."""
        return (*self.models, *self.floors)

    def table(self, layout: TableLayout, measure: str, unread: bool = False) -> Table:
        """A layout with the runs of the board; `unread` adds the share of replies that could not be read."""
        masks = [self.board.mask(column.wanted) for column in layout.columns]
        whole = self.board.mask(layout.wanted)
        heads = [ColumnHead(c.head, "%", int(m.sum())) for c, m in zip(layout.columns, masks, strict=True)]
        rows = [self._make_cells(run, layout, masks, measure) for run in self.runs]
        for place, (column, mask) in enumerate(zip(layout.columns, masks, strict=True)):
            if column.how == "micro":
                self._mark(rows[: len(self.models)], place, mask, measure)
        if unread:
            heads.append(ColumnHead(UNREADABLE))
            for run, cells in zip(self.runs, rows, strict=True):
                cells.append(self.cells.rate(run, "unreadable", whole))
        lines = [self.line(run, cells) for run, cells in zip(self.runs, rows, strict=True)]
        constants = [reference_scores.score_constant(self.board, mask, measure) for mask in masks]
        for name, credits in (
            (reference_scores.CONSTANT, constants),
            (reference_scores.CHANCE, [reference_scores.score_chance(self.board)] * len(masks)),
        ):
            plain = self._make_floor_cells(layout, masks, credits)
            lines.append(Row(name, "floor", (*plain, Cell(math.nan)) if unread else plain))
        return Table(layout.key, layout.title, layout.caption, tuple(heads), tuple(lines))

    def drawn(self) -> list[Table]:
        """Visual chain of thought both ways: over all questions, and over those for which an image was drawn."""
        runs = [run for run in self.board.runs.values() if run.stage == VISUAL_COT]
        if not runs:
            return []
        heads = (
            ColumnHead("all", "%"),
            ColumnHead("with the drawing", "%"),
            ColumnHead("without", "%"),
            ColumnHead("drawn", "%"),
        )
        lines = []
        for run in runs:
            masks = (self.cells.all, run.made == 1, run.made == 0)
            cells = [self.cells.mean(run, mask, run.score) for mask in masks]
            cells.append(self.cells.mean(run, ~np.isnan(run.made), run.made))
            lines.append(self.line(run, cells))
        told = "Questions for which no image could be drawn were asked without; they are in the first column."
        return [Table("visual-cot", "Visual chain of thought", told, heads, tuple(lines))]

    def _make_cells(self, run: BoardRun, layout: TableLayout, masks: Sequence[BoolArray], measure: str) -> list[Cell]:
        values = run.values(measure)
        return [self.cells.column(run, c, mask, values) for c, mask in zip(layout.columns, masks, strict=True)]

    def _make_floor_cells(
        self, layout: TableLayout, masks: list[BoolArray], credits: Sequence[FloatArray]
    ) -> tuple[Cell, ...]:
        """Cells of a floor that answers everything."""
        cells = []
        for column, mask, credit in zip(layout.columns, masks, credits, strict=True):
            places = np.flatnonzero(mask).tolist()
            if not len(places) or column.how in ("pairs", "flips"):
                cells.append(Cell(math.nan))
                continue
            value = float(credit[places].mean())
            if column.how == "macro":
                value = metrics.average_macro(
                    group_by_part(credit, places, [column.part(e) for e in self.board.questions])
                )
            cells.append(Cell(value, n=len(places), asked=len(places), value_all=value))
        return tuple(cells)

    def _mark(self, lines: list[list[Cell]], place: int, mask: BoolArray, measure: str) -> None:
        """Mark the best if it beats every other model, and then the second if it beats all below it.

        One family of tests per column: the best against each other model, the second against each below it.
        """
        order = [k for k in range(len(lines)) if lines[k][place].n]
        order.sort(key=lambda k: -lines[k][place].value)
        if len(order) < 2:
            return
        tests = [(order[0], other) for other in order[1:]] + [(order[1], other) for other in order[2:]]
        adjusted = adjust_by_holm(
            [self.cells.p_better(self.models[a], self.models[b], mask, measure) for a, b in tests]
        )
        if max(adjusted[: len(order) - 1]) >= LEVEL:
            return
        lines[order[0]][place] = replace(lines[order[0]][place], mark="best")
        if len(order) > 2 and max(adjusted[len(order) - 1 :]) < LEVEL:
            lines[order[1]][place] = replace(lines[order[1]][place], mark="second")

    # --- the others

    def replies(self) -> Table:
        """How replies were read, by whom, and what they cost."""
        lines = [self.line(run, [make(self.cells, run) for _, _, make in REPLIES]) for run in self.runs]
        told = (
            "As we read them and by the published script: accuracy with delta = 2. Final line: by a reader that "
            "looks at the last line alone. Follows form: replies whose last line is the answer and nothing else."
        )
        scripts = {entry.script for entry in self.board.questions}
        names = {OFFICIAL: scripts.pop() if len(scripts) == 1 else OFFICIAL}
        heads = tuple(ColumnHead(names.get(name, name), unit) for name, unit, _ in REPLIES)
        return Table("replies", "Replies", told, heads, tuple(lines))

    def line(self, run: BoardRun, cells: Sequence[Cell]) -> Row:
        """The row of a run."""
        kind: Literal["model", "floor"] = "floor" if run in self.floors else "model"
        return Row(run.name, kind, tuple(cells), self.note(run), self.groups.get(run.name, ""))

    def note(self, run: BoardRun) -> str:
        """Why a run's numbers are not final."""
        asked, failures = int(run.asked.sum()), run.describe_failures()
        told = [f"incomplete: {failures}"] if failures else []
        if asked < len(self.board.questions):
            told.append(f"asked {asked} of {len(self.board.questions)}")
        return "; ".join(told)

    def summary(self) -> Table:
        """One line per run with everything that is not a breakdown."""
        total = len(self.board.questions)
        once = np.unique(self.board.contents)
        lengths = any(entry.rule == "delta" for entry in self.board.questions)
        columns = SUMMARY if lengths else SUMMARY_WITHOUT_LENGTHS
        totals = dict.fromkeys((*(name for name, _, _ in SUMMARY[:POOLED]), SCORE), total) | {ONCE: len(once)}
        heads = tuple(ColumnHead(name, unit, totals.get(name, 0)) for name, unit, _ in columns)
        cells = [[make(self.cells, run) for _, _, make in columns] for run in self.models]
        for place, measure in enumerate(("score", "headline") if lengths else ("score",)):
            self._mark(cells, place, self.cells.all, measure)
        lines = [self.line(run, found) for run, found in zip(self.models, cells, strict=True)]
        lines += [self.line(run, [make(self.cells, run) for _, _, make in columns]) for run in self.floors]
        constant = reference_scores.score_constant(self.board, self.cells.all)
        headline = reference_scores.score_constant(self.board, self.cells.all, "headline")
        guess = reference_scores.score_chance(self.board)
        for name, score, strict in (
            (reference_scores.CONSTANT, constant, headline),
            (reference_scores.CHANCE, guess, guess),
        ):
            parts = group_by_part(score, range(total), self.cells.names(get_part))
            values = {
                SCORE: metrics.average_micro(score),
                "delta = 2": metrics.average_micro(score),
                "delta = 1.25": metrics.average_micro(strict),
                "Macro": metrics.average_macro(parts),
                ONCE: metrics.average_micro(
                    (self._score_constant_once() if name == reference_scores.CONSTANT else score)[once]
                ),
            }
            by_head = {
                head: Cell(value, n=totals[head], asked=totals[head], value_all=value) for head, value in values.items()
            }
            lines.append(Row(name, "floor", tuple(by_head.get(head.name, Cell(math.nan)) for head in heads)))
        told = (
            "Macro: mean over tasks. Copies once: questions that are the same in words, options, pictures and answer "
            f"count as one ({self.board.copies:,} are copies). Skill: 0 at the best constant, 100 at all right. Twins: "
            "a true and a false claim both judged right. Pairs: one truth asked from two sides, both right. Circular: "
            "right in every order of the options. Unreadable and refused replies count as wrong; failed ones are left "
            "out."
        )
        first = "delta = 2 and delta = 1.25: accuracy over all questions (micro), with that tolerance for lengths. "
        told = (first if lengths else "Score: mean over all questions (micro). ") + told
        told += "".join(benchmark.summary_note(self.board) for benchmark in benchmarks.values())
        return Table("summary", "Summary", told, heads, tuple(lines))

    def _score_constant_once(self) -> FloatArray:
        mask = np.zeros(len(self.board.questions), dtype=np.bool_)
        mask[self.board.contents] = True
        return reference_scores.score_constant(self.board, mask)

    def open_ended(self) -> Table | None:
        """Numbers by every metric that is in use, beside the best constant; None where nothing is open."""
        tasks: dict[str, list[int]] = defaultdict(list)
        for k, entry in enumerate(self.board.questions):
            if entry.rule != "exact":
                tasks[(entry.task or entry.origin or entry.source).replace("_", " ")].append(k)
        if not tasks:
            return None
        masks = {task: np.isin(np.arange(len(self.board.questions)), places) for task, places in sorted(tasks.items())}
        heads = [
            ColumnHead(f"{task}: {name}", unit, int(mask.sum()))
            for task, mask in masks.items()
            for name, unit in OPEN
        ]  # fmt: skip
        lines = []
        for run in self.runs:
            cells: list[Cell] = []
            for mask in masks.values():
                cells += [self.cells.mean(run, mask, values) for values in (run.delta_2, run.delta_125, run.mra)]
                cells.append(self.cells.median(run, mask))
            lines.append(self.line(run, cells))
        constants: list[Cell] = []
        for mask in masks.values():
            n = int(mask.sum())
            for measure in ("score", "headline"):
                value = float(np.nanmean(reference_scores.score_constant(self.board, mask, measure)))
                constants.append(Cell(value, n=n, asked=n, value_all=value))
            constants += [Cell(math.nan), Cell(math.nan)]
        lines.append(Row(reference_scores.CONSTANT, "floor", tuple(constants)))
        told = (
            "delta = 2 and 1.25: within that factor. MRA: mean relative accuracy of VSI-Bench. median error: median "
            "relative error, an answer that was not given counts as infinitely wrong."
        )
        return Table("open-ended", "Open-ended questions by every metric", told, tuple(heads), tuple(lines))

    def pairs(self) -> tuple[ModelPair, ...]:
        """Every pair of models on the questions that both answered."""
        found = []
        for k, a in enumerate(self.models):
            for b in self.models[k + 1 :]:
                both = a.answered & b.answered
                if both.any():
                    scenes = [self.board.scenes[k] for k in np.flatnonzero(both)]
                    difference = stats.compare_paired(a.score[both], b.score[both], scenes, self.seed)
                    found.append(ModelPair(a.name, b.name, int(both.sum()), difference))
        p, exact = (
            adjust_by_holm([x.difference.p for x in found]),
            adjust_by_holm([x.difference.p_mcnemar for x in found]),
        )
        return tuple(
            replace(pair, difference=replace(pair.difference, p=p[k], p_mcnemar=exact[k]))
            for k, pair in enumerate(found)
        )
