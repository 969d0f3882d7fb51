"""`tool-turns`: conversations in which tools measure what a question is about, before the rationale and the answer.

The results are those of perfect tools, read from the row's evidence. Format: `docs/agent.md#traces-as-training-rows`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from vgbench_gen.agent.calls import ToolCall
from vgbench_gen.agent.replay import DialogueStep, TracedImage
from vgbench_gen.agent.tool import ToolInput, tools
from vgbench_gen.agent.tools.oracle import plan_calls, read_revealed
from vgbench_gen.evaluation.background import reveal_shown
from vgbench_gen.publish.export import Export, ExportRow, Job, exports
from vgbench_gen.publish.exports.trajectories import describe_tools, make_messages
from vgbench_gen.publish.training_rows import describe_row
from vgbench_gen.store.files import dataset_error
from vgbench_gen.tasks.row_evidence import UNREADABLE


@exports.register("tool-turns")
class ToolTurns(Export):
    """Writes `NAME.jsonl` and `images/`."""

    trains = True
    # Calls have pixels of the stored images, and so must the question.
    refuses = ("family", "max_pixels")

    def write(self, job: Job) -> str:
        file = f"{job.name}.jsonl"
        if not job.json_lines(file, _make_records(job)):
            remedy = "Take kinds about marked regions, points, objects, cameras or motions (--tasks)."
            raise dataset_error(job.source.folder, "no question that a tool helps with", "one at least", remedy)
        job.template("tool-turns/README.md", "README.md")
        return f"{file} has one conversation per line; image paths are relative to its folder"


def _make_records(job: Job) -> Iterator[dict[str, Any]]:
    described = describe_tools(key for key in tools.names() if tools[key].tier == "oracle")
    for row in job.rows():
        try:
            steps = _call_tools(row)
        except UNREADABLE:
            steps = []
        if not steps:
            job.leave_out("no tool measures what they are about")
            continue
        text = row.asked.text
        images = [TracedImage(f"image-{k}", path, job.find_size(row.item, k)) for k, path in enumerate(row.images)]
        dialogue = [
            DialogueStep("question", text, images=tuple(images)),
            *steps,
            DialogueStep("core", row.reply, "last"),
        ]
        yield {
            **describe_row(row),
            "answer": row.asked.item.answer,
            "messages": make_messages(dialogue, {image.name: image.digest for image in images}, ""),
            "images": list(row.images),
            "tools": described,
        }


def _call_tools(row: ExportRow) -> list[DialogueStep]:
    """One turn with all calls, and their results; none where no tool measures what the question is about."""
    evidence = reveal_shown(row.asked)
    found = list[DialogueStep]()
    for key, arguments in plan_calls(read_revealed(evidence)):
        tool = tools[key]
        result = tool.run(ToolInput(tool.Arguments.model_validate_json(json.dumps(arguments)), (), evidence=evidence))
        found.append(DialogueStep("tool", call=ToolCall(tool.name, arguments), values=result.values))
    calls = tuple(step.call for step in found if step.call is not None)
    return [DialogueStep("core", role="planner", calls=calls), *found] if found else []
