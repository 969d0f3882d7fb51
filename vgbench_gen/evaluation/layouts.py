"""Which columns the published tables have, and which questions stand in each.

Rules: `docs/protocols.md#columns-of-the-tables`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vgbench_gen.core.types import QUESTION_TYPES
from vgbench_gen.evaluation.base import benchmarks
from vgbench_gen.evaluation.board import Board, Entry
from vgbench_gen.evaluation.scoring import find_rules

How = Literal["micro", "macro", "pairs", "flips"]


@dataclass(frozen=True, slots=True)
class LayoutColumn:
    """One column of a layout."""

    head: str
    wanted: Callable[[Entry], bool]
    """Which questions it holds."""
    how: How = "micro"
    """"micro" pools questions, "macro" averages the means of the parts, "pairs" counts pairs (questions of
    one `pair_id`) with both halves right, and "flips" counts a question with its mirrored twin."""
    part: Callable[[Entry], str] = lambda entry: entry.origin
    """To which part of a "macro" column a question belongs."""


@dataclass(frozen=True, slots=True)
class TableLayout:
    """A table whose cells are mean scores over some of the questions."""

    key: str
    """The table's name in files."""
    title: str
    """The table's name for readers."""
    caption: str
    """What a reader must know of it."""
    columns: tuple[LayoutColumn, ...]
    wanted: Callable[[Entry], bool]
    """Whose questions the table is about."""
    order: int = 100
    """The table's place among those of all benchmarks, lower ones first."""
    needs: Callable[[Entry], bool] = lambda entry: True
    """The table is left out of a board on which this holds for no question."""

    def fits(self, board: Board) -> bool:
        """Return whether the board has questions for it."""
        return any(map(self.wanted, board.questions)) and any(map(self.needs, board.questions))


def of_source(*sources: str) -> Callable[[Entry], bool]:
    """Return whether an entry is of one of these sources, whatever the case."""
    wanted = {source.casefold() for source in sources}
    return lambda entry: entry.source.casefold() in wanted


def of_origin(sources: tuple[str, ...], beginnings: tuple[str, ...]) -> Callable[[Entry], bool]:
    """Return whether an entry is of one of these sources and its `category_origin` begins so."""
    of = of_source(*sources)
    lower = tuple(one.casefold() for one in beginnings)
    return lambda entry: of(entry) and entry.origin.casefold().startswith(lower)


def find_paper_layouts(board: Board) -> list[TableLayout]:
    """Return the benchmarks' published tables that the board has questions for."""
    layouts = [layout for benchmark in benchmarks.values() for layout in benchmark.layouts]
    return sorted((layout for layout in layouts if layout.fits(board)), key=lambda layout: layout.order)


def make_breakdown(board: Board, key: str, title: str, told: str, part: Callable[[Entry], str],
              order: Sequence[str] = ()) -> TableLayout | None:  # fmt: skip
    """A table with a column per value of a property; None where all questions have the same or none."""
    names = sorted({part(entry) for entry in board.questions} - {""})
    if len(names) < 2:
        return None
    names.sort(key=lambda name: (list(order).index(name) if name in order else len(order), name))

    def having(name: str) -> Callable[[Entry], bool]:
        return lambda entry: part(entry) == name

    columns = tuple(LayoutColumn(name.replace("_", " "), having(name)) for name in names)
    return TableLayout(key, title, told, columns, lambda entry: bool(part(entry)))


def make_breakdowns(board: Board) -> list[TableLayout]:
    """Tables by task, form, difficulty, scans and data set, where these differ."""
    wanted = (
        make_breakdown(board, "task", "By task", "", lambda e: e.task),
        make_breakdown(board, "form", "By form of question", "", lambda e: e.question_type, QUESTION_TYPES),
        make_breakdown(board, "difficulty", "By difficulty", "Terciles of the smallest margin over the required one, "
                  "within the data set.", lambda e: "" if find_rules(e.source).own_difficulty else e.difficulty,
                  ("easy", "medium", "hard")),
        make_breakdown(board, "scans", "By source of the scans", "", lambda e: e.scans),
        make_breakdown(board, "source", "By benchmark", "", lambda e: e.source),
        make_breakdown(board, "dataset", "By data set", "", lambda e: e.dataset),
    )  # fmt: skip
    return [layout for layout in wanted if layout is not None]
