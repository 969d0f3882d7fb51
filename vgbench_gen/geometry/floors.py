"""The floor of a room in a plan, (..., 2) meters in level axes: its outline along walls, and what of it cameras saw."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from scipy import ndimage
from scipy.spatial import ConvexHull, cKDTree

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, FloatArray

COVER_MIN, COVER_NONE = 0.5, 0.15  # of a part between walls: what is seen of a room's floor, and of what lies beyond
_NEAR_M = 0.05  # from a wall's line to its points
_APART_M = 0.12  # between two lines
_RECESS_M = 0.3  # and from a line twice as long, or it is the depth of a window or a door
_LENGTH_MIN = 4  # decimeters of a wall
_SPOT_M = 0.25  # side of the squares in which surface is looked for
_CELL_M = 0.05
_STEP_M = 0.2  # along an outline
_CLOSED = ndimage.iterate_structure(ndimage.generate_binary_structure(2, 1), 3)  # gaps between things and walls
_COLUMN_DEG = 0.75
_STRAY = 6  # pixels of a column that may lie beyond the wall


def find_level_axes(up: FloatArray, along: FloatArray) -> FloatArray:
    """(3, 3) rows: two level unit vectors, of which the first is as near to `along` (3,) as can be, and `up` (3,)."""
    first = along - (along @ up) * up
    first /= np.linalg.norm(first)
    return np.stack([first, np.cross(up, first), up])


def measure_area_m2(corners_m: FloatArray) -> FloatArray:
    """(...) of polygons (..., N, 3) in any plane, by the shoelace formula."""
    from_first = corners_m - corners_m[..., :1, :]
    double = np.cross(from_first, np.roll(from_first, -1, axis=-2)).sum(axis=-2)
    return np.asarray(np.linalg.norm(double, axis=-1) / 2)


def turn_plan(points: FloatArray, turn: float) -> FloatArray:
    """Points (..., 2) in axes that are turned by `turn`, radians."""
    c, s = np.cos(turn), np.sin(turn)
    return np.asarray(points @ np.array([[c, -s], [s, c]]))


def find_wall_turn(walls: FloatArray) -> float:
    """By how much axes are turned, radians, along which points (N, 2) of walls lie in the fewest lines."""

    def crowd(turn: float) -> float:
        bins = np.floor(turn_plan(walls, turn) / 0.03).astype(np.int64)
        return float(sum((np.bincount(column - column.min()).astype(float) ** 2).sum() for column in bins.T))

    best = max(np.arange(0, np.pi / 2, np.radians(1)), key=crowd)
    return float(max(best + np.radians(np.arange(-10, 11) / 10), key=crowd))


def find_wall_lines(across: FloatArray, along: FloatArray) -> list[float]:
    """Where walls stand on one axis, in order, by the places (N,) of their points on it and on the other axis."""
    lines: list[tuple[float, int]] = []
    left = np.ones(len(across), dtype=bool)
    while left.any():
        spots = np.unique(np.floor(np.column_stack([across, along])[left] / [_NEAR_M, 0.1]).astype(np.int64), axis=0)
        starts, counts = np.unique(spots[:, 0], return_counts=True)
        middle = (starts[np.argmax(counts)] + 0.5) * _NEAR_M
        for _ in range(2):
            near = left & (np.abs(across - middle) <= _NEAR_M)
            middle = float(np.median(across[near]))
        length = len(np.unique(np.floor(along[near] / 0.1)))
        if length < _LENGTH_MIN:
            break
        if not any(abs(middle - line) < _RECESS_M and 2 * length < longer for line, longer in lines):
            lines.append((middle, length))
        left &= np.abs(across - middle) > _APART_M
    return sorted(line for line, _ in lines)


def find_floor(walls: FloatArray, seen: FloatArray) -> tuple[FloatArray, float]:
    """(corners (N, 2) of the outline in order, share of the area that is not in doubt, which what lies beyond may be).

    Lines of walls cut the plan into parts; those that hold surface are the room's, what stands on its floor included.

    Args:
        walls: (N, 2) points of walls at right angles. seen: (M, 2) points of floor, ceiling and things.

    Raises:
        GeometryError: the parts make no single outline.
    """
    turn = find_wall_turn(walls)
    walls, seen = turn_plan(walls, turn), turn_plan(seen, turn)
    x, y = find_wall_lines(*walls.T), find_wall_lines(*walls.T[::-1])
    if min(len(x), len(y)) < 2:
        raise GeometryError(f"walls in {len(x)} and {len(y)} lines enclose no room")
    cover = np.array([[_measure_cover(seen, a, b) for b in itertools.pairwise(y)] for a in itertools.pairwise(x)])
    areas = np.outer(np.diff(x), np.diff(y))
    parts, count = ndimage.label(cover >= COVER_MIN)
    if not count:
        raise GeometryError("no part between walls holds surface")
    sizes = ndimage.sum_labels(areas, parts, np.arange(1, count + 1))
    room = parts == 1 + int(np.argmax(sizes))
    unsure = areas[~room & (cover > COVER_NONE)].sum() / sizes.max()
    return turn_plan(_trace(room, np.array(x), np.array(y)), -turn), max(0.0, 1 - float(unsure))


def measure_closed(corners: FloatArray, sides: FloatArray) -> float:
    """Share of an outline with corners (N, 2) along which points (M, 2) of walls, doors and windows are seen."""
    ways = np.roll(corners, -1, axis=0) - corners
    counts = np.ceil(np.linalg.norm(ways, axis=1) / _STEP_M).astype(int)
    places = [a + way * (np.arange(n)[:, None] + 0.5) / n for a, way, n in zip(corners, ways, counts, strict=True)]
    far, _ = cKDTree(sides).query(np.concatenate(places))
    return float(np.mean(np.asarray(far) < _STEP_M))


def _measure_cover(seen: FloatArray, x: tuple[float, float], y: tuple[float, float]) -> float:
    low, high = np.transpose([x, y])
    spots = np.maximum(np.round((high - low) / _SPOT_M), 1)
    inside = seen[((seen > low) & (seen < high)).all(axis=1)]
    return len(np.unique(np.floor((inside - low) / (high - low) * spots), axis=0)) / float(spots.prod())


def _trace(room: BoolArray, x: FloatArray, y: FloatArray) -> FloatArray:
    """(N, 2) corners of the only outline of the parts of a grid."""
    sides = set()
    for i, j in np.argwhere(room).tolist():
        ring = [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)]
        sides |= set(zip(ring, [*ring[1:], ring[0]], strict=True))
    outer = {(one, other) for one, other in sides if (other, one) not in sides}
    ends = dict(outer)
    if len(ends) < len(outer):
        raise GeometryError("parts of the floor meet in a corner")
    chain = [next(iter(ends))]
    while (after := ends[chain[-1]]) != chain[0]:
        chain.append(after)
    if len(chain) < len(ends):
        raise GeometryError("something as high as a wall stands in the middle of the floor")
    corners = [(x[a[0]], y[a[1]]) for a in chain]
    n = len(corners)
    return np.array(
        [
            c
            for k, c in enumerate(corners)
            if not any(c[d] == corners[k - 1][d] == corners[(k + 1) % n][d] for d in (0, 1))
        ]
    )


def fill_floor_m2(
    sights: Iterable[tuple[FloatArray, FloatArray]], things: Sequence[FloatArray], turn: float = 0.0
) -> float:
    """Area of the floor over which cameras look and on which things stand, in cells of a grid.

    Args:
        sights: of each camera its place (2,) and points (N, 2) that it sees. things: (M, 2) corners of each. turn: of
            the grid, radians.
    """
    looks = [(turn_plan(eye, turn), turn_plan(ends, turn)) for eye, ends in sights]
    outlines = [turn_plan(thing, turn) for thing in things]
    every = np.concatenate([ends for _, ends in looks] + outlines)
    low, high = every.min(axis=0) - 1, every.max(axis=0) + 1
    axes = [np.arange(a, b, _CELL_M) for a, b in zip(low, high, strict=True)]
    centres = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    inside = np.zeros(centres.shape[:2], dtype=bool)
    for eye, ends in looks:
        inside |= _is_overlooked(centres - eye, ends - eye)
    for outline in outlines:
        sides = ConvexHull(outline).equations
        inside |= (centres @ sides[:, :2].T + sides[:, 2] <= 0).all(axis=-1)
    return float(ndimage.binary_fill_holes(ndimage.binary_closing(inside, _CLOSED)).sum() * _CELL_M**2)


def _is_overlooked(centres: FloatArray, ends: FloatArray) -> BoolArray:
    """Which places (..., 2) from a camera are nearer than what it sees in their direction, at any height."""
    count = round(360 / _COLUMN_DEG)
    turns, ranges = np.arctan2(ends[:, 1], ends[:, 0]), np.linalg.norm(ends, axis=1)
    columns = np.floor((turns + np.pi) / (2 * np.pi) * count).astype(np.int64) % count
    order = np.lexsort((-ranges, columns))
    starts = np.flatnonzero(np.diff(columns[order], prepend=-1))
    sizes = np.diff(np.append(starts, len(order)))
    far = order[starts[sizes > _STRAY] + _STRAY]
    angle, reach = (np.arange(count) + 0.5) / count * 2 * np.pi - np.pi, np.zeros(count)
    angle[columns[far]], reach[columns[far]] = turns[far], ranges[far]
    towards = np.arctan2(centres[..., 1], centres[..., 0])
    return np.asarray(np.linalg.norm(centres, axis=-1) <= np.interp(towards, angle, reach, period=2 * np.pi))
