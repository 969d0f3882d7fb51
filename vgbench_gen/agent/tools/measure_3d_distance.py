"""`Measure3DDistance`: the distance in space of two pixels whose depths are known."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, CAMERA, Pixel, back_project
from vgbench_gen.agent.tools._pairs import Intrinsics, Positive, round_all
from vgbench_gen.core.config import Config

_PIXEL_SIGMA = 2.0


class _Arguments(Config):
    pixels: tuple[Pixel, Pixel] = Field(description="[[u, v], [u, v]] of both points, pixels of one image")
    depths: tuple[Positive, Positive] = Field(description="depth of each along the view direction (z)")
    camera: Intrinsics = Field(description=CAMERA)
    depth_error: float = Field(
        default=0.05, ge=0, le=1, description="standard deviation of a depth over the depth, for the uncertainty"
    )


@tools.register("Measure3DDistance")
class Measure3DDistance(Tool[_Arguments]):
    name = "Measure3DDistance"
    tier: ClassVar[Tier] = "classical"
    does = "Measures how far apart two points are in space, from their pixels and depths."
    returns: ClassVar = {
        "distance": "in the unit of the depths",
        "distance_sigma": "its standard deviation, from depth_error and pixels known to 2 pixels",
        "vector": f"from the first point to the second, {AXES}",
        "points": "both points, same axes",
        "cannot_tell": "why the distance means nothing: it is no larger than its standard deviation",
    }
    example: ClassVar = {
        "pixels": [[200, 240], [420, 250]],
        "depths": [2.5, 3.0],
        "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5},
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        camera, z = arguments.camera, np.array(arguments.depths)
        points = back_project(camera, np.array(arguments.pixels), z)
        vector = points[1] - points[0]
        distance = float(np.linalg.norm(vector))
        along = vector / max(distance, 1e-12)
        by_depth = (points @ along) * arguments.depth_error
        by_pixel = z[:, None] * _PIXEL_SIGMA / np.array([camera.fx, camera.fy]) * along[:2]
        sigma = float(np.sqrt((by_depth**2).sum() + (by_pixel**2).sum()))
        told: dict[str, Any] = {
            "distance": round(distance, 6),
            "distance_sigma": round(sigma, 6),
            "vector": round_all(vector, 6),
            "points": round_all(points, 6),
        }
        if distance <= sigma:
            told["cannot_tell"] = "the distance is no larger than its standard deviation"
        return ToolOutput(told)
