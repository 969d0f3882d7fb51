from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.quality.solvers import drawn_rooms
from tests.quality.solvers.drawn_rooms import Asked, rotated
from vgbench_gen.core.types import FloatArray
from vgbench_gen.quality.solvers import find_rules, find_solvers, look, share_credit
from vgbench_gen.tasks.solving import Image, VisibleQuestion, epipolar

Answer = Callable[[VisibleQuestion], FloatArray]
Shown = Callable[[str], tuple[list[Asked], list[list[Image]], list[list[Image]]]]
Cell = tuple[Answer, Callable[[int], list[Asked]], float]


def scores(task: str, place: int = 0) -> Answer:
    """A solver of a task."""
    return find_solvers(task)[place].score


CELLS: dict[str, Cell] = {
    "to image, features": (scores("homography_to_image"), lambda seed: drawn_rooms.warps(seed)[0], 1.0),
    "to image, warp": (scores("homography_to_image", 1), lambda seed: drawn_rooms.warps(seed)[0], 1.0),
    "to matrix, features": (scores("homography_to_matrix"), lambda seed: drawn_rooms.warps(seed)[1], 1.0),
    "to matrix, warp": (scores("homography_to_matrix", 1), lambda seed: drawn_rooms.warps(seed)[1], 1.0),
    "pose": (scores("relative_pose"), drawn_rooms.pose_choices, 1.0),
    "pose claims": (scores("relative_pose"), drawn_rooms.pose_claims, 1.0),
    "view": (scores("view_after_motion"), drawn_rooms.views, 1.0),
    "tracks": (scores("point_tracking"), lambda seed: drawn_rooms.tracks(seed, "multi-choice"), 0.8),
    "track claims": (scores("point_tracking"), lambda seed: drawn_rooms.tracks(seed, "judgment"), 0.8),
}


@pytest.fixture(scope="module")
def shown() -> Shown:
    """(questions of room 1, their images, images of the same questions of room 2); images are made once."""
    made: dict[bytes, Image] = {}
    cells: dict[str, tuple[list[Asked], list[list[Image]], list[list[Image]]]] = {}

    def of(cell: str) -> tuple[list[Asked], list[list[Image]], list[list[Image]]]:
        if cell not in cells:
            rooms = [CELLS[cell][1](seed) for seed in (1, 2)]
            images = [[[made.setdefault(data, Image(data)) for data in shots] for _, shots in room] for room in rooms]
            cells[cell] = rooms[0], images[0], images[1]
        return cells[cell]

    return of


@pytest.mark.parametrize("cell", CELLS)
def test_a_solver_answers_what_it_sees(cell: str, shown: Shown) -> None:
    answer, _, least = CELLS[cell]
    asked, images, _ = shown(cell)
    credit = [
        share_credit(answer(look(question, own)), question.truth)
        for (question, _), own in zip(asked, images, strict=True)
    ]
    assert np.mean(credit) >= least, credit


@pytest.mark.parametrize("cell", CELLS)
def test_it_guesses_on_other_images(cell: str, shown: Shown) -> None:
    answer = CELLS[cell][0]
    asked, _, others = shown(cell)
    # Both rooms are walked through in the same direction, so some pairs are shown the other way round.
    wrong_ones = others + ([pair[::-1] for pair in others] if "track" in cell else [])
    credit = [
        share_credit(answer(look(question, wrong)), question.truth) for question, _ in asked for wrong in wrong_ones
    ]
    chance = asked[0][0].chance
    assert abs(np.mean(credit) - chance) <= 0.25, credit


def test_options_may_stand_in_any_order(shown: Shown) -> None:
    for cell in ("pose", "to matrix, features", "tracks"):
        answer = CELLS[cell][0]
        asked, images, _ = shown(cell)
        question, own = asked[0][0], images[0]
        scores = answer(look(question, own))
        for k in range(1, 4):
            assert np.allclose(answer(look(rotated(question, k), own)), np.roll(scores, -k))


@pytest.mark.parametrize("task", ["homography_to_image", "homography_to_matrix"])
def test_a_black_border_would_tell_a_warp(task: str) -> None:
    """The rule finds what it looks for; of images that the frame fills it can only guess."""
    (rule,) = (rule for rule in find_rules(task, "") if rule.name == "border shape")
    for filled, low, high in ((False, 0.8, 1.0), (True, 0.0, 0.5)):
        made = [drawn_rooms.warps(seed, filled=filled)[task == "homography_to_matrix"] for seed in (1, 2)]
        credit = [
            share_credit(rule.score(look(question, [Image(data) for data in shots])), question.truth)
            for asked in made
            for question, shots in asked
        ]
        assert low <= np.mean(credit) <= high


def test_only_one_direction_lies_in_front() -> None:
    """[R|t] and [R|-t] have the same epipolar geometry; points in front of both cameras tell them apart."""
    points = np.random.default_rng(0).uniform([-1, -1, 2], [1, 1, 4], (50, 3))
    motion = drawn_rooms.motion(1, 2, 5)
    moved = points @ motion[:, :3].T + motion[:, 3]
    x_1, x_2 = points[:, :2] / points[:, 2:], moved[:, :2] / moved[:, 2:]
    mirrored = motion * [1, 1, 1, -1]
    for stated in (motion, mirrored):
        assert epipolar.compute_sampson_distance(stated, x_1, x_2).max() < 1e-9
    assert epipolar.find_in_front(motion, x_1, x_2).all()
    assert not epipolar.find_in_front(mirrored, x_1, x_2).any()
    assert epipolar.measure_support(motion, x_1, x_2, 0.01) == pytest.approx(50)
    assert epipolar.measure_support(mirrored, x_1, x_2, 0.01) == 0
    off = epipolar.compute_sampson_distance(motion, x_1, x_2 + [0.0, 0.004])
    assert (off > 1e-4).all()
    assert (off <= 0.004).all()
