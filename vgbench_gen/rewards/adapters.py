"""`grade_reply` as the trainers call it, which pass the column `solution` of an export unchanged.

`completions` are texts, or lists of messages, of which the last one of the assistant counts. Other columns and state
that a trainer passes are ignored.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping, Sequence
from typing import Any

from vgbench_gen.rewards.grading import grade_reply

Completion = str | Sequence[Mapping[str, Any]]


def reward(completions: Sequence[Completion], solution: Sequence[str], **others: Any) -> list[float]:
    """`Reward.score` of each completion, as TRL and ms-swift call reward functions."""
    pairs = zip(completions, solution, strict=True)
    return [grade_reply(_read_text(completion), solved).score for completion, solved in pairs]


def format_reward(completions: Sequence[Completion], solution: Sequence[str], **others: Any) -> list[float]:
    """`Reward.format` of each completion, to be given a small weight beside `reward`."""
    pairs = zip(completions, solution, strict=True)
    return [grade_reply(_read_text(completion), solved).format for completion, solved in pairs]


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
    **others: Any,
) -> dict[str, float]:
    """The custom reward function of verl, which trains on `score` and logs the rest; `solution_str` is the reply."""
    found = grade_reply(solution_str, ground_truth)
    hacked = float(found.score < found.parts["credit"])
    return {"score": found.score, "acc": found.accuracy, "format": found.format, "hack": hacked}


def compute_score_batch(reward_inputs: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """The reward function of EasyR1, of the type "batch", which trains on `overall`."""
    found = [grade_reply(one["response"], one["ground_truth"]) for one in reward_inputs]
    return [{"overall": one.score, "format": one.format, "accuracy": one.accuracy} for one in found]


def reward_trace(trace: Any, solution: str) -> float:
    """`Reward.score` of a trace of verifiers, for the method of a task that is its reward."""
    return grade_reply(trace.last_reply, solution).score


def register_orms() -> None:
    """Add `reward` as "vgbench", and `format_reward` as "vgbench_format", to the reward functions of ms-swift.

    Raises:
        ImportError: ms-swift is not installed.
    """
    plugin = importlib.import_module("swift.rewards" if importlib.util.find_spec("swift.rewards") else "swift.plugin")
    for name, function in (("vgbench", reward), ("vgbench_format", format_reward)):
        call = {"__call__": lambda self, completions, function=function, **columns: function(completions, **columns)}
        plugin.orms[name] = type(name, (plugin.ORM,), call)


def _read_text(completion: Completion) -> str:
    if isinstance(completion, str):
        return completion
    content = next((one.get("content") for one in reversed(completion) if one.get("role") == "assistant"), None)
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(part.get("text") or "") for part in content)
