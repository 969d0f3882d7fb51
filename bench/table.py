"""Rows of the benchmark table, and how to time without being fooled."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table.

    value: the figure the goal is about, in `unit` ("x" for a ratio); None where it could not be measured.
    at_most, at_least: the goal, or neither. beside: the times and counts behind the figure, or the ratio that holds on
    another machine where the figure is a time.
    """

    name: str
    value: float | None
    unit: str
    beside: str
    at_most: float | None = None
    at_least: float | None = None

    @property
    def figure(self) -> str:
        """The value with its unit."""
        if self.value is None:
            return "-"
        gap = "" if self.unit in {"x", "/s"} else " "
        return f"{self.value:.3g}{gap}{self.unit}" if self.value < 100 else f"{self.value:.0f}{gap}{self.unit}"

    @property
    def goal(self) -> str:
        """The goal in words, "" for none."""
        if self.at_most is not None:
            return f"<= {self.at_most:g}"
        return "" if self.at_least is None else f">= {self.at_least:g}"

    @property
    def verdict(self) -> str:
        """Whether the goal is met, "" where there is none or nothing was measured."""
        if self.value is None or not self.goal:
            return ""
        met = self.value <= self.at_most if self.at_most is not None else self.value >= (self.at_least or 0.0)
        return "met" if met else "missed"


def lines(rows: Sequence[Row]) -> list[str]:
    """The table as text."""
    cells = [("measured", "figure", "goal", "", "beside it")]
    cells += [(row.name, row.figure, row.goal, row.verdict, row.beside) for row in rows]
    widths = [max(len(cell[k]) for cell in cells) for k in range(5)]
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
    """Processor time of one call: of one thread on an idle machine the same as its wall time."""
    began = time.process_time()
    function()
    return time.process_time() - began
