"""`trajectories`: traces of agents that ended at the right answer, as conversations with tool calls for training.

Format: `docs/agent.md#traces-as-training-rows`.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

from vgbench_gen.agent.backend import read_agent_spec, uses_oracle
from vgbench_gen.agent.replay import DialogueStep, TracedImage, read_images, replay
from vgbench_gen.agent.run import has_answer, write_observation
from vgbench_gen.agent.schemas import write_schema
from vgbench_gen.agent.tool import tools
from vgbench_gen.agent.workers import Observation
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.prompting import rotate_options
from vgbench_gen.evaluation.records import Header, ReplyKey, ReplyLine
from vgbench_gen.evaluation.replies import read_replies
from vgbench_gen.evaluation.reply_files import reply_files
from vgbench_gen.evaluation.saved import score_lines
from vgbench_gen.evaluation.trace_log import TraceLog
from vgbench_gen.publish.export import Export, Job, exports
from vgbench_gen.publish.training_rows import protect
from vgbench_gen.store.files import dataset_error
from vgbench_gen.training.training_files import MARK

_TURNS = ("planner", "react", "executor", "summariser", "fallback", "last")  # roles that become assistant messages
_LEFT_OUT = re.compile(r"\d+ bytes left out")  # the trace log writes this instead of a text that is too long


@exports.register("trajectories")
class Trajectories(Export):
    """Writes `NAME.jsonl` and `images/`."""

    takes_oracle = True

    def write(self, job: Job) -> str:
        file = f"{job.name}.jsonl"
        left_out: list[ReplyKey] = []
        rows = job.json_lines(file, _make_rows(job, left_out))
        if not rows:
            remedy = "Ask an agent with `vgbench eval --model agent:...`; those with oracle tools need --oracle."
            raise dataset_error(job.source.folder, "no trace that ends at the truth", "one at least", remedy)
        job.total = rows
        oracle = "Traces with oracle tools, which read the answer's own evidence, are " + (
            "among them." if job.oracle else "left out."
        )
        job.template("trajectories/README.md", "README.md", rows=str(rows), oracle=oracle)
        note = f"; {len(left_out)} right answers have no complete trace and are left out" if left_out else ""
        return f"{file} has one conversation per line; image paths are relative to its folder{note}"


def _make_rows(job: Job, left_out: list[ReplyKey]) -> Iterator[dict[str, Any]]:
    items = job.items()
    for path in reply_files(job.source.folder):
        header, lines, _ = read_replies(path)
        agent = read_agent_spec(header.spec)
        if agent is None or (uses_oracle(header.spec) and not job.oracle):
            continue
        asked = {key: line for key, line in lines.items() if not key.stage and key.id in items}
        scored, _ = score_lines(header, asked, items, job.source.fingerprint)
        by_item: dict[str, list[ReplyKey]] = defaultdict(list)
        for score in scored:
            if score.outcome == "right":
                by_item[score.id].append(score.key)
        log = TraceLog(path)
        for item in items.values():
            for key in sorted(by_item.get(item.id, ())):
                trace = log.read(key, lines[key].request_digest)
                row = None if trace is None else _make_row(job, item, lines[key], header, trace, log)
                if row is None:
                    left_out.append(key)
                else:
                    yield row | {"kind": agent.kind, "mode": agent.mode, "tiers": list(agent.tools)}


def _make_row(
    job: Job, item: Item, line: ReplyLine, header: Header, trace: Mapping[str, Any], log: TraceLog
) -> dict[str, Any] | None:
    """The row of a trace; None if parts of the trace are missing."""
    images = _lay_images(job, item, trace, log) if _is_complete(trace) else None
    if images is None:
        return None
    answer, failures = trace.get("answer"), trace.get("failures")
    messages, shown = make_messages(replay(trace), images, answer if isinstance(answer, str) else "")
    counts = failures.values() if isinstance(failures, Mapping) else ()
    return {
        "id": item.id,
        "rotation": line.key.rotation,
        "epoch": line.key.epoch,
        "prompt_set": line.key.prompt_set,
        "request_digest": line.request_digest,
        "benchmark": item.benchmark,
        "task": item.task,
        "question_type": item.question_type,
        "scene": f"{item.source}/{item.scene_id}",
        "licence": item.licence,
        "answer": rotate_options(item, line.key.rotation).answer,
        "agent": header.model,
        "failures": sum(count for count in counts if type(count) is int),
        "messages": messages,
        "images": shown,
        "tools": describe_tools(_list_used(header)),
    }


def _is_complete(trace: Mapping[str, Any]) -> bool:
    steps, images = trace.get("steps"), trace.get("images")
    if trace.get("left_out") or not trace.get("question") or not isinstance(steps, list):
        return False
    if not isinstance(images, list) or len(read_images(images)) < len(images):
        return False
    values = [value for step in steps if isinstance(step, Mapping) for value in step.values()]
    if any(isinstance(value, Mapping) and set(value) == {"left_out"} for value in values):
        return False
    return not any(isinstance(value, str) and _LEFT_OUT.fullmatch(value) for value in values)


def _lay_images(job: Job, item: Item, trace: Mapping[str, Any], log: TraceLog) -> dict[str, str] | None:
    """Name in the trace -> path in the export; None if an image is missing."""
    own = {PurePath(path).stem: path for path in (job.lay(item, k) for k in range(len(item.images)))}
    found: dict[str, str] = {}
    for image in read_images(trace.get("images")):
        if image.digest in own:
            found[image.name] = own[image.digest]
        elif (file := log.find_image(image.digest)) is not None:
            found[image.name] = job.lay_file(file.name, file)
        else:
            return None
    return found


def _list_used(header: Header) -> list[str]:
    """The keys of an agent's tools."""
    setup = header.settings.get("setup")
    used = setup.get("tools_used") if isinstance(setup, Mapping) else None
    return sorted(used) if isinstance(used, Mapping) else []


def describe_tools(keys: Iterable[str]) -> str:
    """Tools as JSON text, in the form of OpenAI's `tools`; those of servers have only a name."""
    found = []
    for key in keys:
        function: dict[str, Any] = {"name": key.partition(":")[2], "parameters": {"type": "object"}}
        if key in tools.names():
            tool = tools[key]
            if tool.name == "Terminate":
                continue
            schema = {key: value for key, value in write_schema(tool).items() if key != "additionalProperties"}
            function = {"name": tool.name, "description": tool.does, "parameters": schema}
        found.append({"type": "function", "function": function})
    return json.dumps(found, ensure_ascii=False)


def make_messages(
    steps: Sequence[DialogueStep], images: Mapping[str, str], answer: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """(the messages of a trace, which all have the same keys, the paths of images in the order of their marks).

    Args:
        steps: from `replay`.
        images: name in the trace -> path.
        answer: the agent's answer.
    """
    shown: list[str] = []

    def show(listed: Sequence[TracedImage]) -> str:
        shown.extend(images[image.name] for image in listed)
        return "".join(f"{one.name} ({one.size_px[0]} x {one.size_px[1]} pixels): {MARK}\n" for one in listed)

    question, *later_steps = steps
    messages = [_make_message("user", show(question.images) + protect(question.text))]
    turns: list[tuple[DialogueStep, list[DialogueStep]]] = []
    for step in later_steps:
        if step.speaker == "tool" and turns:
            turns[-1][1].append(step)
        elif step.role in _TURNS:
            turns.append((step, []))
    number = 0
    for turn, calls in turns:
        text = protect(turn.thought if turn.calls or turn.thought else turn.text)
        if turn.role in ("planner", "react") and not calls and not turn.calls and not has_answer(turn.text):
            continue  # an unreadable reply, or one without calls
        tool_calls = [_make_call(number + k, call) for k, call in enumerate(calls)]
        number += len(tool_calls)
        text = "" if turn.role == "planner" else text
        last = messages[-1]
        if last["role"] == "assistant" and not last["tool_calls"]:  # chat models reject two assistant messages in a row
            last |= {"content": f"{last['content']}\n{text}", "tool_calls": tool_calls}
        elif text or tool_calls:
            messages.append(_make_message("assistant", text, tool_calls))
        for tool_call, call in zip(tool_calls, calls, strict=True):
            messages.append(_make_result(tool_call["id"], call, show(call.images)))
    if messages[-1]["role"] != "assistant":
        messages.append(_make_message("assistant", ""))
    if not has_answer(messages[-1]["content"]):
        messages[-1]["content"] = f"{messages[-1]['content']}\n<answer>{answer}</answer>".strip()
    return messages, shown


def _make_message(
    role: str,
    content: str,
    calls: Sequence[Mapping[str, Any]] = (),
    tool_call_id: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    calls = list(calls)
    return {"role": role, "content": content, "tool_calls": calls, "tool_call_id": tool_call_id, "name": name}


def _make_call(number: int, step: DialogueStep) -> dict[str, Any]:
    assert step.call is not None
    arguments = json.dumps(dict(step.call.arguments), ensure_ascii=False)
    return {"id": f"call-{number}", "type": "function", "function": {"name": step.call.name, "arguments": arguments}}


def _make_result(call_id: str, step: DialogueStep, shown: str) -> dict[str, Any]:
    assert step.call is not None
    result = Observation(step.call.name, step.call.arguments, step.values, failure=step.failure, message=step.message)
    content = f"{protect(write_observation(result))}\n{shown}".strip()
    return _make_message("tool", content, tool_call_id=call_id, name=step.call.name)
