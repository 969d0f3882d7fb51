"""Plans with spots: that they are laid out as the room is and not mirrored, and that they tell nothing alone."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest

from tests.labelled_room import labelled_view
from tests.quality.invariance_room import Room, measured
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.map_relation import MapEvidence, MapRelation

NAME = "map_relation"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return measured(tmp_path_factory.mktemp("room"), [NAME, "camera_parameters"])


def find_pixels(room: Room, fact: Fact, color: str) -> FloatArray:
    plan = room.image(tasks[NAME].pictures(fact)[-1])  # type: ignore[attr-defined]
    v, u = np.nonzero((plan == COLORS[color]).all(axis=2))
    return np.stack([u, v], axis=-1).astype(float)


def measure_turn_deg(first: FloatArray, second: FloatArray) -> float:
    """From one direction to another, where x is right and y is up, counter-clockwise."""
    return float(np.degrees(np.angle((second @ [1, 1j]) / (first @ [1, 1j]))))


def test_the_spot_of_the_answer_lies_where_the_object_does_for_the_camera_of_the_arrow(room: Room) -> None:
    view, sides = labelled_view(), Counter[bool]()
    for fact in room.facts[NAME]:
        seen, frame = MapEvidence.of(fact.truth_candidate), view.frame(fact.frame_ids[0])
        arrow = find_pixels(room, fact, "orange")
        tip = arrow[np.argmax(np.linalg.norm(arrow - arrow.mean(axis=0), axis=1))]
        spot = find_pixels(room, fact, MapRelation.labels[int(fact.truth_candidate.value[0])]).mean(axis=0)
        (target,) = (one for one in view.objects if one.instance_id == seen.a.instance_id)
        off_m = (target.box.center_m - frame.center_m)[:2]  # the world of the room is z-up
        wanted_deg = measure_turn_deg(frame.world_from_camera[:2, 2], off_m)
        drawn_deg = measure_turn_deg((tip - arrow.mean(axis=0)) * [1, -1], (spot - arrow.mean(axis=0)) * [1, -1])
        assert abs((drawn_deg - wanted_deg + 180) % 360 - 180) < 5
        px_per_m = np.linalg.norm(seen.px_from_camera[:, :3], ord=2)
        assert np.linalg.norm(spot - arrow.mean(axis=0)) / px_per_m == pytest.approx(np.linalg.norm(off_m), rel=0.1)
        sides[wanted_deg > 0] += 1
    assert min(sides[True], sides[False]) >= 2  # or mirrored plans might pass


def test_each_of_four_objects_is_asked_about_once_by_the_same_words_and_another_drawing(room: Room) -> None:
    alike = defaultdict(list)
    for fact in room.facts[NAME]:
        slots = tasks[NAME].slots(fact)  # type: ignore[attr-defined]
        alike[(fact.frame_ids, slots["names"])].append(int(fact.truth_candidate.value[0]))
        assert f"the {slots['a']}" in slots["names"]
    assert len(alike) >= 2
    assert all(sorted(answers) == [0, 1, 2, 3] for answers in alike.values())
    drawn = {str(tasks[NAME].pictures(fact)[-1].ops) for fact in room.facts[NAME]}  # type: ignore[attr-defined]
    assert len(drawn) == len(room.facts[NAME])


def test_plans_are_turned_in_all_ways_and_fit(room: Room) -> None:
    ahead = []
    for fact in room.facts[NAME]:
        arrow, *spots = tasks[NAME].pictures(fact)[-1].ops[0]["polygons"]  # type: ignore[attr-defined]
        assert np.ptp(arrow, axis=0).min() > 10
        ahead.append(np.angle((np.array(arrow[0]) - np.mean(arrow, axis=0)) @ [1, 1j], deg=True))
        radii = [np.linalg.norm(np.array(one) - np.mean(one, axis=0), axis=1).mean() for one in spots]
        assert np.ptp(radii) < 1  # of like size
    assert len({round(one) for one in ahead}) >= len(ahead) / 4
    assert np.ptp(ahead) > 30
