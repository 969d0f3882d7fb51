"""Scoring rules of SalBench, whose replies are sets of labels (`docs/protocols.md#salbench`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.answer_keys import AnswerKey, Case, CaseError
from vgbench_gen.evaluation.answers.final_line import find_last_line
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.outcomes import ParsedAnswer
from vgbench_gen.evaluation.answers.places import extract_answer
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.scoring import QUESTION_TYPES, ScoringRules, normalize_name

KIND = "labels"
MULTI_LABEL = "multi-label"
_SPLITS = {"p3": "synthetic", "synthetic": "synthetic", "o3": "natural", "natural": "natural"}


@dataclass(frozen=True, slots=True)
class LabelKey(AnswerKey):
    """The right labels, as a value of `labels.LabelReader`. A reply without labels means the empty set."""

    vocabulary: tuple[str, ...] = ()
    """All labels of the split."""

    def read(self, response: str | None) -> ParsedAnswer:
        return extract_answer(response, self.reader, none_is_a_value=True, empty=labels.EMPTY)

    def read_final_line(self, response: str) -> ParsedAnswer:
        return labels.score_exactly(find_last_line(response), self.vocabulary)

    def measures(self, reading: ParsedAnswer, response: str) -> dict[str, float]:
        """Precision, recall, F1 and exact match, and the number of labels that only the other split has."""
        return self._measures_of(reading.value) | {
            "n_out_of_vocabulary": float(labels.find_unknown_labels(response, self.vocabulary))
        }

    def official_measures(self, published: OfficialScore) -> dict[str, float]:
        """Precision, recall, F1 and exact match of the published parser's labels."""
        return self._measures_of(published.extracted)

    def chance(self, options: int) -> float:
        """The probability of a random set that is not empty."""
        return 1 / ((1 << len(self.vocabulary)) - 1)

    def _measures_of(self, value: str | float | None) -> dict[str, float]:
        if value is None:
            return dict.fromkeys(labels.MEASURES, 0.0)
        return labels.measure_labels(labels.convert_to_set(value), labels.convert_to_set(self.truth))


class SalBenchRules(ScoringRules):
    """The score of a set of labels is exact match, as in the released script."""

    names = ("SalBench-P3", "SalBench-O3")
    script = "Official script"
    question_types = (*QUESTION_TYPES, MULTI_LABEL)
    own_difficulty = True

    def owns(self, benchmark: str) -> bool:
        """As `ScoringRules.owns`; unknown splits are included, so that the error names them."""
        return normalize_name(benchmark).startswith("salbench")

    def answer_key(self, case: Case) -> AnswerKey:
        if case.question_type != MULTI_LABEL:
            return super().answer_key(case)
        known = find_vocabulary(case.benchmark)
        value = labels.parse_truth(case.truth.strip(), known)
        if value is None:
            raise CaseError(f"ground_truth: found {case.truth[:60]!r}; expected labels among {', '.join(known)}")
        return LabelKey(KIND, labels.LabelReader(known), value, vocabulary=known)

    def official(self, case: Case, response: str | None) -> OfficialScore:
        if case.question_type != MULTI_LABEL:
            return super().official(case, response)
        known = find_vocabulary(case.benchmark)
        return labels.score_as_released(response, labels.parse_truth(case.truth, known) or "", known)

    def draw_answer(self, item: Item, rng: np.random.Generator, other_than: str = "") -> str | None:
        """Draw a random nonempty set of labels other than a given one."""
        if item.question_type != MULTI_LABEL:
            return None
        known = find_vocabulary(item.benchmark)
        without = labels.convert_to_set(labels.parse_truth(other_than, known))
        sets = [[label for k, label in enumerate(known) if number >> k & 1] for number in range(1, 1 << len(known))]
        sets = [one for one in sets if frozenset(one) != without]
        return ", ".join(label.capitalize() for label in sets[int(rng.integers(len(sets)))])


def find_vocabulary(benchmark: str) -> tuple[str, ...]:
    """The labels of the split "SalBench-P3" or "SalBench-O3". Raises CaseError for another benchmark."""
    split = _SPLITS.get(normalize_name(benchmark).partition("/")[0].removeprefix("salbench-"))
    if split is None or not normalize_name(benchmark).startswith("salbench-"):
        raise CaseError(f"benchmark: found {benchmark[:60]!r} with labels; expected SalBench-P3 or SalBench-O3")
    known: Sequence[str] = labels.SPLITS[split]
    return tuple(known)
