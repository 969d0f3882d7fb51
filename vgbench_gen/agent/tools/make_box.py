"""`MakeBox`: the corners of a box from its centre, sides and turn about the vertical, and where an image shows it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import CAMERA, Vector
from vgbench_gen.agent.tools._pairs import Intrinsics, Positive, round_all
from vgbench_gen.core.config import Config
from vgbench_gen.geometry.boxes import CORNER_SIGNS


class _Arguments(Config):
    center: Vector = Field(description="[x, y, z], camera axes: x right, y down, z forward")
    size: tuple[Positive, Positive, Positive] = Field(
        description="[width, height, depth]: along x, along the vertical, along z, before it is turned"
    )
    yaw_deg: float = Field(
        default=0.0, ge=-360, le=360, description="turn about the vertical, degrees; positive takes z towards x"
    )
    up: Vector = Field(default=(0.0, -1.0, 0.0), description="direction of up in camera axes; level camera by default")
    camera: Intrinsics | None = Field(default=None, description=f"{CAMERA}, for the pixels")


@tools.register("MakeBox")
class MakeBox(Tool[_Arguments]):
    name = "MakeBox"
    tier: ClassVar[Tier] = "classical"
    does = "Gives the corners of an upright box from its centre, size and yaw, and where an image shows it."
    returns: ClassVar = {
        "corners": "8 x [x, y, z], camera axes; along the box's own axes (x, down, z) their order is (---) (+--) (++-) "
        "(-+-) (--+) (+-+) (+++) (-++)",
        "nearest": "depth of the nearest corner along the view direction",
        "rect_px": "[left, top, right, bottom] of its corners in the image, pixels, where a camera is given",
        "cannot_tell": "why there is no rectangle",
    }
    example: ClassVar = {"center": [0.2, 0.5, 3.0], "size": [0.6, 0.8, 0.6], "yaw_deg": 30.0}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        down = -np.array(arguments.up)
        length = float(np.linalg.norm(down))
        if length < 1e-6:
            raise ToolError(f"up: found {list(arguments.up)}; expected a direction")
        down /= length
        ahead = np.array([0.0, 0.0, 1.0]) - down[2] * down
        if np.linalg.norm(ahead) < 1e-3:
            raise ToolError("up: found the view direction; expected a camera that does not look straight up or down")
        ahead /= np.linalg.norm(ahead)
        right = np.cross(down, ahead)
        c, s = np.cos(np.radians(arguments.yaw_deg)), np.sin(np.radians(arguments.yaw_deg))
        axes = np.column_stack([c * right - s * ahead, down, s * right + c * ahead])
        corners = np.array(arguments.center) + CORNER_SIGNS * np.array(arguments.size) / 2 @ axes.T
        told: dict[str, Any] = {
            "corners": round_all(corners, 6),
            "nearest": round(float(corners[:, 2].min()), 6),
        }
        if arguments.camera is not None:
            if corners[:, 2].min() < 1e-6:
                return ToolOutput(told | {"rect_px": None, "cannot_tell": "a corner lies behind the camera"})
            seen = corners @ arguments.camera.K.T
            uv = seen[:, :2] / seen[:, 2:]
            told["rect_px"] = round_all(np.concatenate([uv.min(axis=0), uv.max(axis=0)]), 2)
        return ToolOutput(told)
