"""Turns of a route between objects: which side is which, that the start says where one looks, that ways are free."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.labelled_room import labelled_view
from tests.lenient import without_lines
from tests.tasks.test_labelled_kinds import UP, place
from vgbench_gen.core.gates import Gates
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.directions import DirectionEvidence, measure_free_m
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.route_turns import BODY_M, FREE_M, REACH_M
from vgbench_gen.text.render import load_phrasings

NAME = "route_turns"


def answer(*stops_m: tuple[float, float]) -> str:
    """The label of a route over points [right, ahead] of a level camera; "" where it is not decided."""
    objects: dict[str, Any] = {
        name: place(x, 0.3 * k, z, name=name) for k, (name, (x, z)) in enumerate(zip("abcd", stops_m, strict=True))
    }
    task: Any = tasks[NAME].with_gates(without_lines(Gates()))
    value, kept = task.settle(task.value(DirectionEvidence(up=UP, **objects)))
    return task.labels[int(value[0])] if kept["decided"] >= 1 else ""


@pytest.mark.parametrize(
    ("stops_m", "said"),
    [
        (((0, 1), (0, 3), (2, 3), (2, 5)), "right_left"),
        (((0, 1), (0, 3), (2, 3), (2, 1)), "right_right"),
        (((0, 1), (0, 3), (-2, 3), (-2, 5)), "left_right"),
        (((0, 1), (0, 3), (-2, 3), (-2, 1)), "left_left"),
        (((0, 1), (0, 3), (1, 5), (3, 4)), ""),  # hardly to the right
        (((0, 1), (0, 3), (2, 3), (0, 3.2)), ""),  # nearly back
    ],
)
def test_turns_are_those_of_somebody_who_walks_there(stops_m: Any, said: str) -> None:
    assert answer(*stops_m) == said


def test_where_one_looks_at_the_start_decides_the_first_turn_and_is_said() -> None:
    """VSI-Bench leaves it open: from the other side of the second object, the same stops ask for the other turn."""
    assert answer((0, 1), (0, 3), (2, 3), (2, 5)) == "right_left"
    assert answer((0, 5), (0, 3), (2, 3), (2, 5)) == "left_left"
    for phrasing in load_phrasings(NAME, "multi-choice"):
        start, facing = phrasing.question.index("{{ a }}"), phrasing.question.index("{{ b }}")
        assert any(word in phrasing.question for word in ("face", "facing", "Facing", "looks from")), phrasing.id
        assert abs(start - facing) < 50, phrasing.id


def test_a_way_ends_where_something_stands_between_knees_and_head() -> None:
    start, ahead, up = np.zeros(3), np.array([1.0, 0.0, 0.0]), np.array([0.0, 0.0, 1.0])
    points = np.array([[-1, 0, 1], [1, 0, 0.2], [1.5, 0, 2.0], [2, 0.4, 1.0], [3, -0.2, 1.0], [4, 0, 1]], dtype=float)
    assert measure_free_m(points, start, ahead, up, FREE_M, BODY_M) == 3.0
    assert measure_free_m(points[:4], start, ahead, up, FREE_M, BODY_M) == np.inf


def test_no_way_of_a_route_leads_through_a_third_object() -> None:
    """By the furniture of the room as it was put there, of which boxes stand that reach above the knees."""
    view = labelled_view()
    task: Any = tasks[NAME].with_gates(without_lines(Gates()))
    routes = [one for one in task.propose(view, np.random.default_rng(0)) if isinstance(one, Measured)]
    assert len({one.key for one in routes}) >= 20
    middles = {one.instance_id: one.box.center_m[:2] for one in view.objects}
    tall = {one.instance_id for one in view.objects if one.label != "wall" and one.box.size_m[2] > BODY_M[0] + 0.1}
    for one in routes:
        for first, second in pairwise(one.key.removeprefix("objects:").split("+")):
            a, b = middles[first], middles[second]
            steps = np.linspace(REACH_M, (long_m := float(np.linalg.norm(b - a))) - REACH_M, 20) / long_m
            for other in tall - {first, second}:
                off_m = np.linalg.norm(a + (b - a) * steps[:, None] - middles[other], axis=1)
                assert off_m.min() > 0.12 or long_m < 2 * REACH_M  # the smallest thing is 0.3 m wide
