"""`ComposePoses`: motions one after the other, inverted where asked, with their angle and length."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, POSE, Pose
from vgbench_gen.agent.tools._pairs import round_all
from vgbench_gen.core.config import Config
from vgbench_gen.geometry import poses


class _Arguments(Config):
    poses: tuple[Pose, ...] = Field(min_length=1, max_length=16, description=f"[{POSE}, ...], the first applied first")
    invert: tuple[bool, ...] = Field(
        default=(), max_length=16, description="one for each pose: whether its inverse is meant; none for no inverse"
    )


@tools.register("ComposePoses")
class ComposePoses(Tool[_Arguments]):
    name = "ComposePoses"
    tier: ClassVar[Tier] = "classical"
    does = f"Chains or inverts rigid motions and tells the result's angle, length and view direction ({AXES})."
    returns: ClassVar = {
        "rotation": "3x3 R of the whole X_last = R X_first + t",
        "translation": "t, in the unit of the given translations",
        "rotation_deg": "angle of R, degrees",
        "distance": "length of t",
        "second_camera_in_first": "where the last camera stands in axes of the first one, -R^T t",
        "yaw_deg": "by how much the last camera looks to the right of the first one, degrees; negative: to the left",
        "pitch_deg": "by how much it looks up, degrees; negative: down",
        "roll_deg": "by how much it is turned clockwise about its view direction as it sees, degrees",
    }
    example: ClassVar = {
        "poses": [{"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0.2, 0, 0]}],
        "invert": [True],
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        if len(arguments.invert) not in (0, len(arguments.poses)):
            raise ToolError(f"invert: found {len(arguments.invert)}; expected {len(arguments.poses)} or none")
        whole = np.eye(4)
        inverted = arguments.invert or (False,) * len(arguments.poses)
        for pose, invert in zip(arguments.poses, inverted, strict=True):
            one = pose.read()
            whole = (poses.invert(one) if invert else one) @ whole
        R, t = whole[:3, :3], whole[:3, 3]
        right, down, ahead = R
        return ToolOutput(
            {
                "rotation": round_all(R, 6),
                "translation": round_all(t, 6),
                "rotation_deg": round(float(poses.rotation_angle_deg(R)), 3),
                "distance": round(float(np.linalg.norm(t)), 6),
                "second_camera_in_first": round_all(-R.T @ t, 6),
                "yaw_deg": round(float(np.degrees(np.arctan2(ahead[0], ahead[2]))), 3) + 0.0,
                "pitch_deg": round(float(np.degrees(np.arcsin(np.clip(-ahead[1], -1, 1)))), 3) + 0.0,
                "roll_deg": round(float(np.degrees(np.arctan2(right[1], down[1]))), 3) + 0.0,
            }
        )
