"""`GetObjectMask`: how much of an image named objects cover, by a detector and SAM 2."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from vgbench_gen.agent.tool import ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._objects import BOX, SCORE, ObjectsArguments, round_box
from vgbench_gen.agent.tools._outlines import outline_objects
from vgbench_gen.agent.weights import MaskOptions, WeightsTool


@tools.register("GetObjectMaskWeights")
class GetObjectMask(WeightsTool[ObjectsArguments]):
    name = "GetObjectMask"
    does = "Outlines named objects in an image and tells how large they are in it."
    Options = MaskOptions
    argument_aliases: ClassVar = {"object": "objects", "object_descs": "objects"}
    returns: ClassVar = {
        "results": '[{"object", "mask_area", "bbox", "score", "mask_score", "error"}] in the order of the names; '
        f"mask_area is the share of the image's area from 0 to 1, bbox bounds the mask, {BOX}; score is {SCORE}; "
        "mask_score is the overlap with the truth that SAM 2 expects; error says why there is none",
    }
    example: ClassVar = {"image": "image-0", "objects": ["dog", "cat"]}

    def run_batch(self, given: Sequence[ToolInput[ObjectsArguments]]) -> list[ToolOutput | ToolError]:
        names = [one.arguments.objects for one in given]
        made: list[ToolOutput | ToolError] = []
        for outlines in outline_objects(given, names):
            results: list[dict[str, Any]] = [
                {
                    "object": one.name,
                    "mask_area": None if one.mask is None else round(float(one.mask.mean()), 5),
                    "bbox": None if one.bounds is None else round_box(one.bounds),
                    "score": None if one.mask is None else round(one.score, 3),
                    "mask_score": None if one.mask is None else round(one.mask_score, 3),
                    "error": one.error or None,
                }
                for one in outlines
            ]
            made.append(ToolOutput({"results": results}))
        return made
