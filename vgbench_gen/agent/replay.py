"""A trace read back as a dialogue, without any model or tool: what pages show and exports write."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from vgbench_gen.agent.calls import ToolCall, parse_plan, parse_step

MAX_STEPS = 1000  # of a trace; a file may hold anything
_MAX_SIDE = 1 << 26  # pixels


@dataclass(frozen=True, slots=True)
class TracedImage:
    """An image of a trace."""

    name: str
    """As the model called it: `image-0` and so on."""
    digest: str
    size_px: tuple[int, int]
    """(width, height)."""
    made_by: str = ""
    """The tool that made it; "" for images of the question."""


@dataclass(frozen=True, slots=True)
class DialogueStep:
    """One step of a dialogue."""

    speaker: Literal["question", "core", "tool"]
    text: str = ""
    """The question, or what the core model wrote; "" for tools."""
    role: str = ""
    """Of the core model: react, planner, executor, summariser, fallback, last, self-thinking."""
    calls: tuple[ToolCall, ...] = ()
    """Of the core model: the calls that were read in its text."""
    thought: str = ""
    """Of the core model, where its form has one."""
    call: ToolCall | None = None
    """Of a tool: how it was called."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """Of a tool: what it gave."""
    failure: str = ""
    """Of a tool: why it gave nothing; "" where it did."""
    message: str = ""
    """Of a tool that failed: what the model was told."""
    images: tuple[TracedImage, ...] = ()
    """Those of the question, or those that the tool made."""


def replay(trace: Mapping[str, Any]) -> tuple[DialogueStep, ...]:
    """The steps of a trace in order, the question first; what is damaged is left out.

    Args:
        trace: as `Trace.to_json` wrote it and a log gave it back.
    """
    images = {image.name: image for image in read_images(trace.get("images"))}
    shown = tuple(image for image in images.values() if not image.made_by)
    steps = [DialogueStep("question", _read_text(trace, "question"), images=shown)]
    listed = trace.get("steps")
    for step in listed[:MAX_STEPS] if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if not isinstance(step, Mapping):
            continue
        if step.get("step") == "core":
            role, text = _read_text(step, "role"), _read_text(step, "text")
            read = {"planner": parse_plan, "react": parse_step}.get(role)
            found = None if read is None else read(text)
            steps.append(DialogueStep("core", text, role, *((found.calls, found.thought) if found else ())))
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
    """The images that a trace lists; what is none is left out."""
    found = []
    for image in listed if isinstance(listed, Sequence) and not isinstance(listed, str) else ():
        if not isinstance(image, Mapping):
            continue
        size = image.get("size_px")
        pair = tuple(size) if isinstance(size, Sequence) else ()
        if len(pair) == 2 and all(type(side) is int and 0 < side <= _MAX_SIDE for side in pair) and image.get("name"):
            texts = (_read_text(image, "name"), _read_text(image, "digest"))
            found.append(TracedImage(*texts, (pair[0], pair[1]), _read_text(image, "made_by")))
    return found


def _read_text(record: Mapping[str, Any], name: str) -> str:
    found = record.get(name)
    return found if isinstance(found, str) else ""


def _read_mapping(record: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = record.get(name)
    return found if isinstance(found, Mapping) else {}
