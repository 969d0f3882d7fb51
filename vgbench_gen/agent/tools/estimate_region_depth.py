"""`EstimateRegionDepth`: metric depth of boxes in an image."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from vgbench_gen.agent.tool import ImageName, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._depths import WHERE, Where, list_depth_slots, measure_depths
from vgbench_gen.agent.tools._objects import BOX, NO_ERROR_BARS, Box, cover_box, describe_depth, move_box
from vgbench_gen.agent.weights import DepthOptions, WeightsTool
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray


def _listed(value: Any) -> Any:
    if not isinstance(value, list | tuple):
        return value
    nested = value if any(isinstance(one, list | tuple) for one in value) else [value]
    return tuple(tuple(one) if isinstance(one, list) else one for one in nested)


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    bboxes: Annotated[tuple[Box, ...], Field(min_length=1, max_length=50), BeforeValidator(_listed)] = Field(
        description=f"one box or a list of boxes, each {BOX}; NOT shares"
    )
    indoor_or_outdoor: Where = Field(description=WHERE)
    mode: Literal["mean", "center"] = Field(default="mean", description="over the box, or at its centre")


@tools.register("EstimateRegionDepthWeights")
class EstimateRegionDepth(WeightsTool[_Arguments]):
    name = "EstimateRegionDepth"
    does = "Estimates how far regions of an image are from the camera."
    Options = DepthOptions
    argument_aliases: ClassVar = {"bbox": "bboxes", "regions": "bboxes"}
    returns: ClassVar = {
        "depths": "of each box in order, meters along the viewing axis",
        "unit": "always meters",
        "spread_m": "of each box, half the range of the middle half of its depths, meters",
        "uncertainty": "why the depths have no error bars",
    }
    example: ClassVar = {"image": "image-0", "bboxes": [[120, 80, 260, 310]], "indoor_or_outdoor": "indoor"}

    def list_slots(self, options: Config, arguments: _Arguments) -> tuple[str, ...]:
        return list_depth_slots(options, arguments.indoor_or_outdoor)

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        maps = measure_depths(given)
        return [_read_boxes(one, found.depth_m) for one, found in zip(given, maps, strict=True)]


def _read_boxes(given: ToolInput[_Arguments], depth_m: FloatArray) -> ToolOutput | ToolError:
    depths, spreads, asked = [], [], given.arguments
    image = given.images[0]
    for delivered in asked.bboxes:
        box = move_box(delivered, image.to_held)
        try:
            cover_box(delivered, image.size[::-1])  # an error names the pixels that were given
            within = cover_box(box, (depth_m.shape[0], depth_m.shape[1]))
            centre = cover_box(box, (depth_m.shape[0], depth_m.shape[1]), share=0.0)
        except ToolError as error:
            return error
        chosen = depth_m[within] if asked.mode == "mean" else depth_m[centre]
        depths.append(round(float(np.mean(chosen)), 3))
        spreads.append(describe_depth(depth_m, within)["spread_m"])
    return ToolOutput({"depths": depths, "unit": "meters", "spread_m": spreads, "uncertainty": NO_ERROR_BARS})
