"""What happens to cameras, poses, points, boxes and homographies when images are mirrored left to right.

Pixel (u, v) of an image of W columns goes to (W - 1 - u, v), as in `image[:, ::-1]`. A mirrored image is the image that
a camera would take of the mirrored world: every frame is reflected at its plane x = 0 by M = diag(-1, 1, 1), so a point
X goes to M X and `dst_from_src` to M dst_from_src M, which is a proper motion again. Mirroring twice changes nothing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.homography import normalise_homography

_M: FloatArray = np.diag([-1.0, 1.0, 1.0, 1.0])
# A reflected cuboid has left-handed axes until one, here x, is turned round; its corners then swap along it.
_CORNER_ORDER = [1, 0, 3, 2, 5, 4, 7, 6]


def mirror_camera(camera_: Camera) -> Camera:
    """The camera of `image[:, ::-1]`."""
    K = camera_.K.copy()
    K[0, 2] = camera_.width - 1 - camera_.cx
    return Camera(K, camera_.width, camera_.height)


def mirror_points(points_m: npt.ArrayLike) -> FloatArray:
    """Points (..., 3) of a frame in the mirrored frame; no negative zeros."""
    mirrored: FloatArray = np.asarray(points_m, dtype=np.float64) * [-1.0, 1.0, 1.0] + 0.0
    return mirrored


def mirror_motion(dst_from_src: npt.ArrayLike) -> FloatArray:
    """Rigid (..., 4, 4) or [R|t] (..., 3, 4) between two mirrored frames: R' = M R M, t' = M t; no negative zeros."""
    src = np.asarray(dst_from_src, dtype=np.float64)
    rows = src.shape[-2]
    mirrored: FloatArray = _M[:rows, :rows] @ src @ _M + 0.0
    return mirrored


def mirror_homography(dst_from_src: npt.ArrayLike, src_width: int, dst_width: int) -> FloatArray:
    """H (3, 3), H33 = 1, between two mirrored images of so many columns.

    Raises:
        GeometryError: the mirrored H cannot be scaled to H33 = 1.
    """
    flips = [np.array([[-1.0, 0.0, width - 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]) for width in (dst_width, src_width)]
    return normalise_homography(flips[0] @ np.asarray(dst_from_src, dtype=np.float64) @ flips[1])


def mirror_corners(corners_m: npt.ArrayLike) -> FloatArray:
    """Ordered corners (8, 3) of a box in the mirrored frame, ordered again as the package docstring says."""
    return mirror_points(corners_m)[_CORNER_ORDER]
