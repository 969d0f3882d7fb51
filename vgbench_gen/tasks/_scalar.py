"""Tasks whose answer is one positive number: margins by ratio, claims, open-ended answers."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Candidate, Fact, FloatArray
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks.base import Claim, Presentation, Task, Twins
from vgbench_gen.text.numbers import fixed
from vgbench_gen.text.render import word

CLAIM_TOLERANCE = 0.10  # a judgment's "within 10 percent"
FALSE_RATIO_MIN, FALSE_RATIO_MAX = 1.5, 2.0


class ScalarTask(Task):
    """A positive scalar; values are (1,) arrays.

    decimals: as printed. unit_word: key of the option text and of the open-ended answer in `templates/words.toml`.
    """

    decimals: ClassVar[int] = 2

    def unit_key(self, fact: Fact) -> str:
        """Key below `option` and `answer` in the words for this fact's unit."""
        return "metres"

    @abc.abstractmethod
    def ratio_min(self, fact: Fact) -> float:
        """Two options must differ by this ratio."""

    @abc.abstractmethod
    def ratio_max(self, fact: Fact) -> float:
        """No two options may differ by more than this ratio."""

    def gap_min(self, fact: Fact) -> float:
        """Two options must differ by this much in the task's unit; 0 for none."""
        return 0.0

    @abc.abstractmethod
    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """What every format of the question shows."""

    @abc.abstractmethod
    def slots(self, fact: Fact) -> dict[str, str]:
        """Slots that every format of the question shares."""

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Absolute difference in the task's unit."""
        return float(abs(a[0] - b[0]))

    def rounded(self, value: FloatArray) -> FloatArray:
        """To the printed decimals."""
        return np.array([float(fixed(float(value[0]), self.decimals))])

    def printed(self, value: FloatArray) -> str:
        """Number with its unit; the unit's word follows the fact's kind where there are several."""
        return word("option.metres", value=fixed(float(value[0]), self.decimals))

    def separation(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Smaller of log-ratio over the ratio margin and difference over the gap."""
        x, y = float(a.value[0]), float(b.value[0])
        if min(x, y) <= 0:
            return 0.0
        by_ratio = float(abs(np.log(x / y)) / np.log(self.ratio_min(fact)))
        gap = self.gap_min(fact)
        return min(by_ratio, abs(x - y) / gap) if gap else by_ratio

    def spread(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Log-ratio over the ceiling."""
        x, y = float(a.value[0]), float(b.value[0])
        return float(abs(np.log(x / y)) / np.log(self.ratio_max(fact))) if min(x, y) > 0 else np.inf

    def pair_tables(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """See `separation` and `spread`."""
        values = np.array([float(candidate.value[0]) for candidate in candidates])
        logs = np.log(values)
        by_ratio = np.abs(logs[:, None] - logs)
        apart, gap = by_ratio / np.log(self.ratio_min(fact)), self.gap_min(fact)
        if gap:
            apart = np.minimum(apart, np.abs(values[:, None] - values) / gap)
        return apart, by_ratio / np.log(self.ratio_max(fact))

    def claim_noise_max(self, fact: Fact) -> float:
        """How far a true claim may be off in the task's unit: half the stated tolerance, and its own rounding."""
        return CLAIM_TOLERANCE / 2 * float(fact.truth_candidate.value[0]) + 0.5 * 10.0**-self.decimals

    def claim_separation(self, claimed: Candidate, fact: Fact) -> float:
        """As between options; a claim beyond its noise and within the margin is neither true nor false (above 0.5)."""
        off = self.separation(fact.truth_candidate, claimed, fact)
        error = abs(float(claimed.value[0] - fact.truth_candidate.value[0]))
        neither = off < 1 and error > self.claim_noise_max(fact) + 1e-9
        return max(off, 0.75) if neither else off

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Positive and finite."""
        return candidate.value.shape == (1,) and bool(np.isfinite(candidate.value[0]) and candidate.value[0] > 0)

    def open_ended(self, fact: Fact) -> Presentation:
        """The question without options; the answer carries its unit."""
        value = fixed(float(fact.truth_candidate.value[0]), self.decimals)
        answer = word(f"answer.{self.unit_key(fact)}", value=value)
        return Presentation(self.pictures(fact), self.slots(fact), answer=answer)

    def twins(self, fact: Fact, rng: np.random.Generator) -> Twins | None:
        """True and false numbers carry the same noise; the false one belongs to another candidate where one fits."""
        truth = float(fact.truth_candidate.value[0])
        noise = 1 + rng.uniform(-CLAIM_TOLERANCE / 2, CLAIM_TOLERANCE / 2, 2)
        other = self._other_value(fact, rng)
        true_value, false_value = (
            self.rounded(np.array([truth * noise[0]])),
            self.rounded(np.array([other * noise[1]])),
        )
        if abs(true_value[0] / truth - 1) > CLAIM_TOLERANCE / 2 + 10.0**-self.decimals / truth:
            return None
        return Twins(
            self.pictures(fact),
            self.slots(fact) | {"tolerance": word("tolerance.percent", value=f"{100 * CLAIM_TOLERANCE:.0f}")},
            self._claim(true_value, fact),
            self._claim(false_value, fact),
            CLAIM_TOLERANCE,
        )

    def _other_value(self, fact: Fact, rng: np.random.Generator) -> float:
        truth = fact.truth_candidate
        apart = [
            float(c.value[0])
            for i, c in enumerate(fact.candidates)
            if i != fact.truth
            and np.exp(abs(np.log(c.value[0] / truth.value[0]))) >= FALSE_RATIO_MIN
            and self.separation(truth, c, fact) >= 1
            and self.spread(truth, c, fact) <= 1
        ]
        if apart:
            return apart[int(rng.integers(len(apart)))]
        factor = rng.uniform(FALSE_RATIO_MIN, FALSE_RATIO_MAX)
        return float(truth.value[0]) * float(factor if rng.random() < 0.5 else 1 / factor)

    def _claim(self, value: FloatArray, fact: Fact) -> Claim:
        truth = fact.truth_candidate
        off = self.separation(truth, Candidate("", value), fact)
        return Claim({"claim": fixed(float(value[0]), self.decimals)}, value, off)


def evidence_rect(show: Mapping[str, object]) -> list[int]:
    """The integer rectangle [x1, y1, x2, y2] (ends included) a candidate is shown by."""
    rect = show["rect"]
    if not isinstance(rect, list) or len(rect) != 4:
        raise ValueError(f"a region is shown by four integers, got {rect!r}")
    return [int(x) for x in rect]
