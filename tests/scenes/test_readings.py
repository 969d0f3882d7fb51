"""Which reading of poses and depth is right is measured: on the rendered room, on captures, on recordings of others."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.scenes.posed_writer import make_room
from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import relative_pose, rotation_angle_deg
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Frame
from vgbench_gen.scenes.opening import gather_depth, open_scene
from vgbench_gen.scenes.readings import (
    AXES,
    DIRECTIONS,
    MIN_LEAD,
    MIN_SHARE,
    STATED,
    PosedDepth,
    Reading,
    ViewAgreement,
    choose_pairs,
    measure_agreement,
    measure_ray_lengths,
)

READINGS = [Reading(*names) for names in product(DIRECTIONS, AXES)]


@pytest.fixture(scope="module")
def views() -> PosedDepth:
    room = make_room(frames=12)
    depths = [frame.depth_m() for frame in room.frames]
    poses = np.stack([frame.world_from_camera for frame in room.frames])
    return PosedDepth(poses, lambda i: room.frames[i].depth_camera, depths.__getitem__)


def scaled(views: PosedDepth, unit: float) -> PosedDepth:
    return PosedDepth(views.poses, views.camera, lambda i: views.depth_m(i) * np.float32(unit))  # type: ignore[operator]


def moved(views: PosedDepth, poses: FloatArray) -> PosedDepth:
    return PosedDepth(poses, views.camera, views.depth_m)


@pytest.mark.parametrize("reading", READINGS, ids=str)
def test_a_reading_is_undone_and_applied(views: PosedDepth, reading: Reading) -> None:
    stored = reading.undo(views.poses)
    np.testing.assert_allclose(reading.apply(stored), views.poses, atol=1e-12)
    assert np.linalg.det(stored[:, :3, :3]) == pytest.approx(1)
    turned = rotation_angle_deg(relative_pose(stored[0], stored[1])[:3, :3])
    if reading.direction == STATED.direction:
        assert turned == pytest.approx(float(rotation_angle_deg(relative_pose(*views.poses[:2])[:3, :3])))


def test_axes_are_those_of_the_field() -> None:
    """What lies ahead and what lies above, in coordinates of the camera as each program states them."""
    ahead = {
        "OpenCV": (0, 0, 1),
        "OpenGL": (0, 0, -1),
        "ROS body": (1, 0, 0),
        "NED body": (1, 0, 0),
        "mirrored": (0, 0, 1),
    }
    above = {
        "OpenCV": (0, -1, 0),
        "OpenGL": (0, 1, 0),
        "ROS body": (0, 0, 1),
        "NED body": (0, 0, -1),
        "mirrored": (0, 1, 0),
    }
    for axes in ahead:
        stored_from_opencv = Reading(axes=axes).apply(np.eye(4))[:3, :3]
        if axes == "mirrored":
            stored_from_opencv = np.diag([1, -1, 1])
        assert (stored_from_opencv @ [0, 0, 1]).tolist() == list(ahead[axes])
        assert (stored_from_opencv @ [0, -1, 0]).tolist() == list(above[axes])


@pytest.mark.parametrize("true", READINGS[1:], ids=str)
def test_each_wrong_reading_is_named(views: PosedDepth, true: Reading) -> None:
    found = measure_agreement(moved(views, true.undo(views.poses)))
    assert found.best == true
    assert f"the poses are {true} (" in found.problem
    assert found.shares[true] > 0.8


def test_the_right_reading_is_decided(views: PosedDepth) -> None:
    found = measure_agreement(views)
    assert (found.best, found.problem, found.doubt, found.unit) == (STATED, "", "", 1.0)
    assert found.share > 0.8
    world = np.eye(4)
    world[:3, :3], world[:3, 3] = [[0, 0, 1], [1, 0, 0], [0, 1, 0]], (5, -3, 1)
    assert measure_agreement(moved(views, world @ views.poses)).share == pytest.approx(found.share, abs=1e-9)


@pytest.mark.parametrize("order", ["xyzw", "wxyz"])
def test_the_other_order_of_quaternions_is_named(views: PosedDepth, order: str) -> None:
    from scipy.spatial.transform import Rotation

    wrong = views.poses.copy()
    q = Rotation.from_matrix(wrong[:, :3, :3]).as_quat()  # numbers x y z w, read as w x y z, or back
    q = np.roll(q, -1 if order == "wxyz" else 1, axis=1)
    wrong[:, :3, :3] = Rotation.from_quat(q).as_matrix()
    found = measure_agreement(moved(views, wrong), order=order)
    assert found.best == Reading(rotation="quaternion in the other order")
    np.testing.assert_allclose(found.best.apply(wrong, order), views.poses, atol=1e-9)
    assert measure_agreement(moved(views, wrong)).best is None


def test_a_transposed_rotation_is_named(views: PosedDepth) -> None:
    wrong = views.poses.copy()
    wrong[:, :3, :3] = np.swapaxes(wrong[:, :3, :3], 1, 2)
    assert measure_agreement(moved(views, wrong)).best == Reading(rotation="transposed")


@pytest.mark.parametrize("unit", [1 / 5, 5, 1.31, 1 / 1.31, 1000])
def test_another_unit_of_depth_is_named(views: PosedDepth, unit: float) -> None:
    problem = measure_agreement(scaled(views, unit)).problem
    assert problem.startswith(f"depth is to be multiplied by {1 / unit:.4g}"[:34])


def test_a_wrong_unit_and_a_wrong_reading_are_named_together(views: PosedDepth) -> None:
    wrong = scaled(moved(views, Reading(axes="OpenGL").undo(views.poses)), 5)
    assert (
        "depth is to be multiplied by 0.2, and the poses are camera to world, OpenGL"
        in measure_agreement(wrong).problem
    )


def test_depth_along_the_ray_is_named(views: PosedDepth) -> None:
    along = PosedDepth(views.poses, views.camera, lambda i: views.depth_m(i) * measure_ray_lengths(views.camera(i)))  # type: ignore[operator]
    assert "along the ray or the optical axis" in measure_agreement(along).problem
    back = PosedDepth(views.poses, views.camera, lambda i: views.depth_m(i) / measure_ray_lengths(views.camera(i)))  # type: ignore[operator]
    assert "along the ray or the optical axis" in measure_agreement(back).problem


def test_ray_lengths_are_those_of_pixels(views: PosedDepth) -> None:
    camera = views.camera(0)
    x, y = (3 - camera.cx) / camera.fx, (5 - camera.cy) / camera.fy
    assert measure_ray_lengths(camera)[5, 3] == pytest.approx(np.linalg.norm([x, y, 1]))


def test_what_hardly_moves_is_not_decided(views: PosedDepth) -> None:
    still = PosedDepth(views.poses[:1].repeat(6, axis=0), lambda i: views.camera(0), lambda i: views.depth_m(0))
    found = measure_agreement(still)
    assert (found.best, found.problem) == (None, "")
    assert "No two frames turn by 3 to 30 degrees" in found.doubt
    shares = {STATED: 0.9, READINGS[1]: 0.4}
    doubts = {
        "hardly moves between frames (80% agree": ViewAgreement(STATED, shares, 0.8, {}, 0.1),
        f"{READINGS[1]} (80%) fit alike": ViewAgreement(
            STATED, {STATED: 0.9, Reading(rotation="transposed"): 0.85, READINGS[1]: 0.8}, 0.1, {}, 0.1
        ),
        "No reading fits (best: camera to world, OpenCV, 40%)": ViewAgreement(STATED, {STATED: 0.4}, 0.1, {}, 0.1),
    }
    for words, agreement in doubts.items():
        assert agreement.best is None
        assert words in agreement.doubt
    assert ViewAgreement(STATED, shares, 0.9 - MIN_LEAD, {}, 0.1).best == STATED
    assert ViewAgreement(STATED, {STATED: MIN_SHARE}, 0.1, {}, 0.1).best == STATED


def test_unreadable_depth_is_passed_over(views: PosedDepth) -> None:
    some = PosedDepth(views.poses, views.camera, lambda i: None if i % 4 == 0 else views.depth_m(i))
    assert measure_agreement(some).best == STATED
    none = measure_agreement(PosedDepth(views.poses, views.camera, lambda i: None))
    assert (none.shares, none.best) == ({}, None)
    assert measure_agreement(PosedDepth(np.zeros((0, 4, 4)), views.camera, views.depth_m)).shares == {}


def test_a_few_points_decide_nothing(views: PosedDepth) -> None:
    """One of two views knows the depth of a few pixels alone: what falls there by chance agrees too."""
    a, b = choose_pairs(views.poses)[0]
    whole, part = views.depth_m(a), np.zeros_like(views.depth_m(b))
    part[28:31, 38:41] = views.depth_m(b)[28:31, 38:41]  # type: ignore[index]
    depths = [whole, part]
    found = measure_agreement(PosedDepth(views.poses[[a, b]], views.camera, depths.__getitem__))
    assert found.share < MIN_SHARE
    assert found.best is None


def test_pairs_turn_enough_and_not_too_much(views: PosedDepth) -> None:
    pairs = choose_pairs(views.poses)
    assert 2 <= len(pairs) <= 16
    for a, b in pairs:
        assert 3 <= rotation_angle_deg(relative_pose(views.poses[a], views.poses[b])[:3, :3]) <= 30
    assert choose_pairs(views.poses[:1]) == []


def read_under_all(frames: Sequence[Frame]) -> dict[Reading, Reading | None]:
    """Which reading is found if the files of these frames are to be read by each of the 14; decodes each frame once."""
    poses = np.stack([frame.world_from_camera for frame in frames])
    views = gather_depth(frames, poses)
    read = cache(views.depth_m)
    return {true: measure_agreement(PosedDepth(true.undo(poses), views.camera, read)).best for true in READINGS}


def test_no_capture_passes_under_a_wrong_reading(captures: Path) -> None:
    for ref in discover(captures):
        with open_scene(ref) as scene:
            found = read_under_all(scene.frames)
        assert found == {reading: reading for reading in READINGS}, ref.scene_id


def test_no_recording_passes_under_a_wrong_reading(recordings: Path) -> None:
    """Each recording that can be opened, under each of the 14 readings: the true one is found, never another."""
    seen = 0
    for ref in discover(recordings, datasets=["posed"], on_error=lambda *found: None):
        try:
            with open_scene(ref) as scene:
                found = read_under_all(scene.frames)
        except SceneError:  # what is refused is tested with its reader
            continue
        decided = found[STATED] == STATED
        assert found == {reading: reading if decided else None for reading in READINGS}, ref.scene_id
        seen += decided
    assert seen >= 8
