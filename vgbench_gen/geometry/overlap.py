"""Overlap of many frames at once, and how planar what they share is. Conventions: package docstring."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import invert
from vgbench_gen.geometry.visibility import OCCLUDED, OUTSIDE, VISIBLE, DepthTolerance, States

# Elements (frames x points, hypotheses x points) worked on at once: few enough to stay in the cache.
_CHUNK = 1 << 15


def compute_pairwise_states(
    points_world: FloatArray,
    Ks: FloatArray,
    depths_m: npt.NDArray[np.float32],
    world_from_cameras: FloatArray,
    tolerance: DepthTolerance,
) -> States:
    """`visibility.classify` of the same N points in F views at once, in float32.

    Args:
        points_world: (N, 3) meters.
        Ks: (F, 3, 3) of the depth images.
        depths_m: (F, h, w) z-depth, 0 = unknown; all of one size (resize the larger by striding, with its K).
        world_from_cameras: (F, 4, 4).
        tolerance: of this kind of depth.

    Returns:
        int8 (F, N). Meant to pick pairs: points within rounding of a limit may differ from the float64 route.
    """
    frames, height, width = depths_m.shape
    points = np.asarray(points_world, dtype=np.float64)
    states = np.full((frames, len(points)), OUTSIDE, dtype=np.int8)
    if not len(points):
        return states
    # About the middle of the points: far from the origin of a world, float32 has no millimeters left.
    middle = points.mean(axis=0)
    columns = np.ascontiguousarray((points - middle).T, dtype=np.float32)
    camera_from_world = invert(np.asarray(world_from_cameras, dtype=np.float64))
    R = camera_from_world[:, :3, :3]
    shifts = (R @ middle + camera_from_world[:, :3, 3]).astype(np.float32)[:, :, None]
    K = np.asarray(Ks, dtype=np.float32)[..., None]
    limits = np.float32(tolerance.absolute_m), np.float32(tolerance.relative)
    step = max(1, _CHUNK // len(points))
    for first in range(0, frames, step):
        chunk = slice(first, first + step)
        x, y, z = np.moveaxis(R[chunk].astype(np.float32) @ columns + shifts[chunk], 1, 0)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            u = K[chunk, 0, 0] * (x / z) + K[chunk, 0, 2]
            v = K[chunk, 1, 1] * (y / z) + K[chunk, 1, 2]
            inside = (z > 0) & (u >= -0.5) & (u < width - 0.5) & (v >= -0.5) & (v < height - 0.5)
        # Most frames of a scene look elsewhere: only points inside their images are compared with depth.
        frame, point = np.nonzero(inside)
        column = np.minimum((u[frame, point] + np.float32(0.5)).astype(np.int64), width - 1)
        row = np.minimum((v[frame, point] + np.float32(0.5)).astype(np.int64), height - 1)
        measured, z = depths_m[first + frame, row, column], z[frame, point]
        decided = np.isfinite(measured) & (measured > 0)
        limit = np.maximum(limits[0], limits[1] * z)
        with np.errstate(invalid="ignore"):
            behind = z - measured
            state = (decided & (np.abs(behind) <= limit)).astype(np.int8)
            state[decided & (behind > 2 * limit)] = OCCLUDED
        states[first + frame, point] = state
    return states


def compute_pairwise_overlap(
    points_world: FloatArray,
    Ks: FloatArray,
    depths_m: npt.NDArray[np.float32],
    world_from_cameras: FloatArray,
    tolerance: DepthTolerance,
    min_decided: int = 1,
) -> FloatArray:
    """Share (F,) of one frame's points (N, 3) seen in each of F views.

    It is the `overlap_fraction` of `compute_pairwise_states`.
    """
    states = compute_pairwise_states(points_world, Ks, depths_m, world_from_cameras, tolerance)
    decided = (states != 0).sum(axis=1)
    share = (states == VISIBLE).sum(axis=1) / np.maximum(decided, 1)
    return np.where(decided >= max(min_decided, 1), share, 0.0)


def largest_plane_share(
    points: npt.ArrayLike,
    rng: np.random.Generator,
    tolerance_m: float | npt.NDArray[Any],
    hypotheses: int = 256,
) -> float:
    """Share of points that lie on the best plane (random sampling of triples, then a least-squares refinement).

    Args:
        points: (N, 3) meters, any frame.
        rng: source of the triples.
        tolerance_m: distance to the plane that still counts, meters; one number or (N,).
        hypotheses: number of triples tried.

    Returns:
        In [0, 1]; 1 for fewer than four points or points on one line, which a plane always holds.
    """
    xyz = np.asarray(points, dtype=np.float64).reshape(-1, 3)
    if len(xyz) < 4:
        return 1.0
    xyz = xyz - xyz.mean(axis=0)
    tolerance = np.broadcast_to(np.asarray(tolerance_m, dtype=np.float64), (len(xyz),))
    a, b, c = xyz[rng.integers(len(xyz), size=(hypotheses, 3))].swapaxes(0, 1)
    normals = np.cross(b - a, c - a)
    length = np.linalg.norm(normals, axis=-1)
    spread = np.linalg.norm(b - a, axis=-1) * np.linalg.norm(c - a, axis=-1)
    # Nearly collinear triples give planes of arbitrary tilt.
    good = length > 1e-3 * spread
    # The plane of least squares through all points is one more guess; alone it serves points on a line.
    normals = np.concatenate([normals[good] / length[good, None], np.linalg.svd(xyz, full_matrices=False)[2][2:3]])
    offsets = np.concatenate([(normals[:-1] * a[good]).sum(axis=-1), [0.0]])
    counts = np.empty(len(normals), dtype=np.int64)
    step = max(1, _CHUNK // len(xyz))
    for first in range(0, len(normals), step):
        chunk = slice(first, first + step)
        distance = np.abs(normals[chunk] @ xyz.T - offsets[chunk, None])
        counts[chunk] = (distance <= tolerance).sum(axis=1)
    best = int(np.argmax(counts))
    share = int(counts[best])
    inliers = xyz[np.abs(xyz @ normals[best] - offsets[best]) <= tolerance]
    if len(inliers) >= 3:
        middle = inliers.mean(axis=0)
        normal = np.linalg.svd(inliers - middle, full_matrices=False)[2][2]
        share = max(share, int((np.abs((xyz - middle) @ normal) <= tolerance).sum()))
    return share / len(xyz)
