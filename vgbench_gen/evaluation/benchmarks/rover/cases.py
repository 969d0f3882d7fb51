"""Scores single cases for `vgbench compare --cases`: a judge's reply, or raw scores to which the rules are applied."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vgbench_gen.core.json_text import parse_json
from vgbench_gen.evaluation.answers.outcomes import convert_to_json_value
from vgbench_gen.evaluation.benchmarks.rover import judge_replies
from vgbench_gen.evaluation.benchmarks.rover.judge import (
    ALIGNMENT,
    EXTRAS,
    METRICS,
    PROCESS,
    VISUAL,
    cap_alignment,
    name_score,
    scale_to_hundred,
)
from vgbench_gen.evaluation.benchmarks.rover.samples import is_empty
from vgbench_gen.evaluation.cases import ScoredCase, get_name, get_text
from vgbench_gen.evaluation.scoring import MAX_RESPONSE_CHARS, CaseError

CAP = "alignment_cap"
QUESTION_TYPES = (*METRICS, *EXTRAS, CAP)
_MOST = 1e300
_SHORT = {"reasoning_process": "rp", "reasoning_visual": "rv", "reasoning_alignment": "ra"}


def score_case(row: Mapping[str, Any]) -> ScoredCase:
    """Score a case: a judge's reply about a metric, or raw scores to which the rules are applied.

    Raises:
        CaseError: the case is invalid.
    """
    name = get_name(row, ("id", "benchmark", "question_type", "response"))
    response = None if row["response"] is None else get_text(row, "response", MAX_RESPONSE_CHARS)
    has_reasoning = row.get("think_output") is not None
    think_output = get_text(row, "think_output", MAX_RESPONSE_CHARS) if has_reasoning else ""
    return ScoredCase(format_case(name, get_text(row, "question_type"), response, think_output))


def format_case(name: str | int, question_type: str, response: str | None, think_output: str) -> dict[str, Any]:
    """A scored case, JSON-ready.

    For a metric, `score` is 1 to 5, and a 5 has the outcome "right"; a reply without a valid score gets null and the
    outcome "failed". Infinite numbers are null. For `alignment_cap`, `response` is JSON with the three raw scores, also
    named RP, RV and RA, and `score` has their values from 0 to 100.

    Raises:
        CaseError: no such question type, or invalid raw scores.
    """
    if question_type == CAP:
        return {"id": name} | _apply_rules(_read_raw_scores(response), think_output)
    if question_type not in QUESTION_TYPES:
        raise CaseError(f"question_type: found {question_type[:60]!r}; expected one of {', '.join(QUESTION_TYPES)}")
    score = judge_replies.read(response, name_score(question_type)).score
    published = _convert_to_json(judge_replies.read_as_released(response, name_score(question_type)).extracted)
    number = published if isinstance(published, int | float) else None
    outcome = "failed" if score is None else "right" if score == judge_replies.HIGH else "wrong"
    return {
        "id": name,
        "sane": {"extracted": score, "outcome": outcome, "score": score},
        "official": {"extracted": published, "score": number},
    }


def _convert_to_json(value: str | float | None) -> str | float | None:
    if isinstance(value, int | float) and not abs(value) < _MOST:
        return None
    return value if isinstance(value, int) else convert_to_json_value(value)


def _read_raw_scores(response: str | None) -> dict[str, int | None]:
    try:
        tree = parse_json(response or "", "keep")
    except ValueError as error:
        raise CaseError(f"response: found no JSON ({str(error)[:60]}); expected the three raw scores") from None
    if not isinstance(tree, dict):
        raise CaseError("response: found no object; expected the three raw scores")
    values = {str(key).strip().casefold(): value for key, value in tree.items()}
    found: dict[str, int | None] = {}
    known = 0
    for metric in METRICS:
        names = (name_score(metric), metric, name_score(_SHORT[metric]), _SHORT[metric])
        value = next((values[name] for name in names if name in values), None)
        known += any(name in values for name in names)
        found[metric] = judge_replies.read_whole_score(value)
        if value is not None and found[metric] is None:
            raise CaseError(
                f"response: found {metric} = {str(value)[:40]}; expected a whole number from 1 to 5, or null"
            )
    if not known:
        keys = ", ".join(map(name_score, METRICS))
        raise CaseError(f"response: found {', '.join(map(str, tree))[:60] or 'nothing'}; expected {keys} or RP, RV, RA")
    return found


def _apply_rules(raw: Mapping[str, int | None], think_output: str) -> dict[str, Any]:
    scores = dict(raw)
    if is_empty(think_output):
        scores[PROCESS] = judge_replies.LOW
    scores[ALIGNMENT], _ = cap_alignment(raw[ALIGNMENT], raw[VISUAL])
    complete = all(score is not None for score in scores.values())
    right = complete and all(score == judge_replies.HIGH for score in scores.values())
    return {
        "sane": {
            "extracted": scores,
            "outcome": "right" if right else "wrong" if complete else "failed",
            "score": _scale_scores(scores),
        },
        # The rules are only in the published prompts; no published code applies them.
        "official": {"extracted": dict(raw), "score": _scale_scores(raw)},
    }


def _scale_scores(scores: Mapping[str, int | None]) -> dict[str, float | None]:
    return {metric: None if score is None else scale_to_hundred(score) for metric, score in scores.items()}
