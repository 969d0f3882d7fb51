"""Scoring rules of SpatialScore and its source benchmarks (`docs/protocols.md`).

Inside SpatialScore the official score of every source is that of SpatialScore's script. A source that is evaluated as a
separate benchmark ("VSI-Bench", "BLINK", "QSpatialBench-Plus") is scored by its own published script.
"""

from __future__ import annotations

from dataclasses import replace

from vgbench_gen.evaluation import answer_keys as keys
from vgbench_gen.evaluation.answer_keys import AnswerKey, Case
from vgbench_gen.evaluation.answers import official as released
from vgbench_gen.evaluation.answers import official_others
from vgbench_gen.evaluation.answers.official import OfficialScore
from vgbench_gen.evaluation.scoring import ScoringRules, normalize_name

_FAMILY, _VSI, _REAL_WORLD = "SpatialScore", "VSI-Bench", "RealWorldQA"
_FAMILY_NAMES = ("spatialscore", "spatialscore-hard")
_SOURCES = {"vsi-bench": _VSI, "vsi-bench-8": _VSI, "vsibench": _VSI, "realworldqa": _REAL_WORLD}
_Q_SPATIAL = ("qspatial", "q-spatial")  # prefixes of QSpatialBench, -Plus, -ScanNet, and of its name on the Hub


class SpatialScoreRules(ScoringRules):
    """The rules of SpatialScore, and of its sources as separate benchmarks."""

    names = ("SpatialScore", "SpatialScore-Hard", "VSI-Bench", "BLINK", "QSpatialBench", "RealWorldQA")
    script = "Official script"

    def owns(self, benchmark: str) -> bool:
        """As `ScoringRules.owns`; parts of QSpatialBench are recognized by the prefix of their names."""
        family, _ = split_name(benchmark)
        head = family.casefold()
        return family in (_FAMILY, _VSI, _REAL_WORLD) or head == "blink" or head.startswith(_Q_SPATIAL)

    def answer_key(self, case: Case) -> AnswerKey:
        """As `ScoringRules.answer_key`; numbers of VSI-Bench, counts included, are graded by their error."""
        key = super().answer_key(case)
        family, source = split_name(case.benchmark)
        if isinstance(key.truth, str):
            return key
        if family == _VSI:
            return replace(key, rule="mra")
        return replace(key, rule="delta_inclusive") if source == _VSI and key.kind == "count" else key

    def open_key(self, case: Case, truth: str) -> AnswerKey:
        return keys.open_key(case, truth, whole_numbers_are_graded=_VSI in split_name(case.benchmark))

    def official(self, case: Case, response: str | None) -> OfficialScore:
        family, source = split_name(case.benchmark)
        if family == _VSI:
            return official_others.score_vsi_bench(response, case.truth, case.question_type)
        if family.casefold() == "blink" and case.question_type == "multi-choice":
            options = len(case.options or keys.parse_options(case.question)) or 5
            return official_others.score_blink(response, case.truth, options)
        if family.casefold().startswith(_Q_SPATIAL):
            return official_others.score_q_spatial(response, case.truth)
        graded = source == _VSI or case.question_type == "numerical-answer"
        return released.score_spatialscore(
            response, case.truth, case.question_type, released.VSI_SOURCE if graded else source
        )


def split_name(benchmark: str) -> tuple[str, str]:
    """(benchmark, source inside SpatialScore): "SpatialScore/VSI-Bench_8" is ("SpatialScore", "VSI-Bench").

    A separate benchmark is its own source, except VSI-Bench ("VSI-Bench", ""), which its own script scores.
    """
    head, _, tail = benchmark.strip().partition("/")
    if head.casefold() in _FAMILY_NAMES:
        return _FAMILY, _find_source(tail)
    family = _find_source(head)
    return family, "" if family == _VSI else family


def _find_source(name: str) -> str:
    return _SOURCES.get(normalize_name(name), name.strip())
