"""Relative pose and view after motion, by matches under the epipolar geometry of the stated motions.

The images alone do not tell the length of a translation, only the options do: options that turn alike and move in the
same direction by another length tie, and the task keeps such options apart (`docs/validity.md#relative-pose`).
"""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg
from vgbench_gen.quality.solvers.pixels import Image
from vgbench_gen.quality.solvers.seen import Unread, VisibleQuestion, cameras, candidates, poses

SIDE = 400
_TOLERANCE_PX = 4.0  # at the working size; t is printed to a centimetre, which turns a short one by some degrees
_ESTIMATE_SHARE = 0.4  # of the tolerance: an estimate is not rounded
_MATCHES_MIN = 12
_ADDED_MATCHES = 10  # unexplained ones, so that two lucky matches are no proof
# A true claim may be off by half the tolerance (2.4 degrees, 4 cm of at least 20 cm) and the estimate by some degrees.
_CLAIM_TURN_DEG, _CLAIM_DIRECTION_DEG = 7.0, 22.0


def pose(seen: VisibleQuestion) -> FloatArray:
    """Score per option: matches in front of both cameras that the stated motion explains; of a judgment, whether
    the estimated motion is the claimed one.

    Raises:
        Unread: the text does not hold two cameras and the motions.
    """
    K = cameras(seen.context)
    if len(K) != 2 or len(seen.images) != 2:
        raise Unread(f"{len(K)} cameras, {len(seen.images)} images")
    x_1, x_2, tolerance = _rays(seen.images[0], seen.images[1], K[0], K[1])
    if seen.form == "judgment":
        return _judged(poses(seen.question), x_1, x_2, tolerance)
    stated = [poses(option) for option in seen.options]
    if any(len(one) != 1 for one in stated):
        raise Unread("an option without one motion")
    return np.array([support(one[0], x_1, x_2, tolerance) for one in stated])


def view(seen: VisibleQuestion) -> FloatArray:
    """Score per candidate image: the share of its matches with image 1 that the printed motion explains.

    The share, since an image that looks like image 1 has many matches and so many that fit by accident. Only camera 1
    is printed; the candidates are taken to come from the same camera.

    Raises:
        Unread: the text does not hold one camera and one motion.
    """
    K, motion = cameras(seen.context), poses(seen.question)
    if len(K) != 1 or len(motion) != 1:
        raise Unread(f"{len(K)} cameras, {len(motion)} motions")
    source = seen.images[0]
    scores = []
    for image in candidates(seen):
        x_1, x_2, tolerance = _rays(source, image, K[0], _same_camera(K[0], source, image))
        scores.append(support(motion[0], x_1, x_2, tolerance) / (len(x_1) + _ADDED_MATCHES))
    return np.array(scores)


def _rays(a: Image, b: Image, K_a: FloatArray, K_b: FloatArray) -> tuple[FloatArray, FloatArray, float]:
    """((M, 2), (M, 2)) matches as (x/z, y/z) in each camera, and the tolerance in that unit."""
    uv_a, uv_b = a.matched(b, SIDE)
    unit_px = max(*a.size, *b.size) / SIDE
    tolerance = _TOLERANCE_PX * unit_px / np.sqrt(K_a[0, 0] * K_b[0, 0])
    return (uv_a - K_a[:2, 2]) / np.diag(K_a)[:2], (uv_b - K_b[:2, 2]) / np.diag(K_b)[:2], float(tolerance)


def support(motion: FloatArray, x_1: FloatArray, x_2: FloatArray, tolerance: float) -> float:
    """How many matched rays (M, 2) the motion [R|t] (3, 4) explains.

    An exact match counts 1, falling to 0 at the tolerance (units of x/z), and 0 behind a camera.
    """
    if len(x_1) == 0:
        return 0.0
    residual = sampson(motion, x_1, x_2)
    weight = np.maximum(1 - (residual / tolerance) ** 2, 0.0)
    return float((weight * in_front(motion, x_1, x_2)).sum())


def sampson(motion: FloatArray, x_1: FloatArray, x_2: FloatArray) -> FloatArray:
    """(M,) Sampson distance of matched rays (M, 2) to the epipolar geometry of [R|t] (3, 4), in units of x/z."""
    R, (tx, ty, tz) = motion[:, :3], motion[:, 3]
    E = np.array([[0, -tz, ty], [tz, 0, -tx], [-ty, tx, 0]]) @ R
    h_1, h_2 = _homogeneous(x_1), _homogeneous(x_2)
    line_2, line_1 = h_1 @ E.T, h_2 @ E
    slope = (line_2[:, :2] ** 2).sum(axis=1) + (line_1[:, :2] ** 2).sum(axis=1)
    distance: FloatArray = np.abs((h_2 * line_2).sum(axis=1)) / np.sqrt(np.maximum(slope, 1e-18))
    return distance


def in_front(motion: FloatArray, x_1: FloatArray, x_2: FloatArray) -> FloatArray:
    """(M,) 1.0 where the rays meet in front of both cameras, else 0.0."""
    # Least squares for z_1, z_2 of z_2 h_2 = z_1 R h_1 + t.
    a, b, t = _homogeneous(x_1) @ motion[:, :3].T, _homogeneous(x_2), motion[:, 3]
    aa, bb, ab = (a * a).sum(axis=1), (b * b).sum(axis=1), (a * b).sum(axis=1)
    at, bt = a @ t, b @ t
    determinant = np.maximum(aa * bb - ab * ab, 1e-15)
    z_1, z_2 = (ab * bt - bb * at) / determinant, (aa * bt - ab * at) / determinant
    return np.asarray((z_1 > 0) & (z_2 > 0), dtype=np.float64)


def _homogeneous(x: FloatArray) -> FloatArray:
    return np.concatenate([x, np.ones((len(x), 1))], axis=1)


def _judged(claims: list[FloatArray], x_1: FloatArray, x_2: FloatArray, tolerance: float) -> FloatArray:
    if len(claims) != 1:
        raise Unread(f"{len(claims)} claimed motions")
    found = _estimate(x_1, x_2, tolerance)
    if found is None:
        return np.zeros(2)
    claim = claims[0]
    turn_deg = float(rotation_angle_deg(found[:, :3] @ claim[:, :3].T))
    direction_deg = float(angle_between_deg(found[:, 3], claim[:, 3]))
    off = max(turn_deg / _CLAIM_TURN_DEG, direction_deg / _CLAIM_DIRECTION_DEG)
    return np.array([1.0, off])  # Yes wins where the claim is off by less than the limit


def _estimate(x_1: FloatArray, x_2: FloatArray, tolerance: float) -> FloatArray | None:
    """[R|t] (3, 4) with |t| = 1 by the five-point method with local optimisation, or None."""
    if len(x_1) < _MATCHES_MIN:
        return None
    E, mask = cv2.findEssentialMat(
        x_1, x_2, np.eye(3), method=cv2.USAC_ACCURATE, prob=0.9999, threshold=tolerance * _ESTIMATE_SHARE
    )
    if E is None or E.shape != (3, 3):
        return None
    inliers, R, t, _ = cv2.recoverPose(E, x_1, x_2, np.eye(3), mask=mask)
    return np.concatenate([R, np.reshape(t, (3, 1))], axis=1) if inliers >= _MATCHES_MIN else None


def _same_camera(K: FloatArray, source: Image, image: Image) -> FloatArray:
    """K of another image of the same camera: as it is for the same size, else focal length by the long side."""
    if image.size == source.size:
        return K
    f = np.sqrt(K[0, 0] * K[1, 1]) * max(image.size) / max(source.size)
    width, height = image.size
    return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])
