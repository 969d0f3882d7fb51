"""What is kept of a tracked point, of the wrong options beside it and of their two images, and what must hold in it;
and the same with both images exchanged.

A question back exchanges the pixels of the tracked point. Each wrong option has a place of its own in each image, so
that both ways are asked with options of one law (`track_decoys`). The decoy at the query's own pixel is one again: it
lies at the pixel of the new query, where image 1 shows something else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np
from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray
from vgbench_gen.geometry import poses, projection
from vgbench_gen.scenes.view import GREY_WIDTH
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, StoredCamera
from vgbench_gen.tasks.gates import TrackGates

PixelArray = Annotated[FloatArray, ArrayShape(2)]
Point = Annotated[FloatArray, ArrayShape(3)]


class ImagesEvidence(FactEvidence):
    """What is kept of the two images; image 1 shows the query."""

    diagonal_px: float
    """Length of the diagonal of image 2."""
    camera_1: StoredCamera
    """Of image 1."""
    camera_2: StoredCamera
    """Of image 2."""
    pair: TwoViewEvidence
    """What was measured between both frames."""
    second_back_px: PixelArray | None = None
    """Pixel of image 1 to which the second route leads from the answer; None where it does not lead back."""


class PlaceEvidence(Evidence):
    """What is kept of a place of image 2 that is an option."""

    point_2_m: Point
    """The point there, in the frame of camera 2, meters."""
    look: Annotated[FloatArray, ArrayShape(6)] | None = None
    """How unlike the query the place looks, without understanding (`track_looks`); None for the question back."""
    uv_1_px: Annotated[tuple[int, int], Strict(False)] | None = None
    """Of a wrong option: its pixel in image 1, where the question back shows it; None where it has none."""
    point_1_m: Point | None = None
    """Of a wrong option: the point there, in the frame of camera 1, meters."""
    z_1_m: float | None = None
    """Of a tracked point, like all that follow: its depth in image 1, meters."""
    uv_2_px: PixelArray | None = None
    """Its exact pixel in image 2."""
    cycle_px_at_640: float | None = None
    """How far from its start it ends when both depth images lead it there and back, pixels at 640 wide."""
    motion_d: float | None = None
    """How far it moves in the image, D%."""


class TrackedEvidence(PlaceEvidence):
    """What is kept of a tracked point, which could be asked about. The fields are those of `PlaceEvidence`, and none of
    these is missing."""

    z_1_m: float
    """Depth of the point in image 1, meters."""
    uv_2_px: PixelArray
    """(2,) exact pixel of the point in image 2."""
    cycle_px_at_640: float
    """Distance from its start at which the point ends when both depth images lead it there and back, pixels of an image
    640 wide."""
    motion_d: float
    """Distance by which the point moves in the image, D% (per cent of the image diagonal)."""


CYCLE_PX = 1.0  # at most, there and back
ROUNDING_PX = float(np.sqrt(0.5))  # farthest that a whole pixel lies from the place it stands for


def check_tracks(fact: Fact, gates: Gates) -> Problems:
    """Each point, from its pixel in image 1 at its depth, through the world onto the printed pixel of image 2, and
    back; a point and its pixel in image 2 where there is none in image 1."""
    images = ImagesEvidence.of(fact)
    first, second = images.camera_1, images.camera_2
    pose_1, pose_2 = images.list_poses(fact.frame_ids)
    allowed_px = gates.section(TrackGates).cycle_max_px_at_640
    found: Problems = []
    for option in fact.candidates:
        stored_m = PlaceEvidence.of(option).point_2_m
        if option.show.get("query") is None:
            off = _measure_distance(projection.project(second, stored_m)[0], option.value)
            if not off <= CYCLE_PX + ROUNDING_PX:
                found.append(
                    ("reprojection", f"{option.key}: its point lies {off:.2f} px from {_format_px(option.value)}")
                )
            continue
        query, track = np.array(option.show["query"], dtype=np.float64), TrackedEvidence.of(option)
        world = poses.transform(pose_1, projection.back_project(first, query, np.array(track.z_1_m))[None])
        point_m = poses.transform(poses.invert(pose_2), world)[0]
        uv, z_2_m = projection.project(second, point_m)
        off = _measure_distance(uv, option.value)
        if not (off <= CYCLE_PX + ROUNDING_PX and projection.is_in_image(second, option.value)):
            found.append(("reprojection", f"{option.key}: its point lies {off:.2f} px from {_format_px(option.value)}"))
        if not np.linalg.norm(point_m - stored_m) <= 1e-3:
            found.append(("reprojection", f"{option.key}: point {stored_m.tolist()} stored, {point_m.tolist()} found"))
        back = poses.transform(pose_2, projection.back_project(second, track.uv_2_px, z_2_m)[None])
        cycle = _measure_distance(projection.project_world(first, pose_1, back)[0][0], query)
        if not cycle <= CYCLE_PX:
            found.append(("cycle", f"{option.key}: back in image 1 it lies {cycle:.2f} px from the query"))
        if not track.cycle_px_at_640 <= allowed_px:
            measured = f"{track.cycle_px_at_640:.2f} px at {GREY_WIDTH} wide"
            found.append(("cycle", f"{option.key}: by both depth images {measured}"))
    return found


def _measure_distance(a: FloatArray, b: FloatArray) -> float:
    return float(np.linalg.norm(a - b))


def _format_px(value: FloatArray) -> str:
    return f"({value[0]:g}, {value[1]:g})"


def exchange_images(fact: Fact) -> Fact | None:
    """The fact with its images exchanged, or None where the second route did not lead back."""
    images = ImagesEvidence.of(fact)
    if images.second_back_px is None:
        return None
    motion = _poses.compute_by_quaternions(*images.list_poses(fact.frame_ids[::-1]))
    members = tuple(
        _move_decoy(member, fact.truth_candidate)
        if member.show["query"] is None
        else make_turned_candidate(member, images.camera_2, images.camera_1, motion)
        for member in fact.candidates
    )
    exchanged = images.with_fields(
        camera_1=images.camera_2,
        camera_2=images.camera_1,
        diagonal_px=images.camera_1.diagonal_px,
        second_back_px=fact.second_value,
    )
    return replace(
        fact,
        frame_ids=fact.frame_ids[::-1],
        candidates=members,
        second_value=images.second_back_px,
        evidence=exchanged.write(),
    )


def make_turned_candidate(member: Candidate, first: Camera, second: Camera, motion: FloatArray) -> Candidate:
    """A point of the pool, asked about at its printed pixel.

    Args:
        member: as it was.
        first, second: the cameras as they are called from now on.
        motion: (3, 4) second_from_first.
    """
    query, track = member.value, TrackedEvidence.of(member)
    z_m = float(track.point_2_m[2])
    place_m = _poses.move_points(motion, projection.back_project(first, query, np.array(z_m)))
    uv_px = projection.project(second, place_m)[0]
    turned = track.with_fields(
        z_1_m=z_m,
        look=None,
        uv_2_px=uv_px,
        point_2_m=np.round(place_m, 4),
        motion_d=round(100 * float(np.linalg.norm(uv_px - query)) / second.diagonal_px, 3),
    )
    value = np.floor(uv_px + 0.5) + 0.0
    return replace(member, value=value, show={"query": [int(x) for x in query]}, evidence=turned.write())


def _move_decoy(member: Candidate, truth: Candidate) -> Candidate:
    """A wrong option in image 1; none where it has no place there, or image 1 knows no depth at the query's pixel."""
    place = PlaceEvidence.of(member)
    if place.point_1_m is None:
        return replace(member, value=np.full(member.value.shape, np.nan))  # which `valid` refuses
    moved = place.with_fields(point_1_m=place.point_2_m, point_2_m=place.point_1_m, look=None)
    if place.uv_1_px is None:  # the decoy at the query's own pixel
        return replace(member, value=truth.value, evidence=moved.write())
    u, v = member.value
    moved = moved.with_fields(uv_1_px=(int(u), int(v)))
    return replace(member, value=np.array(place.uv_1_px, dtype=np.float64), evidence=moved.write())
