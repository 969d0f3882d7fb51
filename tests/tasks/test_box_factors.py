"""Boxes that fill one rectangle: found by OpenCV to do so, each as likely beside the other, told apart."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import cv2
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.types import Camera, FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks._box_factors import (
    THICKNESS,
    YAW,
    BoxFamily,
    balance_chances,
    draw_box_sets,
    find_upright,
    fit_to_rect,
    make_family,
)
from vgbench_gen.tasks._box_pairs import compare_boxes, find_up, measure_footprint_gaps
from vgbench_gen.tasks.gates import BoxMargins

CAMERA = Camera(np.array([[600.0, 0, 320], [0, 600, 240], [0, 0, 1]]), 640, 480)
GATES = BoxMargins()
REACH_M = (0.4, 5.0)
UPRIGHT = 2


def standing(
    size: tuple[float, float, float], yaw_deg: float = 20.0, pitch_deg: float = 15.0, depth_m: float = 2.5
) -> OrientedBox:
    """A box on the ground, whose third axis is upright, seen by a camera that looks down by `pitch_deg`."""
    up = np.array([0.0, -np.cos(np.radians(pitch_deg)), -np.sin(np.radians(pitch_deg))])
    first = np.array([1.0, 0, 0])
    level = np.stack([first, np.cross(up, first), up], axis=1)
    turn = Rotation.from_euler("z", yaw_deg, degrees=True).as_matrix()
    return OrientedBox(np.array([0.2, 0.1, depth_m]), np.array(size), level @ turn, "camera")


BOXES = (standing((0.85, 0.5, 1.0), 10.0), standing((0.6, 0.5, 0.7), 5.0, pitch_deg=30.0))


def rect_of(box: OrientedBox) -> FloatArray:
    uv = cv2.projectPoints(boxes.corners(box), np.zeros(3), np.zeros(3), CAMERA.K, None)[0][:, 0]
    return np.concatenate([uv.min(axis=0), uv.max(axis=0)])


def family_of(box: OrientedBox) -> BoxFamily:
    return make_family(box, UPRIGHT, CAMERA, GATES)


def same(a: OrientedBox, b: OrientedBox) -> bool:
    """Whether two boxes have the same corners, in whatever order."""
    apart = np.linalg.norm(boxes.corners(a)[:, None] - boxes.corners(b), axis=2)
    return bool(apart.min(axis=1).max() < 1e-4)


def test_fitted_boxes_fill_the_rectangle_of_the_first_by_opencv() -> None:
    rng = np.random.default_rng(0)
    fits = 0
    for _ in range(40):
        first = standing((rng.uniform(0.2, 1.2), rng.uniform(0.2, 1.2), rng.uniform(0.2, 1.0)), rng.uniform(0, 180))
        others = [replace(standing((0.5, rng.uniform(0.3, 0.9), 0.4), rng.uniform(0, 180))) for _ in range(3)]
        found, logs = fit_to_rect([first, *others], UPRIGHT, CAMERA)
        assert np.allclose(logs[0], 0)
        assert same(found[0], first)
        for shape, box, scales in zip(others, found[1:], logs[1:], strict=True):
            if np.isnan(scales).any():
                continue
            fits += 1
            assert rect_of(box) == pytest.approx(rect_of(first), abs=0.01)
            assert box.center_m[2] == shape.center_m[2]
            assert np.array_equal(box.rotation, shape.rotation)
            assert box.size_m / shape.size_m == pytest.approx(np.exp([scales[0], scales[0], scales[1]]))
    assert fits > 60


def test_two_members_of_a_family_stand_beside_one_another_with_the_same_chance() -> None:
    """What makes the true value exchangeable: the set were as likely had the other box been the true one."""
    compared: Counter[str] = Counter()
    for box in (*BOXES, standing((0.5, 0.88, 1.2), 75.0)):
        family = family_of(box)
        for (part, other), chance in zip(family.others, family.chances.tolist(), strict=True):
            back = family_of(other)
            assert same(back.box, other)
            (found,) = (k for k, (name, one) in enumerate(back.others) if name == part and same(one, box))
            assert back.chances[found] == pytest.approx(chance, abs=0.005)
            compared[part] += 1
    assert compared.keys() == {YAW, THICKNESS}


def test_chances_of_sets_are_the_same_from_each_member_and_nearly_one_together() -> None:
    ring = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    chances = balance_chances(ring, 4)
    totals = [sum(c for c, members in zip(chances, ring, strict=True) if k in members) for k in range(4)]
    assert max(totals) <= 1 + 1e-9
    assert min(totals) > 0.95
    # The middle of three is in both sets, and shares its chance between them.
    assert balance_chances([(0, 1), (1, 2)], 3) == pytest.approx([0.5, 0.5], abs=0.01)
    assert balance_chances([], 2).shape == (0,)


def drawn(box: OrientedBox, draws: int = 200) -> list[tuple[str, list[OrientedBox]]]:
    family, found = family_of(box), []
    for seed in range(draws):
        try:
            part, others = next(draw_box_sets(family, GATES, REACH_M, np.random.default_rng(seed)))
        except TooFewOptionsError:
            continue
        found.append((part, [box, *others]))
    return found


def test_options_differ_in_the_parts_that_are_named_and_in_no_other() -> None:
    kinds = Counter[str]()
    for part, (truth, second, first, both) in (one for box in BOXES for one in drawn(box)):
        kinds[part] += 1
        up = find_up(truth.rotation[:, UPRIGHT])
        for other in (second, first, both):
            assert rect_of(other) == pytest.approx(rect_of(truth), abs=0.01)
        gaps = measure_footprint_gaps([truth, second, first, both], up)
        depths = np.log([one.center_m[2] for one in (truth, second, first, both)])
        assert depths == pytest.approx([depths[0], depths[0], depths[2], depths[2]])
        assert np.log(1.2) - 1e-9 <= abs(depths[2] - depths[0]) <= np.log(GATES.depth_step_max) + 1e-9
        assert gaps[0, 2] == pytest.approx(0, abs=1e-6)
        assert gaps[1, 3] == pytest.approx(0, abs=1e-6)
        assert gaps[0, 1] >= GATES.footprint_gap_min - 1e-9
        level = np.abs(second.rotation[:, 0] @ truth.rotation[:, 0])
        turned_deg = np.degrees(np.arccos(np.clip(level, 0, 1)))
        shape = [np.sort(one.size_m[:2])[1] / np.sort(one.size_m[:2])[0] for one in (truth, second)]
        if part == THICKNESS:
            assert min(turned_deg, 90 - turned_deg) == pytest.approx(0, abs=1e-3)
        else:
            assert shape[1] == pytest.approx(shape[0])
            assert any(turned_deg == pytest.approx(angle, abs=1e-3) for angle in (30.0, 60.0))
    assert len(kinds) == 2


def test_depth_goes_up_and_down_alike_and_stays_in_reach() -> None:
    ratios = [found[2].center_m[2] / found[0].center_m[2] for _, found in drawn(standing((0.5, 0.3, 0.3)), 400)]
    assert 0.4 < np.mean(np.array(ratios) > 1) < 0.6
    far = [found[2].center_m[2] for _, found in drawn(standing((0.8, 0.5, 0.5), depth_m=4.6))]
    assert far
    assert max(far) <= REACH_M[1]


def test_a_square_footprint_is_told_by_its_length_along_the_view_alone_or_not_at_all() -> None:
    assert {part for part, _ in drawn(standing((0.5, 0.5, 0.6), 5.0, 30.0))} == {THICKNESS}
    corner = family_of(standing((0.5, 0.5, 0.6), 45.0))
    assert corner.missing == "near_square"
    with pytest.raises(TooFewOptionsError, match="near_square"):
        corner.draw(0.0)


def test_lengths_along_the_view_are_asked_only_where_the_camera_looks_down_on_them() -> None:
    level = replace(standing((0.9, 0.5, 0.5)), rotation=np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]]))
    assert {part for part, _ in drawn(level)} <= {YAW}


def test_an_upright_axis_is_found_where_gravity_is_known_and_the_box_does_not_lean() -> None:
    box = OrientedBox(np.zeros(3), np.ones(3), np.eye(3))
    assert find_upright(box, np.array([0, -1.0, 0])) == 1
    assert find_upright(box, None) is None
    leaning = replace(box, rotation=Rotation.from_euler("x", 20, degrees=True).as_matrix())
    assert find_upright(leaning, np.array([0, -1.0, 0])) is None


def test_footprints_differ_by_ratio_and_by_angle_and_not_by_what_cannot_be_seen() -> None:
    up = np.array([0.0, -1, 0])

    def gap(a: tuple[float, float, float], b: tuple[float, float, float]) -> float:
        found = [
            OrientedBox(
                np.array([0, 0, 2]), np.array([x, 0.5, z]), Rotation.from_euler("y", t, degrees=True).as_matrix()
            )
            for x, z, t in (a, b)
        ]
        return float(measure_footprint_gaps(found, up)[0, 1])

    assert gap((1, 0.5, 0), (1, 0.25, 0)) == pytest.approx(np.log(2))
    assert gap((1, 0.5, 0), (0.5, 1, 0)) == pytest.approx(np.log(4))
    assert gap((1, 0.5, 0), (0.5, 1, 90)) == pytest.approx(0, abs=1e-9)  # the same box, its axes named otherwise
    assert gap((1, 0.5, 10), (1, 0.5, 190)) == pytest.approx(0, abs=1e-9)
    assert gap((1, 0.5, 0), (1, 0.5, 30)) == pytest.approx(np.log(2))  # a chord of 60 degrees
    assert gap((1, 0.99, 0), (1, 0.99, 45)) < 0.02


def test_boxes_at_one_depth_are_compared_by_footprints_and_others_by_overlap() -> None:
    up = np.array([0.0, -1, 0])
    long_x, long_z = (boxes.corners(OrientedBox(np.array([0, 0, 2.0]), np.array(size), np.eye(3), "camera"))
                      for size in ([1.0, 0.5, 0.6], [0.6, 0.5, 1.0]))  # fmt: skip
    margins, ceilings = compare_boxes([long_x, long_z], up, GATES)
    assert margins[0, 1] == pytest.approx(2 * np.log(1 / 0.6) / GATES.footprint_gap_min)
    assert ceilings[0, 1] == 0
    unknown, _ = compare_boxes([long_x, long_z], None, GATES)
    overlap = 0.36 / (2 * 0.6 - 0.36)
    assert unknown[0, 1] == pytest.approx((1 - overlap) / 0.85)
    elsewhere, _ = compare_boxes([long_x, long_z * 1.1], up, GATES)
    assert elsewhere[0, 1] < 1
