"""Sizes, heights, depths and rectangles of framed things, where a hasty measure of them gives another answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.quality.invariance_room import measured, options_of
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks._regions import RegionEvidence
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.box_match import MORE_MAX, MatchEvidence, compare_rects
from vgbench_gen.tasks.depth_order import RegionsEvidence
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import UprightPairEvidence


def decide(name: str, seen: object) -> str:
    """The label; "" where it is not decided."""
    task = tasks[name]
    assert isinstance(task, LabelTask)
    value, kept = task.settle(task.value(seen))
    return task.labels[int(value[0])] if kept["decided"] >= 1 else ""


def look_at(sides_m: FloatArray, centers_m: FloatArray, heading: FloatArray, camera: Rotation) -> UprightPairEvidence:
    """Two boxes (2, 3), turned about the vertical z by `heading` (2,) degrees, in the frame of a camera."""
    made = {}
    for name, sides, center, turn in zip("ab", sides_m, centers_m, heading, strict=True):
        box = OrientedBox(center, sides, Rotation.from_euler("z", turn, degrees=True).as_matrix())
        corners = camera.inv().apply(boxes.corners(box))
        made[name] = ObjectEvidence(instance_id=name, label=name, corners_m=corners, visible=1.0)
    return UprightPairEvidence(**made, up=camera.inv().apply([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("seed", range(6))
def test_the_taller_one_is_so_along_gravity_however_long_its_sides_are_and_the_camera_is_held(seed: int) -> None:
    rng = np.random.default_rng(seed)
    camera, heading, centers_m = Rotation.random(random_state=seed), rng.uniform(0, 360, 2), rng.uniform(-3, 3, (2, 3))
    long_low, small_high = [2.5, 1.8, 0.5], [0.2, 0.3, 0.7]
    assert decide("size_comparison", look_at(np.array([long_low, small_high]), centers_m, heading, camera)) == "blue"
    alike = np.array([[0.3, 0.4, 0.60], [2.0, 1.0, 0.75]])  # a fourth taller
    assert decide("size_comparison", look_at(alike, centers_m, heading, camera)) == ""


@pytest.mark.parametrize("seed", range(6))
def test_the_higher_top_is_so_along_gravity_whatever_stands_lower_in_the_image(seed: int) -> None:
    camera, heading = Rotation.random(random_state=seed), np.array([20.0 * seed, 70.0])
    sides_m = np.array([[1.0, 0.5, 0.4], [0.4, 0.8, 1.6]])
    centers_m = np.array([[3.0, 1.0, 1.6], [-1.0, 2.0, 0.8]])  # tops at 1.8 and 1.6 m
    assert decide("height_comparison", look_at(sides_m, centers_m, heading, camera)) == "orange"
    assert decide("height_comparison", look_at(sides_m, centers_m - [[0, 0, 0.12], [0, 0, 0]], heading, camera)) == ""


def test_depths_are_those_of_half_of_a_region_and_not_of_its_nearest_part() -> None:
    def region(nearest_m: float, median_m: float) -> RegionEvidence:
        quantiles = np.interp(range(7), [0, 3, 6], [nearest_m, median_m, median_m + 0.05])
        return RegionEvidence(mean_m=nearest_m, quantiles_m=quantiles, valid=1.0, blocks=[])

    seen = RegionsEvidence(a=region(0.5, 3.0), b=region(1.9, 2.0), c=region(0.9, 2.5))
    assert decide("depth_order", seen) == "blue_yellow_orange"
    assert decide("depth_order", seen.model_copy(update={"c": region(0.9, 2.15)})) == ""  # hardly behind b


def test_the_right_rectangle_is_as_often_the_one_in_another_place_and_of_another_size(
    tmp_path: Path,
) -> None:
    ranks = np.zeros((3, 4), int)
    for fact in measured(tmp_path, ["box_match", "camera_parameters"]).facts["box_match"]:
        options = options_of(fact)
        right, *wrong = sorted(options.options, key=lambda one: one is not fact.truth_candidate)
        first, second = (np.tile([fact.cameras[f]["width"], fact.cameras[f]["height"]], 2) for f in fact.frame_ids)
        rects = np.array([one.show["rect"] for one in (right, *wrong)]) / second
        beside = compare_rects(np.array(right.show["query"]) / first, rects)[:, 2:5]
        ranks[np.arange(3), (beside[0] > beside[1:]).sum(axis=0)] += 1
        kept = [MatchEvidence.of(one) for one in (right, *wrong)]
        assert [one.seen.instance_id == one.query.instance_id for one in kept] == [True, False, False, False]
    assert ranks.sum() >= 12, ranks
    assert np.ptp(ranks, axis=1).max() <= MORE_MAX, ranks
