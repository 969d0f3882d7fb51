"""What the right answer of a question is, and how replies are held against it, one kind of key per question type."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.evaluation import metrics
from vgbench_gen.evaluation.answers import units
from vgbench_gen.evaluation.answers.final_line import read_final_line
from vgbench_gen.evaluation.answers.letters import DEFAULT_LETTERS, LetterReader
from vgbench_gen.evaluation.answers.numerals import CountReader, MeasureReader
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.option_texts import OptionTexts, normalize_text, split_options
from vgbench_gen.evaluation.answers.outcomes import AnswerReader, ParsedAnswer
from vgbench_gen.evaluation.answers.places import extract_answer
from vgbench_gen.evaluation.answers.quantities import find_quantities, prepare_text
from vgbench_gen.evaluation.answers.texts import TextReader
from vgbench_gen.evaluation.answers.units import Kind, Unit
from vgbench_gen.evaluation.answers.yes_no import NO, YES, YesNoReader

Rule = Literal["exact", "delta", "delta_inclusive", "mra"]
MAX_TRUTH_CHARS = 10_000


class CaseError(VGBenchError):
    """A case cannot be scored, because a field is missing or its truth cannot be read."""


@dataclass(frozen=True, slots=True)
class Case:
    """What scoring needs to know of one question, besides the reply."""

    benchmark: str
    """The benchmark's name, as in `Item.benchmark`: "VGBench", "SpatialScore/BLINK", ..."""
    question_type: str
    """One of the question types that the benchmark's `ScoringRules` know."""
    truth: str
    """The right answer, as the dataset writes it."""
    options: Mapping[str, str] = field(default_factory=dict)
    """The text of each option by its letter."""
    question: str = ""
    """The question's text. It says the unit and, where `options` is empty, the options."""


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The right answer of one question, how a reply to it is read, and what a reply earns."""

    kind: str
    """"letter", "yes_no", "count", "number", "text", a benchmark's own kind, or what is measured ("length", ...)."""
    reader: AnswerReader
    """The rules by which the answer is found in a reply."""
    truth: str | float
    """A letter, "Yes" or "No", a text, a number, or a measure in meters (angles in degrees)."""
    rule: Rule = "exact"
    """"exact", "delta" (strictly within the factor 2), "delta_inclusive", or "mra" (mean relative accuracy)."""
    letters: str = ""
    """The valid letters, for the kind "letter"."""
    unit: Unit | None = None
    """The unit that the question asks for, where it says one."""

    def read(self, response: str | None) -> ParsedAnswer:
        """Find the answer in a whole reply."""
        return extract_answer(response, self.reader, none_is_a_value=self.kind in ("count", "number"))

    def read_final_line(self, response: str) -> ParsedAnswer:
        """Find the answer in the last line alone, in the form that was asked for."""
        return read_final_line(response, self.kind, self.letters, self.unit)

    def points(self, reading: ParsedAnswer) -> float:
        """Return what a reply earns, 0 to 1."""
        if not reading.found or reading.value is None:
            return 0.0
        value, truth = reading.value, self.truth
        if self.rule == "exact" or isinstance(value, str) or isinstance(truth, str):
            return float(value == truth)
        if self.rule == "mra":
            return metrics.compute_mean_relative_accuracy(value, truth)
        return float(metrics.is_within_factor(value, truth, inclusive=self.rule == "delta_inclusive"))

    def measures(self, reading: ParsedAnswer, response: str) -> dict[str, float]:
        """Return every metric of a number by name, so that tables choose without reading again; a miss counts as 0."""
        if isinstance(self.truth, str):
            return {}
        if not isinstance(reading.value, float):
            return {"delta_2": 0.0, "delta_1.25": 0.0, "mra": 0.0, "relative_error": math.inf}
        value, truth = reading.value, self.truth
        inclusive = self.kind in ("count", "number")
        return {
            "delta_2": float(metrics.is_within_factor(value, truth, metrics.DELTA, inclusive)),
            "delta_1.25": float(metrics.is_within_factor(value, truth, metrics.HEADLINE_DELTA, inclusive)),
            "mra": metrics.compute_mean_relative_accuracy(value, truth),
            "relative_error": metrics.compute_relative_error(value, truth),
        }

    def official_measures(self, published: OfficialScore) -> dict[str, float]:
        """Return further metrics of what the published script made of a reply; most kinds have none."""
        return {}

    def chance(self, options: int) -> float:
        """Return what a uniform guess earns; 0 for open questions."""
        return 0.5 if self.kind == "yes_no" else 1 / options if options else 0.0


@lru_cache(maxsize=4096)
def parse_options(question: str) -> dict[str, str]:
    """Return the options that a question's text holds, by letter."""
    return split_options(question)


def open_key(case: Case, truth: str, whole_numbers_are_graded: bool = False) -> AnswerKey:
    """Return the key of an open question, which is what its truth is: a length, a number, yes or no, a letter, a text.

    Args:
        case: the question.
        truth: its answer without space around it.
        whole_numbers_are_graded: whether a whole number is judged by how near it is, and not counted exactly.

    Raises:
        CaseError: the truth cannot be read.
    """
    found = find_quantities(prepare_text(truth))
    rest = re.sub(r"[\s.]", "", truth[: found[0].start] + truth[found[0].end :]) if len(found) == 1 else "?"
    if not rest:
        unit = found[0].unit
        if unit is not None and unit.kind in units.MEASURES and unit.kind != "area":
            return make_measure_key(case, truth, unit.kind)
        if whole_numbers_are_graded or "." in truth or unit is not None:
            return make_number_key(case, truth)
        return AnswerKey("count", CountReader(), found[0].signed)
    if re.fullmatch(r"(?:yes|no|true|false|是|否)\.?", truth, re.IGNORECASE):
        return make_yes_no_key(truth)
    if re.fullmatch(r"\(?[A-Za-z]\)?\.?", truth) and (case.options or parse_options(case.question)):
        return make_letter_key(case, truth)
    return AnswerKey("text", TextReader(), normalize_text(truth))


def make_letter_key(case: Case, truth: str) -> AnswerKey:
    """Return the key of a question with lettered options.

    Raises:
        CaseError: the truth is none.
    """
    options = dict(case.options) or parse_options(case.question)
    letters = "".join(sorted(options)) or DEFAULT_LETTERS
    match = re.match(r"[\s(\[]*([A-Za-z])(?![A-Za-z])", truth)
    letter = match.group(1).upper() if match else OptionTexts(options).find_equal(truth)
    if not letter or letter not in letters:
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected one of the letters {letters}")
    return AnswerKey("letter", LetterReader(letters, options, case.question), letter, letters=letters)


def make_yes_no_key(truth: str) -> AnswerKey:
    """Return the key of a question for yes or no.

    Raises:
        CaseError: the truth is neither.
    """
    found = YesNoReader().read_opening(truth)
    if not found.found or found.value not in (YES, NO):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected Yes or No")
    return AnswerKey("yes_no", YesNoReader(), found.value)


def make_measure_key(case: Case, truth: str, kind: Kind) -> AnswerKey:
    """Return the key of a question for a length, an angle or another measure with a unit.

    Raises:
        CaseError: the truth is none.
    """
    found = find_quantities(prepare_text(truth))
    asked = units.find_asked_unit(case.question, (kind,)) if case.question else None
    if kind == "length" and asked is None and len(found) == 1 and found[0].unit is None:
        asked = units.METER  # neither truth nor question says; then a bare number of a reply means the same
    measured = MeasureReader(asked, kind).value(found[0]) if len(found) == 1 else None
    if measured is None or not isinstance(measured.value, float):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected a {kind} with its unit, e.g. 1.51 meters")
    return AnswerKey(kind, MeasureReader(asked, kind, case.question), measured.value, "delta", unit=asked)


def make_number_key(case: Case, truth: str) -> AnswerKey:
    """Return the key of a question for a number that is judged by how near it is.

    Raises:
        CaseError: the truth is none.
    """
    unit = units.find_asked_unit(case.question) if case.question else None
    reader = CountReader(real=True, unit=unit, question=case.question)
    return AnswerKey("number", reader, number_of(truth, case.question_type), "delta_inclusive", unit=unit)


def number_of(truth: str, kind: str) -> float:
    """Return the one number of a truth.

    Raises:
        CaseError: it holds none, or several.
    """
    found = find_quantities(prepare_text(truth))
    if len(found) != 1 or not math.isfinite(found[0].signed):
        raise CaseError(f"ground_truth: found {truth[:60]!r}; expected one number for {kind}")
    return found[0].signed
