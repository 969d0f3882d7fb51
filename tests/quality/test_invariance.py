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
from tests.small_room import small_room
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import ALPHABET
from vgbench_gen.pipeline.question import QuestionRejectedError, make_question, put_truth_at
from vgbench_gen.pipeline.rows import question_rows
from vgbench_gen.quality.verify import verify_item
from vgbench_gen.store.picture_cache import PictureCache
from vgbench_gen.store.schema import FACTS
from vgbench_gen.tasks.base import tasks

# --- exchanged images and objects ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if tasks[name].counterpart_kind])
def test_two_partners_of_one_another_ask_the_same(name: str, room: Room) -> None:
    for fact, other in pairs(room, name):
        assert FACTS.to_row(other) != FACTS.to_row(fact)
        again = tasks[name].counterpart(other)
        assert again is not None
        assert (again.frame_ids, again.truth, again.pictures) == (fact.frame_ids, fact.truth, fact.pictures)
        np.testing.assert_allclose(again.second_value, fact.second_value, atol=1e-9)
        assert _close(again.evidence, fact.evidence)
        assert _close(again.cameras, fact.cameras)
        for member, original in zip(again.candidates, fact.candidates, strict=True):
            np.testing.assert_allclose(member.value, original.value, atol=1e-9)
            assert _close(member.show, original.show)
            assert _close(member.evidence, original.evidence)


def _close(again: Any, before: Any) -> bool:
    """Whether all that was stored before is stored again, to 5 mm; a fact may have learnt more."""
    if isinstance(before, Mapping):
        return set(before) <= set(again) and all(_close(again[k], before[k]) for k in before)
    if isinstance(before, list | tuple):
        return len(again) == len(before) and all(_close(a, b) for a, b in zip(again, before, strict=True))
    if isinstance(before, int | float):
        return bool(abs(again - before) <= 5e-3)
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
        for letter in range(len(entry.options.options)):
            options = put_truth_at(entry.options, letter)
            (row,) = question_rows(make_question(entry.fact, options, entry.plan, task, SETTINGS), SETTINGS, cache)
            assert row.answer == ALPHABET[letter]
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
