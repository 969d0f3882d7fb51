"""Oracle tools of one image: its camera, the depth of regions, and objects with their boxes in space."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import round_all
from vgbench_gen.agent.tools._revealed import NOTHING, OracleTool, find_place, find_rect, read_revealed
from vgbench_gen.core.config import Config
from vgbench_gen.geometry.cameras import fov_deg
from vgbench_gen.tasks.revealed import RevealedObject

Box = tuple[float, float, float, float]
_PIXELS = "[left, top, right, bottom] in pixels, ends included"


class _CameraArguments(Config):
    image: ImageName = Field(description="name of the image")


@tools.register("OracleCameraParameters")
class OracleCameraParameters(OracleTool[_CameraArguments]):
    name = "EstimateCameraParameters"
    aliases = ("GetCameraParametersVGGT",)
    does = "Gives the pinhole camera of an image."
    returns: ClassVar = {
        "intrinsic": "3x3 in pixels of the image; (0, 0) is the centre of the top-left pixel",
        "hfov_deg": "field of view from the left edge to the right one, degrees",
        "vfov_deg": "field of view from the upper edge to the lower one, degrees",
    }
    example: ClassVar = {"image": "image-0"}

    def run(self, given: ToolInput[_CameraArguments]) -> ToolOutput:
        place = find_place(given.arguments.image)
        for one in read_revealed(given).cameras:
            if one.image == place:
                h_deg, v_deg = fov_deg(one.camera)
                told = {
                    "intrinsic": round_all(one.camera.K, 3),
                    "hfov_deg": round(h_deg, 3),
                    "vfov_deg": round(v_deg, 3),
                }
                return ToolOutput(told)
        raise ToolError(f"{NOTHING}: the camera of {given.arguments.image}")


class _RegionArguments(Config):
    image: ImageName = Field(description="name of the image")
    bboxes: tuple[Box, ...] = Field(min_length=1, max_length=100, description=f"[{_PIXELS}, ...]")
    indoor_or_outdoor: str = Field(default="indoor", max_length=20, description="taken and not needed")
    mode: Literal["mean", "center", "median"] = Field(default="mean", description="mean, or the median depth")


@tools.register("OracleRegionDepth")
class OracleRegionDepth(OracleTool[_RegionArguments]):
    name = "EstimateRegionDepth"
    does = "Gives the depth of rectangles of an image, along the view (z), in meters."
    returns: ClassVar = {"depths": "of each rectangle, in their order", "unit": "meters"}
    example: ClassVar = {"image": "image-0", "bboxes": [[100, 120, 180, 200]]}

    def run(self, given: ToolInput[_RegionArguments]) -> ToolOutput:
        arguments = given.arguments
        regions = read_revealed(given).regions
        found = [find_rect(regions, arguments.image, rect) for rect in arguments.bboxes]
        depths = [round(one.mean_m if arguments.mode == "mean" else one.median_m, 3) for one in found]
        return ToolOutput({"depths": depths, "unit": "meters"})


class _ObjectArguments(Config):
    image: ImageName = Field(description="name of the image")
    objects: tuple[str, ...] = Field(default=(), max_length=50, description="what they are, such as a chair")
    bboxes: tuple[Box, ...] = Field(
        default=(), max_length=50, description=f"their outlines {_PIXELS}, where words fit several objects"
    )


class _ObjectTool(OracleTool[_ObjectArguments]):
    example: ClassVar = {"image": "image-0", "objects": ["chair"]}

    def _describe(self, one: RevealedObject) -> dict[str, Any]:
        raise NotImplementedError

    def run(self, given: ToolInput[_ObjectArguments]) -> ToolOutput:
        arguments = given.arguments
        seen = [one for one in read_revealed(given).objects if one.image == find_place(arguments.image)]
        if not arguments.objects and not arguments.bboxes:
            raise ToolError("found neither objects nor bboxes; expected some")
        results = []
        for words in arguments.objects:
            fitting = [one for one in seen if _is_called(one, words)]
            if len(fitting) == 1:
                results.append({"object": words, **self._describe(fitting[0])})
            else:
                told = NOTHING if not fitting else f"{len(fitting)} objects fit; give bboxes in place of words"
                results.append({"object": words, "error": told})
        for rect in arguments.bboxes:
            one = find_rect(seen, arguments.image, rect)
            results.append({"object": one.name, **self._describe(one)})
        return ToolOutput({"results": results})


def _is_called(one: RevealedObject, words: str) -> bool:
    wanted, name = words.casefold().strip(), one.name.casefold()
    return bool(wanted) and (wanted in name.split() or wanted == name or wanted == name.removeprefix("the "))


@tools.register("OracleObjectDepth")
class OracleObjectDepth(_ObjectTool):
    name = "EstimateObjectDepth"
    does = "Gives the depth of objects: of the centre of the box around each, along the view (z), in meters."
    returns: ClassVar = {"results": "for each: object, depth (meters), or error"}

    def _describe(self, one: RevealedObject) -> dict[str, Any]:
        return {"depth": round(float(one.corners_m[:, 2].mean()), 3)}


@tools.register("OracleObjectGeometry")
class OracleObjectGeometry(_ObjectTool):
    name = "EstimateObjectGeometryProperties"
    does = "Gives outline, depth and box in space of objects."
    argument_aliases: ClassVar = {"object_descs": "objects"}
    returns: ClassVar = {
        "results": f"for each: object, bbox ({_PIXELS}), depth of the centre along the view (meters), center_m and "
        "corners_m (centre and eight corners of its box, meters, camera axes x right, y down, z forward), or error"
    }

    def _describe(self, one: RevealedObject) -> dict[str, Any]:
        centre = np.asarray(one.corners_m.mean(axis=0))
        return {
            "bbox": list(one.rect_px),
            "depth": round(float(centre[2]), 3),
            "center_m": round_all(centre, 3),
            "corners_m": round_all(one.corners_m, 3),
        }
