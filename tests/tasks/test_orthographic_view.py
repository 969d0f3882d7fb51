"""Drawings of framed objects from above: what is right, what is wrong, and what a reader of the drawings sees."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from tests.quality.invariance_room import SETTINGS, Room, measured, options_of, plan_of
from tests.small_room import small_view
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import plans
from vgbench_gen.pipeline.question import make_question
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.store import pictures
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.drawings import MIRROR, SIDE_PX, DrawingTask
from vgbench_gen.tasks.kind import MARK_COLORS
from vgbench_gen.tasks.orthographic_view import ArrangementEvidence

NAME = "orthographic_view"


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Room:
    return measured(tmp_path_factory.mktemp("room"), [NAME, "camera_parameters"])


def off_middle(plan: FloatArray) -> FloatArray:
    return np.asarray(plan.mean(axis=1) - SIDE_PX / 2)


def test_what_is_right_of_the_camera_is_drawn_right_and_what_is_ahead_is_drawn_up(room: Room) -> None:
    for fact in room.facts[NAME]:
        seen, drawn = ArrangementEvidence.of(fact.truth_candidate), off_middle(fact.truth_candidate.value)
        centers = np.stack([one.corners_m.mean(axis=0) for one in seen.objects])
        level = centers - np.outer(centers @ seen.up, seen.up)
        for i, j in combinations(range(len(centers)), 2):
            gap_px, gap_m = drawn[i] - drawn[j], level[i] - level[j]
            assert np.linalg.norm(gap_px) == pytest.approx(np.linalg.norm(gap_m) * seen.px_per_m, abs=1.5)
            assert gap_px[0] == pytest.approx(gap_m[0] * seen.px_per_m, abs=1.5)  # cameras of the room have no roll
            assert abs(gap_px[1]) < 2 or np.sign(gap_px[1]) == -np.sign(gap_m[2])


def test_wrong_drawings_are_mirrored_and_turned_or_exchanged_and_both(room: Room) -> None:
    task, changes = tasks[NAME], Counter[str]()
    for fact in room.facts[NAME]:
        for seed in range(8):
            found = task.ladder(fact, 4, np.random.default_rng(seed))
            assert found is not None
            members, place = found
            assert members[place] is fact.truth_candidate
            (truth, first, second, both) = (off_middle(one.value) for one in members)
            np.testing.assert_allclose(first, truth @ MIRROR, atol=1)
            np.testing.assert_allclose(both, second @ MIRROR, atol=1)
            changes["turned" if np.allclose(second, -truth, atol=1) else "exchanged"] += 1
            assert task.pair_margins(members, fact)[0][np.triu_indices(4, 1)].min() >= 1
            for one in members:
                assert np.ptp(one.value, axis=1).ravel() == pytest.approx(
                    np.ptp(members[0].value, axis=1).ravel(), abs=2
                )
                assert plans.measure_crowding(one.value) <= 0.06
    assert min(changes.values()) >= 0.2 * sum(changes.values())


def test_wide_objects_stand_near_as_often_as_far_off() -> None:
    for seed in range(8):
        near = []
        for one in tasks[NAME].drafts(small_view(grid=True), np.random.default_rng(seed), 4):
            if isinstance(one, Fact):
                plan = one.truth_candidate.value
                near.append(bool(np.ptp(plan, axis=1)[:, 0] @ off_middle(plan)[:, 1] > 0))
        assert sorted(near) == [False, False, True, True]


def test_drawings_hold_the_outlines_in_the_colors_of_the_frames(room: Room) -> None:
    task = tasks[NAME]
    for fact in room.facts[NAME]:
        options = options_of(fact)
        shown = task.choice(fact, options, np.random.default_rng(0)).pictures
        frames = [(op["rect"], op["color"]) for op in shown[0].ops]
        assert frames == list(zip(fact.truth_candidate.show.values(), MARK_COLORS, strict=False))
        for option, picture in zip(options.options, shown[1:], strict=True):
            image = room.image(picture)
            assert image.shape == (SIDE_PX, SIDE_PX, 3)
            for outline, color in zip(option.value, MARK_COLORS, strict=False):
                v, u = np.nonzero((image == COLORS[color]).all(axis=2))
                drawn = plans.find_outline(np.stack([u, v], axis=-1).astype(float))
                shared, inside = plans.measure_overlap(drawn, outline)
                assert shared > 0.5  # dark outlines cover the rest of a narrow one
                assert inside > 0.98


def test_rows_whose_drawings_are_exchanged_are_found(room: Room) -> None:
    fact = room.facts[NAME][0]
    made = make_question(fact, options_of(fact), plan_of(fact), tasks[NAME], SETTINGS)
    first, *drawn = made.pictures
    wrong = replace(made, pictures=(first, *drawn[1:], drawn[0]))
    for asked, found in ((made, set()), (wrong, {"option_text"})):
        (row,) = question_rows(asked, SETTINGS, PictureCache(None, room.media))
        problems = verify_item(row, [room.media.get(name) for name in row.images], Gates())
        assert {problem.check for problem in problems} == found


def test_a_box_that_is_not_where_things_are_measured_has_no_second_route(room: Room) -> None:
    task, view = tasks[NAME], small_view(grid=True)
    assert isinstance(task, DrawingTask)
    fact = room.facts[NAME][0]
    moved = fact.truth_candidate.value + np.array(
        [[[40.0, 0.0]]] + [[[0.0, 0.0]]] * (len(fact.truth_candidate.value) - 1)
    )
    assert task.agreement(task.recheck(fact, view), fact) <= 1
    assert (
        task.agreement(
            task.recheck(fact, view), replace(fact, candidates=(replace(fact.truth_candidate, value=moved),), truth=0)
        )
        > 1
    )
    assert pictures.find_size(
        task.choice(fact, options_of(fact), np.random.default_rng(0)).pictures[1], (320, 240)
    ) == (SIDE_PX, SIDE_PX)
