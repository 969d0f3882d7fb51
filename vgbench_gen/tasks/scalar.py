"""Tasks whose answer is one positive number: margins by ratio, claims, open-ended answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import ConfigError, DatasetError, TooFewOptionsError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import LETTERS, Candidate, Fact, FloatArray, IntArray, QuestionType
from vgbench_gen.distractors.base import OptionSet, compatibility, draw_other
from vgbench_gen.tasks._objects import order_in_strata
from vgbench_gen.tasks._proposals import move_numbers
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured, QuestionKind, name_place
from vgbench_gen.tasks.presentation import Claim, ClaimPair, Presentation
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word

SIGMAS_KEPT = 3.0  # of the truth's error that a true claim bears, so that it passes the noise test
CLAIM_NOISE_MIN = 0.1  # of the tolerance; a claim that bears less noise than this is not made
FALSE_RATIO_MIN, FALSE_RATIO_MAX = 1.5, 2.0
# Factors of published wrong values, above the truth and below it (arXiv 2505.17012 v3, rules 3 to 5).
PUBLISHED_NEAR, PUBLISHED_FAR = ((0.85, 0.95), (1.05, 1.15)), ((0.5, 0.9), (1.1, 1.8))
_PRINT_SLACK = 1.01  # keeps ratios of rungs above the margin once they are rounded
_SIGMA_DRAWS = 200


class ScalarTask(QuestionKind):
    """A positive scalar; values are (1,) arrays. `margins` holds `ratio_min` and `ratio_max`, and may hold `gap_min`,
    `min` and `max`."""

    options_from_pool: ClassVar[bool] = False
    """Whether options are other measured values; else they are a ladder around the truth, which the image fixes."""
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice", "open-ended")
    decimals: ClassVar[int] = 2
    """As printed."""
    claim_tolerance: ClassVar[float] = 0.10
    """Share of the value that a judgment states as its tolerance; half of it is spent on noise in claims.

    That half must be at most half the margin between options: `ratio_min` is at least (1 + claim_tolerance / 2)
    squared.
    """

    def count_decimals(self, fact: Fact) -> int:
        """Printed decimals of this fact's values."""
        return self.decimals

    def unit_key(self, fact: Fact) -> str:
        """Key below `option` and `answer` in the words for this fact's unit."""
        return "meters"

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest value that is asked."""
        return getattr(self.limits, "min", 0.0), getattr(self.limits, "max", np.inf)

    def evaluate(self, about: Candidate, fact: Fact) -> float | None:
        """The quantity, unrounded, from a candidate's evidence and the fact's cameras; None for a computed candidate.

        Verification recomputes the answer by it, from what a row keeps, and the noise test starts from it.
        """
        seen = self.candidate_evidence.given(about)
        return None if seen is None else float(self.value(seen))

    def gap_min(self, fact: Fact) -> float:
        """Two options must differ by this much in the task's unit; 0 for none."""
        return float(getattr(self.limits, "gap_min", 0.0))

    def settle(self, answer: Any) -> tuple[FloatArray, Mapping[str, float]]:
        """The value to the printed decimals; how far it is inside the range that is asked."""
        (low, high), value, kept = self.ends, float(answer), {}
        if low:
            kept["min"] = value / low
        if high < np.inf:
            kept["max"] = min(high / value, 1e3) if value > 0 else 1e3
        return self.rounded(np.array([value])), kept

    def order(self, found: Sequence[Measured], answers: Sequence[Any], rng: np.random.Generator) -> IntArray:
        """Strata of the logarithm in turn, new targets before repeated ones: rooms hold little that is very large or
        small, and one constant would be right too often for values drawn as they come."""
        return order_in_strata(answers, [one.target or name_place(one) for one in found], rng)

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """A geometric ladder through the truth, at any place of it and with any step, as far as all may be asked.

        Raises:
            TooFewOptionsError: the ladder that was drawn leaves the range of values.
        """
        if self.options_from_pool:
            return None
        gates, truth, (least, most) = self.limits, fact.truth_candidate, self.ends
        low, high = np.log([_PRINT_SLACK * gates.ratio_min, (gates.ratio_max / _PRINT_SLACK) ** (1 / (count - 1))])
        rank, step = int(rng.integers(count)), rng.uniform(low, high)
        values = float(truth.value[0]) * np.exp(step * (np.arange(count) - rank))
        apart = values[1] - values[0] >= self.gap_min(fact) + 10.0**-self.decimals
        if not (apart and least <= values[0] and values[-1] <= most):
            raise TooFewOptionsError("ladder_out_of_range", f"{fact.key}: {values[0]:.2f} to {values[-1]:.2f}")
        rungs = [Candidate(f"rung:{k - rank}", self.rounded(values[k : k + 1])) for k in range(count)]
        return [*rungs[:rank], truth, *rungs[rank + 1 :]], rank

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """v2's rules 3 to 5: one wrong value near the truth, the others at some distance; where two print alike, half a
        unit or a whole one more or less."""
        truth = float(fact.truth_candidate.value[0])
        ranges = [PUBLISHED_NEAR, *[PUBLISHED_FAR] * (count - 1)]
        values = [truth * rng.uniform(*either[rng.integers(2)]) for either in ranges]
        found = [self.round_for(value, fact) for value in values]
        spare = iter(rng.permutation([truth + step for step in (-1.0, -0.5, 0.5, 1.0) if truth + step > 0]).tolist())
        taken = {truth}
        for k, value in enumerate(found):
            while float(value[0]) in taken and (other := next(spare, None)) is not None:
                value = self.round_for(other, fact)
            taken.add(float(value[0]))
            found[k] = value
        return [Candidate(f"published:{value[0]:g}", value) for value in found]

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Absolute difference in the task's unit."""
        return float(abs(a[0] - b[0]))

    def rounded(self, value: FloatArray) -> FloatArray:
        """To the printed decimals."""
        return np.array([float(format_fixed(float(value[0]), self.decimals))])

    def printed(self, value: FloatArray) -> str:
        """Number with its unit; the unit's word follows the fact's kind where there are several."""
        return fill_word("option.meters", value=format_fixed(float(value[0]), self.decimals))

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """The smaller of log-ratio over the ratio margin and difference over the gap; log-ratio over the ceiling.

        A value that is not positive keeps neither.
        """
        values = np.array([float(candidate.value[0]) for candidate in candidates])
        positive = (values > 0) & (values[:, None] > 0)
        logs = np.log(np.where(values > 0, values, 1.0))
        by_ratio = np.abs(logs[:, None] - logs)
        apart, gap = by_ratio / np.log(self.limits.ratio_min), self.gap_min(fact)
        if gap:
            apart = np.minimum(apart, np.abs(values[:, None] - values) / gap)
        return np.where(positive, apart, 0.0), np.where(positive, by_ratio / np.log(self.limits.ratio_max), np.inf)

    def find_tolerance(self, fact: Fact) -> float:
        """What claims state as their tolerance: a share of the value."""
        return self.claim_tolerance

    def claim_band(self, value: Any, fact: Fact) -> Any:
        """By how much a claim may be off where `value` is the true one, in the task's unit."""
        return self.claim_tolerance * value

    def claim_noise(self, value: float, fact: Fact) -> float:
        """By how much a claim about a value is off at most, in the task's unit: half of what is tolerated, or less
        where the value itself is not known better. Of false claims as of true ones, or it would tell them apart."""
        band, sigma = self.claim_band(value, fact), self.sigma(value, fact, self.gates.noise.of(fact.dataset))
        return float(min(band / 2, band - SIGMAS_KEPT * sigma))

    def claim_ratio(self, claimed: Candidate, fact: Fact) -> float:
        """As between options; a claim within the margin that is off by more than half of what is tolerated, and by its
        own rounding, is neither true nor false (above 0.5)."""
        off, truth = self.margin_ratio(fact.truth_candidate, claimed, fact), float(fact.truth_candidate.value[0])
        most = self.claim_band(truth, fact) / 2 + 0.5 * 10.0 ** -self.count_decimals(fact)
        return max(off, 0.75) if off < 1 and abs(claimed.value[0] - truth) > most + 1e-9 else off

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A positive number that could have been asked, so that every rung of a ladder may be the true one."""
        low, high = self.ends
        return candidate.value.shape == (1,) and bool(
            0 < candidate.value[0] < np.inf and low <= candidate.value[0] <= high
        )

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """One number, in the task's unit."""
        return Candidate("", self.rounded(np.array(move_numbers(numbers, rng))))

    def exact_value(self, about: Candidate, fact: Fact) -> float:
        """`evaluate`, or the printed number of a computed candidate."""
        found = self.evaluate(about, fact)
        return float(about.value[0]) if found is None else found

    def recompute(self, fact: Fact) -> FloatArray:
        """`evaluate` of the truth, as printed.

        Raises:
            DatasetError: the truth keeps nothing that it was measured from.
        """
        found = self.evaluate(fact.truth_candidate, fact)
        if found is None:
            remedy = "Take the row as it was published, or build the dataset again."
            raise DatasetError(f"evidence of the truth of {fact.key!r}: found none; expected measurements. {remedy}")
        return self.round_for(found, fact)

    def round_for(self, value: float, fact: Fact) -> FloatArray:
        """(1,) the value as this fact's kind of question prints it."""
        return self.rounded(np.array([value]))

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """Standard deviation of a value of this fact, in the task's unit: that of the truth under `disturb`, for larger
        values more by the square of the ratio, as errors of depth are."""
        drawn = self._draw_noisy(fact.truth_candidate, noise, rng_for(0, "sigma", self.name, fact.key), _SIGMA_DRAWS)
        return float(np.std(np.asarray(drawn))) * max(1.0, value / float(fact.truth_candidate.value[0])) ** 2

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        drawn = self._draw_noisy(about, noise, rng, n)
        if drawn is not None:
            return drawn
        value = self.exact_value(about, fact)
        return value + self.sigma(value, fact, noise) * rng.standard_normal((n, 1))

    def _draw_noisy(self, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int) -> FloatArray | None:
        """(n, 1) values of evidence under errors; None where there is no evidence or the task says `sigma` itself."""
        seen = self.candidate_evidence.given(about)
        disturbed = None if seen is None else self.disturb(seen, noise, rng, n)
        return None if disturbed is None else np.reshape(self.value(disturbed), (n, 1))

    def on_scale(self, values: FloatArray, fact: Fact) -> FloatArray:
        """Values where equal differences are equally wrong: logarithms, as ratios tell options apart."""
        return np.log(np.maximum(values, 1e-9))

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """See `NoiseTest`; on the scale of `on_scale`."""
        told = np.array([[float(option.value[0])] for option in options])
        return np.abs(self.on_scale(told, fact) - self.on_scale(values, fact)[:, 0])

    def claim_errors(self, values: FloatArray, claimed: FloatArray, fact: Fact) -> FloatArray | None:
        """See `NoiseTest`; over `claim_band`."""
        return np.asarray(np.abs(values[:, 0] - claimed[0]) / self.claim_band(np.abs(values[:, 0]), fact))

    def tolerance_words(self, ask: str, tolerance: float) -> tuple[str, ...]:
        """A share of the value, in per cent."""
        return (fill_word("tolerance.percent", value=format_fixed(100 * tolerance, 0)),)

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        texts = tuple(self.print_option(option, fact) for option in options.options)
        return Presentation(self.pictures(fact), self.slots(fact), texts)

    def open_ended(self, fact: Fact) -> Presentation:
        """The question without options; the answer carries its unit."""
        answer = self.say("answer", fact.truth_candidate.value, fact)
        return Presentation(self.pictures(fact), self.slots(fact), answer=answer)

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The value with its unit."""
        return self.say("option", option.value, fact)

    def tell_value(self, value: float, fact: Fact, pen: Explainer) -> dict[str, str]:
        """What a rationale says of an unrounded value, and by how much a claim is off, in terms of its tolerance."""
        number, unit = pen.print_number(value, self.count_decimals(fact)), self.unit_key(fact)
        told = {"value": pen.word(f"option.{unit}", value=number), "answer": pen.word(f"answer.{unit}", value=number)}
        if pen.row.claim is None:
            return told
        true, tolerance = float(self.round_for(value, fact)[0]), self.find_tolerance(fact)
        off = abs(float(pen.row.claim.value[0]) - true)
        told["off"] = pen.say("percent", 100 * off / true) if tolerance < 1 else pen.say("pixels", off)
        told["tolerance"] = self.tolerance_words(fact.ask, tolerance)[0]
        return told | {"claimed": self.say("option", pen.row.claim.value, fact)}

    def say(self, key: str, value: FloatArray, fact: Fact) -> str:
        """A value with its unit, in the words below `key`."""
        return fill_word(f"{key}.{self.unit_key(fact)}", value=format_fixed(float(value[0]), self.count_decimals(fact)))

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """True and false numbers carry the same noise; the false one is about `draw_false_value`.

        Raises:
            ConfigError: the tolerance of claims is too wide for the margin between options.
        """
        needed = (1 + self.claim_tolerance / 2) ** 2
        if self.limits.ratio_min < needed:
            raise ConfigError(
                f"task {self.name!r}: found ratio_min {self.limits.ratio_min:g} with claims within "
                f"{self.claim_tolerance:g}; expected ratio_min of at least {needed:.4g}, (1 + tolerance / 2) squared, "
                "or a true claim could be off by half a margin. Raise the gate, or ask for no judgment in [items]."
            )
        truth, shares = float(fact.truth_candidate.value[0]), rng.uniform(-1, 1, 2)
        other = self.draw_false_value(fact, rng)
        if other is None:
            return None
        most = [self.claim_noise(value, fact) for value in (truth, other)]
        if any(
            noise < CLAIM_NOISE_MIN * self.claim_band(v, fact) for v, noise in zip((truth, other), most, strict=True)
        ):
            return None
        said, wrong = (
            self._claim(self.round_for(value + share * noise, fact), fact)
            for value, share, noise in zip((truth, other), shares, most, strict=True)
        )
        claimed, band = float(wrong.value[0]), self.claim_band(truth, fact)
        if abs(said.value[0] - truth) > band / 2 + 10.0 ** -self.count_decimals(fact):
            return None
        # False whether the tolerance is read as a share of the truth or of the claim.
        if wrong.separation < 1 or abs(claimed - truth) <= max(band, self.claim_band(claimed, fact)):
            return None
        low, high = self.ends
        if not all(low <= claim.value[0] <= high for claim in (said, wrong)):
            return None  # a number that could not be a true one gives its claim away
        tolerance = self.find_tolerance(fact)
        slots = self.slots(fact) | {"tolerance": self.tolerance_words(fact.ask, tolerance)[0]}
        return ClaimPair(self.pictures(fact), slots, said, wrong, tolerance)

    def draw_false_value(self, fact: Fact, rng: np.random.Generator) -> float | None:
        """What the false claim is about, before noise; None where nothing would do, and then no judgment is asked.

        Where options come from a pool, another member of a random set of options, so that either could have been the
        true one; refused rather than drawn again, which would prefer truths with few false claims. Else the truth times
        or over a factor between `FALSE_RATIO_MIN` and `FALSE_RATIO_MAX`, within the range that is asked: chosen facts
        are then spread over values, the rest is as the rooms are, and the difference would tell true from false. False
        claims must be as likely to be above the truth as below it, and no likelier than true ones at any value, or
        their numbers give them away.

        rng: draw from this generator alone.
        """
        if self.options_from_pool:
            other = draw_other(compatibility(fact.candidates, fact, self), fact.truth, rng, (len(LETTERS),))
            return None if other is None else float(fact.candidates[other].value[0])
        factor = np.exp(rng.uniform(*np.log([FALSE_RATIO_MIN, FALSE_RATIO_MAX])) * (1 if rng.random() < 0.5 else -1))
        value = float(fact.truth_candidate.value[0]) * float(factor)
        return value if self.ends[0] <= value <= self.ends[1] else None

    def _claim(self, value: FloatArray, fact: Fact) -> Claim:
        truth = fact.truth_candidate
        off = self.margin_ratio(truth, Candidate("", value), fact)
        return Claim({"claim": format_fixed(float(value[0]), self.count_decimals(fact))}, value, off)


def read_evidence_rect(show: Mapping[str, object]) -> list[int]:
    """The integer rectangle [x1, y1, x2, y2] (ends included) a candidate is shown by."""
    rect = show["rect"]
    if not isinstance(rect, list) or len(rect) != 4:
        raise ValueError(f"a region is shown by four integers, got {rect!r}")
    return [int(x) for x in rect]
