"""Whether a row's evidence holds together (`docs/validity.md#evidence`): projections there and back, poses and matrices
with their inverses, boxes and the rectangles around them, marks inside images, claims and their stated tolerance.

Every option that has evidence is looked at, not the truth alone: each must be what it is said to be. Depth images are
not in a row; what needs them is asked by `verify.verify_scene`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, Item
from vgbench_gen.geometry import boxes, homography, poses, projection
from vgbench_gen.scenes.view import GREY_WIDTH
from vgbench_gen.store import pictures
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._scalar import ScalarTask
from vgbench_gen.tasks.base import Task, camera_from_record
from vgbench_gen.tasks.camera_parameters import CENTRES
from vgbench_gen.tasks.relative_pose import CLAIM_ROTATION_DEG
from vgbench_gen.text.numbers import fixed
from vgbench_gen.text.render import word

CYCLE_PX = 1.0  # at most, there and back
ROUNDING_PX = float(np.sqrt(0.5))  # farthest that a whole pixel lies from the place it stands for
POSE_ENTRY = 2e-3  # docs/validity.md#evidence: of the printed R, made orthonormal
TRANSLATION_M = 0.005 * float(np.sqrt(3)) + 1e-6  # two decimals
WARP_PX = 0.5  # between stored corners and those of the printed matrix
RESIDUAL_M = 1e-3  # of stored corners, before they are rounded
DRAWN_IOU = 0.9

Found = list[tuple[str, str]]


def consistency_problems(item: Item, fact: Fact, task: Task) -> Found:
    """(check, detail) of all that does not hold together in a row.

    Args:
        item: the row.
        fact: as `verify.fact_of` reads it back: its options, or its truth alone.
        task: under the gates of the build.

    Raises:
        LookupError, TypeError, ValueError, VGBenchError: the evidence cannot be read.
    """
    found = _place_problems(item)
    if item.question_type == "judgment":
        found += _tolerance_problems(item, fact, task)
    check = _BY_TASK.get(item.task)
    return found + (check(fact, task) if check is not None else [])


# --- points ----------------------------------------------------------------------------------------------------------


def _track_problems(fact: Fact, task: Task) -> Found:
    """Each point, from its pixel in image 1 at its depth, through the world onto the printed pixel of image 2, and
    back; a point and its pixel in image 2 where there is none in image 1."""
    first, second = (camera_from_record(fact.evidence[name]) for name in ("camera_1", "camera_2"))
    pose_1, pose_2 = (_pose(fact.evidence, frame_id) for frame_id in fact.frame_ids)
    allowed_px = task.gates.track.cycle_max_px_at_640
    found: Found = []
    for option in fact.candidates:
        stored_m = np.array(option.evidence["point_2_m"], dtype=np.float64)
        if option.show.get("query") is None:
            off = _distance(projection.project(second, stored_m)[0], option.value)
            if not off <= CYCLE_PX + ROUNDING_PX:
                found.append(("reprojection", f"{option.key}: its point lies {off:.2f} px from {_px(option.value)}"))
            continue
        query, z_m = np.array(option.show["query"], dtype=np.float64), float(option.evidence["z_1_m"])
        world = poses.transform(pose_1, projection.back_project(first, query, np.array(z_m))[None])
        point_m = poses.transform(poses.invert(pose_2), world)[0]
        uv, z_2_m = projection.project(second, point_m)
        off = _distance(uv, option.value)
        if not (off <= CYCLE_PX + ROUNDING_PX and projection.in_image(second, option.value)):
            found.append(("reprojection", f"{option.key}: its point lies {off:.2f} px from {_px(option.value)}"))
        if not np.linalg.norm(point_m - stored_m) <= 1e-3:
            found.append(("reprojection", f"{option.key}: point {stored_m.tolist()} stored, {point_m.tolist()} found"))
        back = poses.transform(pose_2, projection.back_project(second, option.evidence["uv_2_px"], z_2_m)[None])
        cycle = _distance(projection.project_world(first, pose_1, back)[0][0], query)
        if not cycle <= CYCLE_PX:
            found.append(("cycle", f"{option.key}: back in image 1 it lies {cycle:.2f} px from the query"))
        measured = float(option.evidence["cycle_px_at_640"])
        if not measured <= allowed_px:
            found.append(("cycle", f"{option.key}: by both depth images {measured:.2f} px at {GREY_WIDTH} wide"))
    return found


# --- motions ---------------------------------------------------------------------------------------------------------


def _pose_problems(fact: Fact, task: Task) -> Found:
    """Each option is the motion between its own two frames."""
    found: Found = []
    for option in fact.candidates:
        if "world_from_camera" in option.evidence:
            there, back = (_pose(option.evidence, frame_id) for frame_id in option.frame_ids)
            found += _inverse_problems(option, poses.relative_pose(back, there))
    return found


def _view_problems(fact: Fact, task: Task) -> Found:
    """Each option is the motion from the source to its own frame."""
    source = _pose(fact.evidence, fact.frame_ids[0])
    found: Found = []
    for option in fact.candidates:
        back = poses.relative_pose(_pose(option.evidence, option.frame_ids[0]), source)
        found += _inverse_problems(option, back)
    return found


def _inverse_problems(option: Candidate, first_from_second: FloatArray) -> Found:
    """The printed motion, its rotation made orthonormal, followed by the stored one back must lead nowhere."""
    printed, t = option.value[:, :3], option.value[:, 3]
    R = poses.nearest_rotation(printed)
    rounded = float(np.abs(R - printed).max())
    if not rounded <= POSE_ENTRY:
        return [("pose_inverse", f"{option.key}: the printed rotation is {rounded:.1e} from the nearest one")]
    turn = float(np.abs(R @ first_from_second[:3, :3] - np.eye(3)).max())
    # What the rounding of R turns grows with the distance to the other camera.
    shift_m = float(np.linalg.norm(R @ first_from_second[:3, 3] + t))
    allowed_m = TRANSLATION_M + POSE_ENTRY * float(np.linalg.norm(t))
    if turn <= POSE_ENTRY and shift_m <= allowed_m:
        return []
    return [("pose_inverse", f"{option.key}: there and back leaves {turn:.1e} of rotation and {shift_m:.3f} m")]


# --- warps -----------------------------------------------------------------------------------------------------------


def _warp_problems(fact: Fact, task: Task) -> Found:
    """Each matrix puts the corners where they are stored, and its inverse brings them home."""
    width, height = fact.evidence["size"]
    home = homography.image_corners(width, height)
    found: Found = []
    for option in fact.candidates:
        if "corners_px" not in option.evidence:
            continue
        away = np.array(option.evidence["corners_px"], dtype=np.float64)
        start, end = (away, home) if "source_H" in option.show else (home, away)
        there = homography.apply(option.value, start)
        back = homography.apply(np.linalg.inv(option.value), end)
        for name, off in (("there", there - end), ("back", back - start)):
            furthest = float(np.linalg.norm(off, axis=1).max())
            if not furthest <= WARP_PX:
                found.append(("warp_inverse", f"{option.key}: {name}, a corner is {furthest:.2f} px off"))
    return found


# --- boxes -----------------------------------------------------------------------------------------------------------


def _box_problems(fact: Fact, task: Task) -> Found:
    """Stored corners are a cuboid and project onto the drawn rectangle.

    The rectangle drawn is that of the full projection, cut at the image border, not that of the visible part: it is
    the frame by which a reader relates a whole box to the picture.
    """
    truth, camera = fact.truth_candidate, _camera(fact)
    return _around(truth.key, truth.evidence["corners_m"], truth.show["rect"], camera)


def _distance_problems(fact: Fact, task: Task) -> Found:
    """As above, for both objects."""
    truth, camera = fact.truth_candidate, _camera(fact)
    found: Found = []
    for side in "ab":
        corners_m = truth.evidence[side]["corners_m"]
        found += _around(f"{truth.key} {side}", corners_m, truth.show[f"rect_{side}"], camera)
    return found


def _around(name: str, corners_m: Sequence[Sequence[float]], rect: Sequence[int], camera: Camera) -> Found:
    corners = np.array(corners_m, dtype=np.float64)
    residual_m = boxes.cuboid_residual_m(corners)
    if not residual_m <= RESIDUAL_M:
        return [("cuboid", f"{name}: stored corners are {residual_m:.4f} m from a cuboid")]
    projected = boxes.project_rect(camera, boxes.from_corners(corners, "camera"))
    x1, y1, x2, y2 = rect
    fit = 0.0
    if projected is not None:
        fit = boxes.rect_iou((x1, y1, x2, y2), boxes.clip_rect(projected, camera.width, camera.height))
    return [] if fit >= DRAWN_IOU else [("drawn_box", f"{name}: projects onto the drawn rectangle by {fit:.2f}")]


def _camera(fact: Fact) -> Camera:
    return camera_from_record(fact.cameras[fact.frame_ids[0]])


# --- marks and claims ------------------------------------------------------------------------------------------------


def _place_problems(item: Item) -> Found:
    """Regions and points that are drawn lie inside the image as it is at that step, crops inside the one before."""
    frame_of = {name: frame_id for frame_id, name in item.evidence["bases"].items()}
    found: Found = []
    for record in item.evidence["pictures"]:
        picture = Picture.from_json(record)
        camera = item.evidence["cameras"][frame_of[picture.base]]
        for k, op in enumerate(picture.ops):
            width, height = pictures.size(Picture(picture.base, picture.ops[:k]), (camera["width"], camera["height"]))
            corners = _extent(op)
            if corners is None:
                continue
            (x1, y1), (x2, y2) = corners
            if not (0 <= x1 <= x2 < width and 0 <= y1 <= y2 < height):
                found.append(("outside", f"{op['op']} {[x1, y1, x2, y2]} in an image of {width} x {height}"))
    return found


def _extent(op: Mapping[str, Any]) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """First and last pixel that an operation is about; None for one about the whole image."""
    if op["op"] == "point":
        u, v = op["uv"]
        return (u, v), (u, v)
    if op["op"] == "region":
        x1, y1, x2, y2 = op["rect"]
        return (x1, y1), (x2, y2)
    if op["op"] == "crop_resize":
        x0, y0, width, height = op["rect"]
        return (x0, y0), (x0 + width - 1, y0 + height - 1)
    return None


def _tolerance_problems(item: Item, fact: Fact, task: Task) -> Found:
    """The tolerance that the text states is the item's, and by it the claim is what it is marked to be."""
    text = f"{item.question}\n{item.context}"
    found: Found = [
        ("tolerance", f"the item's tolerance is {item.tolerance:g}, and the text does not say {words!r}")
        for words in _tolerance_words(item, task)
        if words not in text
    ]
    if isinstance(task, ScalarTask):
        return found  # how far numbers may be off is part of their `claim_separation`
    claim = item.evidence["claim"]
    errors = task.claim_errors(fact.truth_candidate.value[None], np.array(claim["value"], dtype=np.float64), fact)
    if errors is not None and (float(errors[0]) <= 1) != claim["holds"]:
        found.append(("tolerance", f"the claim is off by {float(errors[0]):.2f} of it, marked holds={claim['holds']}"))
    return found


def _tolerance_words(item: Item, task: Task) -> tuple[str, ...]:
    """What states an item's tolerance; nothing where claims are about things that are shown, or without a number."""
    if item.task == "relative_pose":
        degrees = word("tolerance.degrees", value=fixed(CLAIM_ROTATION_DEG, 0))
        return degrees, word("tolerance.metres", value=fixed(item.tolerance, 2))
    if not isinstance(task, ScalarTask):
        return ()
    if item.ask in CENTRES:
        return (word("tolerance.pixels", value=fixed(item.tolerance, 0)),)
    return (word("tolerance.percent", value=fixed(100 * item.tolerance, 0)),)


def _pose(evidence: Mapping[str, Any], frame_id: str) -> FloatArray:
    return np.array(evidence["world_from_camera"][frame_id], dtype=np.float64).reshape(4, 4)


def _distance(a: FloatArray, b: FloatArray) -> float:
    return float(np.linalg.norm(a - b))


def _px(value: FloatArray) -> str:
    return f"({value[0]:g}, {value[1]:g})"


_BY_TASK: Mapping[str, Callable[[Fact, Task], Found]] = {
    "point_tracking": _track_problems,
    "relative_pose": _pose_problems,
    "view_after_motion": _view_problems,
    "homography_to_image": _warp_problems,
    "homography_to_matrix": _warp_problems,
    "object_location": _box_problems,
    "object_distance": _distance_problems,
}
