"""What the traces of one agent's answers say of its tools, and what went wrong on the way to the answers.

Source: `docs/agent.md#failures` and `docs/agent.md#the-tables-of-agents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vgbench_gen.agent.replay import MAX_STEPS
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.background import reveal_item
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.evaluation.tool_verdicts import judge_step, reveal_traced
from vgbench_gen.evaluation.trace_log import TraceLog

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

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
# Every answer that is not right, and has a trace, is of one of these kinds.
IGNORED, BELIEVED = "tool right but ignored", "tool wrong but believed"
NO_TOOL, NOT_JUDGED = "no tool gave anything", "not judged"
NO_TRACE = "no trace"
FAILURES = (*TRACED, IGNORED, BELIEVED, NO_TOOL, NOT_JUDGED, NO_TRACE)
_NAME = 60  # characters of a tool's name; a model may have written anything


class ToolUse(NamedTuple):
    """One call of a tool."""

    tool: str
    failed: bool
    gave: bool
    """Whether it returned any value."""
    right: float
    """1 where its result leads to the answer, 0 where it does not, NaN where that cannot be judged
    (`tool_verdicts.judge_step`)."""


class AgentUse(NamedTuple):
    """What one agent did for its answers."""

    answers: pd.DataFrame
    """One row per answer: whether it is right, its tokens and seconds, NaN where unknown, and how often each of
    `FAILURES` happened."""
    calls: pd.DataFrame
    """One row per call: the number of its answer, and the fields of `ToolUse`."""


def count_use(files: Sequence[tuple[SavedScores, Callable[[str], Item | None]]], run: tuple[str, str]) -> AgentUse:
    """What the traces of an agent say; replies to options in another order are left out, as in tables.

    Args:
        files: of scores, each with what finds its questions by id.
        run: (stage, prompt set) of the answers.
    """
    import pandas as pd

    answers: list[tuple[Any, ...]] = []
    calls: list[tuple[Any, ...]] = []
    for saved, find_item in files:
        rows = {row.key: row for row in saved.rows if (row.stage, row.prompt_set) == run and not row.rotation}
        find = _make_finder(find_item)
        traces = ((line.key, line.trace) for line in TraceLog(saved.replies).walk() if line.key in rows)
        found = {
            key: (find_failures(trace, rows[key].outcome == "right", used := judge_calls(trace, find(key.id))), used)
            for key, trace in traces
        }
        for key, row in rows.items():
            failures, used = found.get(key, ({NO_TRACE: 1}, []))
            calls += [(len(answers), *call) for call in used]
            counts = (failures.get(kind, 0) for kind in FAILURES)
            answers.append((row.outcome == "right", row.tokens, row.latency_s, *counts))
    return AgentUse(
        pd.DataFrame(answers, columns=["right", "tokens", "seconds", *FAILURES]),
        pd.DataFrame(calls, columns=["answer", *ToolUse._fields]),
    )


def _make_finder(find_item: Callable[[str], Item | None]) -> Callable[[str], Item | None]:
    """Finds questions, the last one without reading it again; none whose evidence is damaged, for nothing can be judged
    by it."""

    @lru_cache(maxsize=1)
    def find(name: str) -> Item | None:
        item = find_item(name)
        try:
            if item is not None:
                reveal_item(item)
        except DatasetError:
            return None
        return item

    return find


def judge_calls(trace: Mapping[str, Any], item: Item | None) -> list[ToolUse]:
    """The calls of a trace in order; of very many the first ones.

    Args:
        trace: of an answer.
        item: the question; None where it is not known any more, and nothing can be judged.

    Raises:
        DatasetError: the row's evidence is damaged.
    """
    revealed = None if item is None else reveal_traced(item, trace)
    steps, found = trace.get("steps"), []
    for step in steps[:MAX_STEPS] if isinstance(steps, list) else ():
        if isinstance(step, Mapping) and step.get("step") == "tool":
            verdict = None if revealed is None else judge_step(step, revealed)
            right = math.nan if verdict is None else float(verdict)
            name = str(step.get("name", ""))[:_NAME]
            found.append(ToolUse(name, bool(step.get("failure")), bool(step.get("values")), right))
    return found


def find_failures(trace: Mapping[str, Any], is_right: bool, calls: Sequence[ToolUse]) -> dict[str, int]:
    """Kind -> how often, of one answer.

    Args:
        trace: of the answer.
        is_right: whether the answer is.
        calls: of the trace, as `judge_calls` gives them.
    """
    told = trace.get("failures")
    listed = told.items() if isinstance(told, Mapping) else ()
    found = {kind: count for kind, count in listed if kind in TRACED and type(count) is int and count > 0}
    if not is_right:
        last = next((call.right for call in reversed(calls) if not math.isnan(call.right)), None)
        judged = NOT_JUDGED if last is None else IGNORED if last else BELIEVED
        found[judged if any(call.gave for call in calls) else NO_TOOL] = 1
    return found
