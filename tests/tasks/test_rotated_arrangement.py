"""Turned drawings: what is right, what is wrong, and that the options alone tell nothing."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.quality.invariance_room import Room, measured, options_of
from tests.small_room import small_view
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import plans
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.drawings import SIDE_PX, DrawingTask, read_drawing
from vgbench_gen.tasks.rotated_arrangement import TurnedEvidence

NAME = "rotated_arrangement"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return measured(tmp_path_factory.mktemp("room"), [NAME, "camera_parameters"])


def look_alike(drawn: FloatArray, image_turned: FloatArray) -> bool:
    return min(plans.measure_overlap(a, b)[0] for a, b in zip(drawn, image_turned, strict=True)) > 0.7


def test_one_drawing_is_the_first_image_turned_and_no_other_one(room: Room) -> None:
    for fact in room.facts[NAME]:
        options = options_of(fact)
        first, *shown = tasks[NAME].choice(fact, options, np.random.default_rng(0)).pictures
        image, count = room.image(first), len(fact.truth_candidate.value)
        found = [
            [
                k
                for k in range(4)
                if look_alike(read_drawing(room.image(one), count), read_drawing(np.rot90(image, -k), count))
            ]
            for one in shown
        ]
        seen = TurnedEvidence.of(fact.truth_candidate)
        assert found == [[seen.turns] if k == options.truth else [] for k in range(4)]


def test_wrong_drawings_are_exchanged_and_mirrored_and_turned_by_other_angles(room: Room) -> None:
    task, turns = tasks[NAME], Counter[int]()
    for fact in room.facts[NAME]:
        seen = TurnedEvidence.of(fact.truth_candidate)
        first = seen.plan - SIDE_PX / 2
        for seed in range(12):
            found = task.ladder(fact, 4, np.random.default_rng(seed))
            assert found is not None
            (_, exchanged, mirrored, both), _ = found
            relative = []
            for one, source in ((exchanged, 0), (mirrored, 1), (both, 2)):
                plan = plans.exchange_places(first, *seen.exchanged) if source != 1 else first
                plan = plan * [-1, 1] if source else plan
                turned = [plan, np.stack([-plan[..., 1], plan[..., 0]], axis=-1)]
                turned += [-turned[0], -turned[1]]
                fits = [k for k in range(4) if np.abs(turned[k] + SIDE_PX / 2 - one.value).max() <= 1]
                assert len(fits) == 1
                relative += fits
            assert relative[0] not in (0, seen.turns)
            assert (relative[2] - relative[1]) % 4 == (relative[0] - seen.turns) % 4  # pairs tell nothing apart
            turns[relative[1]] += 1
    assert set(turns) == {0, 1, 2, 3}


def test_every_angle_is_right_equally_often() -> None:
    for seed in range(4):
        facts = tasks[NAME].drafts(small_view(grid=True), np.random.default_rng(seed), 6)
        turns = Counter(TurnedEvidence.of(one.truth_candidate).turns for one in facts if isinstance(one, Fact))
        assert turns == {1: 2, 2: 2, 3: 2}


def test_a_drawing_that_is_its_own_turn_is_not_asked() -> None:
    task, at = tasks[NAME], np.array([[0.0, 1.0], [1.0, 0.0], [0.0, -1.0], [-1.0, 0.0]]) * 120
    square = np.tile(np.array([[-20.0, -20.0], [20.0, -20.0], [20.0, 20.0], [-20.0, 20.0]]), (2, 1))
    assert isinstance(task, DrawingTask)
    plan = np.stack([square + place for place in (at[0], at[2])]) + SIDE_PX / 2
    assert task.settle(plan)[1]["decided"] < 1  # mirrored left for right, it is the same
    aside = np.stack([square + place for place in (at[0] + [90.0, 0.0], at[3] / 2, at[2])]) + SIDE_PX / 2
    assert task.settle(aside)[1]["decided"] >= 1
