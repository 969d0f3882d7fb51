"""One line of an audit: what was measured on which questions, against which bar (`docs/validity.md#audit`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

Verdict = Literal["green", "red", "few", "reported", "skipped"]

CONCLUSIVE = 800  # questions of a task and form from which an interval is narrow enough to judge


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured value beside its bar.

    audit: family, e.g. "blind", "rule", "letters", "solver". name: what exactly, e.g. "medoid" or "forest".
    task, form, source: the cell; "" for all. n: questions judged. value, low, high: measured, with its 95 % interval
    (NaN where there is none), in `unit` ("%" of questions, "count", "p"). chance: what guessing gives, same unit (NaN
    where it has no meaning). bar: in words, e.g. "<= 28.0, upper <= 31.0"; "" where nothing is required.
    verdict: "few" where n is too small to conclude, "reported" where there is no bar, "skipped" where the data lack
    what the audit needs (said in `detail`). items: ids behind the line, worst first, at most `MAX_ITEMS`.
    """

    audit: str
    name: str
    task: str = ""
    form: str = ""
    source: str = ""
    n: int = 0
    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    unit: str = "%"
    chance: float = float("nan")
    bar: str = ""
    verdict: Verdict = "reported"
    detail: str = ""
    items: tuple[str, ...] = field(default=())

    @property
    def fell(self) -> bool:
        """Whether a bar fell."""
        return self.verdict == "red"

    def judged(self, holds: bool, conclusive: int = CONCLUSIVE) -> Finding:
        """The same line with its verdict; below `conclusive` questions it is neither green nor red."""
        verdict: Verdict = "few" if self.n < conclusive else "green" if holds else "red"
        return replace(self, verdict=verdict)


MAX_ITEMS = 200
