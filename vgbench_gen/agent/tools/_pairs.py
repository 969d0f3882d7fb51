"""What tools of two images share: matched features, and cameras as a model writes them."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ToolError, ToolInput
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray

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


def find_cameras(given: ToolInput, cameras: tuple[Intrinsics, ...]) -> tuple[list[FloatArray], bool]:
    """((3, 3) of each image, whether they are assumed): one camera holds for all images.

    Raises:
        ToolError: neither none, one, nor one for each.
    """
    count = len(given.images)
    if len(cameras) not in (0, 1, count):
        raise ToolError(
            f"cameras: found {len(cameras)}; expected one for each of {count} images, or one for all, or none"
        )
    if not cameras:
        return [_assume(image.size) for image in given.images], True
    return [camera.K for camera in (cameras if len(cameras) == count else cameras * count)], False


def match_pair(given: ToolInput) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) matched pixels of the first and of the second image."""
    return given.images[0].match_pixels(given.images[1], SIDE_PX)


def round_all(values: FloatArray, decimals: int) -> list[float] | list[list[float]]:
    """As plain numbers, without negative zeros."""
    return (np.round(values, decimals) + 0.0).tolist()  # type: ignore[no-any-return]


def _assume(size: tuple[int, int]) -> FloatArray:
    width, height = size
    focal = ASSUMED_FOCAL * max(size)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1.0]])
