"""What makes two questions alike beyond their text: poses, looks, targets; and what a scene or a pair may hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.text_questions import question
from tests.store.examples import textured
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray
from vgbench_gen.pipeline.recipe import Limits
from vgbench_gen.quality.questions import Question
from vgbench_gen.quality.uniqueness import (
    ItemAppearance,
    audit_scene_shares,
    find_near_duplicates,
    hash_picture,
)
from vgbench_gen.store.pictures import encode_jpeg


def pose(x_m: float, turn_deg: float = 0.0) -> FloatArray:
    found = np.eye(4)
    c, s = np.cos(np.radians(turn_deg)), np.sin(np.radians(turn_deg))
    found[:3, :3] = [[c, 0, s], [0, 1, 0], [-s, 0, c]]
    found[0, 3] = x_m
    return found


def sight(name: str, frames: dict[str, FloatArray], **changes: object) -> ItemAppearance:
    asked = question(name, scene="scannet/scene0000_00")
    answer = float(len(name)), float(ord(name[0]))
    base = ItemAppearance(asked, tuple(sorted(frames)), frames, {}, f"target {name}", answer, False)
    return replace(base, **changes)  # type: ignore[arg-type]


def renamed(sight: ItemAppearance, **changes: object) -> ItemAppearance:
    return replace(sight, question=replace(sight.question, **changes))  # type: ignore[arg-type]


def count(found: dict[str, list[str]], name: str) -> int:
    return len(found.get(f"near by {name}", []))


@pytest.mark.parametrize(("x_m", "turn_deg", "pairs"), [(0.1, 2.0, 1), (0.2, 2.0, 0), (0.1, 6.0, 0), (0.0, 0.0, 1)])
def test_frames_of_two_groups_differ_in_place_or_direction(x_m: float, turn_deg: float, pairs: int) -> None:
    found = find_near_duplicates([sight("a", {"1": pose(0)}), sight("b", {"2": pose(x_m, turn_deg)})], Gates())
    assert found == ({"near by pose": ["b"]} if pairs else {})


def test_pairs_of_frames_are_compared_in_both_orders() -> None:
    a = sight("a", {"1": pose(0), "2": pose(1)}, pair_is_target=True)
    turned = sight("b", {"3": pose(1.05), "4": pose(0.05)}, pair_is_target=True)
    half = sight("c", {"5": pose(0.05), "6": pose(2)}, pair_is_target=True)
    assert count(find_near_duplicates([a, turned], Gates()), "pose") == 1
    assert count(find_near_duplicates([a, half], Gates()), "pose") == 0
    assert count(find_near_duplicates([a, renamed(a, id="d", group="another")], Gates()), "target") == 1
    # Twins and other forms of one truth are no duplicates of it; nor are other scenes and tasks.
    assert count(find_near_duplicates([a, renamed(a, id="d")], Gates()), "target") == 0
    assert count(find_near_duplicates([a, renamed(turned, scene="other")], Gates()), "pose") == 0


def test_what_looks_alike_and_has_one_answer() -> None:
    picture = encode_jpeg(textured(320, 240, 1))
    brighter = encode_jpeg((textured(320, 240, 1).astype(float) * 1.1).clip(0, 255).astype(np.uint8))
    other = encode_jpeg(textured(320, 240, 2))
    one, same, far = (hash_picture(data) for data in (picture, brighter, other))
    assert one is not None
    assert same is not None
    assert far is not None
    assert (one ^ same).bit_count() <= 6 < (one ^ far).bit_count()
    assert hash_picture(b"no picture") is None
    a = sight("a", {"1": pose(0)}, poses={}, hashes={"1": one}, answer=(1.5,))
    b = sight("b", {"2": pose(0)}, poses={}, hashes={"2": same}, answer=(1.5,))
    assert count(find_near_duplicates([a, b], Gates()), "look") == 1
    assert count(find_near_duplicates([a, replace(b, answer=(1.6,))], Gates()), "look") == 0
    assert count(find_near_duplicates([a, replace(b, hashes={"2": far})], Gates()), "look") == 0


def questions(per_scene: list[int]) -> list[Question]:
    return [
        Question(f"{scene}-{k}", f"{scene}-{k}", f"ca1m/{scene}", "ca1m", "task", "", "open-ended", "", "", (), -1)
        for scene, number in enumerate(per_scene)
        for k in range(number)
    ]


def test_the_fullest_scene() -> None:
    even, heavy, most_of = questions([10] * 30), questions([10] * 29 + [40]), Limits(scene_share=0.03).scene_items
    (line,) = audit_scene_shares(even, {"ca1m": 30}, most_of, True)
    assert (line.verdict, round(line.value, 1), round(line.limit, 1)) == ("passed", 3.3, 5.0)
    (line,) = audit_scene_shares(heavy, {"ca1m": 30}, most_of, True)
    assert (line.verdict, line.name, len(line.items)) == ("failed", "ca1m/29", 40)
    (line,) = audit_scene_shares(heavy, {"ca1m": 30}, most_of, False)
    assert line.verdict == "reported"
