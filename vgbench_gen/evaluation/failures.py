"""What went wrong on the way to an agent's answers, by kind, told from its traces and its scores.

Source: `docs/agent.md#failures`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.tool_verdicts import judge_trace, reveal_traced

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


def count_failures(answers: Iterable[tuple[bool, Mapping[str, int]]]) -> FailureTable:
    """The failures of several answers: of each whether it is right, and what `find_failures` found."""
    listed = list(answers)
    found = {kind: Counter[str]() for kind in (*TRACED, *JUDGED, NO_TRACE)}
    for is_right, told in listed:
        for kind, times in told.items():
            found[kind].update(answers=1, wrong=not is_right, times=times)
    lines = tuple(FailureLine(kind, one["answers"], one["wrong"], one["times"]) for kind, one in found.items())
    return FailureTable(len(listed), sum(not is_right for is_right, _ in listed), lines)
