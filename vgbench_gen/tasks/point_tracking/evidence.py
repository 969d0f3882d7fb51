"""What is kept of a tracked point, of the wrong options beside it and of their two images, and what must hold in it."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import poses, projection
from vgbench_gen.scenes.view import GREY_WIDTH
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


class PlaceEvidence(Evidence):
    """What is kept of a place of image 2 that is an option."""

    point_2_m: Point
    """The point there, in the frame of camera 2, meters."""
    look: Annotated[FloatArray, ArrayShape(6)]
    """How unlike the query the place looks, without understanding (`track_looks`)."""
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
