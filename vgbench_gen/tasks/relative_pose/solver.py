"""Relative pose by matches under the epipolar geometry of the stated motions."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg
from vgbench_gen.tasks.solving import Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.epipolar import match_rays, measure_support
from vgbench_gen.tasks.solving.seen import read_cameras, read_motions

_ESTIMATE_SHARE = 0.4  # of the tolerance: an estimate is not rounded
_MATCHES_MIN = 12
# A true claim may be off by half the tolerance (2.4 degrees, 4 cm of at least 20 cm) and the estimate by some degrees.
_CLAIM_TURN_DEG, _CLAIM_DIRECTION_DEG = 7.0, 22.0


def score_by_matches(seen: VisibleQuestion) -> FloatArray:
    """Score per option: matches in front of both cameras that the stated motion explains; of a judgment, whether
    the estimated motion is the claimed one.

    Raises:
        Unread: the text does not hold two cameras and the motions.
    """
    K = read_cameras(seen.context)
    if len(K) != 2 or len(seen.images) != 2:
        raise Unread(f"{len(K)} cameras, {len(seen.images)} images")
    x_1, x_2, tolerance = match_rays(seen.images[0], seen.images[1], K[0], K[1])
    if seen.form == "judgment":
        return _score_claim(read_motions(seen.question), x_1, x_2, tolerance)
    stated = [read_motions(option) for option in seen.options]
    if any(len(one) != 1 for one in stated):
        raise Unread("an option without one motion")
    return np.array([measure_support(one[0], x_1, x_2, tolerance) for one in stated])


def _score_claim(claims: list[FloatArray], x_1: FloatArray, x_2: FloatArray, tolerance: float) -> FloatArray:
    if len(claims) != 1:
        raise Unread(f"{len(claims)} claimed motions")
    found = _estimate_motion(x_1, x_2, tolerance)
    if found is None:
        return np.zeros(2)
    claim = claims[0]
    turn_deg = float(rotation_angle_deg(found[:, :3] @ claim[:, :3].T))
    direction_deg = float(angle_between_deg(found[:, 3], claim[:, 3]))
    off = max(turn_deg / _CLAIM_TURN_DEG, direction_deg / _CLAIM_DIRECTION_DEG)
    return np.array([1.0, off])  # Yes wins where the claim is off by less than the limit


def _estimate_motion(x_1: FloatArray, x_2: FloatArray, tolerance: float) -> FloatArray | None:
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


SOLVERS = (Solver("matches under the stated motion", score_by_matches, 75.0),)
