"""Boxes of objects by a second route: the frame's own list, or annotated corners tried against the measured depth.

Nothing here is used to propose questions. The first route moves centre, size and axes of the world box; this one
solves for corners, and lays the surface that the scan annotated onto what the frame measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, FloatArray, OrientedBox
from vgbench_gen.geometry import boxes, cameras, projection
from vgbench_gen.scenes.base import SceneObject
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.gates import BoxMargins

_SUPPORT_MIN = 0.6  # of the measured points in the box or in its ray-scaled neighbours
_POINTS_MIN = 12  # measured points that confirm a box
_MESH_INSIDE_MIN = 0.8  # share of the annotated surface that lies in the box
_LIST_IOU_MIN = 0.8  # overlap of a box of the frame with that of the scene (CA-1M)
# The middle of the annotated surface must lie in this share of the box along each horizontal axis. Surfaces are seen
# from one side, so it is wide; upwards nothing can be asked of it (of a table only the top may be scanned).
_CENTRAL = 0.9
_CELL_M = 0.03  # scans keep a vertex every 2 cm or closer


def measure_second_corners(frame: ViewFrame, view: SceneView, instance_id: str) -> FloatArray:
    """(8, 3) corners of an object's box in the camera frame, meters, by the second route.

    CA-1M: the frame's own list, whose corner order may differ. Elsewhere: corners of the world box solved into the
    camera frame and, where the annotation has surface points, scaled about the camera by measured over annotated
    depth of those the frame sees.

    Raises:
        GeometryError: there is no such object, or measured or annotated points contradict the box.
    """
    item = next((item for item in view.objects if item.instance_id == instance_id), None)
    if item is None:
        raise GeometryError(f"{frame.id}: the scene has no object {instance_id}")
    corners = solve_into_camera(frame.world_from_camera, boxes.corners(item.box))
    if frame.listed:
        if instance_id not in frame.listed:
            raise GeometryError(f"{frame.id}: object {instance_id} is not in the frame's list")
        own = frame.listed[instance_id].box
        overlap = boxes.iou_3d(own, boxes.fit_to_corners(corners, "camera"))
        if overlap < _LIST_IOU_MIN:
            raise GeometryError(f"{frame.id}: the frame's box of {instance_id} overlaps the scene's by {overlap:.2f}")
        corners = boxes.corners(own)
    elif item.points_m is not None:
        _check_surface(item, view)
        corners = corners * _measure_scale(frame, view, item)
    share, count = support(frame, view, boxes.fit_to_corners(corners, "camera"))
    if count < _POINTS_MIN or share < _SUPPORT_MIN:
        raise GeometryError(f"{frame.id}: {share:.2f} of {count} measured points support the box of {instance_id}")
    return corners


def solve_into_camera(world_from_camera: FloatArray, points_world: FloatArray) -> FloatArray:
    """World points (N, 3) in the camera frame, by solving the pose instead of inverting it."""
    homogeneous = np.concatenate([points_world, np.ones((len(points_world), 1))], axis=1)
    return np.asarray(np.linalg.solve(world_from_camera, homogeneous.T).T[:, :3])


def project_full_rect(frame: ViewFrame, points_world: FloatArray) -> tuple[float, float, float, float]:
    """Rectangle around world points by one 3x4 matrix, clipped to the image.

    Raises:
        GeometryError: a point is not in front of the camera.
    """
    P = frame.camera.K @ np.linalg.inv(frame.world_from_camera)[:3]
    image = np.concatenate([points_world, np.ones((len(points_world), 1))], axis=1) @ P.T
    if not (image[:, 2] > 0).all():
        raise GeometryError(f"{frame.id}: a corner is behind the camera")
    uv = image[:, :2] / image[:, 2:]
    (x1, y1), (x2, y2) = uv.min(axis=0).tolist(), uv.max(axis=0).tolist()
    return boxes.clip_rect((x1, y1, x2, y2), frame.camera.width, frame.camera.height)


def order_corners(corners: FloatArray, reference: FloatArray) -> FloatArray:
    """Corners (8, 3) of a box, listed so that each is the one nearest to the reference's, as far as one can."""
    from scipy.optimize import linear_sum_assignment  # takes long to import

    distance = np.linalg.norm(reference[:, None] - corners[None], axis=-1)
    return corners[linear_sum_assignment(distance)[1]]


def support(frame: ViewFrame, view: SceneView, box: OrientedBox) -> tuple[float, int]:
    """Of the measured points in a camera-frame box or in its copies at the next rungs of the ladder, both ways: the
    share in the box, and how many there are in it."""
    ratio = view.gates.section(BoxMargins).ladder_ratio_max
    grown = [_grow(boxes.scale_about_camera(box, scale), view) for scale in (1.0, ratio, 1 / ratio)]
    cloud = _make_cloud(frame, grown)
    near, nearer, farther = (boxes.contains(one, cloud) for one in grown)
    if not near.any():
        return 0.0, 0
    return float(near.sum() / (near | nearer | farther).sum()), int(near.sum())


def _grow(box: OrientedBox, view: SceneView) -> OrientedBox:
    """The box with half of the tolerance of depth on every side."""
    return replace(box, size_m=box.size_m + float(view.tolerance.of(box.center_m[2])))


def _make_cloud(frame: ViewFrame, around: Sequence[OrientedBox]) -> FloatArray:
    """(N, 3) measured points of the frame, of every n-th row and column, that may lie in one of some boxes in the
    camera's frame: those of their rectangles, or all where a corner is not in front of the camera."""
    camera, depth_m = frame.depth_camera, frame.depth_m
    stride = max(1, round(np.sqrt(depth_m.size / 40_000)))
    rects = [boxes.project_rect(camera, box) for box in around]
    ends = np.array([rect or (0, 0, *camera.size) for rect in rects])
    size = np.array(camera.size)
    low = np.clip(np.floor(ends[:, :2].min(axis=0)), 0, size - 1).astype(int) // stride * stride
    high = np.clip(np.ceil(ends[:, 2:].max(axis=0)) + 1, low + 1, size).astype(int)
    (left, top), (right, bottom) = low.tolist(), high.tolist()
    part = cameras.crop_camera(camera, left, top, right - left, bottom - top)
    return projection.back_project_depth(part, depth_m[top:bottom, left:right], stride)[0]


def _check_surface(item: SceneObject, view: SceneView) -> None:
    """Annotated surface points must lie in the box and around its middle."""
    points = item.points_m
    if points is None or len(points) < _POINTS_MIN:
        raise GeometryError(f"object {item.instance_id} has too few surface points")
    share = float(boxes.contains(item.box, points, view.tolerance.absolute_m).mean())
    if share < _MESH_INSIDE_MIN:
        raise GeometryError(f"object {item.instance_id}: {share:.2f} of its surface points lie in its box")
    local = (points - item.box.center_m) @ item.box.rotation
    low, high = np.quantile(local, [0.01, 0.99], axis=0)
    middle = np.abs(low + high) / item.box.size_m  # 1 where the middle lies on a face
    up = view.up_world
    level = np.ones(3, dtype=bool) if up is None else np.abs(up @ item.box.rotation) < np.sqrt(0.5)
    if (middle[level] > _CENTRAL).any():
        raise GeometryError(
            f"object {item.instance_id}: its surface points lie at the edge of its box ({middle.max():.2f})"
        )


def _measure_scale(frame: ViewFrame, view: SceneView, item: SceneObject) -> float:
    """Median of measured over annotated depth of the surface points that face the frame."""
    points = solve_into_camera(frame.world_from_camera, np.asarray(item.points_m))
    uv_px, z_m = projection.project(frame.camera, points)
    uv_px, z_m = uv_px[z_m > 0], z_m[z_m > 0]
    facing = _find_facing(uv_px, z_m, frame.camera.fx * _CELL_M, view)
    uv_px, z_m = uv_px[facing], z_m[facing]
    measured = frame.depth_at(uv_px)
    near = (measured > 0) & (np.abs(measured - z_m) <= 3 * view.tolerance.of(z_m))
    if near.sum() < _POINTS_MIN:
        raise GeometryError(f"{frame.id}: {int(near.sum())} surface points of object {item.instance_id} are measured")
    return float(np.median(measured[near] / z_m[near]))


def _find_facing(uv_px: FloatArray, z_m: FloatArray, cell_px_m: float, view: SceneView) -> BoolArray:
    """Which points are not behind another one in the same cell; otherwise the back of a mug counts as its front."""
    if not len(z_m):
        return np.zeros(0, dtype=bool)
    cells = np.floor(uv_px / (cell_px_m / np.median(z_m))).astype(np.int64)
    _, cell = np.unique(cells, axis=0, return_inverse=True)
    nearest = np.full(len(z_m), np.inf)
    np.minimum.at(nearest, cell.ravel(), z_m)
    return np.asarray(z_m <= nearest[cell.ravel()] + view.tolerance.absolute_m / 2)
