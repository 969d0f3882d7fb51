"""Scoring with plain values in and out, for programs that are not ours: exported tasks carry a copy of it and of what
it imports (`vgbench_gen.publish.scorer`), so nothing here may need more than numpy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from vgbench_gen.evaluation.answers.outcomes import convert_to_json_value
from vgbench_gen.evaluation.metrics import average_micro
from vgbench_gen.evaluation.scoring import SCORER_VERSION, Case, score

FAILED = "failed"


def version() -> int:
    """Of the scorer; scores of different versions do not compare."""
    return SCORER_VERSION


def grade(case: Mapping[str, Any], response: str | None) -> dict[str, Any]:
    """Both scores of one reply.

    Args:
        case: fields of `scoring.Case`.
        response: what the model said; None where the request failed.

    Returns:
        score, official: by our reader and by the published script. outcome: right, wrong, unreadable, refused or
        failed. status, extracted, official_extracted: what was read. strict, followed: of the final line alone.
        measures: further metrics of a number.

    Raises:
        CaseError: the case makes no sense.
    """
    if response is None:
        return {
            "score": 0.0,
            "official": 0.0,
            "outcome": FAILED,
            "status": "api_error",
            "extracted": None,
            "official_extracted": None,
            "strict": 0.0,
            "followed": False,
            "measures": {},
        }
    scored = score(Case(**case), response)
    return {
        "score": scored.score,
        "official": scored.official.score,
        "outcome": scored.outcome,
        "status": scored.reading.status,
        "extracted": convert_to_json_value(scored.reading.value),
        "official_extracted": convert_to_json_value(scored.official.extracted),
        "strict": scored.strict,
        "followed": scored.followed,
        # An infinite error is no JSON.
        "measures": {name: value for name, value in scored.measures.items() if name != "relative_error"},
    }


def mean(grades: Iterable[Mapping[str, Any]], name: str = "score") -> float:
    """Mean of one number over replies, failed requests left out, as `vgbench compare --json` prints it; 0 for none."""
    values = [float(one[name]) for one in grades if one["outcome"] != FAILED]
    return average_micro(values) if values else 0.0


def share(grades: Iterable[Mapping[str, Any]], outcome: str) -> float:
    """Share of replies with this outcome, 0 where there is none."""
    found = [one["outcome"] == outcome for one in grades]
    return sum(found) / len(found) if found else 0.0
