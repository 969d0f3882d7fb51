"""One figure of an audit: what was measured on which questions, and what is allowed (`docs/validity.md#audit`)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.intervals import Clusters

Kind = Literal[
    "text", "rule", "image rule", "answers", "repeats", "wording", "solver", "wrong image", "scene share",
    "evidence", "control",
]  # fmt: skip
"""Of a task and form: what learners make of the text, the best fixed rule on the text, the best one on the images, how
the right answers are spread, questions that repeat others, defects of texts, solvers on the right and on the wrong
images, the fullest scene. Of the whole set: answers that do not hold by their evidence, and learners on shuffled
answers."""
CELL_KINDS: tuple[Kind, ...] = (
    "text", "rule", "image rule", "answers", "repeats", "wording", "solver", "wrong image", "scene share"
)  # fmt: skip
AT_LEAST: frozenset[Kind] = frozenset({"solver"})
"""Kinds whose limit is the smallest allowed value; of all others it is the largest."""
Verdict = Literal["failed", "not judged", "passed", "reported"]

NEEDED = 800  # questions of a task and form from which a leak of five points over a chance of 25 % is seen
LEVEL = 0.001  # an audit tests some fifty figures; with this, one falls by luck in one of twenty audits
MAX_ITEMS = 200


@dataclass(frozen=True, slots=True)
class Finding:
    """One measured value and what is allowed."""

    kind: Kind
    name: str = ""
    """The learner, rule, solver or check that gives the value, the worst where several were tried."""
    task: str = ""
    """The task of the questions, "" for all."""
    form: str = ""
    """The question type, "" for all."""
    n: int = 0
    """The number of questions that were looked at."""
    needed: int = 0
    """The number of questions from which the figure is judged."""
    value: float = math.nan
    """The measured value in `unit`; NaN where there is none."""
    low: float = math.nan
    """The lower end of the 95 % interval of the value; NaN where there is no interval."""
    high: float = math.nan
    """The upper end of that interval."""
    chance: float = math.nan
    """What guessing gives, in `unit`; NaN where that has no meaning."""
    limit: float = math.nan
    """The largest allowed value (`AT_LEAST`: the smallest); NaN where nothing is required."""
    unit: Literal["%", "count"] = "%"
    """Per cent of the questions, or a number of them."""
    p: float = math.nan
    """How likely luck alone gives such a value where no more than chance is true (of a solver: no less than its limit);
    NaN where there is no luck."""
    verdict: Verdict = "reported"
    """"failed" where the limit is passed, "not judged" below `needed` questions or where luck alone may have passed it,
    "reported" where nothing is required."""
    detail: str = ""
    """What else there is to say, such as the quantities that tell most."""
    items: tuple[str, ...] = ()
    """Ids of the questions behind the figure, the worst first, at most `MAX_ITEMS`."""

    @property
    def failed(self) -> bool:
        """Whether the limit is passed."""
        return self.verdict == "failed"

    @property
    def is_scarce(self) -> bool:
        """Whether it is not judged because there are too few questions."""
        return self.verdict == "not judged" and self.n < self.needed

    def judge(self, holds: bool) -> Finding:
        """The same figure with its verdict. Where luck plays a part (`p`), a figure falls only if it is beyond its
        limit by more than luck would be, whatever the number of questions; to hold takes `needed` of them."""
        if not holds:
            return replace(self, verdict="failed" if math.isnan(self.p) or self.p < LEVEL else "not judged")
        return replace(self, verdict="not judged" if self.n < self.needed else "passed")


def measure_accuracy(line: Finding, clusters: Clusters, credit: FloatArray, chance: FloatArray) -> Finding:
    """The figure with accuracy, interval and chance in per cent, of credits (n,) beside those of guessing (n,)."""
    low, high = (100 * end for end in clusters.interval(credit))
    value, guessed = 100 * float(credit.mean()), 100 * float(chance.mean())
    return replace(line, n=len(credit), value=value, low=low, high=high, chance=guessed)
