"""The floor of a room by its walls, and by what cameras look over."""

from __future__ import annotations

import numpy as np
import pytest

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import floors

BOX = np.array([[0, 0], [5, 0], [5, 4], [0, 4]], dtype=float)
CORNER = np.array([[0, 0], [5, 0], [5, 2], [3, 2], [3, 4], [0, 4]], dtype=float)  # 16 square meters
HIGH = np.linspace(0.1, 2.4, 8)


def draw_walls(corners: FloatArray, step_m: float = 0.08) -> FloatArray:
    ends = np.roll(corners, -1, axis=0)
    steps = [
        a + np.arange(0, 1, step_m / np.linalg.norm(b - a))[:, None] * (b - a)
        for a, b in zip(corners, ends, strict=True)
    ]
    return np.repeat(np.concatenate(steps), len(HIGH), axis=0)


def draw_floor(corners: FloatArray) -> FloatArray:
    """Spots of 10 cm."""
    spots = np.stack(np.meshgrid(np.arange(0.05, 5, 0.1), np.arange(0.05, 4, 0.1)), axis=-1).reshape(-1, 2)
    return spots if len(corners) == 4 else spots[(spots[:, 0] < 3) | (spots[:, 1] < 2)]


def measure(corners: FloatArray) -> float:
    return float(floors.measure_area_m2(np.column_stack([corners, np.zeros(len(corners))])))


@pytest.mark.parametrize("room", [BOX, CORNER])
@pytest.mark.parametrize("turn_deg", [0.0, 17.0, 30.0, 45.0, 89.7, 211.0])
def test_an_outline_is_the_same_however_the_world_is_turned_and_shifted(room: FloatArray, turn_deg: float) -> None:
    walls, seen = (
        floors.turn_plan(points, np.radians(turn_deg)) + [310.0, -47.0]
        for points in (draw_walls(room), draw_floor(room))
    )
    corners, sure = floors.find_floor(walls, seen)
    assert len(corners) == len(room)
    assert measure(corners) == pytest.approx(measure(room), rel=2e-3)
    assert sure == 1
    assert floors.measure_closed(corners, walls) == 1


def test_furniture_takes_nothing_from_the_floor() -> None:
    """A released generator counts free floor alone: a room of 8 square meters reads as 3.6."""
    seen = draw_floor(BOX)
    bare = (seen > [1.8, 1.2]).all(axis=1)
    assert measure(
        floors.find_floor(draw_walls(BOX), seen[bare | (np.arange(len(seen)) % 3 == 0)])[0]
    ) == pytest.approx(20, rel=2e-3)
    eye, end = np.array([2.5, 2.0]), draw_walls(BOX, 0.01)
    hidden = (end[:, 0] < 0.6) & (end[:, 1] > 0.68)  # by a bookcase that reaches the ceiling
    front = np.column_stack([np.full(200, 0.6), np.linspace(1, 4, 200)]).repeat(8, axis=0)
    look = [(eye, np.concatenate([end[~hidden], front]))]
    bookcase = np.array([[0, 1], [0.6, 1], [0.6, 4], [0, 4]])
    assert floors.fill_floor_m2(look, []) < 18.5
    assert floors.fill_floor_m2(look, [bookcase]) == pytest.approx(20, rel=0.02)


def test_noise_of_walls_and_the_depth_of_windows_move_the_outline_little() -> None:
    rng = np.random.default_rng(0)
    walls = draw_walls(BOX) + rng.normal(0, 0.015, draw_walls(BOX).shape)
    window = np.column_stack([np.linspace(1.5, 2.9, 40), np.full(40, 4.15)]).repeat(3, axis=0)
    sill = np.column_stack([np.linspace(1.5, 2.9, 40), np.full(40, 4.07)])
    corners, _ = floors.find_floor(np.concatenate([walls, window]), np.concatenate([draw_floor(BOX), sill]))
    assert measure(corners) == pytest.approx(20, rel=0.01)


def test_an_open_scan_is_no_closed_room() -> None:
    walls = draw_walls(BOX)
    gone = (walls[:, 0] > 1) & (walls[:, 0] < 4.9)
    corners, _ = floors.find_floor(np.concatenate([walls[~gone], [[0.0, 0.0]]]), draw_floor(BOX))
    assert floors.measure_closed(corners, walls[~gone]) < 0.7
    with pytest.raises(GeometryError, match="enclose no room"):
        floors.find_floor(walls[walls[:, 0] < 4.9][:, [0, 1]][walls[walls[:, 0] < 4.9][:, 1] < 0.01], draw_floor(BOX))


def test_what_lies_beyond_a_wall_is_in_doubt() -> None:
    beyond = draw_floor(BOX) + [5.0, 0.0]
    walls = np.concatenate([draw_walls(BOX), draw_walls(BOX) + [5.0, 0.0]])
    some = beyond[np.random.default_rng(1).random(len(beyond)) < 0.05]
    corners, sure = floors.find_floor(walls, np.concatenate([draw_floor(BOX), some]))
    assert measure(corners) == pytest.approx(20, rel=2e-3)
    assert sure < 0.95


def test_a_column_in_the_middle_is_refused() -> None:
    column = np.array([[2, 1.5], [3, 1.5], [3, 2.5], [2, 2.5]])
    seen = draw_floor(BOX)
    free = seen[~((seen > column[0]) & (seen < column[2])).all(axis=1)]
    with pytest.raises(GeometryError, match="middle of the floor"):
        floors.find_floor(np.concatenate([draw_walls(BOX), draw_walls(column)]), free)


def test_cells_are_the_same_on_turned_grids() -> None:
    eyes = (np.array([1.5, 1.0]), np.array([4.0, 1.0]), np.array([1.5, 3.0]))
    walls = draw_walls(CORNER, 0.01)
    look = [(eye, walls[[_sees(eye, wall) for wall in walls]]) for eye in eyes]
    areas = [floors.fill_floor_m2(look, [], np.radians(turn)) for turn in (0, 17, 30)]
    assert areas == pytest.approx([16] * 3, rel=0.03)


def _sees(eye: FloatArray, wall: FloatArray) -> bool:
    way = eye + np.linspace(0, 0.99, 100)[:, None] * (wall - eye)
    return not ((way[:, 0] > 3.001) & (way[:, 1] > 2.001)).any()
