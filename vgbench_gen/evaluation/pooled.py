"""Columns of the tables that are not a published layout: the summary, how replies were read, open questions."""

from __future__ import annotations

from typing import Literal

from vgbench_gen.evaluation.board import Entry
from vgbench_gen.evaluation.cells import Statistic, circular, copies_once, grouped, macro, mean, median, rate, skill

Unit = Literal["%", "points", "error", "count", "usd"]
UNREADABLE = "Unreadable"
ONCE = "Copies once"
POOLED = 5  # columns of the summary that are over all questions
SCORE = "Score"
OFFICIAL = "Official script"


def get_part(entry: Entry) -> str:
    """What `Macro` averages over: the task, or the source where there is none."""
    return entry.task or entry.source


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
