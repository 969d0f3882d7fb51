"""Types of arguments that several tools take (pixels, points, cameras, poses, all bounded), and functions on them."""

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

SIDE_PX = 1024  # the long side of images in which features are detected
ASSUMED_FOCAL = 0.85  # the assumed focal length over the long side, if no camera is passed: about 61 degrees
Positive = Annotated[float, Field(gt=0, le=1e6)]
Coordinate = Annotated[float, Field(ge=-1e6, le=1e6)]


class Intrinsics(Config):
    """A pinhole camera in pixels of the image."""

    fx: Positive
    fy: Positive
    cx: Coordinate
    cy: Coordinate

    @property
    def K(self) -> FloatArray:
        """(3, 3) camera matrix."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])


Cameras = Annotated[
    tuple[Intrinsics, ...],
    Field(
        max_length=2,
        description='[{"fx", "fy", "cx", "cy"}, ...] in pixels, one for each image or one for both; assumed where none',
    ),
]


def find_cameras(images: Sequence[Image], cameras: tuple[Intrinsics, ...]) -> tuple[list[FloatArray], bool]:
    """((3, 3) of each image, whether they are assumed). A single camera is used for all images.

    Raises:
        ToolError: there are cameras, but neither one nor one for each image.
    """
    count = len(images)
    if len(cameras) not in (0, 1, count):
        raise ToolError(
            f"cameras: found {len(cameras)}; expected one for each of {count} images, or one for all, or none"
        )
    if not cameras:
        return [_assume_camera(image.size) for image in images], True
    return [camera.K for camera in (cameras if len(cameras) == count else cameras * count)], False


def match_pair(images: Sequence[Image]) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) matched pixels of the first and of the second image."""
    return images[0].match_pixels(images[1], SIDE_PX)


def round_all(values: FloatArray, decimals: int) -> list[float] | list[list[float]]:
    """Rounded numbers in lists, without negative zeros."""
    return (np.round(values, decimals) + 0.0).tolist()  # type: ignore[no-any-return]


def _assume_camera(size: tuple[int, int]) -> FloatArray:
    focal = ASSUMED_FOCAL * max(size)
    return np.array([[focal, 0, (size[0] - 1) / 2], [0, focal, (size[1] - 1) / 2], [0, 0, 1.0]])


POINTS_MAX = 200
ROUNDING_MAX = 0.02  # the largest rounding error of an entry of R, when texts print it
Vector = tuple[Coordinate, Coordinate, Coordinate]
Pixel = tuple[Coordinate, Coordinate]
_Entry = Annotated[float, Field(ge=-1.1, le=1.1)]
_Row = tuple[_Entry, _Entry, _Entry]

CAMERA = '{"fx", "fy", "cx", "cy"} in pixels of the image'
POSE = '{"rotation": 3x3 R, "translation": [x, y, z] t} of X2 = R X1 + t'
AXES = "camera axes: x right, y down, z forward"


class Pose(Config):
    """A rigid motion X2 = R X1 + t."""

    rotation: tuple[_Row, _Row, _Row] = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    translation: Vector = (0.0, 0.0, 0.0)
    """t, in the unit of the points."""

    def read(self) -> FloatArray:
        """(4, 4) with the rotation matrix nearest to R, which corrects rounding.

        Raises:
            ToolError: R is not nearly a rotation.
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


def read_depths(depths: tuple[float, ...], count: int) -> FloatArray:
    """(N,) depths.

    Raises:
        ToolError: their number differs from the number of pixels.
    """
    if len(depths) != count:
        raise ToolError(f"depths: found {len(depths)}; expected one for each of {count} pixels")
    return np.array(depths, dtype=np.float64)


def back_project(camera: Intrinsics, uv: FloatArray, z: FloatArray) -> FloatArray:
    """(N, 3) points in camera coordinates of pixels (N, 2) at depths (N,) along the z axis."""
    rays = np.column_stack([(uv - (camera.cx, camera.cy)) / (camera.fx, camera.fy), np.ones(len(uv))])
    return np.asarray(rays * z[:, None])
