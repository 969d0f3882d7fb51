"""Motion between two frames from their pixels and depth: the second route of the pose tasks.

Two estimators, neither of which multiplies pose files: perspective-n-point on feature matches backed by the first
frame's depth, and registration of the two depth images (point to plane; Chen and Medioni 1992), which takes
the pose files' motion as its start only.
"""

from __future__ import annotations

from weakref import WeakKeyDictionary

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.geometry import poses, projection
from vgbench_gen.scenes.view import GREY_WIDTH, SceneView, ViewFrame
from vgbench_gen.tasks._pairs import get_edges
from vgbench_gen.tasks.solving.epipolar import estimate_motion
from vgbench_gen.tasks.solving.images import match_descriptors

RATIO_MAX = 0.8  # nearest over second nearest descriptor (Lowe 2004)
INLIER_PX_AT_640 = 3.0  # largest reprojection error of an inlier
# Real pairs with 15 to 60 inliers came within 1.3 degrees and 4 cm where those were most of the matches; a small
# share is a repeated pattern.
_PNP_INLIERS_MIN, _PNP_SHARE_MIN = 15, 0.4
INLIERS_BELIEVED = 60  # agreeing matches from which their motion is believed whatever their share
_ITERATIONS = 12
_CONVERGED = 1e-4  # radians and meters; two hundred times below what the routes may differ by
_MIN_POINTS = 60  # aligned points of depth that determine a motion
_MIN_CONDITION = 2e-3  # smallest over largest eigenvalue; below, a plane or a corridor leaves a motion free

_MATCHES: WeakKeyDictionary[ViewFrame, WeakKeyDictionary[ViewFrame, IntArray]] = WeakKeyDictionary()


def match_features(first: ViewFrame, second: ViewFrame) -> IntArray:
    """(M, 2) indices into both frames' features: ratio test and nearest neighbour in both directions."""
    cached = _MATCHES.setdefault(first, WeakKeyDictionary())
    if second not in cached:
        cached[second] = match_descriptors(first.features[1], second.features[1], RATIO_MAX, both_ways=True)
    return cached[second]


def estimate_essential_motion(first: ViewFrame, second: ViewFrame) -> tuple[FloatArray, int] | None:
    """`estimate_motion` of the matches, or None where fewer than `INLIERS_BELIEVED` of them fit."""
    pairs = match_features(first, second)
    a = _normalise_pixels(first, first.features[0][pairs[:, 0]])
    b = _normalise_pixels(second, second.features[0][pairs[:, 1]])
    threshold = INLIER_PX_AT_640 / 2 / GREY_WIDTH * second.camera.width / second.camera.fx
    return estimate_motion(a, b, threshold, INLIERS_BELIEVED)


def estimate_pnp_pose(first: ViewFrame, second: ViewFrame, view: SceneView) -> tuple[FloatArray, int, float] | None:
    """((3, 4) second_from_first, inliers, their share) from matches whose depth the first frame knows, or None."""
    pairs = match_features(first, second)
    uv_first = first.features[0][pairs[:, 0]]
    z_m = first.depth_at(uv_first) if len(pairs) else np.zeros(0)
    firm = ~projection.sample_nearest(get_edges(first, view), first.depth_uv(uv_first), outside=1)
    keep = (z_m >= view.near_m) & (z_m <= view.far_m) & firm
    if keep.sum() < _PNP_INLIERS_MIN:
        return None
    points = projection.back_project(first.camera, uv_first[keep], z_m[keep])
    uv_second = second.features[0][pairs[keep, 1]]
    inlier_px = INLIER_PX_AT_640 * second.camera.width / GREY_WIDTH
    found, turn, shift, inliers = cv2.solvePnPRansac(
        points,
        uv_second,
        second.camera.K,
        None,
        iterationsCount=500,
        reprojectionError=inlier_px,
        confidence=0.9999,
        flags=cv2.SOLVEPNP_P3P,
    )
    if not found or inliers is None:
        return None
    rows = inliers.ravel()
    for _ in range(2):  # the first refinement brings in what the three points of the best sample had missed
        if len(rows) < _PNP_INLIERS_MIN:
            return None
        turn, shift = cv2.solvePnPRefineLM(points[rows], uv_second[rows], second.camera.K, None, turn, shift)
        projected = cv2.projectPoints(points, turn, shift, second.camera.K, None)[0][:, 0]
        rows = np.flatnonzero(np.linalg.norm(projected - uv_second, axis=1) <= inlier_px)
    R = np.asarray(cv2.Rodrigues(turn)[0], dtype=np.float64)
    return (
        np.concatenate([R, np.asarray(shift, dtype=np.float64).reshape(3, 1)], axis=1),
        len(rows),
        len(rows) / len(points),
    )


def register_depth(first: ViewFrame, second: ViewFrame, start: FloatArray, view: SceneView) -> FloatArray:
    """(3, 4) second_from_first that lays the first frame's depth onto the second's surface.

    start: (4, 4) second_from_first; it only decides which surfaces meet in the first step.

    Raises:
        GeometryError: too few points meet, or the shared surface leaves a motion free.
    """
    points = _choose_firm_points(first, view)
    surface = Surface(second, view)
    motion = start.copy()
    for narrowing in (1, 2):
        for _ in range(_ITERATIONS // 2):
            step = _solve_step(poses.transform(motion, points), surface, narrowing, view, f"{first.id}-{second.id}")
            motion = step @ motion
            if np.abs(step - np.eye(4)).max() < _CONVERGED:
                break
    return np.asarray(motion[:3])


def _solve_step(moved: FloatArray, surface: Surface, narrowing: int, view: SceneView, pair: str) -> FloatArray:
    """(4, 4) the small motion that brings points (N, 3) nearest to the surface's tangent planes.

    Raises:
        GeometryError: see `register_depth`.
    """
    uv, _ = projection.project(surface.camera, moved)
    q, n = surface.measure(uv)
    residual = ((moved - q) * n).sum(axis=-1)
    limit = 2 * view.tolerance.of(moved[:, 2]) / narrowing
    with np.errstate(invalid="ignore"):
        keep = (n != 0).any(axis=-1) & (np.abs(residual) <= limit)
    if keep.sum() < _MIN_POINTS:
        raise GeometryError(f"{pair}: {int(keep.sum())} points of the two depth images meet")
    p, n, r = moved[keep], n[keep], residual[keep]
    middle = p.mean(axis=0)
    scale = float(np.linalg.norm(p - middle, axis=1).mean())
    J = np.concatenate([np.cross((p - middle) / scale, n), n], axis=1)
    H = J.T @ J / len(J)
    eigen = np.linalg.eigvalsh(H)
    condition = float(eigen[0] / eigen[-1])
    if condition < _MIN_CONDITION:
        raise GeometryError(f"{pair}: the shared surface leaves a motion free ({condition:.2g})")
    x = -np.linalg.solve(H, J.T @ r / len(J))
    turn = cv2.Rodrigues(x[:3] / scale)[0]
    return poses.make_pose(turn, middle - turn @ middle + x[3:])


def estimate_second_route(first: ViewFrame, second: ViewFrame, view: SceneView) -> FloatArray:
    """(3, 4) second_from_first by matches where enough agree, else by the two depth images.

    Raises:
        GeometryError: neither can tell.
    """
    found = estimate_pnp_pose(first, second, view)
    if found is not None:
        pose, inliers, share = found
        if inliers >= INLIERS_BELIEVED or (inliers >= _PNP_INLIERS_MIN and share >= _PNP_SHARE_MIN):
            return pose
    start = poses.relative_pose(first.world_from_camera, second.world_from_camera)
    return register_depth(first, second, start, view)


def _normalise_pixels(frame: ViewFrame, uv_px: FloatArray) -> FloatArray:
    return projection.back_project(frame.camera, uv_px, np.ones(len(uv_px)))[:, :2]


def _choose_firm_points(frame: ViewFrame, view: SceneView) -> FloatArray:
    """(N, 3) camera points away from edges and within the range; about 3,000."""
    stride = max(1, round(np.sqrt(frame.depth_m.size / 4000)))
    points, uv = projection.back_project_depth(frame.depth_camera, frame.depth_m, stride)
    firm = ~projection.sample_nearest(get_edges(frame, view), uv, outside=1).astype(bool)
    return points[firm & (points[:, 2] >= view.near_m) & (points[:, 2] <= view.far_m)]


class Surface:
    """What a frame's depth image measures, smoothed: points and normals in its camera, at the pixels asked for."""

    def __init__(self, frame: ViewFrame, view: SceneView) -> None:
        self.camera = frame.depth_camera
        known = (frame.depth_m > 0).astype(np.float32)
        # Quantised sensor depth has no usable slope from pixel to pixel.
        self._radius = max(2, round(4 * self.camera.width / GREY_WIDTH))
        size = (2 * self._radius + 1, 2 * self._radius + 1)
        weight = cv2.blur(known, size)
        self._smooth_m = np.asarray(cv2.blur(frame.depth_m, size) / np.maximum(weight, 1e-6), dtype=np.float64)
        self._firm = np.asarray(known > 0) & ~get_edges(frame, view)

    def measure(self, uv_px: FloatArray) -> tuple[FloatArray, FloatArray]:
        """((N, 3) points, (N, 3) unit normals) nearest to depth pixels (N, 2); a normal is 0 where it means nothing."""
        radius, (width, height) = self._radius, self.camera.size
        u, v = np.nan_to_num(np.floor(uv_px + 0.5), nan=-1.0).T
        # Normals need neighbours on all sides.
        good = (u >= radius) & (u < width - radius) & (v >= radius) & (v < height - radius)
        column, row = (np.where(good, x, radius).astype(np.int64) for x in (u, v))
        good &= self._firm[row, column]
        along_u = self._locate(row, column + radius) - self._locate(row, column - radius)
        along_v = self._locate(row + radius, column) - self._locate(row - radius, column)
        normals = np.cross(along_u, along_v)
        length = np.linalg.norm(normals, axis=-1)
        good &= length > 0
        normals = np.where(good[:, None], normals / np.where(length > 0, length, 1.0)[:, None], 0.0)
        return self._locate(row, column), normals

    def _locate(self, row: IntArray, column: IntArray) -> FloatArray:
        z_m = self._smooth_m[row, column]
        x = (column - self.camera.cx) / self.camera.fx * z_m
        y = (row - self.camera.cy) / self.camera.fy * z_m
        return np.stack([x, y, z_m], axis=-1)
