"""Columns of the tables that are not a published layout: the summary, how replies were read, open questions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from vgbench_gen.evaluation.board import BoardRun, Entry
from vgbench_gen.evaluation.cells import Cell, Cells

Unit = Literal["%", "points", "error", "count", "usd"]
UNREADABLE = "Unreadable"
ONCE = "Copies once"
POOLED = 5  # columns of the summary that are over all questions
OPEN: tuple[tuple[str, Unit], ...] = (
    ("delta = 2", "%"),
    ("delta = 1.25", "%"),
    ("MRA", "%"),
    ("median error", "error"),
)


def get_part(entry: Entry) -> str:
    """What `Macro` averages over: the task, or the source where there is none."""
    return entry.task or entry.source


Make = Callable[[Cells, BoardRun], Cell]
SUMMARY: tuple[tuple[str, Unit, Make], ...] = (
    ("delta = 2", "%", lambda cells, run: cells.mean(run, cells.all, run.score)),
    ("delta = 1.25", "%", lambda cells, run: cells.mean(run, cells.all, run.headline)),
    (
        "Macro",
        "%",
        lambda cells, run: cells.macro(run, cells.all, run.score, cells.names(get_part)),
    ),
    (ONCE, "%", lambda cells, run: cells.collapsed(run)),
    ("Skill", "%", lambda cells, run: cells.skill(run)),
    ("Twins", "%", lambda cells, run: cells.grouped(run, cells.all, run.score, cells.names(lambda e: e.twin))),
    ("Pairs", "%", lambda cells, run: cells.grouped(run, cells.all, run.score, cells.names(lambda e: e.pair))),
    ("Circular", "%", lambda cells, run: cells.mean(run, run.circled, run.circular)),
    (UNREADABLE, "%", lambda cells, run: cells.rate(run, "unreadable", cells.all)),
)
# Where nothing is a length, both tolerances say the same, and no tolerance is anything to speak of.
SCORE = "Score"
SUMMARY_WITHOUT_LENGTHS = ((SCORE, *SUMMARY[0][1:]), *SUMMARY[2:])
OFFICIAL = "Official script"
REPLIES: tuple[tuple[str, Unit, Make], ...] = (
    ("As we read them", "%", lambda cells, run: cells.mean(run, cells.all, run.score)),
    (OFFICIAL, "%", lambda cells, run: cells.mean(run, cells.all, run.official)),
    ("Final line", "%", lambda cells, run: cells.mean(run, cells.all, run.strict)),
    ("Follows form", "%", lambda cells, run: cells.mean(run, cells.all, run.followed)),
    (UNREADABLE, "%", lambda cells, run: cells.rate(run, "unreadable", cells.all)),
    ("Refused", "%", lambda cells, run: cells.rate(run, "refused", cells.all)),
    ("Failed", "%", lambda cells, run: cells.rate(run, "failed", cells.all)),
    ("Cost, USD", "usd", lambda cells, run: Cell(run.cost_usd, n=run.cost_known, asked=run.cost_known)),
)
