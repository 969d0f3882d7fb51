"""Exchanged images, renamed letters, another world frame and another image size leave every answer as analysis says
(`docs/validity.md#invariance`). Expectations come from numpy, OpenCV and
rays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from tests.quality.invariance_room import (
    NAMES,
    SETTINGS,
    Room,
    as_asked,
    both_sides,
    other_side,
    pairs,
)
from tests.scene_factory import render as ray_cast
from tests.small_room import small_room, small_view
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import LETTERS, Camera, Fact
from vgbench_gen.pipeline.question import QuestionRejectedError, make_question, put_truth_at
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.schema import FACTS
from vgbench_gen.tasks.base import tasks

# --- exchanged images and objects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("halved", [False, True])
def test_the_way_back_ends_where_a_ray_through_its_query_does(halved: bool, room: Room) -> None:
    """halved: the second image is half as large as the first."""
    scene = small_room()
    world_from = {frame.id: frame.world_from_camera for frame in scene.frames}
    for forward, other in pairs(room, "point_tracking"):
        fact = _with_half_the_second_image(forward) if halved else forward
        back = tasks["point_tracking"].counterpart(fact) if halved else other
        assert back is not None
        assert back.frame_ids == fact.frame_ids[::-1]
        here, there = (world_from[frame_id] for frame_id in back.frame_ids)
        first, second = (np.reshape(back.cameras[frame_id]["K"], (3, 3)) for frame_id in back.frame_ids)
        assert [back.evidence[name]["K"][0] for name in ("camera_1", "camera_2")] == [first[0, 0], second[0, 0]]
        truth = back.truth_candidate
        u, v = truth.show["query"]
        assert [u, v] == fact.truth_candidate.value.tolist()
        one = Camera(np.array([[first[0, 0], 0, first[0, 2] - u], [0, first[1, 1], first[1, 2] - v], [0, 0, 1]]), 1, 1)
        z = ray_cast(one, here, scene.solids, shade=False)[0][0, 0]
        assert truth.evidence["z_1_m"] == pytest.approx(z, abs=0.05)
        world = here @ np.append(np.linalg.solve(first, [u, v, 1.0]) * z, 1.0)
        into = np.linalg.inv(there)
        pixel, _ = cv2.projectPoints(world[:3], cv2.Rodrigues(into[:3, :3])[0], into[:3, 3], second, None)
        assert np.linalg.norm(pixel.ravel() - truth.value) < 2.0
        np.testing.assert_allclose(truth.evidence["point_2_m"], (into @ world)[:3], atol=0.05)
        assert tasks["point_tracking"].agreement(tasks["point_tracking"].recompute(as_asked(back)), back) <= 1
        assert back.evidence["diagonal_px"] == pytest.approx(400.0)


def _with_half_the_second_image(fact: Fact) -> Fact:
    record = fact.evidence["camera_2"]
    S = np.array([[0.5, 0, -0.25], [0, 0.5, -0.25], [0, 0, 1]])
    half = {"K": (S @ np.reshape(record["K"], (3, 3))).ravel().tolist(), "width": 160, "height": 120}
    members = [
        replace(
            c,
            value=np.floor((c.value + 0.5) * 0.5),
            evidence={**c.evidence, "uv_2_px": [0.5 * u - 0.25 for u in c.evidence["uv_2_px"]]},
        )
        for c in fact.candidates
        if c.show["query"] is not None
    ]
    changed = {**fact.evidence, "camera_2": half, "diagonal_px": 200.0}
    cameras = {**fact.cameras, fact.frame_ids[1]: half}
    return replace(fact, candidates=tuple(members), evidence=changed, cameras=cameras)


def test_tracking_back_is_measured_in_its_own_direction(room: Room) -> None:
    task, view = tasks["point_tracking"], small_view()
    kept = 0
    for fact, back in pairs(room, "point_tracking"):
        assert task.agreement(task.recheck(back, view), back) <= 1
        np.testing.assert_allclose(task.recheck(back, view), back.second_value, atol=1e-9)
        assert task.agreement(task.recompute(as_asked(back)), back) <= 1
        for member, turned in zip(fact.candidates, back.candidates, strict=True):
            if "same_pixel_of" in member.show:
                # The decoy at the query's own pixel is one again, seen from the other image.
                if task.valid(turned, back):
                    assert turned.value.tolist() == back.truth_candidate.show["query"]
                    assert turned.evidence["point_2_m"][2] == pytest.approx(
                        view.frame(fact.frame_ids[0]).depth_at(turned.value), abs=1e-3
                    )
            elif member.show["query"] is None:
                # A wrong option has a place of its own in each image.
                assert turned.value.tolist() == member.evidence["uv_1_px"]
                assert turned.evidence["uv_1_px"] == member.value.tolist()
                z_m = view.frame(fact.frame_ids[0]).depth_at(turned.value)
                assert turned.evidence["point_2_m"][2] == pytest.approx(z_m, abs=1e-3)
            else:
                assert turned.show["query"] == member.value.tolist()
                # The query was a whole pixel, and so is its place in image 2; it comes back to within both roundings.
                assert np.abs(turned.value - member.show["query"]).max() <= 2
        kept += both_sides(fact)[1] is not None
    assert kept >= 2


@pytest.mark.parametrize("name", [name for name in NAMES if tasks[name].counterpart_kind])
def test_two_partners_of_one_another_ask_the_same(name: str, room: Room) -> None:
    """Numbers that were rounded on the way, pixels and millimeters, may be off by that."""
    pixels = 2.0 if name == "point_tracking" else 1e-9
    for fact, other in pairs(room, name):
        assert FACTS.to_row(other) != FACTS.to_row(fact)
        again = tasks[name].counterpart(other)
        assert again is not None
        assert (again.frame_ids, again.truth, again.pictures) == (fact.frame_ids, fact.truth, fact.pictures)
        np.testing.assert_allclose(again.second_value, fact.second_value, atol=1e-9)
        assert _close(again.evidence, fact.evidence, pixels)
        assert _close(again.cameras, fact.cameras, pixels)
        for member, original in zip(again.candidates, fact.candidates, strict=True):
            np.testing.assert_allclose(member.value, original.value, atol=pixels)
            assert _close(member.show, original.show, pixels)
            kept = {name: value for name, value in original.evidence.items() if name != "look"}  # of image 2 alone
            assert _close(member.evidence, kept, pixels)


def _close(again: Any, before: Any, pixels: float, key: str = "") -> bool:
    """Whether all that was stored before is stored again; a fact may have learnt more."""
    metres = max(5e-3, pixels * 0.01)  # a pixel is 1 cm wide at 3 m
    if isinstance(before, Mapping):
        return set(before) <= set(again) and all(_close(again[k], before[k], pixels, k) for k in before)
    if isinstance(before, list | tuple):
        return len(again) == len(before) and all(_close(a, b, pixels, key) for a, b in zip(again, before, strict=True))
    if isinstance(before, int | float):
        return bool(abs(again - before) <= (pixels if key in ("query", "uv_2_px", "motion_d") else metres))
    return bool(again == before)


def test_exchanged_images_have_the_inverse_and_exchanged_objects_the_same_distance(room: Room) -> None:
    world_from = {frame.id: frame.world_from_camera for frame in small_room().frames}
    for _, back in pairs(room, "relative_pose"):
        for member in back.candidates:
            first, second = (world_from[frame_id] for frame_id in member.frame_ids)
            exact = (np.linalg.inv(second) @ first)[:3]
            seen, told = (
                np.column_stack([pose[:, :3].T, -pose[:, :3].T @ pose[:, 3]]) for pose in (exact, member.value)
            )
            np.testing.assert_allclose(told, seen, atol=0.51e-2)
    for fact, back in pairs(room, "homography_to_matrix"):
        inverse = np.linalg.inv(fact.truth_candidate.value)
        right, bottom = np.array(fact.evidence["size"]) - 1
        corners = np.array([[[0, 0]], [[right, 0]], [[right, bottom]], [[0, bottom]]], np.float64)
        off = cv2.perspectiveTransform(corners, inverse) - cv2.perspectiveTransform(corners, back.truth_candidate.value)
        assert np.linalg.norm(off, axis=-1).mean() < 0.5
    for fact, back in pairs(room, "object_distance"):
        assert np.array_equal(back.truth_candidate.value, fact.truth_candidate.value)
        here, there = (f.truth_candidate.show for f in (fact, back))
        assert (here["rect_a"], here["rect_b"]) == (there["rect_b"], there["rect_a"])


# --- renamed letters -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_renamed_letters_rename_the_answer_and_nothing_else(name: str, room: Room, tmp_path: Path) -> None:
    """Both sides of a question, under each letter, as finished rows that verification reads back."""
    cache = PictureCache(None, room.media)
    task = tasks[name]
    fact = next((f for f in room.facts[name] if both_sides(f)[1] is not None), room.facts[name][0])
    for entry in both_sides(fact):
        if entry is None or entry.options is None:
            continue
        texts: Counter[tuple[str, ...]] = Counter()
        told, shown = set(), set()
        for letter in range(len(LETTERS)):
            options = put_truth_at(entry.options, letter)
            (row,) = question_rows(make_question(entry.fact, options, entry.plan, task, SETTINGS), SETTINGS, cache)
            assert row.answer == LETTERS[letter]
            problems = verify_item(row, [room.media.get(image) for image in row.images], Gates())
            assert not problems, [str(problem) for problem in problems]
            texts[tuple(sorted(row.options))] += 1
            told.add(row.options[letter])
            shown.add((row.question, row.context, row.images))
            right = row.evidence["options"][letter]
            assert right["key"] == row.evidence["truth"]["key"]
            assert tuple(np.ravel(right["value"])) == row.answer_value
        assert len(texts) == 1
        # Options that are images are named by their place; all others by their content.
        if not all(text.startswith("image") for text in row.options):
            assert len(told) == 1
            assert len(shown) == 1
    assert tasks[name].counterpart_kind == "" or both_sides(fact)[1] is not None


@pytest.mark.parametrize("name", [n for n in NAMES if len(tasks[n].formats) > 1 and tasks[n].counterpart_kind])
def test_the_other_side_holds_in_every_form(name: str, room: Room) -> None:
    cache = PictureCache(None, room.media)
    for form in tasks[name].formats:
        if form == "multi-choice":
            continue
        written = 0
        for fact, _ in pairs(room, name):
            try:
                other = other_side(fact, form)
            except QuestionRejectedError:
                continue
            for row in question_rows(other, SETTINGS, cache):
                problems = verify_item(row, [room.media.get(image) for image in row.images], Gates())
                assert not problems, [str(problem) for problem in problems]
                written += 1
        assert written >= 2


# --- another image size --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["camera_parameters", "point_tracking"])
def test_a_rescaled_K_scales_the_recomputed_pixels(name: str, room: Room) -> None:
    """Bases twice as large: the same crop of one has the same camera; a tracked point goes twice as far."""
    D = np.array([[2, 0, 0.5], [0, 2, 0.5], [0, 0, 1]])
    for fact in room.facts[name]:
        truth, once = fact.truth_candidate, tasks[name].recompute(as_asked(fact))

        def twice(record: Mapping[str, Any]) -> dict[str, Any]:
            K = (D @ np.reshape(record["K"], (3, 3))).ravel().tolist()
            return {"K": K, "width": 2 * record["width"], "height": 2 * record["height"]}

        show = dict(truth.show)
        if name == "camera_parameters":
            show["rect"] = [2 * x for x in show["rect"]]
            cameras = {frame_id: twice(record) for frame_id, record in fact.cameras.items()}
            again = tasks[name].recompute(
                replace(fact, cameras=cameras, candidates=(replace(truth, show=show),), truth=0)
            )
            np.testing.assert_allclose(again, once, atol=1e-9)
        else:
            show["query"] = [2 * x + 0.5 for x in show["query"]]
            stored = {**fact.evidence, **{key: twice(fact.evidence[key]) for key in ("camera_1", "camera_2")}}
            again = tasks[name].recompute(
                replace(fact, evidence=stored, candidates=(replace(truth, show=show),), truth=0)
            )
            exact = np.array(truth.evidence["uv_2_px"])
            assert np.abs(again - (2 * exact + 0.5)).max() <= 0.5 + 1e-6
            assert np.abs(once - exact).max() <= 0.5 + 1e-6
