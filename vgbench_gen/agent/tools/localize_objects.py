"""`LocalizeObjects`: boxes of named objects, by an open-vocabulary detector."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from vgbench_gen.agent.tool import ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._objects import BOX, SCORE, ObjectsArguments, find_objects, move_box, round_box
from vgbench_gen.agent.weights import DetectorOptions, WeightsTool


@tools.register("LocalizeObjectsWeights")
class LocalizeObjects(WeightsTool[ObjectsArguments]):
    name = "LocalizeObjects"
    does = "Finds named objects in an image: the best box of each name."
    Options = DetectorOptions
    argument_aliases: ClassVar = {"object": "objects", "object_descs": "objects"}
    returns: ClassVar = {
        "regions": f'[{{"label", "bbox", "score"}}] of the names that were found; bbox is {BOX}; score is {SCORE}',
        "not_found": "names without a box",
    }
    example: ClassVar = {"image": "image-0", "objects": ["dog", "cat"]}

    def run_batch(self, given: Sequence[ToolInput[ObjectsArguments]]) -> list[ToolOutput | ToolError]:
        names = [one.arguments.objects for one in given]
        made: list[ToolOutput | ToolError] = []
        for one, own, boxes in zip(given, names, find_objects(given, names), strict=True):
            move = one.images[0].to_delivered
            told: list[dict[str, Any]] = [
                {"label": name, "bbox": round_box(move_box(box.box, move)), "score": round(box.score, 3)}
                for name, box in zip(own, boxes, strict=True)
                if box is not None
            ]
            missing = [name for name, box in zip(own, boxes, strict=True) if box is None]
            made.append(ToolOutput({"regions": told, "not_found": missing}))
        return made
