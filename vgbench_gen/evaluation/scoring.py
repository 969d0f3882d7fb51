"""One reply against one truth, as we read it and as published scripts do; a pure function of reply and question.

What differs between benchmarks stands in their `ScoringRules`. This module and all that it imports run without the rest
of the package, because exported tasks carry a copy of them (`vgbench_gen.publish.scorer`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation import answer_keys as keys
from vgbench_gen.evaluation.answer_keys import MAX_TRUTH_CHARS, AnswerKey, Case, CaseError, Rule
from vgbench_gen.evaluation.answers import official as released
from vgbench_gen.evaluation.answers.numerals import CountReader
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.outcomes import Outcome, ParsedAnswer, grade_outcome

__all__ = [
    "MAX_RESPONSE_CHARS",
    "MAX_TRUTH_CHARS",
    "SCORER_VERSION",
    "AnswerKey",
    "Case",
    "CaseError",
    "Rule",
    "Scored",
    "ScoringRules",
    "find_rules",
    "make_case",
    "official",
    "score",
]

# Saved scores carry it; scores of another version are made anew from the saved replies.
SCORER_VERSION = 9

QUESTION_TYPES = (
    "multi-choice",
    "judgment",
    "open-ended",
    "open-ended-count",
    "open-ended-length",
    "numerical-answer",
)
MAX_RESPONSE_CHARS = 2_000_000
_TYPE_NAMES = {
    "multiple-choice": "multi-choice",
    "mcq": "multi-choice",
    "judgement": "judgment",
    "yes-no": "judgment",
    "open": "open-ended",
}


@dataclass(frozen=True, slots=True)
class Scored:
    """Both scores of one reply."""

    reading: ParsedAnswer
    """What we read in it."""
    outcome: Outcome
    """Whether that is right or wrong, or why nothing was read."""
    score: float
    """By the benchmark's metric, 0 to 1."""
    official: OfficialScore
    """The verdict of the published script."""
    measures: Mapping[str, float]
    """Other metrics by name: of a number `delta_2`, `delta_1.25`, `mra` and `relative_error`; a kind's own; or none."""
    followed: bool
    """Whether the last line is the answer in the form asked for, and nothing else (`final_line.read_final_line`)."""
    strict: float
    """The score of a reader that looks at that line alone."""
    official_measures: Mapping[str, float] = field(default_factory=dict)
    """Further metrics of the published script's verdict, for kinds that have them."""


class ScoringRules:
    """How replies to the questions of a benchmark are read, compared and judged by its published script.

    The rules of this class are those for question types, with the script that SpatialScore published. A benchmark that
    differs derives from it, in a module that imports nothing but these scoring modules and numpy: exports carry it.
    """

    names: ClassVar[Sequence[str]] = ()
    """The benchmarks that are scored so, as `Item.benchmark` names them; case and `_` for `-` do not matter."""
    question_types: ClassVar[Sequence[str]] = QUESTION_TYPES
    """The question types that there are."""
    own_difficulty: ClassVar[bool] = False
    """Whether its rows name a difficulty of their own, which compares with no other benchmark's."""

    script: ClassVar[str] = "SpatialScore's script"
    """The head of the column with `official`'s verdicts in tables; "Official script" where the benchmark has one."""

    def owns(self, benchmark: str) -> bool:
        """Return whether a name, or what stands before its first "/", is among `names`."""
        plain = normalize_name(benchmark.partition("/")[0])
        return any(plain == normalize_name(name) for name in self.names)

    def question_type(self, name: str) -> str:
        """Return the question type that a name stands for ("Multi_Choice", "judgement").

        Raises:
            CaseError: it stands for none.
        """
        plain = normalize_name(name).replace(" ", "-")
        plain = _TYPE_NAMES.get(plain, plain)
        if plain not in self.question_types:
            raise CaseError(f"question_type: found {name[:60]!r}; expected one of {', '.join(self.question_types)}")
        return plain

    def answer_key(self, case: Case) -> AnswerKey:
        """Return the right answer and how replies are held against it.

        Raises:
            CaseError: the case itself makes no sense.
        """
        truth = case.truth.strip()
        if not truth or len(truth) > MAX_TRUTH_CHARS:
            raise CaseError(f"ground_truth: found {len(truth)} characters; expected 1 to {MAX_TRUTH_CHARS}")
        if case.question_type == "multi-choice":
            return keys.make_letter_key(case, truth)
        if case.question_type == "judgment":
            return keys.make_yes_no_key(truth)
        if case.question_type == "open-ended-length":
            return keys.make_measure_key(case, truth, "length")
        if case.question_type == "open-ended-count":
            return AnswerKey("count", CountReader(), keys.number_of(truth, case.question_type))
        if case.question_type == "numerical-answer":
            return keys.make_number_key(case, truth)
        return self.open_key(case, truth)

    def open_key(self, case: Case, truth: str) -> AnswerKey:
        """Return the key of a question whose type says nothing of its answer; see `answer_keys.open_key`."""
        return keys.open_key(case, truth)

    def official(self, case: Case, response: str | None) -> OfficialScore:
        """Return the verdict of the published script; SpatialScore's, unless the benchmark has one of its own."""
        # The script grades a number by its source; a case may say so by its type instead.
        source = released.VSI_SOURCE if case.question_type == "numerical-answer" else ""
        return released.score_spatialscore(response, case.truth, case.question_type, source)

    def draw_answer(self, item: Item, rng: np.random.Generator, other_than: str = "") -> str | None:
        """Draw an answer as a key writes it, for guessing, other than a given one; None where answers are open."""
        return None


def normalize_name(name: str) -> str:
    """Return the name of a benchmark or question type as names are compared: lower case, `-` for `_`."""
    return name.strip().casefold().replace("_", "-")


@lru_cache(maxsize=1024)
def find_rules(benchmark: str) -> ScoringRules:
    """Return the rules by which a benchmark is scored, by the name in `Item.benchmark`; the general ones for others."""
    # By name, so that an export can put its own list in the place of the registered benchmarks.
    known: Sequence[ScoringRules] = importlib.import_module("vgbench_gen.evaluation.benchmarks").list_scoring_rules()
    return next((rules for rules in known if rules.owns(benchmark)), ScoringRules())


def make_case(item: Item) -> Case:
    """Return what scoring needs to know of a row of a built dataset."""
    return Case(
        benchmark=item.benchmark,
        question_type=item.question_type,
        truth=item.answer,
        options=dict(zip(ALPHABET, item.options, strict=False)),
        question=f"{item.question}\n{item.context}",
    )


def score(case: Case, response: str | None) -> Scored:
    """Read and score one reply; a reply never raises.

    Raises:
        CaseError: the case itself makes no sense.
    """
    rules = find_rules(case.benchmark)
    key = rules.answer_key(case)
    reading = key.read(response)
    points = key.points(reading)
    line = key.read_final_line(response or "")
    published = rules.official(case, response)
    return Scored(
        reading=reading,
        outcome=grade_outcome(reading, points),
        score=points,
        official=published,
        measures=key.measures(reading, response or ""),
        followed=line.found,
        strict=key.points(line),
        official_measures=key.official_measures(published),
    )


def official(case: Case, response: str | None) -> OfficialScore:
    """Return the verdict of the script published with the benchmark; SpatialScore's where none is known."""
    return find_rules(case.benchmark).official(case, response)
