"""What geometry tools share: points, pixels and poses as a model writes them, all bounded."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ToolError
from vgbench_gen.agent.tools._pairs import Coordinate, Intrinsics, Positive
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import poses

POINTS_MAX = 200  # of one call
ROUNDING_MAX = 0.02  # of an entry of R, as texts print it
Length = Annotated[float, Field(ge=-1e6, le=1e6)]
Vector = tuple[Length, Length, Length]
Pixel = tuple[Coordinate, Coordinate]
_Entry = Annotated[float, Field(ge=-1.1, le=1.1)]
_Row = tuple[_Entry, _Entry, _Entry]

CAMERA = '{"fx", "fy", "cx", "cy"} in pixels of the image'
POSE = '{"rotation": 3x3 R, "translation": [x, y, z] t} of X2 = R X1 + t'
AXES = "camera axes: x right, y down, z forward"


class Pose(Config):
    """A rigid motion X2 = R X1 + t."""

    rotation: tuple[_Row, _Row, _Row] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    """R; what rounding has bent is brought back."""
    translation: Vector = (0.0, 0.0, 0.0)
    """t, in the unit of the points."""

    def read(self) -> FloatArray:
        """(4, 4).

        Raises:
            ToolError: R is no rotation.
        """
        R = np.array(self.rotation)
        off = float(poses.measure_orthonormality_deviation(R))
        if off > 3 * ROUNDING_MAX or np.linalg.det(R) < 0:
            raise ToolError(
                f"rotation: found det R = {np.linalg.det(R):.2f}, R^T R off by {off:.2g}; expected a rotation"
            )
        return poses.make_pose(poses.find_nearest_rotation(R), np.array(self.translation))


Depths = Annotated[
    tuple[Positive, ...],
    Field(max_length=POINTS_MAX, description="depth of each along the view direction (z), not along the ray"),
]
"""As `read_depths` takes them."""


def read_depths(depths: tuple[float, ...], count: int) -> FloatArray:
    """(N,) depths.

    Raises:
        ToolError: not one for each pixel.
    """
    if len(depths) != count:
        raise ToolError(f"depths: found {len(depths)}; expected one for each of {count} pixels")
    return np.array(depths, dtype=np.float64)


def back_project(camera: Intrinsics, uv: FloatArray, z: FloatArray) -> FloatArray:
    """(N, 3) points in the camera of pixels (N, 2) at depths (N,) along its z axis."""
    rays = np.column_stack([(uv - (camera.cx, camera.cy)) / (camera.fx, camera.fy), np.ones(len(uv))])
    return np.asarray(rays * z[:, None])
