"""Warped images and how alike two images are where both show something."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.agent.tool import Matrix3, ToolError
from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, ColorArray, FloatArray
from vgbench_gen.geometry.homography import normalise_homography
from vgbench_gen.tasks.solving import Image

_BLUR_PX = 1.5  # at 256 pixels; forgives the rounding of printed matrices
_SIDE = 256
_COVERED_MIN = 100  # pixels at that size


def read_matrix(matrix: Matrix3) -> FloatArray:
    """(3, 3) with lower right number 1.

    Raises:
        ToolError: it cannot be inverted, or takes (0, 0) to infinity.
    """
    try:
        H = normalise_homography(np.array(matrix, dtype=np.float64))
    except GeometryError as error:
        raise ToolError(f"matrix: {error}") from None
    if abs(np.linalg.det(H)) < 1e-12 or not np.isfinite(np.linalg.inv(H)).all():
        raise ToolError("matrix: found one that cannot be inverted; expected a homography")
    return H


def warp(image: ColorArray, H: FloatArray, size: tuple[int, int]) -> tuple[ColorArray, BoolArray]:
    """(image of (width, height), where it shows the given one); black elsewhere."""
    made = cv2.warpPerspective(image, H, size, flags=cv2.INTER_LINEAR)
    covered = cv2.warpPerspective(np.full(image.shape[:2], 255, np.uint8), H, size, flags=cv2.INTER_LINEAR)
    return np.asarray(made, dtype=np.uint8), np.asarray(covered > 250)


def compare(one: Image, other: Image, H: FloatArray) -> tuple[float | None, float | None, float]:
    """(correlation -1 to 1, mean grey difference 0 to 255, share covered) of an image warped onto another one."""
    first, second = one.gray, other.gray
    H = np.linalg.inv(other.delivered_from_held) @ H @ one.delivered_from_held
    wide, high = second.shape[1], second.shape[0]
    scale = min(1.0, _SIDE / max(wide, high))
    size = (max(1, round(wide * scale)), max(1, round(high * scale)))
    sx, sy = size[0] / wide, size[1] / high
    shrink = np.array([[sx, 0, sx / 2 - 0.5], [0, sy, sy / 2 - 0.5], [0, 0, 1]])
    grow = max(1.0, max(first.shape) / _SIDE)
    # Blurred before it shrinks, or fine texture turns to noise.
    soft = cv2.GaussianBlur(first, (0, 0), _BLUR_PX * grow)
    made, covered = warp(np.asarray(soft, dtype=np.uint8), shrink @ H, size)
    shown = cv2.resize(cv2.GaussianBlur(second, (0, 0), _BLUR_PX / scale), size, interpolation=cv2.INTER_AREA)
    covered = np.asarray(cv2.erode(covered.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0)
    share = float(covered.mean())
    if covered.sum() < _COVERED_MIN:
        return None, None, share
    x, y = made[covered].astype(np.float64), np.asarray(shown)[covered].astype(np.float64)
    difference = float(np.abs(x - y).mean())
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return (float(x @ y) / spread if spread > 1e-6 else None), difference, share
