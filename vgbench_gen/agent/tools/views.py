"""Two views of a rigid scene: relative pose, rotation, epipolar lines, triangulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, ToolError, Values, tool
from vgbench_gen.agent.tools._arguments import (
    AXES,
    POSE,
    Cameras,
    Intrinsics,
    Pixel,
    Pose,
    find_cameras,
    match_pair,
    round_all,
)
from vgbench_gen.agent.two_view import compute_rays, estimate_two_view, fit_rotation, make_essential
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import rotation_angle_deg
from vgbench_gen.tasks.solving import Image
from vgbench_gen.tasks.solving.epipolar import match_rays, measure_support

_LINE_INLIERS_MIN, _LINE_SHARE_MIN = 25, 0.4
_LINE_REACH_PX = 1.5  # the largest distance of an inlier from its epipolar line, pixels at 640
_TURN_INLIERS_MIN, _TURN_SHARE_MIN = 15, 0.5
# The largest error of an inlier of a rotation, pixels at 640: noise, lens distortion, and a slightly moving camera.
_TURN_REACH_PX = 4.0
_MATCHES_MIN, _LEAD_MIN = 15, 0.1
_NO_MOTION = "too few matches agree on any motion"
POINTS = 60
PARALLAX_MIN_DEG = 0.5
OFF_MAX_PX = 8.0


@dataclass(frozen=True, slots=True, eq=False)
class Epipolar:
    """Epipolar geometry of two images. The last three fields are 0 if it comes from a known pose."""

    F: FloatArray
    """(3, 3), x2^T F x1 = 0 for homogeneous pixels."""
    inliers: int
    matches: int
    residual_px: float
    """Median distance of the inliers in the second image from their epipolar lines."""


def fit_fundamental(images: ImagePair) -> Epipolar | str:
    """The epipolar geometry of most matches, or why there is none."""
    uv1, uv2 = match_pair(images)
    if len(uv1) < _LINE_INLIERS_MIN:
        return f"too few matches: {len(uv1)}"
    reach = _LINE_REACH_PX * max(1.0, max(images[1].size) / 640)
    F, mask = cv2.findFundamentalMat(uv1, uv2, cv2.USAC_MAGSAC, reach, 0.9999, 10_000)
    if F is None or F.shape != (3, 3) or mask is None:
        return "no epipolar geometry agrees with the matches"
    within = mask.ravel() > 0
    if within.sum() < _LINE_INLIERS_MIN or within.mean() < _LINE_SHARE_MIN:
        return f"only {int(within.sum())} of {len(uv1)} matches agree on one epipolar geometry"
    off = measure_from_lines(np.asarray(F), uv1[within], uv2[within])
    return Epipolar(np.asarray(F), int(within.sum()), len(uv1), float(np.median(off)))


def measure_from_lines(F: FloatArray, uv1: FloatArray, uv2: FloatArray) -> FloatArray:
    """(N,) distances of points of the second image from the epipolar lines of points of the first, pixels."""
    lines = np.column_stack([uv1, np.ones(len(uv1))]) @ F.T
    over = np.abs((np.column_stack([uv2, np.ones(len(uv2))]) * lines).sum(axis=1))
    return np.asarray(over / np.maximum(np.linalg.norm(lines[:, :2], axis=1), 1e-12))


@tool(
    "EstimateRelativePose",
    tier="classical",
    returns={
        "rotation": "3x3 R of X2 = R X1 + t: takes directions of the first camera to the second; null where it cannot "
        "be told",
        "rotation_deg": "its angle, degrees",
        "rotation_sigma_deg": "standard deviation about the least certain axis, degrees",
        "translation_direction": "unit vector along t of X2 = R X1 + t, axes of the second camera; null where it "
        "cannot be told",
        "camera_moved": "unit vector from the first camera to the second, axes of the first camera; null likewise",
        "direction_sigma_deg": "standard deviation of both directions, degrees",
        "scale": "always unknown",
        "cannot_tell": "why there is no direction, or no pose at all",
        "inliers_count": "matches that agree",
        "total_matches": "all matches",
        "parallax_px": "median shift that the rotation does not explain, pixels",
        "cameras": "given, or assumed: then angles are off by some tenths",
    },
    example={"image": ["image-0", "image-1"], "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}]},
)
def estimate_relative_pose(image: ImagePair, cameras: Cameras = ()) -> Values:
    """Estimates rotation and direction of translation between two views of a rigid scene. Camera axes: x right, y
    down, z forward. The length of the translation cannot be told from two images.
    """
    (K1, K2), assumed = find_cameras(image, cameras)
    uv1, uv2 = match_pair(image)
    found = estimate_two_view(uv1, uv2, K1, K2)
    values: dict[str, Any] = {
        "scale": "unknown",
        "cameras": "assumed" if assumed else "given",
        "total_matches": len(uv1),
    }
    if found is None or found.why_no_rotation:
        reason, inliers = (_NO_MOTION, 0) if found is None else (found.why_no_rotation, found.inliers)
        return values | {"rotation": None, "cannot_tell": reason, "inliers_count": inliers}
    values |= {
        "rotation": round_all(found.rotation, 5),
        "rotation_deg": round(float(rotation_angle_deg(found.rotation)), 2),
        "rotation_sigma_deg": round(min(found.rotation_sigma_deg, 180.0), 2),
        "inliers_count": found.inliers,
        "parallax_px": round(found.parallax_px, 1),
        "translation_direction": None,
        "camera_moved": None,
    }
    if found.why_no_direction:
        return values | {"cannot_tell": found.why_no_direction}
    moved = -found.rotation.T @ found.direction
    values |= {
        "translation_direction": round_all(found.direction, 4),
        "camera_moved": round_all(np.asarray(moved), 4),
        "direction_sigma_deg": round(found.direction_sigma_deg, 2),
    }
    return values


@tool(
    "EstimateRotation",
    tier="classical",
    returns={
        "rotation": f"3x3 R that takes directions of the first camera to the second, {AXES}; null where it moved",
        "rotation_deg": "its angle, degrees",
        "yaw_deg": "by how much the camera turned to the right, degrees; negative: to the left",
        "pitch_deg": "by how much it turned up, degrees; negative: down",
        "rotation_sigma_deg": "standard deviation about the least certain axis, degrees",
        "inliers_count": "matches that the rotation explains",
        "total_matches": "all matches",
        "residual_px": "median distance of these matches from where it takes them, pixels",
        "cameras": "given, or assumed: then angles are off by some tenths",
        "cannot_tell": "why there is no rotation",
    },
    example={"image": ["image-0", "image-1"]},
)
def estimate_rotation(image: ImagePair, cameras: Cameras = ()) -> Values:
    """Estimates how the camera turned between two images taken from one place; nothing if it also moved."""
    (K1, K2), assumed = find_cameras(image, cameras)
    uv1, uv2 = match_pair(image)
    values: dict[str, Any] = {"cameras": "assumed" if assumed else "given", "total_matches": len(uv1)}
    if len(uv1) < _TURN_INLIERS_MIN:
        return values | {"rotation": None, "cannot_tell": f"too few matches: {len(uv1)}"}
    rays1, rays2 = compute_rays(uv1, K1), compute_rays(uv2, K2)
    R = fit_rotation(rays1, rays2, 1 / K2[0, 0])
    projected = rays1 @ R.T @ K2.T
    off = np.linalg.norm(projected[:, :2] / np.maximum(projected[:, 2:], 1e-6) - uv2, axis=1)
    within = off <= _TURN_REACH_PX * max(1.0, max(image[1].size) / 640)
    values["inliers_count"] = int(within.sum())
    if within.sum() < _TURN_INLIERS_MIN or within.mean() < _TURN_SHARE_MIN:
        reason = f"the camera moved: a rotation explains {int(within.sum())} of {len(uv1)} matches"
        return values | {"rotation": None, "cannot_tell": reason}
    rays = rays2[within] / np.linalg.norm(rays2[within], axis=1, keepdims=True)
    residual = float(np.median(off[within]))
    information = np.eye(3) * len(rays) - rays.T @ rays
    sigma = residual / K2[0, 0] / np.sqrt(max(float(np.linalg.eigvalsh(information)[0]), 1e-9))
    ahead = R[2]
    return values | {
        "rotation": round_all(R, 5),
        "rotation_deg": round(float(rotation_angle_deg(R)), 2),
        "yaw_deg": round(float(np.degrees(np.arctan2(ahead[0], ahead[2]))), 2) + 0.0,
        "pitch_deg": round(float(np.degrees(np.arcsin(np.clip(-ahead[1], -1, 1)))), 2) + 0.0,
        "rotation_sigma_deg": round(float(np.degrees(sigma)), 3),
        "residual_px": round(residual, 2),
    }


@tool(
    "CheckMotion",
    tier="classical",
    returns={
        "shares": "for each motion the share of matches, 0 to 1, that it explains in front of both cameras",
        "best": "place of the best motion, counted from 0; null where it leads too little",
        "total_matches": "all matches",
        "cannot_tell": "why there is no best one",
    },
    example={
        "image": ["image-0", "image-1"],
        "motions": [{"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0.2, 0, 0]}],
        "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}],
    },
)
def check_motion(
    image: ImagePair,
    motions: Annotated[tuple[Pose, ...], Field(min_length=1, max_length=12), f"[{POSE}, ...], camera 1 to camera 2"],
    cameras: Cameras = (),
) -> Values:
    """Measures how well stated camera motions between two images fit what the images show. The length of
    a translation cannot be checked, its direction and sign can.
    """
    stated = [motion.read()[:3] for motion in motions]
    (K1, K2), _ = find_cameras(image, cameras)
    x_1, x_2, tolerance = match_rays(image[0], image[1], K1, K2)
    shares = np.array([measure_support(motion, x_1, x_2, tolerance) / max(len(x_1), 1) for motion in stated])
    values: dict[str, Any] = {"shares": shares.round(3).tolist(), "total_matches": len(x_1), "best": None}
    order = np.argsort(-shares, kind="stable")
    second = shares[order[1]] if len(order) > 1 else 0.0
    if len(x_1) < _MATCHES_MIN:
        return values | {"cannot_tell": f"too few matches: {len(x_1)}"}
    if shares[order[0]] - second < _LEAD_MIN * shares[order[0]] or shares[order[0]] < _LEAD_MIN:
        return values | {"cannot_tell": "no motion fits clearly better than the others"}
    return values | {"best": int(order[0])}


@tool(
    "EpipolarLine",
    tier="classical",
    returns={
        "line": "[a, b, c] of a u + b v + c = 0 in pixels of the second image, a^2 + b^2 = 1",
        "segment": "both ends [u, v] of its part in the second image; null where it misses the image",
        "distances_px": "of each candidate from the line, pixels",
        "sigma_px": "how far the point may lie from the line, pixels",
        "inliers_count": "matches that agree; 0 where a pose was given",
        "total_matches": "all matches; 0 where a pose was given",
        "cannot_tell": "why there is no line",
    },
    example={"image": ["image-0", "image-1"], "point": [320, 240]},
)
def epipolar_line(
    image: ImagePair,
    point: Annotated[Pixel, "[u, v] in the first image, pixels"],
    candidates: Annotated[
        tuple[Pixel, ...],
        Field(max_length=32),
        "[[u, v], ...] in the second image whose distance from the line is asked",
    ] = (),
    pose: Annotated[Pose | None, f"{POSE}; from the matches where it is left out"] = None,
    cameras: Annotated[
        tuple[Intrinsics, ...], Field(max_length=2), '[{"fx", "fy", "cx", "cy"}, ...] in pixels; only used with a pose'
    ] = (),
) -> Values:
    """Gives the line in the second image on which a point of the first image must lie, if it is at rest."""
    found: Epipolar | str
    if pose is not None:
        second_from_first = pose.read()
        (K1, K2), _ = find_cameras(image, cameras)
        t = second_from_first[:3, 3]
        if np.linalg.norm(t) < 1e-9:
            found = "the cameras stand in one place: a point has a pixel there, not a line"
        else:
            E = make_essential(second_from_first[:3, :3], t / np.linalg.norm(t))
            found = Epipolar(np.linalg.inv(K2).T @ E @ np.linalg.inv(K1), 0, 0, 0.0)
    else:
        found = fit_fundamental(image)
    if isinstance(found, str):
        return {"line": None, "cannot_tell": found}
    line = found.F @ np.array([*point, 1.0])
    slope = float(np.hypot(line[0], line[1]))
    if slope <= 1e-9 * max(abs(float(line[2])), 1e-12):
        return {"line": None, "cannot_tell": "the point lies where the second camera stands"}
    line /= slope
    values: dict[str, Any] = {
        "line": [float(f"{x:.7g}") for x in line],
        "segment": _cut_line(line, image[1].size),
        "sigma_px": round(max(1.5 * found.residual_px, 0.5), 2),
        "inliers_count": found.inliers,
        "total_matches": found.matches,
    }
    if candidates:
        uv = np.array(candidates)
        values["distances_px"] = round_all(np.abs(uv @ line[:2] + line[2]), 2)
    return values


def _cut_line(line: FloatArray, size: tuple[int, int]) -> list[list[float]] | None:
    """Both ends [u, v] of the part of a line in an image; None if it misses the image."""
    a, b, c = line
    width, height = size[0] - 1, size[1] - 1
    ends = []
    if abs(b) > 1e-9:
        ends += [(u, -(a * u + c) / b) for u in (0.0, width)]
    if abs(a) > 1e-9:
        ends += [(-(b * v + c) / a, v) for v in (0.0, height)]
    inside = [(u, v) for u, v in ends if -1e-6 <= u <= width + 1e-6 and -1e-6 <= v <= height + 1e-6]
    if len(inside) < 2:
        return None
    first, last = min(inside), max(inside)
    return [[round(float(x), 2) + 0.0 for x in first], [round(float(x), 2) + 0.0 for x in last]]


@tool(
    "TriangulatePoints",
    tier="classical",
    returns={
        "points": f"[x, y, z] of each in the first camera, {AXES}; null where it cannot be told",
        "unit": "that of the given translation, or lengths of the unknown baseline",
        "off_px": "how far the two rays miss each other in the second image, pixels",
        "parallax_deg": "angle between both rays; small ones make the depth unsure",
        "depth_sigma": "standard deviation of each depth, same unit, for pixels known to 1 pixel",
        "cannot_tell": "why points are null",
    },
    example={
        "image": ["image-0", "image-1"],
        "pixels_first": [[320, 240]],
        "pixels_second": [[290, 238]],
        "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}],
    },
)
def triangulate_points(
    *,
    image: Annotated[
        tuple[Image, ...], Field(max_length=2, description="two image names; may be left out with a pose and cameras")
    ] = (),
    pixels_first: Annotated[tuple[Pixel, ...], Field(min_length=1, max_length=POINTS), "[[u, v], ...], first image"],
    pixels_second: Annotated[
        tuple[Pixel, ...],
        Field(min_length=1, max_length=POINTS),
        "the same points in the second image, in the same order",
    ],
    cameras: Cameras = (),
    pose: Annotated[Pose | None, f"{POSE}; estimated from the images where it is left out"] = None,
) -> Values:
    """Finds points in space from their pixels in two images: in the unit of the pose, or up to scale without one."""
    uv1, uv2 = (np.array(pixels) for pixels in (pixels_first, pixels_second))
    if len(uv1) != len(uv2):
        raise ToolError(f"pixels_second: found {len(uv2)}; expected one for each of {len(uv1)} pixels")
    if len(image) == 2:
        (K1, K2), _ = find_cameras(image, cameras)
    elif cameras:
        K1, K2 = cameras[0].K, cameras[-1].K
    else:
        raise ToolError("cameras: found none; expected some where no two images are named")
    unit = "that of the given translation"
    if pose is not None:
        second_from_first = pose.read()
        R, t = second_from_first[:3, :3], second_from_first[:3, 3]
        if np.linalg.norm(t) < 1e-9:
            return {"points": None, "cannot_tell": "the cameras stand in one place"}
    else:
        if len(image) != 2:
            raise ToolError("image: expected two images where no pose is given")
        found = estimate_two_view(*match_pair(image), K1, K2)
        if found is None or found.why_no_direction:
            reason = _NO_MOTION if found is None else found.why_no_direction
            return {"points": None, "cannot_tell": reason}
        R, t, unit = found.rotation, found.direction, "baseline lengths; the baseline is unknown"
    return _triangulate(uv1, uv2, (K1, K2), R, t) | {"unit": unit}


def _triangulate(
    uv1: FloatArray, uv2: FloatArray, K: tuple[FloatArray, FloatArray], R: FloatArray, t: FloatArray
) -> dict[str, Any]:
    rays1, rays2 = compute_rays(uv1, K[0]), compute_rays(uv2, K[1])
    points: list[Any] = []
    offs: list[Any] = []
    sigmas: list[Any] = []
    angles, why = [], set()
    for one, two in zip(rays1, rays2, strict=True):
        turned = R @ one
        angle = float(np.degrees(np.arctan2(np.linalg.norm(np.cross(two, turned)), two @ turned)))
        angles.append(round(angle, 3))
        (z1, z2), *_ = np.linalg.lstsq(np.column_stack([turned, -two]), -t, rcond=None)
        projected = K[1] @ (z1 * turned + t)
        off = np.inf
        if projected[2] > 1e-9:
            off = float(np.linalg.norm(projected[:2] / projected[2] - (K[1] @ two)[:2]))
        offs.append(round(off, 2) if off < 1e6 else None)
        sigmas.append(None)
        if angle < PARALLAX_MIN_DEG:
            why.add("the rays are nearly parallel: the point is far, or the baseline small")
        elif z1 <= 0 or z2 <= 0:
            why.add("the rays meet behind a camera")
        elif off > OFF_MAX_PX:
            why.add("the rays miss each other: the pixels do not belong together, or the pose is wrong")
        else:
            points.append(round_all(z1 * one, 6))
            sigmas[-1] = round(float(z1 * np.sqrt(2) / K[1][0, 0] / np.sin(np.radians(angle))), 6)
            continue
        points.append(None)
    values: dict[str, Any] = {"points": points, "off_px": offs, "parallax_deg": angles, "depth_sigma": sigmas}
    return values | ({"cannot_tell": "; ".join(sorted(why))} if why else {})
