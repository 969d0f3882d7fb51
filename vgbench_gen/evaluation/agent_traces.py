"""What the traces of one agent's answers say of its tools: calls, failures, which results were right, what they took.

Source: `docs/agent.md#the-tables-of-agents`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from vgbench_gen.agent.replay import MAX_STEPS
from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.background import reveal_item
from vgbench_gen.evaluation.board import ScoreRow
from vgbench_gen.evaluation.failures import NO_TRACE, FailureTable, count_failures, find_failures
from vgbench_gen.evaluation.records import ReplyKey
from vgbench_gen.evaluation.saved import SavedScores
from vgbench_gen.evaluation.tool_verdicts import judge_step, reveal_traced
from vgbench_gen.evaluation.trace_log import TraceLog

if TYPE_CHECKING:
    import pandas as pd  # it loads when used: 40 MB

_NAME = 60  # characters of a tool's name; a model may have written anything
_COLUMNS = ("tool", "calls", "failed", "right", "wrong", "score", "tokens", "seconds")


class AgentUse(NamedTuple):
    """What one agent did for its answers."""

    failures: FailureTable
    tools: pd.DataFrame
    """One row per answer and tool that was called for it: the tool, its calls, how many of them gave nothing, how many
    results lead to the answer and how many do not (`tool_verdicts.judge_step`; all others cannot be judged), whether
    the answer is right, and its tokens and seconds, NaN where unknown."""
    traces: int
    """Answers with a trace."""


def count_use(files: Sequence[tuple[SavedScores, Callable[[str], Item | None]]], run: tuple[str, str]) -> AgentUse:
    """What the traces of an agent say; replies to options in another order are left out, as in tables.

    Args:
        files: of scores, each with what finds its questions by id.
        run: (stage, prompt set) of the answers.
    """
    import pandas as pd

    failures: list[tuple[bool, Mapping[str, int]]] = []
    tools: list[tuple[Any, ...]] = []
    traces = 0
    for saved, find_item in files:
        if saved.replies is None:
            continue
        rows = {row.key: row for row in saved.rows if (row.stage, row.prompt_set) == run and not row.rotation}
        found: dict[ReplyKey, tuple[Mapping[str, int], list[tuple[Any, ...]]]] = {}
        find = _make_finder(find_item)
        for line in TraceLog(saved.replies).walk():
            if (row := rows.get(line.key)) is not None:
                item = find(line.key.id)
                told = find_failures(line.trace, row.outcome == "right", item)
                found[line.key] = told, _count_tools(line.trace, row, item)
        traces += len(found)
        for key, row in rows.items():
            failed, used = found.get(key, ({NO_TRACE: 1}, []))
            failures.append((row.outcome == "right", failed))
            tools += used
    return AgentUse(count_failures(failures), pd.DataFrame(tools, columns=_COLUMNS), traces)


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


def _count_tools(trace: Mapping[str, Any], row: ScoreRow, item: Item | None) -> list[tuple[Any, ...]]:
    """Rows of `AgentUse.tools` of one answer."""
    revealed = None if item is None else reveal_traced(item, trace)
    found: dict[str, list[int]] = {}
    steps = trace.get("steps")
    for step in steps[:MAX_STEPS] if isinstance(steps, list) else ():
        if isinstance(step, Mapping) and step.get("step") == "tool":
            verdict = None if revealed is None else judge_step(step, revealed)
            more = 1, bool(step.get("failure")), verdict is True, verdict is False
            name = str(step.get("name", ""))[:_NAME]
            found[name] = [a + b for a, b in zip(found.get(name, [0] * 4), more, strict=True)]
    is_right = int(row.outcome == "right")
    return [(name, *counts, is_right, row.tokens, row.latency_s) for name, counts in found.items()]
