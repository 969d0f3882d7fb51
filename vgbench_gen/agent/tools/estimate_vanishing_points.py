"""`EstimateVanishingPoints`: where parallel lines of a room meet, and how the camera is tilted."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import CAMERA
from vgbench_gen.agent.tools._pairs import Intrinsics, round_all
from vgbench_gen.agent.tools._vanishing import fit_line_camera
from vgbench_gen.core.config import Config

SUPPORT_MIN = 4
_UPRIGHT_MAX_DEG = 50.0  # of the camera; beyond, nobody can say which direction is up


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    camera: Intrinsics | None = Field(default=None, description=f"{CAMERA}; estimated where it is left out")


@tools.register("EstimateVanishingPoints")
class EstimateVanishingPoints(Tool[_Arguments]):
    name = "EstimateVanishingPoints"
    tier: ClassVar[Tier] = "classical"
    does = (
        "Finds three directions at right angles in the lines of an image (walls, floor, furniture), their vanishing "
        "points, and by how much the camera looks up and is turned, taking one of them for the vertical."
    )
    returns: ClassVar = {
        "directions": "[{direction: unit vector in camera axes (x right, y down, z forward), vanishing_point: [u, v] "
        "in pixels or null where it is too far away, lines_count}, ...]",
        "pitch_deg": "by how much the camera looks up, degrees; negative: down; null where no lines show the vertical",
        "roll_deg": "by how much it is turned clockwise about its view direction as it sees, degrees; null likewise",
        "lines_count": "all line segments",
        "focal_px": "focal length that was used or found, pixels",
        "cannot_tell": "why something is null",
    }
    example: ClassVar = {"image": "image-0"}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        image, camera = given.images[0], arguments.camera
        width, height = image.size
        stated = np.array([np.nan, (width - 1) / 2, (height - 1) / 2])
        if camera is not None:
            stated = np.array([np.sqrt(camera.fx * camera.fy), camera.cx, camera.cy])
        found = fit_line_camera(image, stated)
        if isinstance(found, str):
            return ToolOutput({"directions": None, "pitch_deg": None, "roll_deg": None, "cannot_tell": found})
        listed = []
        for direction, count in zip(found.directions, found.counts, strict=True):
            if count >= SUPPORT_MIN:
                point = found.find_vanishing_point(direction)
                listed.append(
                    {
                        "direction": round_all(direction, 4),
                        "vanishing_point": None if point is None else round_all(point, 1),
                        "lines_count": int(count),
                    }
                )
        told: dict[str, Any] = {
            "directions": listed,
            "lines_count": found.segments,
            "focal_px": round(found.focal_px, 1),
            "pitch_deg": None,
            "roll_deg": None,
        }
        upright = int(np.abs(found.directions[:, 1]).argmax())
        down = found.directions[upright] * np.sign(found.directions[upright, 1])
        if found.counts[upright] < SUPPORT_MIN or np.degrees(np.arccos(min(down[1], 1.0))) > _UPRIGHT_MAX_DEG:
            return ToolOutput(told | {"cannot_tell": "no lines show the vertical"})
        told["pitch_deg"] = round(float(np.degrees(np.arcsin(np.clip(-down[2], -1, 1)))), 2) + 0.0
        told["roll_deg"] = round(float(np.degrees(np.arctan2(down[0], down[1]))), 2) + 0.0
        return ToolOutput(told)
