"""What tools share: pixels, points, cameras and poses as a model writes them, all bounded; matches of two images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ToolError
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import poses
from vgbench_gen.tasks.solving import Image

SIDE_PX = 1024  # long side at which features are looked for
ASSUMED_FOCAL = 0.85  # of the long side, where no camera is given: about 61 degrees
Positive = Annotated[float, Field(gt=0, le=1e6)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]


class Intrinsics(Config):
    """A pinhole camera in pixels of the image."""

    fx: Positive
    """Focal length along u."""
    fy: Positive
    """Focal length along v."""
    cx: Coordinate
    """u of the principal point."""
    cy: Coordinate
    """v of the principal point."""

    @property
    def K(self) -> FloatArray:
        """(3, 3)."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])


Cameras = Annotated[
    tuple[Intrinsics, ...],
    Field(
        max_length=2,
        description='[{"fx", "fy", "cx", "cy"}, ...] in pixels, one for each image or one for both; assumed where none',
    ),
]
"""As `find_cameras` takes them."""


def find_cameras(images: Sequence[Image], cameras: tuple[Intrinsics, ...]) -> tuple[list[FloatArray], bool]:
    """((3, 3) of each image, whether they are assumed): one camera holds for all images.

    Raises:
        ToolError: neither none, one, nor one for each.
    """
    count = len(images)
    if len(cameras) not in (0, 1, count):
        raise ToolError(
            f"cameras: found {len(cameras)}; expected one for each of {count} images, or one for all, or none"
        )
    if not cameras:
        return [_assume(image.size) for image in images], True
    return [camera.K for camera in (cameras if len(cameras) == count else cameras * count)], False


def match_pair(images: Sequence[Image]) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) matched pixels of the first and of the second image."""
    return images[0].match_pixels(images[1], SIDE_PX)


def round_all(values: FloatArray, decimals: int) -> list[float] | list[list[float]]:
    """As plain numbers, without negative zeros."""
    return (np.round(values, decimals) + 0.0).tolist()  # type: ignore[no-any-return]


def _assume(size: tuple[int, int]) -> FloatArray:
    width, height = size
    focal = ASSUMED_FOCAL * max(size)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])


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
