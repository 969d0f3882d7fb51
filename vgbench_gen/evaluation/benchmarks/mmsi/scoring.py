"""Scoring rules of MMSI-Bench (`docs/protocols.md#mmsi-bench`)."""

from __future__ import annotations

from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.official_others import score_mmsi_bench
from vgbench_gen.evaluation.scoring import Case, ScoringRules


class MMSIRules(ScoringRules):
    """The general rules for letters; the official score uses MMSI-Bench's published regular expressions."""

    names = ("MMSI-Bench",)
    script = "Official script"

    def official(self, case: Case, response: str | None) -> OfficialScore:
        if case.question_type == "multi-choice":
            return score_mmsi_bench(response, case.truth)
        return super().official(case, response)
