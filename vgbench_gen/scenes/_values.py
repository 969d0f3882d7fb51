"""Cameras whose K was made for another picture size."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera, rotate_camera_by_quarters
from vgbench_gen.scenes.plausible import RANGES

# A principal point further from the middle than this share of the picture means that K belongs to another size
# (half size: 0.25, double size: 0.5); phones and their rectified pictures stay below 0.1.
_MAX_OFF_CENTRE = 0.2
_MAX_SKEW_PX = 1e-3


def make_pinhole(
    K: FloatArray, width: int, height: int, where: object, error: type[FormatError] = FrameError
) -> Camera:
    """Camera of a picture whose own K this is.

    Raises:
        FormatError: (of type `error`) K is no pinhole matrix, or cannot belong to a picture of this size.
    """
    K = np.array(K[:3, :3], dtype=np.float64)
    if abs(K[0, 1]) < _MAX_SKEW_PX:
        K[0, 1] = 0.0
    try:
        camera = Camera(K, width, height)
    except ValueError as problem:
        raise error(where, str(problem), "a pinhole matrix without skew") from problem
    if not do_sizes_match(K, width, height):
        found = f"principal point ({camera.cx:.1f}, {camera.cy:.1f}), focal {camera.fx:.1f} for {width}x{height} pixels"
        raise error(where, found, "a principal point near the middle", "This K was made for another picture size.")
    return camera


def do_sizes_match(K: FloatArray, width: int, height: int) -> bool:
    """Whether K can belong to a picture of this size: principal point near the middle, field of view 6 to 157 deg."""
    off_x, off_y = abs(K[0, 2] + 0.5 - width / 2) / width, abs(K[1, 2] + 0.5 - height / 2) / height
    limits = RANGES["focal length over the longer side"]
    focal = K[0, 0] / max(width, height), K[1, 1] / max(width, height)
    return bool(max(off_x, off_y) <= _MAX_OFF_CENTRE and limits.low <= min(focal) and max(focal) <= limits.high)


def choose_camera(
    K: FloatArray,
    made_for: tuple[int, int] | None,
    actual: tuple[int, int],
    where: object,
    error: type[FormatError] = FrameError,
) -> tuple[Camera, str]:
    """Camera of a picture of `actual` (width, height) from a K that the files say was made for `made_for`.

    Returns the camera and what was done: "" (sizes agree), "k_rescaled" (same shape, another size), "size_swapped"
    (width and height were exchanged in the entry, K fits the picture) or "k_turned" (K fits the entry, so the
    picture was stored turned by a quarter; counter-clockwise is assumed, which the cross-view check tests).

    Raises:
        FormatError: (of type `error`) the shapes differ, or K fits neither.
    """
    if made_for is None or made_for == actual:
        return make_pinhole(K, *actual, where, error), ""
    if made_for == actual[::-1]:
        if do_sizes_match(K, *actual):
            return make_pinhole(K, *actual, where, error), "size_swapped"
        return rotate_camera_by_quarters(make_pinhole(K, *made_for, where, error), 1), "k_turned"
    if min(made_for) > 0 and abs(actual[0] * made_for[1] / (actual[1] * made_for[0]) - 1) < 0.01:
        return resize_camera(make_pinhole(K, *made_for, where, error), *actual), "k_rescaled"
    found = f"a picture of {actual[0]}x{actual[1]} pixels"
    expected = f"{made_for[0]}x{made_for[1]}, or the same shape in another size"
    raise error(where, found, expected, "Picture and intrinsics do not belong together; get the original files.")
