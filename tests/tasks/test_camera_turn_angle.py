"""Turns of known angles about any axis, and the reader who takes the move of the image for the turn."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.small_room import small_view
from tests.tasks.test_camera_motion_words import PAIR
from vgbench_gen.core.types import Candidate
from vgbench_gen.geometry import poses
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.camera_turn_angle import CameraTurnAngle
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.places import ViewsEvidence

ANGLES = {"ten": 10, "twenty": 20, "thirty": 30, "forty": 40}


def get_task() -> CameraTurnAngle:
    task = tasks["camera_turn_angle"]
    assert isinstance(task, CameraTurnAngle)
    return task


@pytest.mark.parametrize(
    ("angle_deg", "said"),
    [
        (5.5, ""),
        (7.2, "ten"),
        (12.9, "ten"),
        (13.2, ""),
        (19.0, "twenty"),
        (25.0, ""),
        (31.0, "thirty"),
        (42.8, "forty"),
        (44, ""),
    ],
)
@pytest.mark.parametrize("sign", [1, -1])
def test_an_angle_is_said_to_within_three_degrees_whatever_the_axis(angle_deg: float, said: str, sign: int) -> None:
    task = get_task()
    for axis in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (0.6, 0, 0.8)):
        R = Rotation.from_rotvec(sign * angle_deg * np.array(axis), degrees=True).as_matrix()
        seen = ViewsEvidence(motion=poses.make_pose(R, [0.3, 0.0, -2.0]), pair=PAIR)
        value, kept = task.settle(task.value(seen))
        told = task.find_words(value, Candidate("", value)) if min(kept.values()) >= 1 else ""
        assert told.removesuffix(" degrees") == said


def test_a_reader_who_only_looks_goes_by_what_moved_and_what_was_lost() -> None:
    guesses: Counter[str] = Counter()
    for one in get_task().propose(small_view(grid=True), np.random.default_rng(0)):
        if isinstance(one, Measured):
            camera, pair = one.frames[0].camera, one.evidence.pair
            moved_deg = np.degrees(np.arctan(pair.shift_d / 100 * np.hypot(camera.width, camera.height) / camera.fx))
            seen_deg = moved_deg + (1 - pair.overlap) * np.degrees(np.arctan(camera.width / 2 / camera.fx))
            assert one.guess == min(ANGLES, key=lambda name: abs(ANGLES[name] - seen_deg))
            guesses[one.guess] += 1
    assert min(guesses["ten"], guesses["twenty"]) >= 2
