"""`tool-turns`: conversations in which tools measure what a question is about, before the rationale and the answer.

The results are those of perfect tools, read from the row's evidence. Calls are turns of text, because LLaMA-Factory
quotes the arguments of OpenAI's `tool_calls` once more, and in a table objects would get the arguments of all tools.
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
from vgbench_gen.publish.exports import ms_swift
from vgbench_gen.publish.exports.llama_factory import SETTINGS, write_settings
from vgbench_gen.publish.exports.trajectories import describe_tools
from vgbench_gen.publish.training_rows import describe_row, format_settings, protect
from vgbench_gen.store.files import dataset_error
from vgbench_gen.tasks.row_evidence import UNREADABLE
from vgbench_gen.training.training_files import MARK


@exports.register("tool-turns")
class ToolTurns(Export):
    """Writes `NAME.jsonl`, `images/`, and settings of ms-swift and LLaMA-Factory."""

    trains = True
    # Calls have pixels of the stored images, and so must the question.
    refuses = ("family", "max_pixels")

    def write(self, job: Job) -> str:
        if not job.json_lines(f"{job.name}.jsonl", _make_records(job)):
            remedy = "Take kinds about marked regions, points, objects, cameras or motions (--tasks)."
            raise dataset_error(job.source.folder, "no question that a tool helps with", "one at least", remedy)
        job.text(ms_swift.SFT, format_settings(ms_swift.make_settings(job)))
        write_settings(job, "messages", "images", "tools")
        job.template("tool-turns/README.md", "README.md")
        return f"swift sft {ms_swift.SFT}, or llamafactory-cli train {SETTINGS}"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    described = describe_tools(key for key in tools.names() if tools[key].tier == "oracle")
    for row in job.rows(refuse=_find_refusal):
        sizes = [job.find_size(row.item, k) for k in range(len(row.images))]
        shown = "".join(f"image-{k} ({size[0]} x {size[1]} pixels): {MARK}\n" for k, size in enumerate(sizes))
        turns = [("system", protect(job.settings.system))] if job.settings.system else []
        turns += [("user", shown + protect(row.asked.text)), *_call_tools(row.asked), ("assistant", protect(row.reply))]
        messages = [{"role": role, "content": content} for role, content in turns]
        yield {**describe_row(row), "messages": messages, "images": list(row.images), "tools": described}


def _find_refusal(asked: Asked) -> str:
    """Why a question has no turns of tools; "" where it has."""
    try:
        calls = plan_calls(read_revealed(reveal_shown(asked)))
    except UNREADABLE as error:
        return f"the evidence does not give what tools measure ({type(error).__name__})"
    return "" if calls else "no tool measures what they are about"


def _call_tools(asked: Asked) -> Iterator[tuple[str, str]]:
    """(role, content) of each call and of its result."""
    evidence = reveal_shown(asked)
    for key, arguments in plan_calls(read_revealed(evidence)):
        tool, said = tools[key], json.dumps(arguments)
        found = tool.run(ToolInput(tool.Arguments.model_validate_json(said), (), evidence=evidence))
        yield "function_call", json.dumps({"name": tool.name, "arguments": arguments})
        yield "observation", protect(write_observation(Observation(tool.name, arguments, found.values)))
