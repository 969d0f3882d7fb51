"""Stands whose sector is known, and readers who leave out the depth axis or go by the turn."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.small_room import small_view
from tests.tasks.test_camera_motion_words import PAIR
from vgbench_gen.geometry import poses
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.camera_from_camera import CameraFromCamera, StandEvidence
from vgbench_gen.tasks.kind import Measured

TURNS_DEG = ((0, 0, 0), (40, 0, 0), (-40, 10, 0), (120, -20, 30))
LEFT = ["ahead to the left", "straight to the left", "behind to the left"]
RIGHT = ["ahead to the right", "straight to the right", "behind to the right"]


def get_task() -> CameraFromCamera:
    task = tasks["camera_from_camera"]
    assert isinstance(task, CameraFromCamera)
    return task


def say(right_m: float, ahead_m: float, turns_deg: tuple[float, ...] = (0, 0, 0)) -> str:
    """What is said of a second camera at a place of the first one's frame; "" where it is not clear."""
    R = Rotation.from_euler("YXZ", turns_deg, degrees=True).as_matrix()
    motion = poses.invert(poses.make_pose(R, [right_m, 0.1, ahead_m]))
    labels, side = (RIGHT, 1) if right_m > 0 else (LEFT, -1)
    seen, task = StandEvidence(motion=motion, pair=PAIR, labels=labels, side=side), get_task()
    value, kept = task.settle(task.value(seen))
    return seen.labels[int(value[0])] if min(kept.values()) >= 1 else ""


@pytest.mark.parametrize(
    ("angle_deg", "said"),
    [
        (10, ""),
        (29, ""),
        (31, "ahead"),
        (59, "ahead"),
        (67, ""),
        (76, "straight"),
        (104, "straight"),
        (121, "behind"),
        (149, "behind"),
        (151, ""),
        (180, ""),
    ],
)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_stand_is_in_its_sector_wherever_the_second_camera_looks(angle_deg: float, said: str, side: str) -> None:
    right_m, ahead_m = np.sin(np.radians(angle_deg)), np.cos(np.radians(angle_deg))
    for turns_deg in TURNS_DEG:
        expected = f"{said} to the {side}" if said else ""
        assert say(right_m + 1e-9 if side == "right" else -right_m - 1e-9, ahead_m, turns_deg) == expected


def test_the_depth_axis_decides_and_the_one_to_the_side_does_not() -> None:
    for side, words in ((-0.5, LEFT), (0.5, RIGHT)):
        assert [say(side, ahead_m) for ahead_m in (0.5, 0.0, -0.5)] == words


def test_options_are_of_the_side_whatever_the_turn_which_is_a_group_of_its_own() -> None:
    found = get_task().propose(small_view(grid=True), np.random.default_rng(0))
    for one in (one for one in found if isinstance(one, Measured)):
        turn_deg, _, right_m, *_ = poses.measure_motion(one.evidence.motion)
        assert one.evidence.labels == (RIGHT if right_m > 0 else LEFT)
        assert one.group.startswith(one.evidence.labels[1])
        assert one.group.endswith("far") == (abs(turn_deg) > 15)
