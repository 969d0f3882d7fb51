"""Arithmetic of 3D points, poses, planes and boxes, without images."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ToolError, Values, tool
from vgbench_gen.agent.tools._arguments import (
    AXES,
    CAMERA,
    POINTS_MAX,
    POSE,
    Depths,
    Intrinsics,
    Pixel,
    Pose,
    Positive,
    Vector,
    back_project,
    read_depths,
    round_all,
)
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.boxes import CORNER_SIGNS
from vgbench_gen.geometry.poses import invert as invert_pose
from vgbench_gen.geometry.poses import rotation_angle_deg, transform

SHOWN = 24  # the most points of a call, because results list all pairs
_PIXEL_SIGMA = 2.0
_ROUNDS = 20  # the number of reweightings in a plane fit
_TRIALS = 200  # planes through three random points; the best one starts the fit
_SIGMA_MAX_DEG = 20.0


@tool(
    "ComposePoses",
    tier="classical",
    returns={
        "rotation": "3x3 R of the whole X_last = R X_first + t",
        "translation": "t, in the unit of the given translations",
        "rotation_deg": "angle of R, degrees",
        "distance": "length of t",
        "second_camera_in_first": "where the last camera stands in axes of the first one, -R^T t",
        "yaw_deg": "by how much the last camera looks to the right of the first one, degrees; negative: to the left",
        "pitch_deg": "by how much it looks up, degrees; negative: down",
        "roll_deg": "by how much it is turned clockwise about its view direction as it sees, degrees",
    },
    example={"poses": [{"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0.2, 0, 0]}], "invert": [True]},
)
def compose_poses(
    poses: Annotated[tuple[Pose, ...], Field(min_length=1, max_length=16), f"[{POSE}, ...], the first applied first"],
    invert: Annotated[
        tuple[bool, ...], Field(max_length=16), "one for each pose: whether its inverse is meant; none for no inverse"
    ] = (),
) -> Values:
    """Chains or inverts rigid motions and tells the result's angle, length and view direction (camera axes: x right, y
    down, z forward).
    """
    if len(invert) not in (0, len(poses)):
        raise ToolError(f"invert: found {len(invert)}; expected {len(poses)} or none")
    whole = np.eye(4)
    for pose, inverted in zip(poses, invert or (False,) * len(poses), strict=True):
        motion = pose.read()
        whole = (invert_pose(motion) if inverted else motion) @ whole
    R, t = whole[:3, :3], whole[:3, 3]
    right, down, ahead = R
    return {
        "rotation": round_all(R, 6),
        "translation": round_all(t, 6),
        "rotation_deg": round(float(rotation_angle_deg(R)), 3),
        "distance": round(float(np.linalg.norm(t)), 6),
        "second_camera_in_first": round_all(-R.T @ t, 6),
        "yaw_deg": round(float(np.degrees(np.arctan2(ahead[0], ahead[2]))), 3) + 0.0,
        "pitch_deg": round(float(np.degrees(np.arcsin(np.clip(-ahead[1], -1, 1)))), 3) + 0.0,
        "roll_deg": round(float(np.degrees(np.arctan2(right[1], down[1]))), 3) + 0.0,
    }


@tool(
    "TransformPoints",
    tier="classical",
    aliases=("ProjectPoints", "MeasurePoints"),
    returns={
        "points": "the moved points, in the unit given",
        "pixels": "[u, v] of each where a camera is given; null behind it",
        "ranges": "distance of each from the origin of its frame",
        "distances": "N x N distances between the points, in the unit given",
        "angles_deg": "N x N angles between the lines of sight to them from the origin, degrees; null at the origin",
    },
    example={
        "points": [[0.1, 0.2, 2.0], [0.5, 0.0, 3.0]],
        "pose": {"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0, 0, 0.5]},
    },
)
def transform_points(
    points: Annotated[tuple[Vector, ...], Field(min_length=1, max_length=SHOWN), f"[[x, y, z], ...], {AXES}"],
    pose: Annotated[Pose | None, f"{POSE}; nothing moves where it is left out"] = None,
    inverse: Annotated[bool, "whether the inverse of the pose is meant"] = False,
    camera: Annotated[Intrinsics | None, f"{CAMERA}, for the pixels of the moved points"] = None,
) -> Values:
    """Moves points by a pose, and measures distances and angles between them; with a camera also their pixels."""
    motion = (pose or Pose()).read()
    moved = transform(invert_pose(motion) if inverse else motion, np.array(points))
    ranges = np.linalg.norm(moved, axis=1)
    rays = moved / np.maximum(ranges, 1e-12)[:, None]
    cosines, crossed = rays @ rays.T, np.linalg.norm(np.cross(rays[:, None], rays[None]), axis=2)
    angles = np.degrees(np.arctan2(crossed, cosines))
    values: dict[str, Any] = {
        "points": round_all(moved, 6),
        "ranges": round_all(ranges, 6),
        "distances": round_all(np.linalg.norm(moved[:, None] - moved[None], axis=2), 6),
        "angles_deg": [
            [round(float(angle), 3) if min(a, b) > 1e-9 else None for angle, b in zip(row, ranges, strict=True)]
            for row, a in zip(angles, ranges, strict=True)
        ],
    }
    if camera is not None:
        projected = moved @ camera.K.T
        values["pixels"] = [round_all(p[:2] / p[2], 2) if p[2] > 1e-9 else None for p in projected]
    return values


@tool(
    "BackProjectPixels",
    tier="classical",
    returns={
        "points": f"[x, y, z] of each, {AXES}, in the unit of the depths",
        "ranges": "distance of each from the camera, along its ray",
    },
    example={"pixels": [[320, 240]], "depths": [2.5], "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}},
)
def back_project_pixels(
    pixels: Annotated[tuple[Pixel, ...], Field(min_length=1, max_length=POINTS_MAX), "[[u, v], ...], pixels"],
    depths: Depths,
    camera: Annotated[Intrinsics, CAMERA],
) -> Values:
    """Back-projects pixels with known depth to 3D points."""
    z = read_depths(depths, len(pixels))
    points = back_project(camera, np.array(pixels), z)
    return {"points": round_all(points, 6), "ranges": round_all(np.linalg.norm(points, axis=1), 6)}


@tool(
    "Measure3DDistance",
    tier="classical",
    returns={
        "distance": "in the unit of the depths",
        "distance_sigma": "its standard deviation, from depth_error and pixels known to 2 pixels",
        "vector": f"from the first point to the second, {AXES}",
        "points": "both points, same axes",
        "cannot_tell": "why the distance means nothing: it is no larger than its standard deviation",
    },
    example={
        "pixels": [[200, 240], [420, 250]],
        "depths": [2.5, 3.0],
        "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5},
    },
)
def measure_3d_distance(
    pixels: Annotated[tuple[Pixel, Pixel], "[[u, v], [u, v]] of both points, pixels of one image"],
    depths: Annotated[tuple[Positive, Positive], "depth of each along the view direction (z)"],
    camera: Annotated[Intrinsics, CAMERA],
    depth_error: Annotated[
        float, Field(ge=0, le=1), "standard deviation of a depth over the depth, for the uncertainty"
    ] = 0.05,
) -> Values:
    """Measures how far apart two points are in space, from their pixels and depths."""
    z = np.array(depths)
    points = back_project(camera, np.array(pixels), z)
    vector = points[1] - points[0]
    distance = float(np.linalg.norm(vector))
    along = vector / max(distance, 1e-12)
    by_depth = (points @ along) * depth_error
    by_pixel = z[:, None] * _PIXEL_SIGMA / np.array([camera.fx, camera.fy]) * along[:2]
    sigma = float(np.sqrt((by_depth**2).sum() + (by_pixel**2).sum()))
    values: dict[str, Any] = {
        "distance": round(distance, 6),
        "distance_sigma": round(sigma, 6),
        "vector": round_all(vector, 6),
        "points": round_all(points, 6),
    }
    if distance <= sigma:
        values["cannot_tell"] = "the distance is no larger than its standard deviation"
    return values


@tool(
    "MakeBox",
    tier="classical",
    returns={
        "corners": "8 x [x, y, z], camera axes; along the box's own axes (x, down, z) their order is (---) (+--) (++-) "
        "(-+-) (--+) (+-+) (+++) (-++)",
        "nearest": "depth of the nearest corner along the view direction",
        "rect_px": "[left, top, right, bottom] of its corners in the image, pixels, where a camera is given",
        "cannot_tell": "why there is no rectangle",
    },
    example={"center": [0.2, 0.5, 3.0], "size": [0.6, 0.8, 0.6], "yaw_deg": 30.0},
)
def make_box(
    center: Annotated[Vector, "[x, y, z], camera axes: x right, y down, z forward"],
    size: Annotated[
        tuple[Positive, Positive, Positive],
        "[width, height, depth]: along x, along the vertical, along z, before it is turned",
    ],
    yaw_deg: Annotated[
        float, Field(ge=-360, le=360), "turn about the vertical, degrees; positive takes z towards x"
    ] = 0.0,
    up: Annotated[Vector, "direction of up in camera axes; level camera by default"] = (0.0, -1.0, 0.0),
    camera: Annotated[Intrinsics | None, f"{CAMERA}, for the pixels"] = None,
) -> Values:
    """Gives the corners of an upright box from its centre, size and yaw, and where an image shows it."""
    down = -np.array(up)
    length = float(np.linalg.norm(down))
    if length < 1e-6:
        raise ToolError(f"up: found {list(up)}; expected a direction")
    down /= length
    ahead = np.array([0.0, 0.0, 1.0]) - down[2] * down
    if np.linalg.norm(ahead) < 1e-3:
        raise ToolError("up: found the view direction; expected a camera that does not look straight up or down")
    ahead /= np.linalg.norm(ahead)
    right = np.cross(down, ahead)
    c, s = np.cos(np.radians(yaw_deg)), np.sin(np.radians(yaw_deg))
    axes = np.column_stack([c * right - s * ahead, down, s * right + c * ahead])
    corners = np.array(center) + CORNER_SIGNS * np.array(size) / 2 @ axes.T
    values: dict[str, Any] = {"corners": round_all(corners, 6), "nearest": round(float(corners[:, 2].min()), 6)}
    if camera is not None:
        if corners[:, 2].min() < 1e-6:
            return values | {"rect_px": None, "cannot_tell": "a corner lies behind the camera"}
        projected = corners @ camera.K.T
        uv = projected[:, :2] / projected[:, 2:]
        values["rect_px"] = round_all(np.concatenate([uv.min(axis=0), uv.max(axis=0)]), 2)
    return values


@tool(
    "FitPlane",
    tier="classical",
    returns={
        "normal": f"unit vector of the plane that points towards the camera, {AXES}",
        "distance": "of the camera from the plane, in the unit of the depths",
        "angle_to_view_deg": "between the normal and the direction back to the camera's viewer (0, 0, -1), degrees",
        "residual": "median distance of the points from the plane",
        "normal_sigma_deg": "standard deviation of the normal about its least certain axis, degrees",
        "inliers_count": "points within three times the residual's spread",
        "cannot_tell": "why there is no plane",
    },
    example={
        "pixels": [[100, 100], [400, 120], [240, 380]],
        "depths": [2.5, 2.6, 2.2],
        "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5},
    },
)
def fit_plane(
    pixels: Annotated[tuple[Pixel, ...], Field(min_length=3, max_length=POINTS_MAX), "[[u, v], ...], three or more"],
    depths: Depths,
    camera: Annotated[Intrinsics, CAMERA],
) -> Values:
    """Fits a plane to pixels whose depths are known; robust to outliers."""
    z = read_depths(depths, len(pixels))
    points = back_project(camera, np.array(pixels), z)
    extent = float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
    if extent < 1e-9:
        return {"normal": None, "cannot_tell": "all points are one"}
    weights = _guess_weights(points, extent)
    for _ in range(_ROUNDS):
        middle = np.average(points, axis=0, weights=weights)
        spread, axes = np.linalg.eigh(((points - middle) * weights[:, None]).T @ (points - middle) / weights.sum())
        normal = axes[:, 0]
        off = np.abs((points - middle) @ normal)
        # The lower bound keeps a few points from taking all the weight.
        reach = max(1.4826 * float(np.median(off)), 1e-3 * extent, 1e-12)
        weights = 1 / (1 + (off / reach) ** 2)
    if spread[1] <= 1e-6 * max(spread[2], 1e-18):
        return {"normal": None, "cannot_tell": "the points lie on one line"}
    if middle @ normal > 0:
        normal = -normal
    within = off <= 3 * reach
    noise = float(np.sqrt((off[within] ** 2).sum() / max(int(within.sum()) - 3, 1)))
    sigma = float(np.degrees(np.arctan2(noise, np.sqrt(spread[1] * max(int(within.sum()), 1)))))
    values: dict[str, Any] = {
        "normal": round_all(normal, 5),
        "distance": round(abs(float(middle @ normal)), 6),
        "angle_to_view_deg": round(float(np.degrees(np.arccos(np.clip(-normal[2], -1, 1)))), 3),
        "residual": round(float(np.median(off)), 6),
        "normal_sigma_deg": round(sigma, 3) if len(points) > 3 else None,
        "inliers_count": int(within.sum()),
    }
    if sigma > _SIGMA_MAX_DEG:
        values |= {"normal": None, "cannot_tell": "the points do not lie on a plane, or too close together"}
    return values


def _guess_weights(points: FloatArray, extent: float) -> FloatArray:
    """(N,) weights by distance from the plane through three points with the least median distance."""
    rng = rng_for(0, "FitPlane")
    least, weights = np.inf, np.ones(len(points))
    for _ in range(_TRIALS):
        a, b, c = points[rng.choice(len(points), 3, replace=False)]
        normal = np.cross(b - a, c - a)
        length = float(np.linalg.norm(normal))
        if length < 1e-3 * extent**2:
            continue
        off = np.abs((points - a) @ normal) / length
        median = float(np.median(off))
        if median < least:
            reach = max(1.4826 * median, 1e-3 * extent)
            least, weights = median, 1 / (1 + (off / reach) ** 2) ** 2
    return np.asarray(weights)
