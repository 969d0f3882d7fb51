"""The floor of the room that frames of a scene show, by two routes: by labelled walls, and by what depth looks over."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import boxes, floors
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._objects import is_bounded, is_structural
from vgbench_gen.tasks._sightings import SEEN_MIN, get_sightings

TURNS_DEG = (0.0, 17.0, 30.0)  # of the second route's grid
_SIDES = ("wall", "door", "window", "curtain", "blinds")  # of a room


def find_axes(view: SceneView, rows: Sequence[int]) -> FloatArray:
    """(3, 3) rows: two level axes, of which one is along the first image's rows, and up."""
    return floors.find_level_axes(np.asarray(view.up_world), view.frames[rows[0]].world_from_camera[:3, 0])


def find_corners(view: SceneView, rows: Sequence[int]) -> tuple[FloatArray, float, float]:
    """(corners (N, 3) of the floor in the world, meters; shares as of `measure_closed` and `find_floor`).

    Raises:
        GeometryError: the walls that these frames show enclose no room.
    """
    found, axes = get_sightings(view), find_axes(view, rows)

    def see(*labels: str) -> FloatArray:
        named = [k for k, one in enumerate(found.labels) if (one in labels if labels else _stands(one))]
        return found.list_seen_m(rows, named) @ axes.T

    walls, ground, sides = see("wall"), see("floor"), see(*_SIDES)
    surface = np.concatenate([ground, see("ceiling"), see()])
    corners, sure = floors.find_floor(walls[:, :2], surface[:, :2])
    level_m = np.full(len(corners), np.median((ground if len(ground) else walls)[:, 2]))
    return np.column_stack([corners, level_m]) @ axes, floors.measure_closed(corners, sides[:, :2]), sure


def measure_overlooked_m2(view: SceneView, rows: Sequence[int]) -> FloatArray:
    """(turns,) by turned grids: floor over which these frames look, or on which stands what they show."""
    found, axes = get_sightings(view), find_axes(view, rows)[:2]
    looks = []
    for row in rows:
        pixels = found.pixels[row]  # what has no label may lie behind a window
        looks.append((axes @ view.frames[row].world_from_camera[:3, 3], pixels.points_m[pixels.owners >= 0] @ axes.T))
    shown = found.shares[rows].max(axis=0) >= SEEN_MIN
    things = [
        boxes.corners(o.box) @ axes.T for k, o in enumerate(view.objects) if shown[k] and _stands(found.labels[k])
    ]
    return np.array([floors.fill_floor_m2(looks, things, turn) for turn in np.radians(TURNS_DEG)])


def _stands(label: str) -> bool:
    """Whether things of a label stand in a room, and not in its walls."""
    return not is_structural(label) and is_bounded(label)
