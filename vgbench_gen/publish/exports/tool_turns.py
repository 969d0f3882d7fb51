"""`tool-turns`: conversations in which tools measure what a question is about, before the rationale and the answer.

The results are those of perfect tools, read from the row's evidence. Format: `docs/agent.md#traces-as-training-rows`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vgbench_gen.agent.run import write_observation
from vgbench_gen.agent.tool import ToolInput, tools
from vgbench_gen.agent.tools.oracle import plan_calls, read_revealed
from vgbench_gen.agent.workers import Observation
from vgbench_gen.evaluation.background import reveal_shown
from vgbench_gen.evaluation.prompting import Asked
from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.exports.trajectories import describe_tools
from vgbench_gen.publish.training_rows import describe_row, protect
from vgbench_gen.store.files import dataset_error
from vgbench_gen.tasks.row_evidence import UNREADABLE
from vgbench_gen.training.training_files import MARK


@exports.register("tool-turns")
class ToolTurns(Export):
    """Writes `NAME.jsonl` and `images/`."""

    trains = True
    # Calls have pixels of the stored images, and so must the question.
    refuses = ("family", "max_pixels")

    def write(self, job: Job) -> str:
        if not job.json_lines(f"{job.name}.jsonl", _make_records(job)):
            remedy = "Take kinds about marked regions, points, objects, cameras or motions (--tasks)."
            raise dataset_error(job.source.folder, "no question that a tool helps with", "one at least", remedy)
        job.template("tool-turns/README.md", "README.md")
        return f"swift sft --dataset {job.name}.jsonl …, with the settings of README.md"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    described = describe_tools(key for key in tools.names() if tools[key].tier == "oracle")
    for row in job.rows(refuse=lambda asked: "" if _list_calls(asked) else "no tool measures what they are about"):
        sizes = [job.find_size(row.item, k) for k in range(len(row.images))]
        shown = "".join(f"image-{k} ({size[0]} x {size[1]} pixels): {MARK}\n" for k, size in enumerate(sizes))
        calls, results = _call_tools(row.asked)
        start = [{"role": "system", "content": protect(job.settings.system)}] if job.settings.system else []
        messages = [
            *start,
            {"role": "user", "content": shown + protect(row.asked.text)},
            {"role": "assistant", "content": "", "tool_calls": calls},
            *results,
            {"role": "assistant", "content": protect(row.reply)},
        ]
        yield {**describe_row(row), "messages": messages, "images": list(row.images), "tools": described}


def _list_calls(asked: Asked) -> list[tuple[str, dict[str, Any]]]:
    try:
        return plan_calls(read_revealed(reveal_shown(asked)))
    except UNREADABLE:
        return []


def _call_tools(asked: Asked) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Calls, and messages with their results."""
    evidence, calls, results = reveal_shown(asked), list[dict[str, Any]](), list[dict[str, Any]]()
    for number, (key, arguments) in enumerate(_list_calls(asked)):
        tool, said = tools[key], json.dumps(arguments)
        found = tool.run(ToolInput(tool.Arguments.model_validate_json(said), (), evidence=evidence))
        name = f"call-{number}"
        calls.append({"id": name, "type": "function", "function": {"name": tool.name, "arguments": said}})
        text = write_observation(Observation(tool.name, arguments, found.values))
        results.append({"role": "tool", "content": text, "tool_call_id": name})
    return calls, results
