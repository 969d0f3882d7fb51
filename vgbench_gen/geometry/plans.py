"""Things seen from above, as convex outlines in a plan: x runs to the right of a camera and y towards it, so that up in
a drawing of the plan is away from the camera. Outlines are (..., 2) points in any order, whose hull counts."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray

_DIRECTIONS = np.arange(8) * np.pi / 4 + 0.07  # sides of things along a direction would have no farthest point


def find_plan_axes(up: FloatArray) -> FloatArray:
    """(2, 3) x and y of the plan in the camera's frame, by a unit vector `up` (3,) against gravity in that frame.

    Raises:
        GeometryError: the camera looks straight up or down, so that nothing is away from it.
    """
    away = np.array([0.0, 0.0, 1.0]) - up[2] * up
    if np.linalg.norm(away) < 1e-3:
        raise GeometryError("the camera looks along gravity, so its plan has no direction")
    away /= np.linalg.norm(away)
    return np.stack([np.cross(away, up), -away])


def find_outline(points: FloatArray) -> FloatArray:
    """(8, 2) of points (N, 2) those that lie farthest in eight directions."""
    along = points @ np.stack([np.cos(_DIRECTIONS), np.sin(_DIRECTIONS)])
    return np.asarray(points[np.argmax(along, axis=0)])


def measure_overlap(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """(intersection over union, intersection over the smaller area) of two outlines.

    Raises:
        GeometryError: an outline has no area.
    """
    return _measure_shared(*(_find_hull(np.ascontiguousarray(outline).tobytes()) for outline in (a, b)))


def compare_plans(a: FloatArray, b: FloatArray) -> float:
    """How alike two plans of the same things are, outlines (k, 8, 2) each: the mean intersection over union of each
    thing's outlines, when the plans are laid on each other by all of their centres or by those of one thing, whichever
    fits best. Wherever a plan is drawn, it is the same plan."""
    centers_a, centers_b = a.mean(axis=1), b.mean(axis=1)
    moves = np.stack([(centers_a - centers_b).mean(axis=0), *(centers_a - centers_b)])
    hulls = [[_find_hull(np.ascontiguousarray(outline).tobytes()) for outline in plan] for plan in (a, b)]
    shared = np.zeros((len(moves), len(a)))
    after_start = a.max(axis=1) > b.min(axis=1) + moves[:, None]
    before_end = a.min(axis=1) < b.max(axis=1) + moves[:, None]
    for n, k in np.argwhere((after_start & before_end).all(axis=-1)).tolist():  # others lie apart
        shared[n, k] = _measure_shared(hulls[0][k], hulls[1][k] + moves[n])[0]
    return float(shared.mean(axis=1).max())


def measure_shift(a: FloatArray, b: FloatArray) -> float:
    """How far the things of two plans, outlines (k, 8, 2) each, stand from each other, over how far they stand from the
    middle of the wider plan; root mean squares of their centres."""
    off_a, off_b = (plan.mean(axis=1) - plan.mean(axis=(0, 1)) for plan in (a, b))
    return float(np.linalg.norm(off_a - off_b)) / max(*(float(np.linalg.norm(off)) for off in (off_a, off_b)), 1e-9)


def measure_width(outline: FloatArray) -> float:
    """How wide an outline (N, 2) is where it is narrowest."""
    hull = _find_hull(np.ascontiguousarray(outline).tobytes())
    sides = np.roll(hull, -1, axis=0) - hull
    across = sides[:, ::-1] * [-1, 1] / np.linalg.norm(sides, axis=1, keepdims=True)
    return float(np.ptp(hull @ across.T, axis=0).min())


def measure_crowding(plan: FloatArray) -> float:
    """The largest share of a thing's outline that another one of the plan (k, 8, 2) covers."""
    return max(measure_overlap(a, b)[1] for a, b in combinations(plan, 2))


def find_group(outlines: Sequence[FloatArray], start: int, most: int, crowded_max: float) -> list[int]:
    """Places of at most `most` outlines, the one at `start` and those nearest to it, of which none covers more of
    another one than this share."""
    centers = np.stack([outline.mean(axis=0) for outline in outlines])
    group: list[int] = []
    for k in np.argsort(np.linalg.norm(centers - centers[start], axis=1), kind="stable").tolist():
        free = all(measure_overlap(outlines[k], outlines[n])[1] <= crowded_max for n in group)
        if len(group) < most and free:
            group.append(k)
    return group


def exchange_places(plan: FloatArray, i: int, j: int) -> FloatArray:
    """The plan (k, 8, 2) with the things i and j moved to each other's centres, as they lie."""
    moved, move = plan.copy(), plan[j].mean(axis=0) - plan[i].mean(axis=0)
    moved[i] += move
    moved[j] -= move
    return moved


@lru_cache(maxsize=4096)  # every outline is compared with many
def _find_hull(outline: bytes) -> FloatArray:
    points = np.frombuffer(outline).reshape(-1, 2)
    try:
        return np.asarray(points[ConvexHull(points).vertices])  # counter-clockwise where y goes up
    except QhullError as error:
        raise GeometryError("an outline seen from above has no area") from error


def _measure_shared(a: FloatArray, b: FloatArray) -> tuple[float, float]:
    """As `measure_overlap`, of hulls (N, 2), counter-clockwise where y goes up."""
    if (a.max(axis=0) <= b.min(axis=0)).any() or (b.max(axis=0) <= a.min(axis=0)).any():
        return 0.0, 0.0
    kept, other = a.tolist(), b.tolist()  # numpy is slow on single numbers
    areas = _measure_area(kept), _measure_area(other)
    for k, end in enumerate(other):
        kept = _cut(kept, other[k - 1], end)
        if len(kept) < 3:
            return 0.0, 0.0
    shared = _measure_area(kept)
    return shared / (sum(areas) - shared), shared / min(areas)


def _measure_area(polygon: list[list[float]]) -> float:
    pairs = ((polygon[k - 1], point) for k, point in enumerate(polygon))
    return abs(sum(p[0] * q[1] - q[0] * p[1] for p, q in pairs)) / 2


def _cut(polygon: list[list[float]], start: list[float], end: list[float]) -> list[list[float]]:
    """What of a convex polygon lies on the left of a line."""
    (x, y), (dx, dy) = start, (end[0] - start[0], end[1] - start[1])
    sides = [dx * (v - y) - dy * (u - x) for u, v in polygon]
    kept: list[list[float]] = []
    for k, (q, t) in enumerate(zip(polygon, sides, strict=True)):
        p, s = polygon[k - 1], sides[k - 1]
        if (s < 0) != (t < 0):
            kept.append([p[0] + (q[0] - p[0]) * s / (s - t), p[1] + (q[1] - p[1]) * s / (s - t)])
        if t >= 0:
            kept.append(q)
    return kept
