"""What went wrong on the way to an agent's answers, by kind, told from its traces and its scores.

Source: `docs/agent.md#failures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.tool_verdicts import judge_trace, reveal_traced
from vgbench_gen.evaluation.trace_log import TraceLine

# What a trace counts itself, in the order of tables.
TRACED = (
    "plan_unreadable",
    "step_unreadable",
    "unknown_tool",
    "wrong_arguments",
    "tool_error",
    "timeout",
    "crash",
    "too_many_actions",
    "turns_spent",
    "attempts_spent",
)
IGNORED, BELIEVED = "tool right but ignored", "tool wrong but believed"
NO_TOOL, NOT_JUDGED = "no tool gave anything", "not judged"
JUDGED = (IGNORED, BELIEVED, NO_TOOL, NOT_JUDGED)
NO_TRACE = "no trace"


@dataclass(frozen=True, slots=True)
class FailureLine:
    """One kind of failure."""

    kind: str
    """One of `TRACED`, `JUDGED` or `NO_TRACE`."""
    answers: int
    """In how many answers it happened."""
    wrong: int
    """How many of those are not right."""
    times: int
    """How often it happened in all."""


@dataclass(frozen=True, slots=True)
class FailureTable:
    """Failures of one agent. Every answer that is not right, and has a trace, is in one line of `JUDGED`."""

    answers: int
    """How many answers there are."""
    wrong: int
    """How many of them are not right."""
    lines: tuple[FailureLine, ...]
    """The kinds, those that never happened among them."""


def find_failures(trace: Mapping[str, Any], is_right: bool, item: Item | None) -> dict[str, int]:
    """Kind -> how often, of one answer.

    Args:
        trace: of the answer.
        is_right: whether the answer is.
        item: the question; None where it is not known any more, and nothing can be judged.

    Raises:
        DatasetError: the row's evidence is damaged.
    """
    told = trace.get("failures")
    listed = told.items() if isinstance(told, Mapping) else ()
    found = {kind: count for kind, count in listed if kind in TRACED and type(count) is int and count > 0}
    if not is_right:
        found[_explain_wrong(trace, item)] = 1
    return found


def _explain_wrong(trace: Mapping[str, Any], item: Item | None) -> str:
    steps = trace.get("steps")
    listed = steps if isinstance(steps, list) else []
    if not any(isinstance(step, Mapping) and step.get("step") == "tool" and step.get("values") for step in listed):
        return NO_TOOL
    revealed = None if item is None else reveal_traced(item, trace)
    verdict = None if revealed is None else judge_trace(trace, revealed)
    return NOT_JUDGED if verdict is None else IGNORED if verdict else BELIEVED


def count_failures(
    traces: Iterable[TraceLine], scores: Iterable[ScoreRow], find_item: Callable[[str], Item | None]
) -> FailureTable:
    """The failures behind the answers of one agent.

    Args:
        traces: as `TraceLog.walk` gives them; of several to one question the last counts.
        scores: the answers, of one file of scores.
        find_item: id -> the question.

    Raises:
        DatasetError: the evidence of a row is damaged.
    """
    rows = {row.key: row for row in scores}
    right = {key: row.outcome == "right" for key, row in rows.items()}
    by_answer: dict[ReplyKey, Mapping[str, int]] = {}
    for line in traces:
        if line.key in rows:
            by_answer[line.key] = find_failures(line.trace, right[line.key], find_item(line.key.id))
    answers, wrong, times = Counter[str](), Counter[str](), Counter[str]()
    for key, is_right in right.items():
        for kind, count in by_answer.get(key, {NO_TRACE: 1}).items():
            answers[kind] += 1
            wrong[kind] += not is_right
            times[kind] += count
    kinds = (*TRACED, *JUDGED, NO_TRACE)
    lines = tuple(FailureLine(kind, answers[kind], wrong[kind], times[kind]) for kind in kinds)
    return FailureTable(len(right), sum(not one for one in right.values()), lines)
