"""Oriented boxes in space and rectangles in images. Conventions (corner order, axes): package docstring."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.spatial import ConvexHull, QhullError

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, Camera, FloatArray, OrientedBox
from vgbench_gen.geometry.cameras import Rect
from vgbench_gen.geometry.poses import find_nearest_rotation, transform
from vgbench_gen.geometry.projection import project

CORNER_SIGNS: FloatArray = np.array(
    [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [-1, 1, -1], [-1, -1, 1], [1, -1, 1], [1, 1, 1], [-1, 1, 1]],
    dtype=np.float64,
)
BESIDE_FIRST = (1, 3, 4)
"""Corners that share an edge with the first one."""
EDGES: npt.NDArray[np.int64] = np.array(
    [[0, 1], [1, 2], [2, 3], [3, 0], [4, 5], [5, 6], [6, 7], [7, 4], [0, 4], [1, 5], [2, 6], [3, 7]], dtype=np.int64
)
# Points tried for the yaw of a gravity-aligned box.
_YAW_POINTS = 4096
_PROJECTIONS = 200  # between two boxes; more change the distance by less than 1e-6 m
_SETTLED_M = 1e-13  # a fitted side that moves by less moves no more


def corners(box: OrientedBox) -> FloatArray:
    """The eight corners (8, 3), meters, in the frame of the box."""
    offsets: FloatArray = (CORNER_SIGNS * (box.size_m / 2.0)) @ box.rotation.T
    return box.center_m + offsets


def find_listing(box: OrientedBox, upright: int | None = None) -> FloatArray:
    """(3, 3) how the axes of a box in the camera frame are renamed, a rotation of zeros and signs: the third one goes
    up, and of the lower corners the first is the one nearest to the camera. So the order of the corners says nothing
    that the box does not.

    upright: which axis goes up or down; None for the one that does so most in the camera frame.
    """
    k = int(np.argmax(np.abs(box.rotation[1]))) if upright is None else upright
    listing = np.roll(np.eye(3), k - 2, axis=0)
    if box.rotation[1, k] > 0:  # y of the camera frame points down
        listing = listing @ np.diag([1.0, -1.0, -1.0])
    lower = corners(rename_axes(box, listing))[:4]
    quarter = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return np.asarray(listing @ np.linalg.matrix_power(quarter, int(np.argmin(np.linalg.norm(lower, axis=1)))))


def rename_axes(box: OrientedBox, listing: FloatArray) -> OrientedBox:
    """The same box with its axes renamed and turned round by `find_listing`."""
    return replace(box, rotation=box.rotation @ listing, size_m=box.size_m @ np.abs(listing))


def fit_to_corners(points: npt.ArrayLike, frame: str = "world") -> OrientedBox:
    """The box whose corners (8, 3), in the defined order, are closest to `points`; its arrays cannot be written to.

    Raises:
        GeometryError: a side has no length, or the order describes a mirrored box.
    """
    points_ = np.ascontiguousarray(points, dtype=np.float64)
    if points_.shape != (8, 3):
        raise GeometryError(f"a box has 8 finite corners, got an array of shape {points_.shape}")
    box = _fit(points_.tobytes(), frame)
    if box is None:
        raise GeometryError("a box has 8 finite corners, got some that are not")
    if not min(box.size_m.tolist()) > 1e-9:
        raise GeometryError("corners are flat or not in the order (---)(+--)(++-)(-+-)(--+)(+-+)(+++)(-++)")
    return box


@lru_cache(maxsize=1024)  # options are compared with each other, and every comparison needs both boxes
def _fit(points_bytes: bytes, frame: str) -> OrientedBox | None:
    """The cuboid closest to eight ordered corners, whose sizes may be negative; None where a corner is not finite."""
    points = np.frombuffer(points_bytes, dtype=np.float64).reshape(8, 3)
    if not np.isfinite(points).all():
        return None
    center = points.mean(axis=0)
    # Columns: mean vectors from the centre to the faces +x, +y, +z.
    half = (points - center).T @ CORNER_SIGNS / 8.0
    size = np.linalg.norm(half, axis=0)
    rotation = np.eye(3)
    for _ in range(4):
        rotation, last = find_nearest_rotation(half * size), size
        size = (rotation * half).sum(axis=0)
        if np.abs(size - last).max() < _SETTLED_M:
            break
    box = OrientedBox(center, 2.0 * size, rotation, frame)
    for array in (box.center_m, box.size_m, box.rotation):
        array.flags.writeable = False
    return box


def cuboid_residual_m(points: npt.ArrayLike) -> float:
    """Largest distance of eight ordered corners (8, 3) from those of the closest cuboid, meters; `inf` for `nan`."""
    points_ = np.ascontiguousarray(points, dtype=np.float64)
    box = _fit(points_.tobytes(), "camera") if points_.shape == (8, 3) else None  # the frame of options
    if box is None:
        return float("inf")
    ideal = corners(OrientedBox(box.center_m, np.maximum(box.size_m, 0.0), box.rotation))
    return float(np.linalg.norm(points_ - ideal, axis=1).max())


def transform_box(box: OrientedBox, dst_from_src: FloatArray, frame: str) -> OrientedBox:
    """The box in another frame, named `frame`; `dst_from_src` is (4, 4) rigid."""
    center = transform(dst_from_src, box.center_m[None])[0]
    return OrientedBox(center, box.size_m, dst_from_src[:3, :3] @ box.rotation, frame)


def contains(box: OrientedBox, points: npt.ArrayLike, margin_m: float = 0.0) -> BoolArray:
    """Whether points (N, 3) lie in the box (faces included), grown by `margin_m` on every side."""
    local = (np.asarray(points, dtype=np.float64) - box.center_m) @ box.rotation
    # Axis by axis: NumPy reduces a last axis of three in several times the time.
    x, y, z = (np.abs(local) <= box.size_m / 2.0 + margin_m).T
    return np.asarray(x & y & z)


def scale_about_camera(box: OrientedBox, scale: float) -> OrientedBox:
    """The whole box scaled about the camera centre: another depth, the same projection.

    Source: `docs/validity.md#object-location`.

    Raises:
        ValueError: the box is not in a camera frame, or the scale is not positive.
    """
    if box.frame != "camera" or not scale > 0:
        raise ValueError(f"needs a box in the camera frame and a positive scale, got {box.frame!r} and {scale}")
    return OrientedBox(box.center_m * scale, box.size_m * scale, box.rotation, box.frame)


def intersection_volume(a: OrientedBox, b: OrientedBox) -> float:
    """Volume two boxes of one frame share, cubic meters; exact for any orientation.

    Raises:
        ValueError: the boxes are given in different frames.
    """
    if a.frame != b.frame:
        raise ValueError(f"boxes in different frames: {a.frame!r} and {b.frame!r}")
    reach = (np.linalg.norm(a.size_m) + np.linalg.norm(b.size_m)) / 2.0
    if np.linalg.norm(a.center_m - b.center_m) >= reach:
        return 0.0
    a_from_b = a.rotation.T @ b.rotation
    shift = a.rotation.T @ (b.center_m - a.center_m)
    half_a, half_b = a.size_m / 2.0, b.size_m / 2.0
    if np.sort(np.abs(a_from_b), axis=None)[:6].max() < 1e-12:
        # Parallel boxes, possibly with swapped axes.
        reach_b = np.abs(a_from_b) @ half_b
        overlap = np.minimum(half_a, shift + reach_b) - np.maximum(-half_a, shift - reach_b)
        return float(np.maximum(overlap, 0.0).prod())
    # Every vertex of the intersection is a corner of one box inside the other, or an edge of one through a face of
    # the other. Taking a few points too many on the boundary moves the hull by no more than eps.
    eps = 1e-10 * float(reach)
    in_b = ((CORNER_SIGNS * half_a) - shift) @ a_from_b
    in_a = (CORNER_SIGNS * half_b) @ a_from_b.T + shift
    from_a = _find_inside_and_crossings(in_b, half_b, eps) @ a_from_b.T + shift
    vertices = np.concatenate([from_a, _find_inside_and_crossings(in_a, half_a, eps)])
    if len(vertices) < 4:
        return 0.0
    try:
        return float(ConvexHull(vertices).volume)
    except QhullError:
        # Flat: the boxes touch in a face, an edge or a point.
        return 0.0


def measure_gap_m(a_m: FloatArray, b_m: FloatArray) -> FloatArray:
    """(...) smallest distance between cuboids given by their ordered corners (..., 8, 3), meters; 0 where they meet.

    Alternating projections (Cheney and Goldstein 1959): the nearest point of one box to a point of the other, in turn.
    """
    both = [_split_into_axes(corners) for corners in (a_m, b_m)]
    point = np.broadcast_to(b_m.mean(axis=-2), np.broadcast_shapes(a_m.shape, b_m.shape)[:-2] + (3,))
    nearest = [point, point]
    for step in range(2 * _PROJECTIONS):
        center, axes, sides = both[step % 2]
        local = ((point - center)[..., None, :] * axes).sum(axis=-1)
        point = center + (np.clip(local, -sides / 2, sides / 2)[..., None] * axes).sum(axis=-2)
        nearest[step % 2] = point
    return np.asarray(np.linalg.norm(nearest[0] - nearest[1], axis=-1))


def _split_into_axes(corners_m: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(center (..., 3), unit axes as rows (..., 3, 3), sides (..., 3)) of ordered corners (..., 8, 3)."""
    edges = corners_m[..., BESIDE_FIRST, :] - corners_m[..., :1, :]
    sides = np.linalg.norm(edges, axis=-1)
    return corners_m.mean(axis=-2), edges / sides[..., None], sides


def _find_inside_and_crossings(points: FloatArray, half: FloatArray, eps: float) -> FloatArray:
    """Corners (8, 3) of a box, and points of its edges on the faces, that lie in the box [-half, half]."""
    start, end = points[EDGES[:, 0]], points[EDGES[:, 1]]
    along = end - start
    faces = np.array([-1.0, 1.0])[:, None, None] * half
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (faces - start) / along
    hit = np.isfinite(t) & (t >= 0.0) & (t <= 1.0)
    crossings = (start[:, None, :] + np.where(hit, t, 0.0)[..., None] * along[:, None, :])[hit]
    candidates = np.concatenate([points, crossings])
    kept: FloatArray = candidates[(np.abs(candidates) <= half + eps).all(axis=1)]
    return kept


def iou_3d(a: OrientedBox, b: OrientedBox) -> float:
    """Intersection over union of the volumes of two boxes of one frame, in [0, 1]; 0 if either has no volume.

    Raises:
        ValueError: the boxes are given in different frames.
    """
    shared = intersection_volume(a, b)
    volume_a, volume_b = float(a.size_m.prod()), float(b.size_m.prod())
    if not (shared > 0 and volume_a > 0 and volume_b > 0):
        return 0.0
    shared = min(shared, volume_a, volume_b)
    return shared / (volume_a + volume_b - shared)


def project_rect(camera: Camera, box_in_camera: OrientedBox) -> Rect | None:
    """Rectangle (x1, y1, x2, y2) around the projected corners, not clipped; None when a corner is not in front.

    Raises:
        ValueError: the box is not in a camera frame.
    """
    if box_in_camera.frame != "camera":
        raise ValueError(f"needs a box in the camera frame, got {box_in_camera.frame!r}")
    uv, z = project(camera, corners(box_in_camera))
    if not (z > 0).all():
        return None
    (x1, y1), (x2, y2) = uv.min(axis=0), uv.max(axis=0)
    return float(x1), float(y1), float(x2), float(y2)


def fit_gravity_aligned_box(
    points: npt.ArrayLike, up: npt.ArrayLike, trim: float = 0.01, frame: str = "world"
) -> OrientedBox:
    """The box around points that stands on gravity and has the smallest footprint.

    Args:
        points: (N, 3) meters. up: (3,) direction against gravity, in the same frame.
        trim: share of points left outside at either end of each axis, against stray points; 0 is exact.
        frame: name of the frame of the points.

    Returns:
        Axes: the longer horizontal side, the shorter one, up.

    Raises:
        GeometryError: fewer than four points, not finite, or without horizontal extent.
    """
    xyz = np.asarray(points, dtype=np.float64)
    if xyz.ndim != 2 or len(xyz) < 4 or not np.isfinite(xyz).all():
        raise GeometryError(f"a box needs at least 4 finite points, got shape {xyz.shape}")
    up_ = np.asarray(up, dtype=np.float64)
    up_ = up_ / np.linalg.norm(up_)
    # The axis least along up, made horizontal: stable, and the same for every call.
    first = np.eye(3)[int(np.argmin(np.abs(up_)))]
    first = first - (first @ up_) * up_
    first /= np.linalg.norm(first)
    second = np.cross(up_, first)
    flat = np.stack([xyz @ first, xyz @ second], axis=-1)
    yaw = _find_smallest_footprint(flat, trim)
    axis = np.cos(yaw) * first + np.sin(yaw) * second
    rotation = np.stack([axis, np.cross(up_, axis), up_], axis=-1)
    low, high = np.quantile(xyz @ rotation, [trim, 1.0 - trim], axis=0)
    size = high - low
    center = rotation @ ((low + high) / 2.0)
    if size[1] > size[0]:
        rotation = np.stack([rotation[:, 1], -rotation[:, 0], up_], axis=-1)
        size = size[[1, 0, 2]]
    return OrientedBox(center, size, rotation, frame)


def _find_smallest_footprint(flat: FloatArray, trim: float) -> float:
    """Yaw, radians, of the rectangle of smallest area around (N, 2) points after trimming."""
    try:
        hull = flat[ConvexHull(flat).vertices]
    except QhullError as error:
        raise GeometryError("points lie on one vertical plane or line, so their box has no volume") from error
    edges = np.roll(hull, -1, axis=0) - hull
    # One side of the smallest rectangle lies on an edge of the hull (Freeman and Shapira 1975). Stray points make
    # the hull useless, hence the steps of one degree beside it.
    yaws = np.mod(np.arctan2(edges[:, 1], edges[:, 0]), np.pi / 2.0)[:_YAW_POINTS]
    chosen = hull
    if trim > 0:
        yaws = np.concatenate([yaws, np.radians(np.arange(90.0))])
        chosen = flat[:: max(1, len(flat) // _YAW_POINTS)]
    areas = np.empty(len(yaws))
    for first in range(0, len(yaws), 64):
        y = yaws[first : first + 64]
        c, s = np.cos(y), np.sin(y)
        along, across = np.stack([c, s]), np.stack([-s, c])
        areas[first : first + 64] = _measure_spans(chosen @ along, trim) * _measure_spans(chosen @ across, trim)
    return float(yaws[int(np.argmin(areas))])


def _measure_spans(values: FloatArray, trim: float) -> FloatArray:
    """(K,) how far apart the quantiles `trim` and 1 - `trim` of each column of (N, K) are. Sorting whole rows is
    quicker than `np.quantile` along columns."""
    ordered = np.sort(np.ascontiguousarray(values.T), axis=1)
    whole, part = divmod(trim * (ordered.shape[1] - 1), 1)
    k = int(whole)
    low = ordered[:, k] + part * (ordered[:, min(k + 1, ordered.shape[1] - 1)] - ordered[:, k])
    high = ordered[:, -1 - k] - part * (ordered[:, -1 - k] - ordered[:, max(-2 - k, -ordered.shape[1])])
    return np.asarray(high - low)


def rect_area(rect: Rect) -> float:
    """Area of (x1, y1, x2, y2), square pixels; 0 where it is empty."""
    return max(0.0, rect[2] - rect[0]) * max(0.0, rect[3] - rect[1])


def rect_iou(a: Rect, b: Rect) -> float:
    """Intersection over union of two rectangles (x1, y1, x2, y2), in [0, 1]; 0 if both are empty."""
    shared = rect_area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))
    union = rect_area(a) + rect_area(b) - shared
    return shared / union if union > 0 else 0.0


def clip_rect(rect: Rect, width: int, height: int) -> Rect:
    """The part of a rectangle inside the image, up to its outer edges; of area 0 where there is none."""
    x1, x2 = (min(max(x, -0.5), width - 0.5) for x in (rect[0], rect[2]))
    y1, y2 = (min(max(y, -0.5), height - 0.5) for y in (rect[1], rect[3]))
    return x1, y1, x2, y2
