"""Reads a saved trace as a dialogue, for pages and exports; no model and no tool is run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vgbench_gen.agent.calls import ParsedCalls, ToolCall, parse_plan, parse_step

MAX_STEPS = 1000  # further steps of a trace are ignored, because a file may hold anything
_MAX_SIDE_PX = 1 << 26


@dataclass(frozen=True, slots=True)
class TracedImage:
    """An image of a trace, as `images.NamedImage` without its bytes."""

    name: str
    digest: str
    size_px: tuple[int, int]
    """(width, height)."""
    made_by: str = ""


@dataclass(frozen=True, slots=True)
class DialogueStep:
    """One step of a dialogue: the question, a reply of the core model, or a tool call with its observation."""

    speaker: Literal["question", "core", "tool"]
    text: str = ""
    """The question, or the core model's reply; "" for tools."""
    role: str = ""
    """The prompt that the core model answered: react, planner, executor, summariser, fallback, last, self-thinking."""
    calls: tuple[ToolCall, ...] = ()
    """The calls in the core model's reply."""
    thought: str = ""
    """The thought in the core model's reply, if its format has one."""
    call: ToolCall | None = None
    """The call that this step of a tool answers."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The tool's result."""
    failure: str = ""
    """The kind of failure, as in `workers.Observation`."""
    message: str = ""
    """The error message that the model got."""
    images: tuple[TracedImage, ...] = ()
    """Images of the question, or those that the tool made."""


def replay(trace: Mapping[str, Any]) -> tuple[DialogueStep, ...]:
    """The steps of a trace of `Trace.to_json` in order, the question first; damaged ones are left out."""
    images = {image.name: image for image in read_images(trace.get("images"))}
    of_question = tuple(image for image in images.values() if not image.made_by)
    steps = [DialogueStep("question", _read_text(trace, "question"), images=of_question)]
    listed = trace.get("steps")
    for step in listed[:MAX_STEPS] if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if not isinstance(step, Mapping):
            continue
        if step.get("step") == "core":
            role, text = _read_text(step, "role"), _read_text(step, "text")
            parse = {"planner": parse_plan, "react": parse_step}.get(role)
            parsed = ParsedCalls() if parse is None else parse(text)
            steps.append(DialogueStep("core", text, role, parsed.calls, parsed.thought))
        elif step.get("step") == "tool":
            made = step.get("images")
            names = made if isinstance(made, Sequence) else ()
            steps.append(
                DialogueStep(
                    "tool",
                    call=ToolCall(_read_text(step, "name"), _read_mapping(step, "arguments")),
                    values=_read_mapping(step, "values"),
                    failure=_read_text(step, "failure"),
                    message=_read_text(step, "message"),
                    images=tuple(images[name] for name in names if isinstance(name, str) and name in images),
                )
            )
    return tuple(steps)


def read_images(listed: object) -> list[TracedImage]:
    """The images that a trace lists; damaged entries are left out."""
    found = []
    for image in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if not isinstance(image, Mapping):
            continue
        size = image.get("size_px")
        pair = tuple(size) if isinstance(size, Sequence) else ()
        if (
            len(pair) == 2
            and all(type(side) is int and 0 < side <= _MAX_SIDE_PX for side in pair)
            and image.get("name")
        ):
            texts = (_read_text(image, "name"), _read_text(image, "digest"))
            found.append(TracedImage(*texts, (pair[0], pair[1]), _read_text(image, "made_by")))
    return found


def _read_text(record: Mapping[str, Any], name: str) -> str:
    found = record.get(name)
    return found if isinstance(found, str) else ""


def _read_mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}
