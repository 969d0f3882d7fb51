"""What the traces of one agent's answers say of its tools: calls, failures, which results were right, what they took.

Source: `docs/agent.md#the-tables-of-agents`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vgbench_gen.agent.replay import MAX_STEPS
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.background import reveal_item
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.failures import FailureLine, FailureTable, count_failures
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.evaluation.tool_verdicts import judge_step, reveal_traced
from vgbench_gen.evaluation.trace_log import TraceLine, TraceLog

_NAME = 60  # characters of a tool's name; a model may have written anything


@dataclass(slots=True)
class ToolUse:
    """What one tool was called for."""

    calls: int = 0
    failed: int = 0
    """How many of the calls gave nothing."""
    right: int = 0
    """How many results lead to the answer (`tool_verdicts.judge_step`)."""
    wrong: int = 0
    """How many do not; all other results cannot be judged."""
    answers: int = 0
    """For how many answers it was called."""
    answers_right: int = 0
    tokens: list[float] = field(default_factory=list)
    """Of those answers whose tokens are known."""
    seconds: list[float] = field(default_factory=list)
    """That those answers took, where it is known; of the core model's time and the tools' together."""

    def add(self, other: ToolUse) -> None:
        """Count another's as well."""
        for name in ("calls", "failed", "right", "wrong", "answers", "answers_right"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.tokens += other.tokens
        self.seconds += other.seconds


@dataclass(frozen=True, slots=True)
class AgentUse:
    """What one agent did for its answers."""

    failures: FailureTable
    tools: Mapping[str, ToolUse]
    """By tool, those of most calls first."""
    calls: int
    """Of all tools."""
    traces: int
    """Answers with a trace."""


def count_use(files: Sequence[tuple[SavedScores, Callable[[str], Item | None]]], run: tuple[str, str]) -> AgentUse:
    """What the traces of an agent say; replies to options in another order are left out, as in tables.

    Args:
        files: of scores, each with what finds its questions by id.
        run: (stage, prompt set) of the answers.
    """
    tables: list[FailureTable] = []
    tools: dict[str, ToolUse] = {}
    traces = 0
    for saved, find_item in files:
        rows = {row.key: row for row in saved.rows if (row.stage, row.prompt_set) == run and not row.rotation}
        if saved.replies is None:
            continue
        by_answer: dict[ReplyKey, dict[str, ToolUse]] = {}
        find = _Finder(find_item)
        watched = _watch(TraceLog(saved.replies).walk(), rows, find, by_answer)
        tables.append(count_failures(watched, rows.values(), find))
        traces += len(by_answer)
        for found in by_answer.values():
            for name, use in found.items():
                tools.setdefault(name, ToolUse()).add(use)
    ordered = dict(sorted(tools.items(), key=lambda one: (-one[1].calls, one[0])))
    return AgentUse(_add_tables(tables), ordered, sum(use.calls for use in tools.values()), traces)


class _Finder:
    """Finds questions, the last one without reading it again; none whose evidence is damaged, for nothing can be judged
    by it."""

    def __init__(self, find: Callable[[str], Item | None]) -> None:
        self._find = find
        self._last: tuple[str, Item | None] = ("", None)

    def __call__(self, name: str) -> Item | None:
        if self._last[0] != name:
            item = self._find(name)
            try:
                if item is not None:
                    reveal_item(item)
            except DatasetError:
                item = None
            self._last = name, item
        return self._last[1]


def _watch(
    lines: Iterator[TraceLine],
    rows: Mapping[ReplyKey, ScoreRow],
    find: Callable[[str], Item | None],
    found: dict[ReplyKey, dict[str, ToolUse]],
) -> Iterator[TraceLine]:
    """Yield the traces and keep what each says of tools."""
    for line in lines:
        if line.key in rows:
            found[line.key] = _count_tools(line.trace, rows[line.key], find(line.key.id))
        yield line


def _count_tools(trace: Mapping[str, Any], row: ScoreRow, item: Item | None) -> dict[str, ToolUse]:
    revealed = None if item is None else reveal_traced(item, trace)
    found: dict[str, ToolUse] = {}
    steps = trace.get("steps")
    for step in steps[:MAX_STEPS] if isinstance(steps, list) else ():
        if not isinstance(step, Mapping) or step.get("step") != "tool":
            continue
        use = found.setdefault(str(step.get("name", ""))[:_NAME], ToolUse(answers=1))
        use.calls += 1
        use.failed += bool(step.get("failure"))
        verdict = None if revealed is None else judge_step(step, revealed)
        use.right += verdict is True
        use.wrong += verdict is False
    for use in found.values():
        use.answers_right = int(row.outcome == "right")
        use.tokens = [] if math.isnan(row.tokens) else [row.tokens]
        use.seconds = [] if math.isnan(row.latency_s) else [row.latency_s]
    return found


def _add_tables(tables: Sequence[FailureTable]) -> FailureTable:
    lines: dict[str, FailureLine] = {}
    for line in (line for table in tables for line in table.lines):
        one = lines.get(line.kind, FailureLine(line.kind, 0, 0, 0))
        lines[line.kind] = FailureLine(
            line.kind, one.answers + line.answers, one.wrong + line.wrong, one.times + line.times
        )
    return FailureTable(
        sum(table.answers for table in tables), sum(table.wrong for table in tables), tuple(lines.values())
    )
