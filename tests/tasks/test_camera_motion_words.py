"""Motions whose words are known: the side that is said is the one to which the camera went, not the pixels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scene_factory import looking_at
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.camera_motion_words import AHEAD, ASKED, LIFT, SIDE, TILT, TURN, CameraMotionWords, list_labels
from vgbench_gen.tasks.camera_motion_words import MotionWordsEvidence as Seen

PAIR = TwoViewEvidence(overlap=0.5, rotation_deg=20, baseline_m=1, parallax_deg=10, depth_m=2, shift_d=10)
OTHER = {"right": "left", "up": "down", "forward": "backward"}
PARTS = {"turned right": TURN, "tilted up": TILT, "moved right": SIDE, "moved up": LIFT, "moved forward": AHEAD}


def get_task() -> CameraMotionWords:
    task = tasks["camera_motion_words"]
    assert isinstance(task, CameraMotionWords)
    return task


def list_words(motion: FloatArray) -> set[str]:
    """What is said of a motion, in whichever questions."""
    task, said = get_task(), set[str]()
    for k in range(len(ASKED)):
        value, kept = task.settle(task.value(Seen(motion=motion, pair=PAIR, asked=k, labels=list_labels(k))))
        said |= set(list_labels(k)[int(value[0])].split(" and ")) if kept["decided"] >= 1 else set()
    return said


def move(turns_deg: FloatArray, to_m: FloatArray) -> FloatArray:
    """(4, 4) second_from_first: turned right, tilted up and rolled, at a place of the first frame (x, y, z)."""
    return poses.invert(poses.make_pose(Rotation.from_euler("YXZ", turns_deg, degrees=True).as_matrix(), to_m))


@pytest.mark.parametrize("heading_deg", range(0, 360, 45))
def test_a_level_turn_is_as_far_as_it_is_at_every_heading(heading_deg: float) -> None:
    def look(deg: float, eye: FloatArray) -> FloatArray:
        ahead = np.array([np.sin(np.radians(deg)), np.cos(np.radians(deg)), 0.0])  # clockwise from above, z up
        return looking_at(eye, eye + ahead)

    first = look(heading_deg, np.array([3.0, 2.0, 1.5]))
    second = look(heading_deg + 30, np.array([3.0, 2.0, 1.5]) + first[:3, :3] @ [0.0, -0.4, 0.0])
    motion = poses.relative_pose(first, second)
    np.testing.assert_allclose(poses.measure_motion(motion), [30, 0, 0, 0.4, 0], atol=1e-9)
    assert list_words(motion) == {"turned right", "moved up"}


@pytest.mark.parametrize(("words", "part"), PARTS.items())
@pytest.mark.parametrize("sign", [1, -1])
def test_pixels_go_the_other_way_than_the_camera(words: str, part: int, sign: int) -> None:
    if sign < 0:
        words = " ".join((words.split()[0], OTHER[words.split()[1]]))
    parts = np.zeros(5)
    parts[part] = sign * (20 if part in (TURN, TILT) else 0.5)
    motion = move(np.array([*parts[:2], 0]), parts[2:] * (1, -1, 1))
    x, y, z = (motion @ [0, 0, 3, 1])[:3]
    flow = {TURN: -x, SIDE: -x, TILT: y, LIFT: y, AHEAD: 3 - z}[
        part
    ]  # right, down, and nearer are positive in x, y, 3 - z
    assert flow * sign > 0
    beside = next(pair for pair in ASKED if part in pair)
    other = next(k for k in beside if k != part)
    parts[other] = 20 if other in (TURN, TILT) else 0.5
    said = list_words(move(np.array([*parts[:2], 0]), parts[2:] * (1, -1, 1)))
    assert words in said
    assert len(said) == 2


@pytest.mark.parametrize(
    ("turns_deg", "to_m", "said"),
    [
        ((10.1, -10.1, 9), (0, 0, 0), {"turned right", "tilted down"}),
        ((9.9, -10.1, 9), (0, 0, 0), set()),
        ((0, 0, 0), (-1.0, -0.61, 0.5), {"moved left", "moved up"}),
        ((0, 0, 0), (-1.0, 0.59, 0.59), set()),
        ((0, 0, 0), (-0.19, 0.0, -0.19), {"moved left", "moved backward"}),
        ((0, 0, 0), (-0.17, 0.0, -0.17), set()),  # too short
        ((25, 0, 30), (-0.6, 0.0, 0.0), set()),  # who walks around something turns against its move
        ((0, -25, 0), (0.0, -0.6, 0.5), set()),
    ],
)
def test_what_is_said_is_clear_and_does_not_follow_from_the_other_part(
    turns_deg: tuple[float, ...], to_m: tuple[float, ...], said: set[str]
) -> None:
    assert list_words(move(np.array(turns_deg), np.array(to_m))) == said


def test_every_word_stands_in_two_of_four_options() -> None:
    for k, pair in enumerate(ASKED):
        sides = [[words for words, part in PARTS.items() if part == one] for one in pair]
        both = [[words, f"{words.split()[0]} {OTHER[words.split()[1]]}"] for (words,) in sides]
        assert sorted(list_labels(k)) == sorted(" and ".join(chosen) for chosen in product(*both))
