"""Tables of several models: one number per cell with its interval, floors beside them, marks where they are earned."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from itertools import combinations, compress
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from vgbench_gen.core.types import BoolArray
from vgbench_gen.evaluation import metrics, reference_scores, stats
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.board import Board, BoardRun, Entry
from vgbench_gen.evaluation.cells import (
    NONE,
    Cell,
    Statistic,
    circular,
    compare_answers,
    copies_once,
    flip_name,
    get_part,
    grouped,
    macro,
    mean,
    median,
    p_better,
    pair_name,
    rate,
    share_missing,
    skill,
    summarise,
)
from vgbench_gen.evaluation.layouts import LayoutColumn, TableLayout, find_paper_layouts, make_breakdowns
from vgbench_gen.evaluation.options import SHOTS, VISUAL_COT
from vgbench_gen.evaluation.sizes import read_sizes
from vgbench_gen.quality.intervals import adjust_by_holm

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.05
Unit = Literal["%", "points", "error", "count", "usd"]
UNREADABLE, ONCE, SCORE, OFFICIAL = "Unreadable", "Copies once", "Score", "Official script"
POOLED = 5  # columns of the summary that are over all questions
# Each the head, the unit, the statistic and the column of its values.
PooledColumn = tuple[str, Unit, Statistic, str]
SUMMARY: tuple[PooledColumn, ...] = (
    ("delta = 2", "%", mean, "score"),
    ("delta = 1.25", "%", mean, "headline"),
    ("Macro", "%", macro(get_part), "score"),
    (ONCE, "%", copies_once, "score"),
    ("Skill", "%", skill, "score"),
    ("Twins", "%", grouped(lambda entry: entry.twin), "score"),
    ("Pairs", "%", grouped(lambda entry: entry.pair), "score"),
    ("Circular", "%", circular, "circular"),
    (UNREADABLE, "%", rate, "unreadable"),
)
# Where nothing is a length, both tolerances say the same, and no tolerance is anything to speak of.
SUMMARY_WITHOUT_LENGTHS = ((SCORE, *SUMMARY[0][1:]), *SUMMARY[2:])
REPLIES: tuple[PooledColumn, ...] = (
    ("As we read them", "%", mean, "score"),
    (OFFICIAL, "%", mean, "official"),
    ("Final line", "%", mean, "strict"),
    ("Follows form", "%", mean, "followed"),
    (UNREADABLE, "%", rate, "unreadable"),
    ("Refused", "%", rate, "refused"),
    ("Failed", "%", rate, "failed"),
)
OPEN: tuple[PooledColumn, ...] = (
    ("delta = 2", "%", mean, "delta_2"),
    ("delta = 1.25", "%", mean, "delta_125"),
    ("MRA", "%", mean, "mra"),
    ("median error", "error", median, "relative_error"),
)
CAPTIONS = {
    "summary": (
        "Macro: mean over tasks. Copies once: questions that are the same in words, options, pictures and answer "
        "count as one ({copies:,} are copies). Skill: 0 at the best constant, 100 at all right. Twins: "
        "a true and a false claim both judged right. Pairs: one truth asked from two sides, both right. Circular: "
        "right in every order of the options. Unreadable and refused replies count as wrong; failed ones are left "
        "out."
    ),
    "replies": (
        "As we read them and by the published script: accuracy with delta = 2. Final line: by a reader that "
        "looks at the last line alone. Follows form: replies whose last line is the answer and nothing else."
    ),
    "visual-cot": "Questions for which no image could be drawn were asked without; they are in the first column.",
    "open-ended": (
        "delta = 2 and 1.25: within that factor. MRA: mean relative accuracy of VSI-Bench. median error: median "
        "relative error, an answer that was not given counts as infinitely wrong."
    ),
    "wrong-parts": (
        "Of the wrong letters of a task, the share that gets these parts of the answer wrong and the others right "
        "(column error_parts). Options combine two values of two parts, so a wrong guess misses each as often as both."
    ),
}


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


class TableColumn(NamedTuple):
    """What stands in a column: a statistic of the answers of each run to some questions."""

    head: ColumnHead
    wanted: BoolArray
    """(n,) the questions that it is over."""
    statistic: Statistic = mean
    value: str = "score"
    """The column of `Board.answers` that the statistic takes."""
    marked: bool = False
    """Whether the best and second best model are marked."""
    floors: Mapping[str, Cell] = {}
    """What needs no model reaches, by its name; the rows below those of runs."""


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


@dataclass(frozen=True, slots=True, eq=False)
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
    pairs: pd.DataFrame
    """A row per pair of models, see `TableMaker.pairs`."""
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
    layouts = find_paper_layouts(board)
    papers = [maker.lay_out(layout, unread=True) for layout in layouts]
    if any(entry.rule == "delta" for entry in board.questions) and papers:
        headline = maker.lay_out(layouts[0], "headline", unread=True)
        papers.insert(1, replace(headline, key=f"{headline.key}-1.25", title=f"{headline.title}, delta = 1.25"))
        papers[0] = replace(papers[0], title=f"{papers[0].title}, delta = 2 as in the paper")
    own = [table for benchmark in benchmarks.values() for table in benchmark.tables(maker)]
    return Comparison(
        summary=maker.summary(),
        replies=maker.replies(),
        papers=(*own, *papers, *maker.drawn()),
        open_ended=maker.open_ended(),
        parts=tuple(maker.lay_out(layout) for layout in make_breakdowns(board)),
        pairs=maker.pairs(),
        wrong_parts=maker.wrong_parts(),
    )


def split_runs(board: Board) -> tuple[list[BoardRun], list[BoardRun]]:
    """(models by groups of size, what stands beside them) of a board.

    Beside them stand baselines, agents with oracle tools, and models that did not see the right images. Where nobody
    else was asked, they are compared like models, baselines before agents.
    """
    sighted = [
        run for run in board.runs.values() if not run.stage or run.stage == VISUAL_COT or run.stage.endswith(SHOTS)
    ]
    fair = [run for run in sighted if not run.oracle]
    models = [run for run in fair if not run.baseline] or fair or sighted
    models.sort(key=lambda run: read_sizes().group(run.model)[0])
    return models, [run for run in board.runs.values() if run not in models]


def find_floors(
    entries: Sequence[Entry], measure: str = "score", part: Callable[[Entry], str] | None = None
) -> dict[str, Cell]:
    """What the best constant and a uniform guess reach on questions, by name; none where there is no question.

    Args:
        entries: the questions of a column.
        measure: "headline" judges lengths by delta = 1.25.
        part: of the means of which they are the mean, where it is given.
    """
    found: dict[str, Cell] = {}
    if not entries:
        return found
    constant, chance = reference_scores.score_constant(entries, measure), reference_scores.score_chance(entries)
    for name, credit in ((reference_scores.CONSTANT, constant), (reference_scores.CHANCE, chance)):
        groups: dict[str, list[float]] = defaultdict(list)
        for entry, one in zip(entries, credit.tolist(), strict=True):
            groups[part(entry) if part else ""].append(one)
        value = metrics.average_macro(groups) if part else float(credit.mean())
        found[name] = Cell(value, n=len(entries), asked=len(entries), value_all=value)
    return found


class TableMaker:
    """Makes the tables of one board; benchmarks make theirs with it (`Benchmark.tables`).

    Args:
        board: with at least one question.
        seed: of the bootstrap.
    """

    def __init__(self, board: Board, seed: int) -> None:
        self.board, self.seed = board, seed
        self.all = np.ones(len(board.questions), dtype=np.bool_)
        self.models, self.floors = split_runs(board)
        self.runs = (*self.models, *self.floors)  # in the order of the rows
        self._numbers = {name: k for k, name in enumerate(board.runs)}
        groups = {run.name: read_sizes().group(run.model)[1] for run in self.models}
        self.groups = groups if len(set(groups.values())) > 1 else {}

    def table(
        self, key: str, title: str, caption: str, columns: Sequence[TableColumn], runs: Sequence[BoardRun] | None = None
    ) -> Table:
        """A table with a cell per column, and a row per run (all where None) and floor; for the rest see `Table`."""
        runs = self.runs if runs is None else runs
        cells = [self._fill(column, runs) for column in columns]
        rows = [self.line(run, [own[k] for own in cells]) for k, run in enumerate(runs)]
        for name in (reference_scores.CONSTANT, reference_scores.CHANCE):
            if any(name in column.floors for column in columns):
                rows.append(Row(name, "floor", tuple(column.floors.get(name, NONE) for column in columns)))
        return Table(key, title, caption, tuple(column.head for column in columns), tuple(rows))

    def _fill(self, column: TableColumn, runs: Sequence[BoardRun]) -> list[Cell]:
        answers = self.board.answers[np.tile(column.wanted, len(self.board.runs))]
        found = summarise(answers, "run", column.value, column.statistic, self.seed)
        cells = [found.get(self._numbers[run.name], NONE) for run in runs]
        if column.marked:
            self._mark(cells, answers, column.value)
        return cells

    def _mark(self, cells: list[Cell], answers: pd.DataFrame, value: str) -> None:
        """Mark the best if it beats every other model, and then the second if it beats all below it.

        One family of tests per column: the best against each other model, the second against each below it.
        """
        order = [k for k in range(len(self.models)) if cells[k].n]
        order.sort(key=lambda k: -cells[k].value)
        if len(order) < 2:
            return
        rows = [answers[answers["run"] == self._numbers[run.name]] for run in self.models]
        tests = [(order[0], other) for other in order[1:]] + [(order[1], other) for other in order[2:]]
        adjusted = adjust_by_holm([p_better(rows[a], rows[b], value, self.seed) for a, b in tests])
        if max(adjusted[: len(order) - 1]) >= LEVEL:
            return
        cells[order[0]] = replace(cells[order[0]], mark="best")
        if len(order) > 2 and max(adjusted[len(order) - 1 :]) < LEVEL:
            cells[order[1]] = replace(cells[order[1]], mark="second")

    def line(self, run: BoardRun, cells: Sequence[Cell]) -> Row:
        """The row of a run."""
        kind: Literal["model", "floor"] = "floor" if run in self.floors else "model"
        return Row(run.name, kind, tuple(cells), self._notes[run.name], self.groups.get(run.name, ""))

    @cached_property
    def _notes(self) -> dict[str, str]:
        """Why a run's numbers are not final, by its name."""
        sums, total, found = self.board.answers.groupby("run")[["asked", "answered"]].sum(), len(self.all), {}
        for run, (asked, answered) in zip(self.board.runs.values(), sums.to_numpy().tolist(), strict=True):
            told = [f"incomplete: {asked - answered} of {asked} failed"] if 0 < answered < asked else []
            if asked and not answered:
                first = f", the first with {run.failure}" if run.failure else ""
                told = [f"incomplete: all {asked} requests failed{first}"]
            found[run.name] = "; ".join([*told, *([f"asked {asked} of {total}"] if asked < total else [])])
        return found

    # --- layouts

    def lay_out(self, layout: TableLayout, measure: str = "score", unread: bool = False) -> Table:
        """A layout with the runs of the board; `unread` adds the share of replies that could not be read."""
        columns = []
        for one in layout.columns:
            wanted = self.board.mask(one.wanted)
            statistic = _find_statistic(one)
            entries = list(compress(self.board.questions, wanted)) if one.how in ("micro", "macro") else []
            floors = find_floors(entries, measure, one.part if one.how == "macro" else None)
            head = ColumnHead(one.head, "%", int(wanted.sum()))
            columns.append(TableColumn(head, wanted, statistic, measure, one.how == "micro", floors))
        if unread:
            columns.append(TableColumn(ColumnHead(UNREADABLE), self.board.mask(layout.wanted), rate, "unreadable"))
        return self.table(layout.key, layout.title, layout.caption, columns)

    # --- the others

    def summary(self) -> Table:
        """One line per run with everything that is not a breakdown."""
        questions = self.board.questions
        lengths = any(entry.rule == "delta" for entry in questions)
        once = list(compress(questions, self.board.contents == np.arange(len(questions))))
        floors = {
            ONCE: find_floors(once, part=_pool),
            "delta = 1.25": find_floors(questions, "headline", _pool),
            "Macro": find_floors(questions, part=get_part),
        } | dict.fromkeys((SCORE, "delta = 2"), find_floors(questions, part=_pool))
        totals = dict.fromkeys((*(name for name, *_ in SUMMARY[:POOLED]), SCORE), len(questions)) | {ONCE: len(once)}
        columns = [
            TableColumn(ColumnHead(head, unit, totals.get(head, 0)), self.all, statistic, value, k < 1 + lengths,
                   floors.get(head, {}))
            for k, (head, unit, statistic, value) in enumerate(SUMMARY if lengths else SUMMARY_WITHOUT_LENGTHS)
        ]  # fmt: skip
        first = "delta = 2 and delta = 1.25: accuracy over all questions (micro), with that tolerance for lengths. "
        told = first if lengths else "Score: mean over all questions (micro). "
        told += CAPTIONS["summary"].format(copies=self.board.copies)
        told += "".join(benchmark.summary_note(self.board) for benchmark in benchmarks.values())
        return self.table("summary", "Summary", told, columns)

    def replies(self) -> Table:
        """How replies were read, by whom, and what they cost."""
        scripts = {entry.script for entry in self.board.questions}
        names = {OFFICIAL: scripts.pop() if len(scripts) == 1 else OFFICIAL}
        columns = [
            TableColumn(ColumnHead(names.get(name, name), unit), self.all, statistic, value)
            for name, unit, statistic, value in REPLIES
        ]
        table = self.table("replies", "Replies", CAPTIONS["replies"], columns)
        costs = (Cell(run.cost_usd, n=run.cost_known, asked=run.cost_known) for run in self.runs)
        rows = (replace(row, cells=(*row.cells, cost)) for row, cost in zip(table.rows, costs, strict=True))
        return replace(table, columns=(*table.columns, ColumnHead("Cost, USD", "usd")), rows=tuple(rows))

    def drawn(self) -> list[Table]:
        """Visual chain of thought both ways: over all questions, and over those for which an image was drawn."""
        runs = [run for run in self.board.runs.values() if run.stage == VISUAL_COT]
        columns = [
            TableColumn(ColumnHead("all"), self.all),
            TableColumn(
                ColumnHead("with the drawing"), self.all, lambda rows, *more: mean(rows[rows["made"] == 1], *more)
            ),
            TableColumn(ColumnHead("without"), self.all, lambda rows, *more: mean(rows[rows["made"] == 0], *more)),
            TableColumn(
                ColumnHead("drawn"), self.all, lambda rows, *more: mean(rows[rows["made"].notna()], *more), "made"
            ),
        ]
        title = "Visual chain of thought"
        return [self.table("visual-cot", title, CAPTIONS["visual-cot"], columns, runs=runs)] if runs else []

    def open_ended(self) -> Table | None:
        """Numbers by every metric that is in use, beside the best constant; None where nothing is open."""
        tasks: dict[str, list[int]] = defaultdict(list)
        for k, entry in enumerate(self.board.questions):
            if entry.rule != "exact":
                tasks[(entry.task or entry.origin or entry.source).replace("_", " ")].append(k)
        if not tasks:
            return None
        columns = []
        for task, places in sorted(tasks.items()):
            wanted, entries = np.isin(np.arange(len(self.all)), places), [self.board.questions[k] for k in places]
            for k, (name, unit, statistic, value) in enumerate(OPEN):
                floors = find_floors(entries, ("score", "headline")[k]) if k < 2 else {}
                floors = {one: cell for one, cell in floors.items() if one == reference_scores.CONSTANT}
                head = ColumnHead(f"{task}: {name}", unit, len(places))
                columns.append(TableColumn(head, wanted, statistic, value, floors=floors))
        return self.table("open-ended", "Open-ended questions by every metric", CAPTIONS["open-ended"], columns)

    def wrong_parts(self) -> Table | None:
        """Per task the share of wrong letters by the parts that they get wrong; None where no question tells parts."""
        columns = []
        kinds = {(entry.task, part) for entry in self.board.questions for part in entry.error_parts if part}
        for task, part in sorted(kinds, key=lambda kind: (kind[0], kind[1].count("+"), kind[1])):
            wanted = self.board.mask(lambda entry, task=task: bool(entry.error_parts) and entry.task == task)  # type: ignore[misc]
            told = [entry.error_parts for entry in compress(self.board.questions, wanted)]
            guess = Cell(float(np.mean([parts.count(part) / sum(map(bool, parts)) for parts in told])))
            head = ColumnHead(f"{task}: {part}".replace("_", " "), "%", len(told))
            columns.append(TableColumn(head, wanted, share_missing(part), floors={reference_scores.CHANCE: guess}))
        return self.table("wrong-parts", "Which part is wrong", CAPTIONS["wrong-parts"], columns) if columns else None

    def pairs(self) -> pd.DataFrame:
        """Every pair of models on the questions that both answered: their names (first, second), how many questions
        these are (n), and the fields of `stats.Difference`, with p values adjusted by Holm's method over all pairs."""
        import pandas as pd

        answers = [(run.name, self.board.answers_of(run.name)) for run in self.models]
        found = [
            {"first": first, "second": second, "n": compared[0], **asdict(compared[1])}
            for (first, a), (second, b) in combinations(answers, 2)
            if (compared := compare_answers(a, b, "score", self.seed)) is not None
        ]
        names = [one.name for one in fields(stats.Difference)]
        frame = pd.DataFrame(found, columns=["first", "second", "n", *names])
        for name in ("p", "p_mcnemar"):
            frame[name] = adjust_by_holm(frame[name].tolist())
        return frame


def _pool(entry: Entry) -> str:
    """The only part: its mean is without rounding on the way."""
    return ""


def _find_statistic(column: LayoutColumn) -> Statistic:
    if column.how == "macro":
        return macro(column.part)
    return mean if column.how == "micro" else grouped(pair_name if column.how == "pairs" else flip_name)
