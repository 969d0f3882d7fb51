"""Cameras of pictures: which resolution intrinsics were made for, and what does not fit together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera, rotate_camera_by_quarters
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.plausible import check_camera

# A principal point further from the middle than this share of the picture means that K belongs to another size
# (half size: 0.25, double size: 0.5); phones and their rectified pictures stay below 0.1.
_MAX_OFF_CENTRE = 0.2
_MAX_SKEW_PX = 1e-3
# Sizes ScanNet's intrinsics were made for where nothing states them (most scans of the release).
USUAL_COLOR, USUAL_DEPTH = (1296, 968), (640, 480)


def make_pinhole(
    K: FloatArray, width: int, height: int, where: object, error: type[FormatError] = FrameError
) -> Camera:
    """Camera of a picture whose own K this is.

    Raises:
        FormatError: (of type `error`) K is no pinhole matrix, or cannot belong to a picture of this size.
    """
    K = np.array(K[:3, :3], dtype=np.float64)
    clean = np.array([[K[0, 0], 0.0, K[0, 2]], [0.0, K[1, 1], K[1, 2]], [0.0, 0.0, 1.0]])
    K = clean if np.allclose(K, clean, rtol=0, atol=_MAX_SKEW_PX) else K
    try:
        camera = Camera(K, width, height)
    except ValueError as problem:
        raise error(where, str(problem), "a pinhole matrix without skew") from problem
    check_camera(camera, where, error)
    if _measure_off_centre(K, camera.size) > _MAX_OFF_CENTRE:
        found = f"principal point ({camera.cx:.1f}, {camera.cy:.1f}) for {width}x{height} pixels"
        raise error(where, found, "a principal point near the middle", "This K was made for another picture size.")
    return camera


def _measure_off_centre(K: FloatArray, size: tuple[int, int]) -> float:
    """How far the principal point lies from the middle of a picture, as a share of its width or height."""
    return float(max(abs((K[axis, 2] + 0.5) / size[axis] - 0.5) for axis in (0, 1)))


def fit_pinhole(
    K: FloatArray, sizes: Sequence[tuple[int, int]], actual: tuple[int, int], where: object, error: type[FormatError]
) -> tuple[Camera, bool]:
    """Camera of a picture of `actual` (width, height) from a K made for one of `sizes`, and whether it was rescaled.

    The principal point tells for which size: it lies nearest to the middle there.

    Raises:
        FormatError: (of type `error`) K is no pinhole matrix, or was made for none of the sizes.
    """
    made_for = min(sizes, key=partial(_measure_off_centre, K))
    camera = make_pinhole(K, *made_for, where, error)
    return (camera, False) if made_for == actual else (resize_camera(camera, *actual), True)


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
        if _measure_off_centre(K, actual) <= _MAX_OFF_CENTRE:
            return make_pinhole(K, *actual, where, error), "size_swapped"
        return rotate_camera_by_quarters(make_pinhole(K, *made_for, where, error), 1), "k_turned"
    if min(made_for) > 0 and abs(actual[0] * made_for[1] / (actual[1] * made_for[0]) - 1) < 0.01:
        return resize_camera(make_pinhole(K, *made_for, where, error), *actual), "k_rescaled"
    found = f"a picture of {actual[0]}x{actual[1]} pixels"
    expected = f"{made_for[0]}x{made_for[1]}, or the same shape in another size"
    raise error(where, found, expected, "Picture and intrinsics do not belong together; get the original files.")


def parse_keys(text: str) -> dict[str, str]:
    """`key = value` lines as in `<scanId>.txt` and `_info.txt`; other lines are passed over."""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line)
    return {key.strip(): value.strip() for key, value in pairs}


def read_stated_size(keys: dict[str, str], width: str, height: str) -> tuple[int, int] | None:
    """(width, height) from two keys; None where either is missing or no whole number."""
    values = [keys.get(name, "") for name in (width, height)]
    if not all(re.fullmatch(r"[1-9]\d{0,4}", value) for value in values):
        return None
    return int(values[0]), int(values[1])


def fit_camera(
    what: str, where: object, matrix: FloatArray, stated: tuple[int, int], actual: tuple[int, int], issues: list[Issue]
) -> Camera:
    """Camera for pictures of the `actual` size from intrinsics (3, 3) or (4, 4) made for the `stated` one.

    Raises:
        SceneError: no pinhole matrix, or made for neither of the sizes.
    """
    camera, was_rescaled = fit_pinhole(matrix, (stated, actual), actual, f"{where}, {what}", SceneError)
    if stated != actual:
        detail = f"{what} is {actual[0]}x{actual[1]} but {stated[0]}x{stated[1]} is stated; intrinsics "
        detail += "were rescaled" if was_rescaled else "fit the pictures as they are"
        issues.append(Issue("", "picture_size", detail))
    return camera


def check_pair(color: Camera, depth: Camera, issues: list[Issue]) -> None:
    """Note when colour and depth do not see the same field, as registered pictures do."""
    ratio = (depth.fx / depth.width) / (color.fx / color.width)
    if abs(ratio - 1.0) > 0.05:
        detail = f"depth sees {1 / ratio:.3f} times the width of colour; registered depth sees the same"
        issues.append(Issue("", "intrinsics_disagree", detail))


def warn_extrinsic(name: str, matrix: FloatArray, issues: list[Issue]) -> None:
    """Note an extrinsic (4, 4) or its rotation (3, 3) other than the identity; calibrated scans have none."""
    if not (np.isfinite(matrix).all() and np.abs(matrix - np.eye(len(matrix))).max() < 1e-4):
        detail = f"{name} extrinsic is not the identity; depth is taken as registered to colour all the same"
        issues.append(Issue("", "extrinsic_not_identity", detail))


def make_depth_camera(color: Camera, size: tuple[int, int]) -> Camera:
    """Depth camera by the rule of ScanNet's calibration step (`Calibrate/src/calibration.h`): corner centres meet."""
    (wide, high), (w, h) = color.size, size
    cx, cy = color.cx * (w - 1) / max(wide - 1, 1), color.cy * (h - 1) / max(high - 1, 1)
    return Camera(np.array([[color.fx * w / wide, 0.0, cx], [0.0, color.fy * h / high, cy], [0.0, 0.0, 1.0]]), w, h)
