"""How well feature matches of two images fit a stated motion of the camera: epipolar geometry, and which side is front.

The images alone do not tell the length of a translation, only the options do: options that turn alike and move in the
same direction by another length tie, and the tasks keep such options apart (`docs/validity.md#relative-pose`).
"""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving.images import Image

SIDE = 400
_TOLERANCE_PX = 4.0  # at the working size; t is printed to a centimeter, which turns a short one by some degrees


def match_rays(
    a: Image, b: Image, K_a: FloatArray, K_b: FloatArray, side: int = SIDE
) -> tuple[FloatArray, FloatArray, float]:
    """((M, 2), (M, 2)) matches as (x/z, y/z) in each camera, and the tolerance in that unit.

    side: long side in pixels at which features are found.
    """
    uv_a, uv_b = a.match_pixels(b, side)
    unit_px = max(*a.size, *b.size) / side
    tolerance = _TOLERANCE_PX * unit_px / np.sqrt(K_a[0, 0] * K_b[0, 0])
    return (uv_a - K_a[:2, 2]) / np.diag(K_a)[:2], (uv_b - K_b[:2, 2]) / np.diag(K_b)[:2], float(tolerance)


def estimate_motion(
    x_1: FloatArray, x_2: FloatArray, tolerance: float, inliers_min: int
) -> tuple[FloatArray, int] | None:
    """([R|t] (3, 4) with |t| = 1, inliers) of matched rays (M, 2) by the five-point method, or None where fewer than
    `inliers_min` fit one essential matrix."""
    if len(x_1) < inliers_min:
        return None
    # Plain RANSAC was up to 9 degrees off on exact images with 130 inliers; local optimisation mends that.
    E, mask = cv2.findEssentialMat(x_1, x_2, np.eye(3), method=cv2.USAC_ACCURATE, prob=0.9999, threshold=tolerance)
    if E is None or E.shape != (3, 3):
        return None
    inliers, R, t, _ = cv2.recoverPose(E, x_1, x_2, np.eye(3), mask=mask)
    return (np.concatenate([R, np.reshape(t, (3, 1))], axis=1), int(inliers)) if inliers >= inliers_min else None


def measure_support(motion: FloatArray, x_1: FloatArray, x_2: FloatArray, tolerance: float) -> float:
    """How many matched rays (M, 2) the motion [R|t] (3, 4) explains.

    An exact match counts 1, falling to 0 at the tolerance (units of x/z), and 0 behind a camera.
    """
    if len(x_1) == 0:
        return 0.0
    residual = compute_sampson_distance(motion, x_1, x_2)
    weight = np.maximum(1 - (residual / tolerance) ** 2, 0.0)
    return float((weight * find_in_front(motion, x_1, x_2)).sum())


def compute_sampson_distance(motion: FloatArray, x_1: FloatArray, x_2: FloatArray) -> FloatArray:
    """(M,) Sampson distance of matched rays (M, 2) to the epipolar geometry of [R|t] (3, 4), in units of x/z."""
    R, (tx, ty, tz) = motion[:, :3], motion[:, 3]
    E = np.array([[0, -tz, ty], [tz, 0, -tx], [-ty, tx, 0]]) @ R
    h_1, h_2 = _make_homogeneous(x_1), _make_homogeneous(x_2)
    line_2, line_1 = h_1 @ E.T, h_2 @ E
    slope = (line_2[:, :2] ** 2).sum(axis=1) + (line_1[:, :2] ** 2).sum(axis=1)
    distance: FloatArray = np.abs((h_2 * line_2).sum(axis=1)) / np.sqrt(np.maximum(slope, 1e-18))
    return distance


def find_in_front(motion: FloatArray, x_1: FloatArray, x_2: FloatArray) -> FloatArray:
    """(M,) 1.0 where the rays meet in front of both cameras, else 0.0."""
    # Least squares for z_1, z_2 of z_2 h_2 = z_1 R h_1 + t.
    a, b, t = _make_homogeneous(x_1) @ motion[:, :3].T, _make_homogeneous(x_2), motion[:, 3]
    aa, bb, ab = (a * a).sum(axis=1), (b * b).sum(axis=1), (a * b).sum(axis=1)
    at, bt = a @ t, b @ t
    determinant = np.maximum(aa * bb - ab * ab, 1e-15)
    z_1, z_2 = (ab * bt - bb * at) / determinant, (aa * bt - ab * at) / determinant
    return np.asarray((z_1 > 0) & (z_2 > 0), dtype=np.float64)


def _make_homogeneous(x: FloatArray) -> FloatArray:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)
