"""`TransformPoints`: points of one frame in another, with distances and angles between them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, CAMERA, POSE, Pose, Vector
from vgbench_gen.agent.tools._pairs import Intrinsics, round_all
from vgbench_gen.core.config import Config
from vgbench_gen.geometry import poses

SHOWN = 24  # points; more have too many pairs to read


class _Arguments(Config):
    points: tuple[Vector, ...] = Field(min_length=1, max_length=SHOWN, description=f"[[x, y, z], ...], {AXES}")
    pose: Pose | None = Field(default=None, description=f"{POSE}; nothing moves where it is left out")
    inverse: bool = Field(default=False, description="whether the inverse of the pose is meant")
    camera: Intrinsics | None = Field(default=None, description=f"{CAMERA}, for the pixels of the moved points")


@tools.register("TransformPoints")
class TransformPoints(Tool[_Arguments]):
    name = "TransformPoints"
    aliases = ("ProjectPoints", "MeasurePoints")
    tier: ClassVar[Tier] = "classical"
    does = "Moves points by a pose, and measures distances and angles between them; with a camera also their pixels."
    returns: ClassVar = {
        "points": "the moved points, in the unit given",
        "pixels": "[u, v] of each where a camera is given; null behind it",
        "ranges": "distance of each from the origin of its frame",
        "distances": "N x N distances between the points, in the unit given",
        "angles_deg": "N x N angles between the lines of sight to them from the origin, degrees; null at the origin",
    }
    example: ClassVar = {
        "points": [[0.1, 0.2, 2.0], [0.5, 0.0, 3.0]],
        "pose": {"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0, 0, 0.5]},
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        pose = (arguments.pose or Pose()).read()
        moved = poses.transform(poses.invert(pose) if arguments.inverse else pose, np.array(arguments.points))
        ranges = np.linalg.norm(moved, axis=1)
        rays = moved / np.maximum(ranges, 1e-12)[:, None]
        cosines, crossed = rays @ rays.T, np.linalg.norm(np.cross(rays[:, None], rays[None]), axis=2)
        angles = np.degrees(np.arctan2(crossed, cosines))
        told: dict[str, Any] = {
            "points": round_all(moved, 6),
            "ranges": round_all(ranges, 6),
            "distances": round_all(np.linalg.norm(moved[:, None] - moved[None], axis=2), 6),
            "angles_deg": [
                [
                    round(float(angle), 3) if min(one, two) > 1e-9 else None
                    for angle, two in zip(row, ranges, strict=True)
                ]
                for row, one in zip(angles, ranges, strict=True)
            ],
        }
        if arguments.camera is not None:
            seen = moved @ arguments.camera.K.T
            told["pixels"] = [round_all(at[:2] / at[2], 2) if at[2] > 1e-9 else None for at in seen]
        return ToolOutput(told)
