"""Rows of the benchmark table, and how to time without being fooled."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """figure: the ratio or rate. goal: what it should be, "" for none. absolute: the times behind it."""

    name: str
    figure: str
    goal: str
    absolute: str


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as text."""
    cells = [("measured", "figure", "goal", "absolute"), *((r.name, r.figure, r.goal, r.absolute) for r in rows)]
    widths = [max(len(cell[k]) for cell in cells) for k in range(4)]
    return ["  ".join(text.ljust(width) for text, width in zip(cell, widths, strict=True)).rstrip() for cell in cells]


def paired(a: Callable[[], object], b: Callable[[], object], rounds: int = 7) -> tuple[float, float, float]:
    """(median of the pairwise ratios a/b, median seconds of a, of b), the two in turn after one warm-up of each.

    Pairs share the machine's momentary speed, so their ratio holds when it drifts.
    """
    a(), b()
    times = [(seconds(a), seconds(b)) for _ in range(rounds)]
    ratio = statistics.median(x / y for x, y in times)
    return ratio, statistics.median(x for x, _ in times), statistics.median(y for _, y in times)


def seconds(function: Callable[[], object]) -> float:
    """Wall time of one call."""
    began = time.perf_counter()
    function()
    return time.perf_counter() - began
