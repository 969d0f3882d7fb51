"""Whether a box around scanned surface holds the whole object.

ScanNet and ScanNet++ annotate surface, not volume: a cabinet against a wall becomes a thin sheet, and where the loader
fits the box (ScanNet), a chair behind a table becomes its backrest. Questions speak of the whole object, so such boxes
must not be asked about.
"""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.gates import ObjectGates
from vgbench_gen.core.types import OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.cameras import Rect
from vgbench_gen.scenes.base import BoxSource
from vgbench_gen.scenes.view import ViewFrame
from vgbench_gen.tasks.presentation import Margins

_BAND = 0.06  # of the rectangle's height and width, just outside of it
_BAND_MIN_PX = 5.0  # least width of the band
_GRID = 24  # points along a side; three rows across the band


def find_extent_problem(
    frame: ViewFrame, box: OrientedBox, clipped_px: Rect, source: BoxSource, gates: ObjectGates, margins: Margins
) -> tuple[str, float, float] | None:
    """(reason, value, limit) where a camera-frame box seems to be only a part of its object, else None."""
    sides = np.sort(box.size_m)
    if not margins.at_least("flat", float(sides[0] / sides[1]), gates.surface_flat_min):
        return "object_flat", float(sides[0] / sides[1]), gates.surface_flat_min
    if source == "surface" and not margins.at_least("fitted", float(sides[0]), gates.surface_side_min_m):
        return "object_small_fit", float(sides[0]), gates.surface_side_min_m
    hidden = measure_continuing_share(frame, box, clipped_px, gates.continues_step_m)
    if not margins.at_most("continues", hidden, gates.continues_max):
        return "object_continues", hidden, gates.continues_max
    return None


def measure_continuing_share(frame: ViewFrame, box: OrientedBox, clipped_px: Rect, step_m: float) -> float:
    """Largest share, over the four sides of the rectangle, of the band outside it that something nearer covers.

    Where something stands in front just beyond the box's end, the object may go on behind it. What carries the object
    is nearer too, but within such a thin band by less than `step_m`. A side that the image border cuts off counts as
    covered whole: nobody can see how the object goes on there.
    """
    nearest_m = float(boxes.corners(box)[:, 2].min())
    x1, y1, x2, y2 = clipped_px
    dx, dy = max(_BAND * (x2 - x1), _BAND_MIN_PX), max(_BAND * (y2 - y1), _BAND_MIN_PX)
    along_x, along_y, across = np.linspace(x1, x2, _GRID), np.linspace(y1, y2, _GRID), np.array([0.3, 0.65, 1.0])
    bands = (
        np.meshgrid(x1 - dx * across, along_y),
        np.meshgrid(x2 + dx * across, along_y),
        np.meshgrid(along_x, y1 - dy * across),
        np.meshgrid(along_x, y2 + dy * across),
    )
    width, height = frame.camera.size
    if x1 <= 0 or y1 <= 0 or x2 >= width - 1 or y2 >= height - 1:
        return 1.0
    worst = 0.0
    for u, v in bands:
        depth_m = frame.depth_at(np.stack([u.ravel(), v.ravel()], axis=-1))
        known = depth_m > 0
        if known.sum() >= _GRID:
            worst = max(worst, float((depth_m[known] < nearest_m - step_m).mean()))
    return worst
