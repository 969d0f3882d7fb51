"""`BackProjectPixels`: points in space of pixels whose depth is known."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, CAMERA, POINTS_MAX, Depths, Pixel, back_project, read_depths
from vgbench_gen.agent.tools._pairs import Intrinsics, round_all
from vgbench_gen.core.config import Config


class _Arguments(Config):
    pixels: tuple[Pixel, ...] = Field(min_length=1, max_length=POINTS_MAX, description="[[u, v], ...], pixels")
    depths: Depths
    camera: Intrinsics = Field(description=CAMERA)


@tools.register("BackProjectPixels")
class BackProjectPixels(Tool[_Arguments]):
    name = "BackProjectPixels"
    tier: ClassVar[Tier] = "classical"
    does = "Gives the point in space of each pixel whose depth is known."
    returns: ClassVar = {
        "points": f"[x, y, z] of each, {AXES}, in the unit of the depths",
        "ranges": "distance of each from the camera, along its ray",
    }
    example: ClassVar = {
        "pixels": [[320, 240]],
        "depths": [2.5],
        "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5},
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        z = read_depths(arguments.depths, len(arguments.pixels))
        points = back_project(arguments.camera, np.array(arguments.pixels), z)
        return ToolOutput({"points": round_all(points, 6), "ranges": round_all(np.linalg.norm(points, axis=1), 6)})
