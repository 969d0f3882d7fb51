"""Cameras of ScanNet pictures: which resolution intrinsics were made for, and what does not fit together."""

from __future__ import annotations

import re

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.plausible import check_camera

# Sizes the intrinsics were made for where nothing states them (most scans of the release).
USUAL_COLOR, USUAL_DEPTH = (1296, 968), (640, 480)
# Principal points of real scans lie within 2 % of the centre; the next common resolution is off by 20 % and more.
_MAX_OFF_CENTRE = 0.2


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
    what: str, matrix: FloatArray, where: object, stated: tuple[int, int], actual: tuple[int, int], issues: list[Issue]
) -> Camera:
    """Camera for pictures of the `actual` size from intrinsics (3, 3) or (4, 4) made for the `stated` one.

    The principal point tells whether somebody rescaled the intrinsics along with the pictures.

    Raises:
        SceneError: no pinhole matrix, or made for neither of the sizes.
    """
    K = np.array(matrix[:3, :3])
    zeros = [K[0, 1], K[1, 0], K[2, 0], K[2, 1], K[2, 2] - 1.0]
    if not (np.isfinite(K).all() and K[0, 0] > 0 and K[1, 1] > 0 and np.abs(zeros).max() < 1e-3):
        found = f"{what} intrinsics {K.round(3).tolist()}"
        raise SceneError(where, found, "[[fx,0,cx],[0,fy,cy],[0,0,1]] with fx, fy > 0")
    K[0, 1] = K[1, 0] = 0.0
    K[2] = 0.0, 0.0, 1.0

    def off_centre(size: tuple[int, int]) -> float:
        return float(max(abs((K[axis, 2] + 0.5) / size[axis] - 0.5) for axis in (0, 1)))

    made_for = min((stated, actual), key=off_centre)
    if off_centre(made_for) > _MAX_OFF_CENTRE:
        found = f"{what} intrinsics with principal point ({K[0, 2]:.1f}, {K[1, 2]:.1f})"
        expected = f"one near the middle of {actual[0]}x{actual[1]} pixels"
        raise SceneError(where, found, expected, "The intrinsics belong to another resolution; export the scan again.")
    if stated != actual:
        detail = f"{what} is {actual[0]}x{actual[1]} but {stated[0]}x{stated[1]} is stated; intrinsics "
        detail += "were rescaled" if made_for != actual else "fit the pictures as they are"
        issues.append(Issue("", "picture_size", detail))
    camera = Camera(K, *made_for)
    check_camera(camera, f"{where}, {what}", SceneError)
    return camera if made_for == actual else resize_camera(camera, *actual)


def check_pair(color: Camera, depth: Camera, issues: list[Issue]) -> None:
    """Note when colour and depth do not see the same field, as registered pictures do."""
    ratio = (depth.fx / depth.width) / (color.fx / color.width)
    if abs(ratio - 1.0) > 0.05:
        detail = f"depth sees {1 / ratio:.3f} times the width of colour; registered depth sees the same"
        issues.append(Issue("", "intrinsics_disagree", detail))


def warn_extrinsic(name: str, matrix: FloatArray, issues: list[Issue]) -> None:
    """Note an extrinsic (4, 4) other than the identity; calibrated scans have none."""
    if not (np.isfinite(matrix).all() and np.abs(matrix - np.eye(4)).max() < 1e-4):
        detail = f"{name} extrinsic is not the identity; depth is taken as registered to colour all the same"
        issues.append(Issue("", "extrinsic_not_identity", detail))


def make_depth_camera(color: Camera, size: tuple[int, int]) -> Camera:
    """Depth camera by the rule of ScanNet's calibration step (`Calibrate/src/calibration.h`): corner centres meet."""
    (wide, high), (w, h) = color.size, size
    cx, cy = color.cx * (w - 1) / max(wide - 1, 1), color.cy * (h - 1) / max(high - 1, 1)
    return Camera(np.array([[color.fx * w / wide, 0.0, cx], [0.0, color.fy * h / high, cy], [0.0, 0.0, 1.0]]), w, h)
