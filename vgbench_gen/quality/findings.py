"""One line of an audit: what was measured on which questions, against which bar (`docs/validity.md#audit`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Literal

Verdict = Literal["green", "red", "few", "reported", "skipped"]

CONCLUSIVE = 800  # questions of a task and form from which an interval is narrow enough to judge


@dataclass(frozen=True, slots=True)
class ChanceTest:
    """How surely a figure misses its bar, before it is judged among others (`quality.family`)."""

    p: float
    """One-sided p of "no more than chance", or of "no more than the bar allows" (`beyond`), of this figure alone."""
    error: float = float("nan")
    """The standard error of the figure, in its unit; NaN where an excess has no meaning."""
    clusters: int = 0
    """The number of scenes behind the figure."""
    allowed: float = 0.0
    """Points over chance that the bar allows."""
    beyond: bool = False
    """Whether the test asks for more than the bar allows, rather than for more than chance."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured value beside its bar."""

    audit: str
    """The family of the audit, such as "blind", "rule", "letters" or "solver"."""
    name: str
    """What exactly was measured, such as "medoid" or "forest"."""
    task: str = ""
    """The task of the questions, "" for all tasks."""
    form: str = ""
    """The question type, "" for all types."""
    source: str = ""
    """The scan dataset of the questions, "" for all datasets."""
    n: int = 0
    """The number of questions that were judged."""
    value: float = float("nan")
    """The measured value in `unit`; NaN where there is none."""
    low: float = float("nan")
    """The lower end of the 95 % interval of the value; NaN where there is no interval."""
    high: float = float("nan")
    """The upper end of the 95 % interval of the value; NaN where there is no interval."""
    unit: str = "%"
    """The unit of all values: "%" of questions, "count", or "KS", which is the largest distance of two distribution
    functions in points from 0 to 100."""
    chance: float = float("nan")
    """What guessing gives, in `unit`; NaN where that has no meaning."""
    bar: str = ""
    """The bar in words, such as "<= 28.0, upper <= 31.0"; "" where nothing is required."""
    verdict: Verdict = "reported"
    """"green" or "red" by the bar, "few" where there are too few questions to conclude, "reported" where there is no
    bar, and "skipped" where the data lack what the audit needs."""
    detail: str = ""
    """What else there is to say, above all why a line was skipped."""
    items: tuple[str, ...] = field(default=())
    """Ids of the questions behind the line, the worst first, at most `MAX_ITEMS`."""
    p: float = float("nan")
    """The p of its test, corrected over all figures of the audit; NaN where there is no test, or too few questions."""
    seen: float = float("nan")
    """The smallest excess over chance, in points, at which the bar would have fallen; infinite where not even a
    perfect score would do, NaN where that has no meaning."""
    test: ChanceTest | None = None
    """What `p` and `seen` are made of; no part of the written report."""

    @property
    def fell(self) -> bool:
        """Whether a bar fell."""
        return self.verdict == "red"

    def __str__(self) -> str:
        """The line in words, without the questions behind it."""
        cell = " ".join(part for part in (self.task, self.form, self.source) if part)
        said = f"{self.verdict}: {self.audit} {self.name}" + (f" of {cell}" if cell else "")
        if not math.isnan(self.value):
            said += f": {self.value:.1f} {self.unit}"
        if not math.isnan(self.low):
            said += f" ({self.low:.1f} to {self.high:.1f})"
        told = [f"n {self.n}"] + [f"chance {self.chance:.1f}"] * (not math.isnan(self.chance))
        return f"{said}, {', '.join([*told, *([f'bar {self.bar}'] if self.bar else [])])}"

    def judge(self, holds: bool, conclusive: int = CONCLUSIVE, test: ChanceTest | None = None) -> Finding:
        """The same line with its verdict; below `conclusive` questions it is neither green nor red.

        A line with a `test` is judged by its bar alone here, and among all figures of the audit by `judge_family`.
        """
        verdict: Verdict = "few" if self.n < conclusive else "green" if holds else "red"
        return replace(self, verdict=verdict, test=test)


MAX_ITEMS = 200
