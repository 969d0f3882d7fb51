"""Which points of one view are seen in another, and how well a pair of views is placed. Conventions: package docstring.

Tolerances and three-way states: `docs/validity.md#visible-points`. Depth, camera and pixels given together belong
together: map colour pixels into the depth camera first (`cameras.map_pixels`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, Camera, FloatArray
from vgbench_gen.geometry.poses import angle_between_deg, transform
from vgbench_gen.geometry.projection import (
    back_project,
    back_project_depth,
    check_size,
    is_in_image,
    project_world,
    sample_depth,
    sample_nearest,
    valid_mask,
)

States = npt.NDArray[np.int8]

VISIBLE, OCCLUDED, UNDECIDED, OUTSIDE = 1, -1, 0, 2


@dataclass(frozen=True, slots=True)
class DepthTolerance:
    """How far measured depth may be from the truth: max(absolute_m, relative * z)."""

    absolute_m: float
    """The least tolerance, meters."""
    relative: float
    """The tolerance of far points as a share of their depth."""

    def of(self, z_m: npt.ArrayLike) -> FloatArray:
        """The tolerance in meters at depths z (...)."""
        return np.maximum(self.absolute_m, self.relative * np.asarray(z_m, dtype=np.float64))


SENSOR = DepthTolerance(0.05, 0.02)
LASER = DepthTolerance(0.03, 0.01)


def classify(
    camera: Camera, depth_m: npt.NDArray[Any], uv: npt.ArrayLike, z_m: npt.ArrayLike, tolerance: DepthTolerance
) -> States:
    """Whether points projected into a view are seen there.

    Args:
        camera: of the depth image.
        depth_m: (h, w) z-depth, 0 = unknown.
        uv: (..., 2) where the points project, pixels; `nan` where they are behind the camera.
        z_m: (...) their z-depth in this camera.
        tolerance: of this kind of depth.

    Returns:
        int8 (...): VISIBLE within the tolerance; OCCLUDED more than twice the tolerance behind what was measured;
        OUTSIDE the image or behind the camera; UNDECIDED otherwise (depth unknown, in between, in front of the
        surface). Undecided points must not be used either way.
    """
    check_size(camera, depth_m)
    uv_, z = np.asarray(uv, dtype=np.float64), np.asarray(z_m, dtype=np.float64)
    inside = is_in_image(camera, uv_) & (z > 0)
    state = np.full(inside.shape, OUTSIDE, dtype=np.int8)
    # Most points of a scene are outside of any one view; only the others are compared with its depth.
    state[inside] = _compare_depths(z[inside], sample_nearest(depth_m, uv_[inside]), tolerance)
    return state


def _compare_depths(z_m: FloatArray, measured_m: npt.NDArray[Any], tolerance: DepthTolerance) -> States:
    """States of points (N,) at depth z in front of a camera that measured another depth there."""
    limit = tolerance.of(z_m)
    with np.errstate(invalid="ignore"):
        behind = z_m - measured_m
        decided = valid_mask(measured_m)
        state: States = (decided & (np.abs(behind) <= limit)).astype(np.int8)  # UNDECIDED or VISIBLE
        state[decided & (behind > 2.0 * limit)] = OCCLUDED
    return state


def find_depth_edges(
    depth_m: npt.NDArray[Any], radius_px: float, absolute_m: float = 0.10, relative: float = 0.05
) -> BoolArray:
    """Where depth cannot be trusted because an edge or a hole is near.

    Args:
        depth_m: (h, w) z-depth, 0 = unknown.
        radius_px: how near, pixels of this depth image; 0 marks the edge pixels themselves.
        absolute_m, relative: a step is a range over 3x3 pixels of more than max(absolute_m, relative * nearest z).

    Returns:
        (h, w) True within the radius of a step or of an unknown pixel.
    """
    good = valid_mask(depth_m)
    nearest = _reduce_neighbours(np.minimum, np.where(good, depth_m, np.inf).astype(depth_m.dtype, copy=False))
    farthest = _reduce_neighbours(np.maximum, np.where(good, depth_m, -np.inf).astype(depth_m.dtype, copy=False))
    edge = ~good
    # Few pixels have neighbours that far apart; only they are worth exact arithmetic.
    rows, columns = np.nonzero(farthest - nearest > 0.999 * absolute_m)
    low, high = (extreme[rows, columns].astype(np.float64) for extreme in (nearest, farthest))
    edge[rows, columns] |= high - low > np.maximum(absolute_m, relative * low)
    return _dilate(edge, radius_px)


def _reduce_neighbours(extreme: np.ufunc, values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The extreme over 3x3 pixels of (h, w), whose own content is lost; pixels beyond the border do not count."""
    rows = values.copy()
    extreme(rows[1:], values[:-1], out=rows[1:])
    extreme(rows[:-1], values[1:], out=rows[:-1])
    np.copyto(values, rows)
    extreme(values[:, 1:], rows[:, :-1], out=values[:, 1:])
    extreme(values[:, :-1], rows[:, 1:], out=values[:, :-1])
    return values


def _dilate(mask: BoolArray, radius_px: float) -> BoolArray:
    """(h, w) True within `radius_px` of a True pixel, distances between pixel centres.

    Row by row of the disc: a few shifts of the whole mask cost a tenth of a distance transform.
    """
    grown = mask.copy()
    height, width = mask.shape
    rows = min(int(max(radius_px, 0)), height - 1)
    wide, reach = mask.copy(), 0
    for dy in range(rows, -1, -1):
        while reach < min(int(np.sqrt(radius_px**2 - dy**2)), width - 1):
            reach += 1
            wide[:, reach:] |= mask[:, :-reach]
            wide[:, :-reach] |= mask[:, reach:]
        if dy:
            grown[dy:] |= wide[:-dy]
            grown[:-dy] |= wide[dy:]
        else:
            grown |= wide
    return grown


@dataclass(frozen=True, slots=True, eq=False)
class CoVisibility:
    """What became of N pixels of view A in view B. Every array has N rows, in the order of `uv_a`."""

    uv_a: FloatArray
    """The pixels of A, (N, 2)."""
    z_a: FloatArray
    """The depth measured there in A's camera, (N,) meters (`projection.sample_depth`); 0 where it is unknown."""
    points_world: FloatArray
    """The points on the surface in the world frame, (N, 3) meters; `nan` where `z_a` is unknown."""
    uv_b: FloatArray
    """The pixels of B where the points land, (N, 2); `nan` where they are unknown or behind B."""
    z_b: FloatArray
    """The depth of the points in B's camera, as projected, (N,) meters; `nan` where it is unknown."""
    state: States
    """How B sees the points, (N,) as `classify` says; UNDECIDED where `z_a` is unknown."""

    @property
    def visible(self) -> BoolArray:
        """Where B sees the point, (N,)."""
        return np.asarray(self.state == VISIBLE)


def find_co_visible(
    camera_a: Camera,
    depth_a: npt.NDArray[Any],
    world_from_a: FloatArray,
    camera_b: Camera,
    depth_b: npt.NDArray[Any],
    world_from_b: FloatArray,
    tolerance: DepthTolerance,
    uv_a: npt.ArrayLike | None = None,
    stride: int = 8,
) -> CoVisibility:
    """Carry pixels of view A into view B and say which are seen there.

    Args:
        camera_a, depth_a, world_from_a: depth camera, (h, w) depth and (4, 4) pose of A.
        camera_b, depth_b, world_from_b: the same of B.
        tolerance: of this kind of depth.
        uv_a: (N, 2) pixels of A; without them every `stride`-th known pixel of `depth_a`.
        stride: see `uv_a`.
    """
    check_size(camera_a, depth_a)
    uv = back_project_depth(camera_a, depth_a, stride)[1] if uv_a is None else np.asarray(uv_a, dtype=np.float64)
    z_a = sample_depth(depth_a, uv)
    measured = z_a > 0
    points_world = transform(world_from_a, back_project(camera_a, uv, np.where(measured, z_a, np.nan)))
    uv_b, z_b = project_world(camera_b, world_from_b, points_world)
    state = classify(camera_b, depth_b, uv_b, z_b, tolerance)
    state[~measured] = UNDECIDED
    return CoVisibility(uv, z_a, points_world, uv_b, z_b, state)


@dataclass(frozen=True, slots=True, eq=False)
class TwoWayVisibility:
    """What became of N pixels of view A in view B and, from there, back in A."""

    forward: CoVisibility
    uv_back: FloatArray
    """The pixels of A where B's surface at `forward.uv_b` lands, (N, 2); `nan` where it is unknown."""
    state_back: States
    """How A sees that surface, (N,) as `classify` says."""
    cycle_px: FloatArray
    """The distance between `uv_back` and `forward.uv_a` in pixels of A, (N,); `nan` where it is unknown."""

    @property
    def visible(self) -> BoolArray:
        """Where each view sees the other's surface within the tolerance, (N,)."""
        return np.asarray((self.forward.state == VISIBLE) & (self.state_back == VISIBLE))


def find_two_way_visible(
    camera_a: Camera,
    depth_a: npt.NDArray[Any],
    world_from_a: FloatArray,
    camera_b: Camera,
    depth_b: npt.NDArray[Any],
    world_from_b: FloatArray,
    tolerance: DepthTolerance,
    uv_a: npt.ArrayLike | None = None,
    stride: int = 8,
) -> TwoWayVisibility:
    """Visibility in *both* directions (`docs/validity.md#visible-points`) and the cycle error A -> B -> A.

    The way back starts at the exact, not the rounded, pixel of B, at the depth B measured there: rounding would add
    up to 0.7 px that say nothing about pose or depth. Arguments as in `find_co_visible`.
    """
    forward = find_co_visible(
        camera_a, depth_a, world_from_a, camera_b, depth_b, world_from_b, tolerance, uv_a=uv_a, stride=stride
    )
    back = find_co_visible(
        camera_b, depth_b, world_from_b, camera_a, depth_a, world_from_a, tolerance, uv_a=forward.uv_b
    )
    cycle_px = np.linalg.norm(back.uv_b - forward.uv_a, axis=-1)
    return TwoWayVisibility(forward, back.uv_b, back.state, cycle_px)


def overlap_fraction(state: States, min_decided: int = 1) -> float:
    """Share of visible points among those that decide (visible, occluded or outside), in [0, 1].

    0 where fewer than `min_decided` decide, so that an almost empty depth image never looks like a good partner.
    """
    decided = int((state != UNDECIDED).sum())
    return float((state == VISIBLE).sum() / decided) if decided >= max(min_decided, 1) else 0.0


def parallax_deg(points_world: npt.ArrayLike, center_a: npt.ArrayLike, center_b: npt.ArrayLike) -> FloatArray:
    """Angle (...) at points (..., 3) between the rays to two camera centres (3,), degrees."""
    points = np.asarray(points_world, dtype=np.float64)
    return angle_between_deg(np.asarray(center_a) - points, np.asarray(center_b) - points)
