"""Relative pose of two calibrated views from matched pixels, with standard deviations and reasons for doubt.

Essential matrix from five points (Nister 2004) with MAGSAC (Barath et al. 2020), refined by least squares of Sampson
distances (Hartley and Zisserman, 2nd edition, 11.4.3) under a Cauchy loss. A plane, a short baseline and the rotation
by 180 degrees about the translation are each consistent with several motions, so the refinement starts from several
motions and all results are compared. Two views do not determine the scale (`docs/agent.md#two-views`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg

INLIERS_MIN = 20
# The smallest share of inliers; fewer come from a repeated pattern or a wall (`docs/agent.md#two-views`).
SHARE_MIN = 0.4
REACH_PX = 3.0  # the largest Sampson distance of an inlier, pixels at 640
_LOSS_PX = 1.0  # the scale of the Cauchy loss, pixels at 640
NOISE_MIN_PX = 0.3  # the smallest assumed noise of a matched feature, pixels at 640
STRAY = 0.01  # the probability density of an outlier over that of a match on its epipolar line
# A motion whose log-likelihood is less by at most this is still possible, because matches cluster.
ALIKE_MISFIT = 20.0
APART_DEG, TURNED_DEG = 8.0, 4.0  # motions differ if their directions or rotations are further apart than this
# Measured errors of rotations and directions over those that independent matches predict (`docs/agent.md#two-views`).
SPREAD = (4.0, 10.0)
DIRECTION_SIGMA_MAX_DEG = 5.0
PARALLAX_MIN_PX = 2.0  # the smallest median shift that the rotation does not explain, pixels at 640
SIDES_MIN = 0.9  # the smallest share of inliers with parallax that are in front of both cameras
_SIDE_COST = 1000.0  # the log-likelihood subtracted for a share of 1 behind a camera


@dataclass(frozen=True, slots=True, eq=False)
class TwoView:
    """The pose of the second camera relative to the first."""

    rotation: FloatArray
    """(3, 3), takes directions of camera 1 to camera 2 (x right, y down, z forward)."""
    direction: FloatArray
    """(3,) unit vector along the translation t of X2 = R X1 + t; zeros if it is unknown."""
    inliers: int
    matches: int
    residual_px: float
    """Median Sampson distance of the inliers, pixels."""
    rotation_sigma_deg: float
    """Standard deviation of the rotation about its least certain axis."""
    direction_sigma_deg: float
    """Standard deviation of the direction; infinite if it is unknown."""
    parallax_px: float
    """Median shift of the inliers that the rotation does not explain, pixels."""
    why_no_direction: str
    """Why the direction is unknown; "" if it is known."""
    why_no_rotation: str
    """Why the rotation is unknown too; "" if it is known."""


def estimate_two_view(uv1: FloatArray, uv2: FloatArray, K1: FloatArray, K2: FloatArray) -> TwoView | None:
    """The relative pose, or None if there are too few inliers.

    Args:
        uv1: (N, 2) pixels of image 1.
        uv2: (N, 2) the same points in image 2.
        K1: (3, 3) intrinsics of image 1, pixels.
        K2: (3, 3) intrinsics of image 2, pixels.
    """
    if len(uv1) < INLIERS_MIN:
        return None
    focal = float(np.sqrt(K1[0, 0] * K2[0, 0]))
    unit = 1.0 / focal  # one pixel on the plane z = 1
    scale = max(1.0, 2 * max(K1[0, 2], K2[0, 2]) / 640)
    rays1, rays2 = (compute_rays(uv, K) for uv, K in ((uv1, K1), (uv2, K2)))
    starts = _find_starts(rays1, rays2, unit * scale)
    if not starts:
        return None
    fits = [_refine(R, t, rays1, rays2, unit * scale) for R, t in starts]
    noise = _measure_noise(min(fits, key=lambda fit: fit.cost), unit * scale)
    misfits = np.array([_measure_misfit(fit.distances, noise) for fit in fits])
    motions = [_choose_side(fit, rays1, rays2, REACH_PX * unit * scale, unit) for fit in fits]
    # Points behind a camera rule a motion out, however well its epipolar lines fit.
    misfits += [_SIDE_COST * max(0.0, SIDES_MIN - share) for _, _, share in motions]
    order = int(misfits.argmin())
    best, (R, direction, sides) = fits[order], motions[order]
    within = best.distances <= REACH_PX * unit * scale
    inliers = int(within.sum())
    if inliers < INLIERS_MIN:
        return None
    turn = fit_rotation(rays1[within], rays2[within], unit * scale)
    parallax_px = float(np.median(_measure_shift(turn, rays1[within], rays2[within]))) / unit
    sigma_R, sigma_t = SPREAD * np.array(_measure_certainty(best, within, unit * scale))
    possible = [
        motion for motion, misfit in zip(motions, misfits - misfits[order], strict=True) if misfit < ALIKE_MISFIT
    ]
    apart = max(float(angle_between_deg(t, direction)) for _, t, _ in possible)
    turned = max(float(rotation_angle_deg(each @ R.T)) for each, _, _ in possible)
    is_still = parallax_px < PARALLAX_MIN_PX * scale
    why_no_rotation = ""
    if inliers / len(uv1) < SHARE_MIN:
        why_no_rotation = f"only {inliers / len(uv1):.0%} of the matches agree on one motion"
    elif sides < SIDES_MIN and not is_still:
        why_no_rotation = f"only {sides:.0%} of the matches lie before both cameras"
    why_no_direction = why_no_rotation
    if is_still:
        why_no_direction = "baseline too small: a rotation alone explains the matches"
        # A short translation could hide in the rotation: this is how much it would change.
        R, sigma_R = turn, max(sigma_R, float(rotation_angle_deg(turn @ R.T)))
    elif not why_no_rotation and apart > APART_DEG:
        why_no_direction = "two motions fit as well, as of a single plane"
        why_no_rotation = why_no_direction if turned > TURNED_DEG else ""
    elif not why_no_rotation and sigma_t > DIRECTION_SIGMA_MAX_DEG:
        why_no_direction = f"the direction is known to {sigma_t:.0f} degrees only"
    return TwoView(
        R,
        np.zeros(3) if why_no_direction else direction,
        inliers,
        len(uv1),
        float(np.median(best.distances[within])) / unit,
        float(sigma_R),
        np.inf if why_no_direction else float(sigma_t),
        parallax_px,
        why_no_direction,
        why_no_rotation,
    )


def _measure_noise(fit: _Fit, unit: float) -> float:
    """Standard deviation of the inliers' distances, on the plane z = 1."""
    near = fit.distances[fit.distances <= REACH_PX * unit]
    return max(NOISE_MIN_PX * unit, 1.4826 * float(np.median(near)) if len(near) else unit)


def _measure_misfit(distances: FloatArray, noise: float) -> float:
    """Minus the log-likelihood, up to a constant, if inliers have Gaussian distances and outliers are uniform."""
    return float(-np.logaddexp(-0.5 * (distances / noise) ** 2, np.log(STRAY)).sum())


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    R: FloatArray
    t: FloatArray
    cost: float
    distances: FloatArray
    jacobian: FloatArray


def compute_rays(uv: FloatArray, K: FloatArray) -> FloatArray:
    """(N, 3) points on the plane z = 1."""
    return np.column_stack([(uv[:, 0] - K[0, 2]) / K[0, 0], (uv[:, 1] - K[1, 2]) / K[1, 1], np.ones(len(uv))])


def _find_starts(rays1: FloatArray, rays2: FloatArray, unit: float) -> list[tuple[FloatArray, FloatArray]]:
    """(R, t) to refine: from the essential matrix, from the best homography, and from the best rotation."""
    import cv2

    starts: list[tuple[FloatArray, FloatArray]] = []
    plane1, plane2 = (np.ascontiguousarray(rays[:, :2]) for rays in (rays1, rays2))
    E, mask = cv2.findEssentialMat(
        plane1, plane2, np.eye(3), method=cv2.USAC_MAGSAC, prob=0.9999, threshold=1.5 * unit, maxIters=5000
    )
    if E is not None and E.shape == (3, 3) and mask is not None and int(mask.sum()) >= INLIERS_MIN // 2:
        one, two, t = cv2.decomposeEssentialMat(E)
        for R in sorted((np.asarray(one), np.asarray(two)), key=lambda R: float(rotation_angle_deg(R))):
            starts.append((np.asarray(R, dtype=np.float64), np.asarray(t, dtype=np.float64).ravel()))
    H, mask = cv2.findHomography(plane1, plane2, cv2.USAC_MAGSAC, 2 * unit, maxIters=5000, confidence=0.9999)
    if H is not None and mask is not None and int(mask.sum()) >= INLIERS_MIN // 2:
        # A plane fits two motions (Hartley and Zisserman, 13.1); matches off the plane decide between them.
        _, rotations, translations, _ = cv2.decomposeHomographyMat(H, np.eye(3))
        for R, t in zip(rotations[::2], translations[::2], strict=True):
            if np.linalg.norm(t) > 1e-6:
                starts.append((np.asarray(R, dtype=np.float64), np.asarray(t, dtype=np.float64).ravel()))
    turn = fit_rotation(rays1, rays2, unit)
    within = _measure_shift(turn, rays1, rays2) < 60 * unit
    normals = np.cross(rays1[within] @ turn.T, rays2[within])
    if len(normals) >= INLIERS_MIN // 2:
        axes = np.linalg.svd(normals, full_matrices=False)[2]
        starts += [(turn, axis) for axis in axes[::-1]]
    return starts


def fit_rotation(rays1: FloatArray, rays2: FloatArray, unit: float) -> FloatArray:
    """(3, 3) rotation that takes most rays of camera 1 to those of camera 2, by iteratively reweighted alignment."""
    one, two = (rays / np.linalg.norm(rays, axis=1, keepdims=True) for rays in (rays1, rays2))
    weights = np.ones(len(one))
    R = np.eye(3)
    for _ in range(20):
        U, _, Vt = np.linalg.svd((two * weights[:, None]).T @ one)
        R = U @ np.diag([1, 1, np.linalg.det(U @ Vt)]) @ Vt
        off = np.linalg.norm(two - one @ R.T, axis=1)
        weights = 1 / (1 + (off / max(3 * unit, 0.5 * float(np.median(off)))) ** 2)
    return R


def _measure_shift(R: FloatArray, rays1: FloatArray, rays2: FloatArray) -> FloatArray:
    """(N,) distances on the plane z = 1 of camera 2 between rotated rays of camera 1 and the matched rays."""
    turned = rays1 @ R.T
    moved = turned[:, :2] / np.maximum(turned[:, 2:], 1e-6)
    return np.asarray(np.linalg.norm(moved - rays2[:, :2], axis=1))


def make_essential(R: FloatArray, t: FloatArray) -> FloatArray:
    """(3, 3) essential matrix of X2 = R X1 + t."""
    x, y, z = t
    return np.asarray(np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]]) @ R)


def _measure_sampson(R: FloatArray, t: FloatArray, rays1: FloatArray, rays2: FloatArray) -> FloatArray:
    """(N,) signed Sampson distances on the plane z = 1."""
    E = make_essential(R, t)
    line2, line1 = rays1 @ E.T, rays2 @ E
    slopes = np.sqrt((line2[:, :2] ** 2).sum(axis=1) + (line1[:, :2] ** 2).sum(axis=1))
    return np.asarray((rays2 * line2).sum(axis=1) / np.maximum(slopes, 1e-12))


def _refine(R0: FloatArray, t0: FloatArray, rays1: FloatArray, rays2: FloatArray, unit: float) -> _Fit:
    from scipy.optimize import least_squares
    from scipy.spatial.transform import Rotation

    t0 = t0 / np.linalg.norm(t0)
    tangent = np.linalg.svd(t0[None])[2][1:]

    def move(p: FloatArray) -> tuple[FloatArray, FloatArray]:
        t = t0 + p[3:] @ tangent
        return Rotation.from_rotvec(p[:3]).as_matrix() @ R0, t / np.linalg.norm(t)

    def residuals(p: FloatArray) -> FloatArray:
        return _measure_sampson(*move(p), rays1, rays2) / (unit * _LOSS_PX)

    fit = least_squares(residuals, np.zeros(5), loss="cauchy", max_nfev=30)
    R, t = move(fit.x)
    return _Fit(R, t, float(fit.cost), np.abs(_measure_sampson(R, t, rays1, rays2)), np.asarray(fit.jac))


def _measure_certainty(fit: _Fit, within: BoolArray, unit: float) -> tuple[float, float]:
    """(rotation, direction) standard deviations about their least certain axes, degrees."""
    noise = 1.4826 * float(np.median(fit.distances[within])) / (unit * _LOSS_PX)
    J = fit.jacobian[within]
    try:
        covariance = noise**2 * np.linalg.inv(J.T @ J)
    except np.linalg.LinAlgError:
        return np.inf, np.inf
    turn, side = (np.sqrt(np.linalg.eigvalsh(block)[-1].clip(0)) for block in (covariance[:3, :3], covariance[3:, 3:]))
    return float(np.degrees(turn)), float(np.degrees(side))


def _choose_side(
    fit: _Fit, rays1: FloatArray, rays2: FloatArray, reach: float, unit: float
) -> tuple[FloatArray, FloatArray, float]:
    """(R, t, share): of the four motions of one essential matrix the one with most points in front of both cameras.

    The share counts only inliers that shift enough along their epipolar line to decide.
    """
    twin = (2 * np.outer(fit.t, fit.t) - np.eye(3)) @ fit.R  # rotated by 180 degrees about the translation
    within = fit.distances <= reach
    one, two = rays1[within], rays2[within]
    best = (fit.R, fit.t, 0.0)
    for R in (fit.R, twin):
        turned = one @ R.T
        cross = np.cross(two, turned)
        square = np.maximum((cross**2).sum(axis=1), 1e-18)
        # Depths z1, z2 of z2 rays2 = z1 turned + t, by least squares.
        z1 = -(np.cross(two, np.broadcast_to(fit.t, two.shape)) * cross).sum(axis=1) / square
        z2 = (z1[:, None] * turned + fit.t)[:, 2]
        lengths = np.linalg.norm(two, axis=1) * np.linalg.norm(turned, axis=1)
        decides = np.sqrt(square) / lengths > 2 * unit
        if not decides.any():
            continue
        for sign in (1, -1):
            share = float(((sign * z1 > 0) & (sign * z2 > 0))[decides].mean())
            if share > best[2]:
                best = (R, sign * fit.t, share)
    return best
