"""Credit of answers that are many numbers: poses, boxes, points."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from tests.rewards.cases import CHOICE, write
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.evaluation.scoring import CaseError
from vgbench_gen.geometry import boxes
from vgbench_gen.rewards.grading import Reward, grade_reply
from vgbench_gen.rewards.values import _SIGNS

AXIS = np.array([2.0, -1.0, 0.5]) / math.sqrt(5.25)
POSE = np.concatenate([Rotation.from_rotvec(0.4 * AXIS).as_matrix(), [[0.6], [-0.2], [0.9]]], axis=1)
BOX = OrientedBox(
    np.array([0.3, -0.2, 2.5]), np.array([0.6, 0.4, 1.1]), Rotation.from_rotvec(0.7 * AXIS).as_matrix(), "camera"
)
POINT = np.array([320.0, 200.0])
SIZE = math.hypot(640, 480)


def grade(given: Any, truth: FloatArray, reply: str = "Answer: {}") -> Reward:
    more = {
        "value": truth.ravel().tolist(),
        "shape": list(truth.shape),
        "diagonal_px": SIZE if truth.size == 2 else None,
    }
    written = given if isinstance(given, str) else reply.format(json.dumps(np.asarray(given).tolist()))
    return grade_reply(written, write(CHOICE, **more).replace('"multi-choice"', '"value"'))


def turned(angle: float, shift: float = 0.0) -> FloatArray:
    R = Rotation.from_rotvec(angle * np.array([0, 1.0, 0])).as_matrix() @ POSE[:, :3]
    return np.concatenate([R, POSE[:, 3:] + shift * np.array([[0.6], [0.0], [-0.8]])], axis=1)


def moved(shift: float = 0.0, scale: float = 1.0) -> FloatArray:
    return boxes.corners(
        OrientedBox(BOX.center_m + shift * BOX.rotation[:, 0], BOX.size_m * scale, BOX.rotation, "camera")
    )


@pytest.mark.parametrize("truth", [POSE, boxes.corners(BOX), POINT], ids=["pose", "box", "point"])
def test_the_truth_earns_one_in_every_notation(truth: FloatArray) -> None:
    rows = np.atleast_2d(truth)
    latex = r"\begin{bmatrix}" + r" \\ ".join(" & ".join(f"{x:.6f}" for x in row) for row in rows) + r"\end{bmatrix}"
    plain = "\n".join(" ".join(f"{x:.6f}" for x in row) for row in rows)
    for reply in ("Answer: {}", "Seen from 2.5 m.\n\nAnswer:\n{}", "<think>[1, 2]</think><answer>{}</answer>"):
        assert grade(truth, truth, reply).score == 1
    assert grade(f"Answer: {latex}", truth).score == 1
    assert grade("(" + ", ".join(f"{x:.6f}" for x in truth.ravel()) + ")", truth).score == 1
    assert grade(f"Answer: [{plain}]", truth).score == 1
    assert grade(truth, truth).format == 1
    if truth is POSE:
        assert grade([*truth.tolist(), [0, 0, 0, 1]], truth).score == 1


@pytest.mark.parametrize("truth", [POSE, boxes.corners(BOX), POINT], ids=["pose", "box", "point"])
@pytest.mark.parametrize(
    "reply", ["", "B", "Answer: [1, 2, 3]", "{0} {1}", "Answer: {0}\nAnswer: {1}", "{0}, or {1}", "<think>{0}</think>"]
)
def test_no_value_or_several_earn_nothing(truth: FloatArray, reply: str) -> None:
    said = reply.format(*(json.dumps((truth + k).tolist()) for k in (0, 1)))
    assert grade(said, truth).score == 0
    assert grade(json.dumps(np.full_like(truth, 1e9).tolist()), truth).score == 0


@given(near=st.floats(0, 3), far=st.floats(0, 3), shift=st.floats(0, 2))
def test_a_pose_that_is_farther_off_never_earns_more(near: float, far: float, shift: float) -> None:
    near, far = sorted((near, far))
    assert grade(turned(near, shift), POSE).score >= grade(turned(far, shift), POSE).score - 1e-9
    assert grade(turned(shift, near), POSE).score >= grade(turned(shift, far), POSE).score - 1e-9


@given(near=st.floats(0, 2), far=st.floats(0, 2))
def test_a_box_or_point_that_is_farther_off_never_earns_more(near: float, far: float) -> None:
    near, far = sorted((near, far))
    truth = boxes.corners(BOX)
    assert grade(moved(shift=near), truth).score >= grade(moved(shift=far), truth).score - 1e-9
    assert grade(moved(scale=1 + near), truth).score >= grade(moved(scale=1 + far), truth).score - 1e-9
    assert grade(POINT + 50 * near, POINT).score >= grade(POINT + 50 * far, POINT).score - 1e-9


def test_credit_ends_where_options_begin() -> None:
    turns = [round(grade(turned(math.radians(angle)), POSE).score, 6) for angle in (1.9, 8.5, 15, 90)]
    assert turns == [1, 0.5, 0, 0]
    length = float(np.linalg.norm(POSE[:, 3]))
    assert [round(grade(turned(0, share * length), POSE).score, 6) for share in (0.05, 0.275, 0.5)] == [1, 0.5, 0]
    assert [round(grade(POINT + [share * SIZE, 0], POINT).score, 6) for share in (0.01, 0.035, 0.06)] == [1, 0.5, 0]


@given(
    shift=st.lists(st.floats(-0.6, 0.6), min_size=3, max_size=3),
    turn=st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    scale=st.floats(0.5, 2),
)
def test_boxes_are_compared_by_their_volumes(shift: list[float], turn: list[float], scale: float) -> None:
    other = OrientedBox(
        BOX.center_m + shift, BOX.size_m * scale, Rotation.from_rotvec(turn).as_matrix() @ BOX.rotation, "camera"
    )
    found = grade(boxes.corners(other), boxes.corners(BOX)).parts["iou"]
    assert found == pytest.approx(boxes.iou_3d(other, BOX), abs=0.03)


def test_corners_that_are_no_box_earn_nothing() -> None:
    assert np.array_equal(_SIGNS, boxes.CORNER_SIGNS)
    crooked, truth = boxes.corners(BOX), boxes.corners(BOX)
    crooked[6] += 0.5
    assert grade(crooked, truth).score == grade(np.zeros((8, 3)), truth).score == 0


def test_a_speck_in_the_middle_of_a_cell_is_no_cell() -> None:
    center = BOX.center_m + BOX.rotation @ BOX.size_m / 48
    speck = OrientedBox(center, BOX.size_m / 100, BOX.rotation, "camera")
    assert grade(boxes.corners(speck), boxes.corners(BOX)).parts["iou"] == pytest.approx(1e-6, rel=0.01)


def test_what_cannot_be_compared_is_said() -> None:
    with pytest.raises(CaseError, match=r"found a value of shape \(3, 3\); expected"):
        grade("B", np.eye(3))
    with pytest.raises(CaseError, match=r"found a value of shape \(0,\)"):
        grade_reply("B", write(CHOICE).replace('"multi-choice"', '"value"'))
