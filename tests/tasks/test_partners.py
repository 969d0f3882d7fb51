"""The other side of a question: inverse pose, inverse homography, B to A. Held to scipy, OpenCV and the pixels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import RigidTransform

from tests.tasks import object_scenes, two_view_scenes
from tests.tasks.two_view_scenes import with_pictures
from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.distractors.base import OptionSet, set_problem, strategies
from vgbench_gen.pipeline.measure import measure_task
from vgbench_gen.pipeline.question import turn_to_other_side
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store import pictures
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence
from vgbench_gen.tasks.base import Task
from vgbench_gen.tasks.homography_to_matrix import HomographyToMatrix
from vgbench_gen.tasks.object_distance import ObjectDistance
from vgbench_gen.tasks.relative_pose import RelativePose
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.numbers import parse_numbers
from vgbench_gen.text.render import load_phrasings, render

_IN_MATRICES = Gates.model_validate({section: {"notation": "matrix"} for section in ("relative_pose", "homography")})
TASKS: list[Task] = [RelativePose(), HomographyToMatrix(), ObjectDistance()]


def view_for(task: Task) -> SceneView:
    return object_scenes.room_view() if task.name == "object_distance" else two_view_scenes.room_view()


@cache
def measured(task: Task) -> list[Fact]:
    view = view_for(task)
    facts, _ = measure_task(task, view, 0, 8)
    assert len(facts) >= 3
    return [with_pictures(fact, view) for fact in facts]


def other(task: Task, fact: Fact) -> Fact:
    partner = task.counterpart(fact)
    assert partner is not None
    return partner


class Side(NamedTuple):
    fact: Fact
    options: OptionSet


def questions(task: Task) -> list[tuple[Side, Side]]:
    """Multi-choice questions from both sides, as far as their options may be asked from both."""
    found = []
    for fact in measured(task):
        try:
            options = strategies["set_first"].options(fact, task, rng_for(1, fact.key))
        except TooFewOptionsError:
            continue
        turned = turn_to_other_side(fact, options, task)
        assert turned is not None
        assert turned[1] is not None
        if set_problem(turned[1].options, 4, turned[0], task) == "":
            found.append((Side(fact, options), Side(turned[0], turned[1])))
    assert found
    return found


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_two_partners_of_one_another_ask_the_same_again(task: Task) -> None:
    for fact in measured(task):
        there = other(task, fact)
        back = other(task, there)
        assert there.truth == back.truth == fact.truth
        assert [c.key for c in back.candidates] == [c.key for c in fact.candidates]
        assert [c.frame_ids for c in back.candidates] == [c.frame_ids for c in fact.candidates]
        assert [dict(c.show) for c in back.candidates] == [dict(c.show) for c in fact.candidates]
        for a, b in zip(back.candidates, fact.candidates, strict=True):
            np.testing.assert_array_equal(a.value, b.value)
        np.testing.assert_allclose(back.second_value, fact.second_value, atol=1e-9)
        assert back.evidence == fact.evidence
        assert task.recompute(there).shape == there.truth_candidate.value.shape
        assert task.agreement(task.recompute(there), there) <= 1


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.name)
def test_options_keep_their_order_and_the_truth_its_place(task: Task) -> None:
    for here, there in questions(task):
        a, b = here.options, there.options
        assert (a.truth, a.strategy) == (b.truth, b.strategy)
        assert b.options[b.truth] is there.fact.truth_candidate
        assert set_problem(b.options, len(b.options), there.fact, task) == ""
        texts = task.choice(there.fact, b, rng_for(0, "c")).options
        assert len(set(texts)) == 4
        for text, option in zip(texts, b.options, strict=True):
            assert text == task.print_option(option, there.fact)
            numbers = task.printed_numbers(option.value)
            assert not numbers.size or np.array_equal(parse_numbers(text), numbers)


def rigid(value: FloatArray) -> RigidTransform:
    return RigidTransform.from_matrix(np.concatenate([value, [[0, 0, 0, 1]]]))


def test_inverse_poses_by_scipy() -> None:
    task, view = RelativePose(_IN_MATRICES), view_for(RelativePose())
    for fact in measured(task):
        there = other(task, fact)
        for a, b in zip(fact.candidates, there.candidates, strict=True):
            first, second = (
                RigidTransform.from_matrix(view.frame(frame_id).world_from_camera) for frame_id in a.frame_ids
            )
            assert b.frame_ids == a.frame_ids[::-1]
            # From the poses themselves: turning the printed numbers around would be off by several times as much.
            np.testing.assert_allclose(b.value[:, :3], (first.inv() * second).as_matrix()[:3, :3], atol=5.01e-4)
            np.testing.assert_allclose(b.value[:, 3], (first.inv() * second).as_matrix()[:3, 3], atol=5.01e-3)
            points = np.array(a.evidence["points_m"])
            np.testing.assert_allclose(b.evidence["points_m"], (second.inv() * first).apply(points), atol=5.01e-4)
            assert b.evidence["camera_2"] == fact.cameras[a.frame_ids[0]]
        second_route = rigid(fact.second_value).inv().as_matrix()[:3]
        np.testing.assert_allclose(there.second_value, second_route, atol=5e-3)


def test_both_sides_of_a_pose_show_the_images_in_their_own_order() -> None:
    task = RelativePose()
    for here, there in questions(task):
        ours, theirs = (task.choice(q.fact, q.options, rng_for(0, "c")) for q in (here, there))
        assert theirs.pictures == ours.pictures[::-1]
        frames = here.fact.truth_candidate.frame_ids
        assert theirs.slots["fx"] == f"{here.fact.cameras[frames[1]]['K'][0]:.0f}"
        overlay = task.overlay(there.fact, RowEvidence.model_construct())
        seen = np.array(next(m.points_px for m in overlay[0] if m.kind == "point"))
        assert (seen > -0.5).all()


def mapped(points: FloatArray, H: FloatArray) -> FloatArray:
    return np.asarray(cv2.perspectiveTransform(points[:, None], H), dtype=np.float64)[:, 0]


def test_inverse_homographies_by_opencv() -> None:
    task = HomographyToMatrix()
    for fact in measured(task):
        there = other(task, fact)
        width, height = WarpedImageEvidence.of(fact).size
        grid = np.stack(np.meshgrid(np.linspace(0, width, 9), np.linspace(0, height, 7)), axis=-1).reshape(-1, 2)
        for a, b in zip(fact.candidates, there.candidates, strict=True):
            back, _ = cv2.findHomography(mapped(grid, a.value), grid)
            assert b.value[2, 2] == 1
            # Four significant digits of every entry.
            np.testing.assert_allclose(b.value, np.asarray(back), rtol=5.1e-4, atol=1e-7)
            assert np.median(np.linalg.norm(mapped(mapped(grid, a.value), b.value) - grid, axis=1)) < 0.5


def test_a_printed_inverse_that_is_too_coarse_is_not_asked() -> None:
    """Four digits of a strong perspective can put a corner off by more than the two routes may differ."""
    task = HomographyToMatrix()
    rounded_off = []
    for fact in measured(task):
        width, height = WarpedImageEvidence.of(fact).size
        corners = np.array([[0.0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
        for a, b in zip(fact.candidates, other(task, fact).candidates, strict=True):
            off = np.linalg.norm(mapped(mapped(corners, a.value), b.value) - corners, axis=1).max()
            rounded_off.append(off)
            if off > 0.5:
                assert not task.valid(b, fact)
            coarse = replace(b, value=np.round(b.value, 3))
            if np.linalg.norm(mapped(mapped(corners, a.value), coarse.value) - corners, axis=1).max() > 0.5:
                assert not task.valid(coarse, fact)
    assert np.median(rounded_off) < 0.25
    assert any(task.valid(b, fact) for fact in measured(task) for b in other(task, fact).candidates)


def test_the_partner_shows_both_images_in_the_other_order() -> None:
    """And its first image, warped by its matrix, is its second one where it shows that at all."""
    task, view = HomographyToMatrix(_IN_MATRICES), view_for(HomographyToMatrix())
    for here, there in questions(task)[:4]:
        image = pictures.decode(view.frame(here.fact.frame_ids[0]).base_image(wide=True)[0])
        forward = task.choice(here.fact, here.options, rng_for(0, "c"))
        shown = task.choice(there.fact, there.options, rng_for(0, "c"))
        assert shown.pictures == forward.pictures[::-1]
        first, second = (np.maximum(pictures.apply(picture, image), 1) for picture in shown.pictures)
        H, size = parse_numbers(shown.options[there.options.truth]).reshape(3, 3), (first.shape[1], first.shape[0])
        redrawn = cv2.warpPerspective(first, H, size, flags=cv2.INTER_LINEAR)
        content = cv2.erode((redrawn.min(axis=2) > 0).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
        assert 0.45 < content.mean() <= 1
        same, off = (cv2.blur(x, (5, 5))[content] for x in (second.astype(float), np.roll(second, 8, 1).astype(float)))
        seen = cv2.blur(redrawn.astype(float), (5, 5))[content]
        assert np.abs(seen - same).mean() < 0.3 * np.abs(seen - off).mean()


def words(task: Task, entry: Side) -> Sequence[str]:
    shown = task.choice(entry.fact, entry.options, rng_for(0, "c"))
    return [render(phrasing, shown.slots)[0] for phrasing in load_phrasings(task.name, "multi-choice", task.notation)]


def test_distances_name_the_objects_in_the_other_order() -> None:
    task = ObjectDistance()
    for here, there in questions(task):
        ours, theirs = (task.choice(q.fact, q.options, rng_for(0, "c")) for q in (here, there))
        assert theirs.pictures == ours.pictures
        assert theirs.options == ours.options
        drawn = {op["color"]: op["rect"] for op in theirs.pictures[0].ops}
        for asked, slots in ((here, ours.slots), (there, theirs.slots)):
            for side in "ab":
                assert asked.fact.truth_candidate.show[f"rect_{side}"] == drawn[slots[f"color_{side}"]]
        first, second = ours.slots["color_a"], ours.slots["color_b"]
        for one, two in zip(words(task, here), words(task, there), strict=True):
            assert one.index(first) < one.index(second)
            assert two.index(second) < two.index(first)
        assert task.open_ended(there.fact).answer == task.open_ended(here.fact).answer
        assert there.fact.evidence["margins"].keys() == here.fact.evidence["margins"].keys()


def test_the_second_route_works_from_the_other_side_as_well() -> None:
    """Verification turns an item back; measured the other way round, the answer is the same."""
    for task in TASKS:
        view = view_for(task)
        fact = measured(task)[0]
        there = other(task, fact)
        assert task.agreement(task.recheck(there, view), there) <= 1
        assert task.agreement(fact.second_value + 1, fact) > 1
