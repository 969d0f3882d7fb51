"""`EstimateObjectGeometryProperties`: box, size in the image and depth of named objects, and the camera.

The published tool takes the camera from VGGT, whose pose of a single image is always the identity. Here the intrinsics
are those that the depth model estimates, where it does; in mode `sane` the result says that one image has no pose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Mode, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._depths import WHERE, Where, list_depth_slots, measure_depths
from vgbench_gen.agent.tools._objects import BOX, NO_ERROR_BARS, Names, describe_depth, round_box
from vgbench_gen.agent.tools._outlines import outline_objects
from vgbench_gen.agent.weights import DepthOptions, MaskOptions, WeightsTool
from vgbench_gen.core.config import Config

_UNKNOWN = "unknown: the depth model estimates no field of view"
_NO_POSE = "unknown: one image has no pose relative to anything"


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    object_descs: Names = Field(description='descriptions of the objects, such as ["red chair"]')
    indoor_or_outdoor: Where = Field(default="indoor", description=WHERE)


class GeometryOptions(MaskOptions, DepthOptions):
    """For tools that outline objects and measure their depth."""


class _Geometry(WeightsTool[_Arguments]):
    name = "EstimateObjectGeometryProperties"
    Options = GeometryOptions
    argument_aliases: ClassVar = {"objects": "object_descs", "object": "object_descs"}
    example: ClassVar = {"image": "image-0", "object_descs": ["dog", "cat"]}

    def list_slots(self, options: Config, arguments: _Arguments) -> tuple[str, ...]:
        return list_depth_slots(options, arguments.indoor_or_outdoor)

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        maps = measure_depths(given)
        made: list[ToolOutput | ToolError] = []
        outlined = outline_objects(given, [one.arguments.object_descs for one in given])
        for call, outlines, found in zip(given, outlined, maps, strict=True):
            results: list[dict[str, Any]] = []
            for one in outlines:
                if one.mask is None or one.bounds is None:
                    none = {"bbox": None, "mask_area": None, "depth": None}
                    results.append({"object": one.name, **none, "error": one.error})
                    continue
                results.append(
                    {
                        "object": one.name,
                        "bbox": round_box(one.bounds),
                        "mask_area": round(float(one.mask.mean()), 5),
                        **describe_depth(found.depth_m, one.mask),
                        "score": round(one.score, 3),
                        "error": None,
                    }
                )
            width, height = call.images[0].size
            intrinsic = None
            if (focal := found.focal_px) is not None:
                focal = round(focal * float(call.images[0].scale[0]), 1)
                intrinsic = [[focal, 0.0, (width - 1) / 2], [0.0, focal, (height - 1) / 2], [0.0, 0.0, 1.0]]
            told = {"results": results, "camera_parameters": self.describe_camera(intrinsic)}
            made.append(ToolOutput(told | {"uncertainty": NO_ERROR_BARS}))
        return made

    def describe_camera(self, intrinsic: list[list[float]] | None) -> dict[str, Any]:
        """The result's `camera_parameters`.

        Args:
            intrinsic: 3x3 in pixels of the image, or None.
        """
        raise NotImplementedError


_RESULTS = (
    '[{"object", "bbox", "mask_area", "depth", "error"}] in the order of the descriptions; mask_area is a share of the '
    f"image's area from 0 to 1; bbox is {BOX}; depth is the median over the mask, meters along the viewing axis"
)


@tools.register("EstimateObjectGeometryPropertiesWeights")
class EstimateObjectGeometryProperties(_Geometry):
    """With what can be known of the camera."""

    modes: ClassVar[tuple[Mode, ...]] = ("sane",)
    does = "Estimates box, size in the image and depth of described objects, and the camera's focal length if it can."
    returns: ClassVar = {
        "results": f"{_RESULTS}; spread_m is half the range of the middle half of its depths",
        "camera_parameters": "intrinsic: 3x3 in pixels, or null where the depth model does not estimate it (principal "
        "point taken as the middle); pose: always unknown, because one image has none",
        "uncertainty": "why the depths have no error bars",
    }

    def describe_camera(self, intrinsic: list[list[float]] | None) -> dict[str, Any]:
        why = {} if intrinsic else {"why_no_intrinsic": _UNKNOWN}
        return {"intrinsic": intrinsic, **why, "pose": _NO_POSE}


@tools.register("EstimateObjectGeometryPropertiesWeightsOfficial")
class EstimateObjectGeometryPropertiesOfficial(_Geometry):
    """As published."""

    modes: ClassVar[tuple[Mode, ...]] = ("official",)
    does = "Estimates geometric properties of described objects and the parameters of the camera."
    returns: ClassVar = {
        "results": _RESULTS,
        "camera_parameters": "intrinsic: 3x3, extrinsic: 3x4",
    }

    def describe_camera(self, intrinsic: list[list[float]] | None) -> dict[str, Any]:
        return {"intrinsic": intrinsic or _UNKNOWN, "extrinsic": np.eye(3, 4).tolist()}
