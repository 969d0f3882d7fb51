"""`EstimateObjectDepth`: metric depth of named objects, by a detector and a depth model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from pydantic import Field

from vgbench_gen.agent.tool import ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._depths import WHERE, Where, list_depth_slots, measure_depths
from vgbench_gen.agent.tools._objects import (
    NO_ERROR_BARS,
    SCORE,
    ObjectsArguments,
    cover_box,
    describe_depth,
    find_objects,
    say_missing,
)
from vgbench_gen.agent.weights import DepthOptions, DetectorOptions, WeightsTool
from vgbench_gen.core.config import Config

_CORE_SHARE = 0.5  # of each side of a box about its centre: what lies beside the object is left out


class _Arguments(ObjectsArguments):
    indoor_or_outdoor: Where = Field(description=WHERE)


class ObjectDepthOptions(DetectorOptions, DepthOptions):
    """For tools that find objects and measure their depth."""


@tools.register("EstimateObjectDepthWeights")
class EstimateObjectDepth(WeightsTool[_Arguments]):
    name = "EstimateObjectDepth"
    does = "Estimates how far named objects are from the camera."
    Options = ObjectDepthOptions
    argument_aliases: ClassVar = {"object": "objects", "object_descs": "objects"}
    returns: ClassVar = {
        "results": '[{"object", "depth", "spread_m", "score", "error"}] in the order of the names; depth is the median '
        "over the middle of the object's box, meters along the viewing axis; spread_m is half the range of the middle "
        f"half of the depths there; score is {SCORE}; error says why there is none",
        "uncertainty": "why the depths have no error bars",
    }
    example: ClassVar = {"image": "image-0", "objects": ["dog", "cat"], "indoor_or_outdoor": "outdoor"}

    def list_slots(self, options: Config, arguments: _Arguments) -> tuple[str, ...]:
        return list_depth_slots(options, arguments.indoor_or_outdoor)

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        asked = [one.arguments for one in given]
        boxes = find_objects(given, [one.objects for one in asked])
        maps = measure_depths(given)
        options = given[0].options
        assert isinstance(options, ObjectDepthOptions)
        made: list[ToolOutput | ToolError] = []
        for one, own, found in zip(asked, boxes, maps, strict=True):
            size = (found.depth_m.shape[0], found.depth_m.shape[1])
            results: list[dict[str, Any]] = []
            for name, box in zip(one.objects, own, strict=True):
                if box is None:
                    missing = say_missing(name, options.box_score_min)
                    results.append({"object": name, "depth": None, "error": missing})
                    continue
                read = describe_depth(found.depth_m, cover_box(box.box, size, _CORE_SHARE))
                results.append({"object": name, **read, "score": round(box.score, 3), "error": None})
            made.append(ToolOutput({"results": results, "uncertainty": NO_ERROR_BARS}))
        return made
