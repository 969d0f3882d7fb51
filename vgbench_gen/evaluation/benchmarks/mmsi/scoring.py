"""How replies to MMSI-Bench's questions are scored (`docs/protocols.md#mmsi-bench`)."""

from __future__ import annotations

from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.answers.official_others import score_mmsi_bench
from vgbench_gen.evaluation.scoring import Case, ScoringRules


class MMSIRules(ScoringRules):
    """Letters as everywhere, with the regular expressions that MMSI-Bench published beside."""

    names = ("MMSI-Bench",)
    script = "Official script"

    def official(self, case: Case, response: str | None) -> OfficialScore:
        if case.question_type == "multi-choice":
            return score_mmsi_bench(response, case.truth)
        return super().official(case, response)
