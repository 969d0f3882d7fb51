"""Boxes around scanned surface that hold only a part of their object are refused."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scene_factory import RenderedFrame, Solid, looking_at
from vgbench_gen.core.gates import FrameGates, ObjectGates
from vgbench_gen.core.types import Camera, OrientedBox
from vgbench_gen.geometry.boxes import clip_rect, project_rect, transform_box
from vgbench_gen.scenes._view_frame import Spool
from vgbench_gen.scenes.base import BoxSource
from vgbench_gen.scenes.view import ViewFrame
from vgbench_gen.tasks._object_extent import find_extent_problem, measure_continuing_share
from vgbench_gen.tasks.presentation import Margins

GATES = ObjectGates()
CAMERA = Camera(np.array([[300.0, 0, 159.5], [0, 300.0, 119.5], [0, 0, 1]]), 320, 240)


def cuboid(center: tuple[float, float, float], size: tuple[float, float, float]) -> OrientedBox:
    return OrientedBox(np.array(center), np.array(size), np.eye(3))


def seen(*boxes: OrientedBox, eye_height_m: float = 1.2) -> ViewFrame:
    """The boxes in a large room, seen from (0, 0) towards +y."""
    texture = np.full((8, 8, 3), 128, np.uint8)
    room = Solid(cuboid((0, 3, 1.5), (8, 8, 3)), "room", texture, inward=True)
    solids = [room, *(Solid(box, "box", texture) for box in boxes)]
    pose = looking_at(np.array([0.0, 0.0, eye_height_m]), np.array([0.0, 2.0, 0.6]))
    return ViewFrame(RenderedFrame("0", CAMERA, CAMERA, pose, solids, 0.0), FrameGates().long_side_px, Spool())


def share(frame: ViewFrame, box: OrientedBox) -> float:
    camera_box = transform_box(box, frame.camera_from_world, "camera")
    rect = project_rect(frame.camera, camera_box)
    assert rect is not None
    return measure_continuing_share(frame, camera_box, clip_rect(rect, *frame.camera.size), GATES.continues_step_m)


def problem(frame: ViewFrame, box: OrientedBox, source: BoxSource) -> str:
    camera_box = transform_box(box, frame.camera_from_world, "camera")
    rect = project_rect(frame.camera, camera_box)
    assert rect is not None
    found = find_extent_problem(frame, camera_box, clip_rect(rect, *frame.camera.size), source, GATES, Margins())
    return "" if found is None else found[0]


TABLE = cuboid((0, 2.0, 0.36), (1.2, 0.6, 0.72))
CHAIR = cuboid((0, 2.8, 0.5), (0.45, 0.45, 1.0))  # stands behind the table, its lower half hidden
BACKREST = cuboid((0, 2.8, 0.83), (0.45, 0.45, 0.34))  # what of it a scan from the front keeps


def test_a_thing_in_the_open_ends_where_its_box_ends() -> None:
    stool = cuboid((0.2, 2.2, 0.25), (0.4, 0.4, 0.5))
    frame = seen(stool)
    assert share(frame, stool) < 0.05
    assert problem(frame, stool, "surface") == ""


def test_what_carries_a_thing_does_not_count_as_hiding_it() -> None:
    mug = cuboid((0.1, 1.9, 0.78), (0.12, 0.12, 0.12))
    frame = seen(TABLE, mug)
    assert share(frame, mug) < GATES.continues_max
    assert problem(frame, mug, "annotated") == ""
    # Fusion rounds off a fifth of so small a thing, so a fitted box is not believed.
    assert problem(frame, mug, "surface") == "object_small_fit"


def test_a_part_above_an_occluder_may_go_on_behind_it() -> None:
    frame = seen(TABLE, CHAIR)
    assert share(frame, BACKREST) > 0.8
    assert problem(frame, BACKREST, "surface") == "object_continues"
    assert problem(frame, BACKREST, "annotated") == "object_continues"


def test_a_side_at_the_border_counts_as_covered() -> None:
    box = cuboid((1.1, 2.0, 0.5), (0.5, 0.5, 0.5))
    frame = seen(box)
    assert share(frame, box) == 1.0
    assert problem(frame, box, "surface") == "object_continues"


@pytest.mark.parametrize("source", ["annotated", "surface"])
def test_a_sheet_is_no_whole_object(source: BoxSource) -> None:
    front = cuboid((0, 2.5, 0.6), (0.8, 0.2, 0.8))
    assert problem(seen(front), front, source) == "object_flat"
