"""`DetectObjects`: what there is in an image.

The published tool tags images by RAM++, which no package that installs beside ours offers. Here the core model names
what it sees and an open-vocabulary detector keeps what it finds; the result says so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import ImageName, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._objects import MOST_NAMES, Name, find_objects
from vgbench_gen.agent.weights import DetectorOptions, WeightsTool
from vgbench_gen.core.config import Config

_LONGEST = 60  # characters of a name
_BULLET = re.compile(r"^[\s\-*•\d.)\]]+|[\s.\"'`]+$|^[\"'`]+")


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    candidates: tuple[Name, ...] = Field(default=(), max_length=MOST_NAMES)


@tools.register("DetectObjectsWeights")
class DetectObjects(WeightsTool[_Arguments]):
    name = "DetectObjects"
    does = "Lists the objects in an image: the model names candidates, and a detector keeps those that it finds."
    Options = DetectorOptions
    returns: ClassVar = {
        "objects": "names of what was found, best first",
        "scores": "the detector's own score of each, from 0 to 1, no probability",
        "not_found": "what was named and not found",
        "named_by": "always the core model",
        "checked_by": "the kind of detector",
    }
    example: ClassVar = {"image": "image-0"}
    core_query = (
        f"List the objects that you see in this image: one noun or short name a line, at most {MOST_NAMES} lines, "
        "nothing else."
    )

    def needs_core(self, arguments: _Arguments) -> bool:
        return not arguments.candidates

    def hear(self, arguments: _Arguments, reply: str) -> _Arguments:
        return arguments.model_copy(update={"candidates": read_names(reply)})

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        names = {k: one.arguments.candidates for k, one in enumerate(given) if one.arguments.candidates}
        boxes = find_objects([given[k] for k in names], [*names.values()]) if names else []
        found = dict(zip(names, boxes, strict=True))
        return [
            self._tell(names[k], found[k]) if k in found else ToolError("the core model named nothing")
            for k in range(len(given))
        ]

    def _tell(self, names: Sequence[str], boxes: Sequence[object]) -> ToolOutput:
        scored = [(name, getattr(box, "score", 0.0)) for name, box in zip(names, boxes, strict=True) if box is not None]
        scored.sort(key=lambda pair: -pair[1])
        return ToolOutput(
            {
                "objects": [name for name, _ in scored],
                "scores": [round(score, 3) for _, score in scored],
                "not_found": [name for name, box in zip(names, boxes, strict=True) if box is None],
                "named_by": "the core model",
                "checked_by": "open-vocabulary detector",
            }
        )


def read_names(text: str) -> tuple[str, ...]:
    """The names in a list that a model wrote: lines or commas, with or without bullets; each once, no sentences."""
    found: dict[str, str] = {}
    for line in re.split(r"[\n,;]", text[:20_000]):
        name = _BULLET.sub("", _BULLET.sub("", line)).strip()
        if 0 < len(name) <= _LONGEST and len(name.split()) <= 6:
            found.setdefault(name.casefold(), name)
    return tuple(found.values())[:MOST_NAMES]
