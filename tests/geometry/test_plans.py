"""Outlines seen from above: axes, overlaps, and what makes two plans alike."""

from __future__ import annotations

import numpy as np
import pytest

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import plans


def outline(x: float, y: float, width: float = 1.0, height: float = 1.0, turn_deg: float = 0.0) -> FloatArray:
    """(8, 2) as the corners of a box seen from above, each twice."""
    c, s = np.cos(np.radians(turn_deg)), np.sin(np.radians(turn_deg))
    corners = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * [width / 2, height / 2] @ np.array([[c, s], [-s, c]])
    return np.tile(corners + [x, y], (2, 1))


@pytest.mark.parametrize("pitch_deg", [-40.0, 0.0, 55.0])
def test_right_is_right_and_up_is_away_however_the_camera_is_tilted(pitch_deg: float) -> None:
    c, s = np.cos(np.radians(pitch_deg)), np.sin(np.radians(pitch_deg))
    camera_from_level = np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    axes = plans.find_plan_axes(camera_from_level @ [0, -1, 0])
    told = np.array([[3, 0, 0], [0, 0, 2], [0, 5, 0]]) @ camera_from_level.T @ axes.T  # right, ahead, below
    np.testing.assert_allclose(told, [[3, 0], [0, -2], [0, 0]], atol=1e-12)
    with pytest.raises(GeometryError, match="along gravity"):
        plans.find_plan_axes(np.array([0.0, 0.0, -1.0]))


def test_overlaps_are_those_of_the_pixels() -> None:
    rng = np.random.default_rng(0)
    grid = np.stack(np.meshgrid(np.linspace(-2, 2, 600), np.linspace(-2, 2, 600)), axis=-1)
    for _ in range(20):
        shapes = [(*rng.uniform(-0.6, 0.6, 2), *rng.uniform(0.3, 2, 2), rng.uniform(0, 180)) for _ in range(2)]
        inside = []
        for x, y, width, height, turn in shapes:
            along = np.radians(turn)
            off = grid - [x, y]
            u = off @ [np.cos(along), np.sin(along)]
            v = off @ [-np.sin(along), np.cos(along)]
            inside.append((np.abs(u) <= width / 2) & (np.abs(v) <= height / 2))
        both = (inside[0] & inside[1]).sum()
        found = plans.measure_overlap(*(outline(*shape) for shape in shapes))
        np.testing.assert_allclose(found[0], both / (inside[0] | inside[1]).sum(), atol=0.01)
        np.testing.assert_allclose(found[1], both / min(one.sum() for one in inside), atol=0.02)
    assert plans.measure_overlap(outline(0, 0), outline(3, 0)) == (0.0, 0.0)
    with pytest.raises(GeometryError, match="no area"):
        plans.measure_overlap(outline(0, 0, 0.0), outline(0, 0))


def test_plans_are_alike_wherever_they_are_drawn() -> None:
    plan = np.stack([outline(0, 0, 4, 2), outline(3, 1, 1, 1), outline(-3, 2, 1, 2)])
    assert plans.compare_plans(plan, plan + [7.0, -3.0]) == pytest.approx(1)
    moved = plan.copy()
    moved[1] += [0.0, 5.0]  # the others are where they were, though the middle of all is not
    assert plans.compare_plans(plan, moved) == pytest.approx(2 / 3)
    exchanged = plans.exchange_places(plan, 0, 1)
    np.testing.assert_allclose(exchanged.mean(axis=1), plan.mean(axis=1)[[1, 0, 2]])
    np.testing.assert_allclose(np.ptp(exchanged, axis=1), np.ptp(plan, axis=1))
    assert plans.measure_shift(plan, plan + 9.0) == pytest.approx(0)
    assert plans.measure_shift(plan, -plan) == pytest.approx(2)
    assert plans.measure_crowding(plan) == 0
    assert plans.measure_crowding(np.stack([outline(0, 0, 2, 2), outline(1, 0)])) == pytest.approx(0.5)


@pytest.mark.parametrize("turn_deg", [0.0, 20.0, 45.0, 77.0])
def test_an_outline_is_as_wide_as_its_narrow_side(turn_deg: float) -> None:
    assert plans.measure_width(outline(3, 4, 5, 0.7, turn_deg)) == pytest.approx(0.7)
    inside = outline(0, 0, 2, 1, turn_deg)[:4] * np.random.default_rng(0).uniform(0, 1, (500, 1, 1))
    points = np.concatenate([inside.reshape(-1, 2), outline(0, 0, 2, 1, turn_deg)])
    assert plans.measure_overlap(plans.find_outline(points), outline(0, 0, 2, 1, turn_deg))[0] == pytest.approx(1)
