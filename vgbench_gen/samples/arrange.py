"""Where things stand: against walls, beside, on and under each other, never through each other.

A room is the rectangle [0, width] x [0, depth] with the floor at z = 0. Walls are numbered 0 (y = 0), 1 (x = width),
2 (y = depth), 3 (x = 0). A thing with yaw 0 looks towards -y, its back to wall 2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.samples.parts import Model, Shelf, SolidPart

_WALL_YAW = (180.0, -90.0, 0.0, 90.0)
_GAP_M = 0.015  # free space kept between things


@dataclass(frozen=True)
class Opening:
    """A door or window."""

    wall: int
    low_m: float
    """The end nearer to the start of the wall, in meters along it."""
    high_m: float
    """The other end, in meters along the wall."""
    bottom_m: float
    """The height of its lower edge in meters."""
    top_m: float
    """The height of its upper edge in meters."""
    kind: str
    """"door" or "window"."""


@dataclass(eq=False)
class Placed:
    """A model in the room, or a piece of the building."""

    model: Model
    x: float
    """The x of its origin in the room, meters."""
    y: float
    """The y of its origin in the room, meters."""
    z: float
    """The height of its origin above the floor, meters."""
    yaw_deg: float
    """Its turn about the vertical in degrees; at 0 it looks towards -y."""
    structural: bool = False
    """Whether it is a piece of the building."""
    edge_m: float = 0.2
    """The longest edge of the mesh that is wanted on it, meters."""
    low_m: FloatArray = field(default_factory=lambda: np.zeros(3))
    """The lowest coordinates of its model in the model's frame, (3,) meters; measured where `high_m` is not given."""
    high_m: FloatArray = field(default_factory=lambda: np.zeros(3))
    """The highest coordinates of its model in the model's frame, (3,) meters; measured where all are 0."""
    clutter: bool = False
    """Whether it is one of the small things that lie about, for whose sake nobody films."""

    def __post_init__(self) -> None:
        if not self.high_m.any():
            self.low_m, self.high_m = self.model.extent_m()
        self.reach_m = float(np.hypot(*np.maximum(-self.low_m[:2], self.high_m[:2])))
        """How far its footprint reaches from its origin in meters."""
        self._outlines: dict[float, FloatArray] = {}

    @cached_property
    def rotation(self) -> FloatArray:
        """The rotation room_from_model, (3, 3)."""
        a = np.radians(self.yaw_deg)
        return np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1.0]])

    @property
    def at_m(self) -> FloatArray:
        """The origin of the model in the room, (3,) meters."""
        return np.array([self.x, self.y, self.z])

    def to_room(self, point: FloatArray) -> FloatArray:
        """Carry model coordinates (..., 3) into the room."""
        moved: FloatArray = np.asarray(point) @ self.rotation.T + self.at_m
        return moved

    def box(self) -> OrientedBox:
        """The model's upright box in the room."""
        middle = (self.low_m + self.high_m) / 2
        return OrientedBox(self.to_room(middle), self.high_m - self.low_m, self.rotation)

    def parts(self) -> list[SolidPart]:
        """The parts of the model in room coordinates."""
        turn = self.rotation
        return [
            replace(part, vertices_m=part.vertices_m @ turn.T + self.at_m, normals=part.normals @ turn.T)
            for part in self.model.parts
        ]

    def outline(self, grow_m: float = 0.0) -> FloatArray:
        """The corners of the footprint in the room, (4, 2), grown by `grow_m` to each side."""
        if grow_m not in self._outlines:
            (x1, y1), (x2, y2) = self.low_m[:2] - grow_m, self.high_m[:2] + grow_m
            corners = np.array([[x1, y1, 0], [x2, y1, 0], [x2, y2, 0], [x1, y2, 0]])
            self._outlines[grow_m] = self.to_room(corners)[:, :2]
        return self._outlines[grow_m]


class Room:
    """The room while it is being furnished."""

    def __init__(
        self, rng: np.random.Generator, size_m: tuple[float, float, float], openings: Sequence[Opening]
    ) -> None:
        self.rng, self.size_m, self.openings = rng, size_m, tuple(openings)
        self.placed: list[Placed] = []
        self._loose: set[int] = set()  # things that others may overlap: rugs

    def wall_length_m(self, wall: int) -> float:
        """Length of a wall."""
        return self.size_m[wall % 2]

    def find_wall_point(self, wall: int, along_m: float, off_m: float) -> tuple[float, float]:
        """The point `off_m` in front of a wall at `along_m` from its start (its start is at the lower coordinate)."""
        w, d, _ = self.size_m
        return ((along_m, off_m), (w - off_m, along_m), (along_m, d - off_m), (off_m, along_m))[wall]

    def place_against(
        self,
        model: Model,
        wall: int,
        along_m: float | None = None,
        z_m: float = 0.0,
        off_m: float = 0.02,
        before_windows: bool = False,
        tries: int = 12,
    ) -> Placed | None:
        """Back to a wall, at `along_m` or where there is room; None where there is none."""
        low, high = model.extent_m()
        half = float(max(-low[0], high[0]))
        length = self.wall_length_m(wall)
        if length < 2 * half + 0.1:
            return None
        for _ in range(1 if along_m is not None else tries):
            s = along_m if along_m is not None else float(self.rng.uniform(half + 0.05, length - half - 0.05))
            x, y = self.find_wall_point(wall, s, off_m + float(high[1]))
            thing = Placed(model, x, y, z_m, _WALL_YAW[wall])
            if self._is_before_opening(thing, wall, s, half, before_windows):
                continue
            if self.put(thing):
                return thing
        return None

    def place_beside(self, model: Model, other: Placed, side: int, gap_m: float = 0.06) -> Placed | None:
        """In line with another thing's back, on its side (-1: its -x, 1: its +x)."""
        low, high = model.extent_m()
        x = (other.high_m[0] + gap_m - low[0]) if side > 0 else (other.low_m[0] - gap_m - high[0])
        y = other.high_m[1] - high[1]
        at = other.to_room(np.array([x, y, 0.0]))
        thing = Placed(model, float(at[0]), float(at[1]), 0.0, other.yaw_deg)
        if any(
            self._is_before_opening(thing, wall, float(at[wall % 2]), float(high[0]), False)
            for wall in range(4)
            if abs(other.yaw_deg - _WALL_YAW[wall]) < 1
        ):
            return None
        return thing if self.put(thing) else None

    def place_before(
        self, model: Model, other: Placed, away_m: float, across_m: float = 0.0, turn_deg: float = 180.0
    ) -> Placed | None:
        """In front of another thing, turned towards it by default."""
        low, high = model.extent_m()
        reach = float(max(abs(low[1]), high[1]))
        at = other.to_room(np.array([across_m, other.low_m[1] - away_m - reach, 0.0]))
        thing = Placed(model, float(at[0]), float(at[1]), 0.0, other.yaw_deg + turn_deg)
        return thing if self.put(thing) else None

    def place_around(
        self, model: Model, other: Placed, side: str, along_m: float, away_m: float, jitter: float
    ) -> Placed | None:
        """A chair at one side ("-y", "+y", "-x", "+x") of a table, looking at it."""
        reach = -float(model.extent_m()[0][1])
        x, y, yaw = {
            "-y": (along_m, other.low_m[1] - away_m - reach, 180.0),
            "+y": (along_m, other.high_m[1] + away_m + reach, 0.0),
            "-x": (other.low_m[0] - away_m - reach, along_m, 90.0),
            "+x": (other.high_m[0] + away_m + reach, along_m, -90.0),
        }[side]
        at = other.to_room(np.array([x, y, 0.0]))
        turn = float(self.rng.uniform(-jitter, jitter))
        thing = Placed(model, float(at[0]), float(at[1]), 0.0, other.yaw_deg + yaw + turn)
        return thing if self.put(thing) else None

    def lay(self, model: Model, x: float, y: float, yaw_deg: float) -> Placed:
        """A rug: others may stand on it."""
        thing = Placed(model, x, y, 0.0, yaw_deg)
        self._loose.add(id(thing))
        self.placed.append(thing)
        return thing

    def place_on(
        self,
        model: Model,
        other: Placed,
        shelf: int = -1,
        at: tuple[float, float] | None = None,
        yaw_deg: float | None = None,
        tries: int = 12,
    ) -> Placed | None:
        """On a shelf of another thing, at local (x, y) of the shelf or anywhere on it."""
        if not other.model.shelves:
            return None
        board: Shelf = other.model.shelves[shelf]
        low, high = model.extent_m()
        if high[2] - low[2] > board.clear_m:
            return None
        for _ in range(1 if at is not None else tries):
            turn = yaw_deg if yaw_deg is not None else float(self.rng.uniform(-35, 35))
            place = Placed(model, 0.0, 0.0, 0.0, turn, low_m=low, high_m=high)
            reach = np.abs(place.outline()).max(axis=0)
            room = board.half_m - reach
            if (room < -0.012).any():
                if yaw_deg is None and abs(turn) > 12:
                    continue
                return None
            room = np.maximum(room, 0)
            offset = np.clip(at, -room, room) if at is not None else self.rng.uniform(-1, 1, 2) * room
            where = other.to_room(board.center_m + np.array([*offset, 0.0]))
            z = float(where[2]) - min(float(low[2]), 0.0)
            at_m = float(where[0]), float(where[1]), z + 0.0005
            thing = Placed(model, *at_m, other.yaw_deg + turn, low_m=low, high_m=high)
            if self.put(thing, ignore=other):
                return thing
        return None

    def place_under(self, model: Model, other: Placed, tries: int = 8) -> Placed | None:
        """On the floor under a table."""
        if other.model.hollow is None:
            return None
        hx, hy, height = other.model.hollow
        if model.extent_m()[1][2] > height:
            return None
        for _ in range(tries):
            turn = float(self.rng.uniform(-25, 25))
            reach = np.abs(Placed(model, 0, 0, 0, turn).outline()).max(axis=0)
            room = np.array([hx, hy]) - reach
            if (room < 0).any():
                continue
            at = other.to_room(np.array([*(self.rng.uniform(-1, 1, 2) * room), 0.0]))
            thing = Placed(model, float(at[0]), float(at[1]), 0.0, other.yaw_deg + turn)
            if self.put(thing, ignore=other):
                return thing
        return None

    def put(self, thing: Placed, ignore: Placed | None = None) -> bool:
        """Keep the thing where it is if it is inside the room and clear of the others."""
        corners = thing.outline()
        w, d, h = self.size_m
        inside = (corners > 0.004).all() and (corners < np.array([w, d]) - 0.004).all()
        inside |= ignore is not None and ignore.structural  # a sill goes on into the wall
        if not inside or thing.z + thing.high_m[2] > h - 0.01:
            return False
        for other in self.placed:
            if other is not ignore and id(other) not in self._loose and are_touching(thing, other, _GAP_M):
                return False
        for opening in self.openings:
            if opening.kind == "door" and self._blocks(thing, opening):
                return False
        self.placed.append(thing)
        return True

    def _blocks(self, thing: Placed, door: Opening) -> bool:
        middle, half = (door.low_m + door.high_m) / 2, (door.high_m - door.low_m) / 2
        x, y = self.find_wall_point(door.wall, middle, 0.35)
        size = np.array([half, 0.35]) if door.wall % 2 == 0 else np.array([0.35, half])
        zone = np.array([[x, y]]) + np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * size
        return thing.z < door.top_m and do_outlines_overlap(thing.outline(), zone)

    def _is_before_opening(self, thing: Placed, wall: int, s: float, half: float, windows_too: bool) -> bool:
        for opening in self.openings:
            if opening.wall != wall or s + half < opening.low_m - 0.06 or s - half > opening.high_m + 0.06:
                continue
            if opening.kind == "window" and (windows_too or thing.z + thing.high_m[2] < opening.bottom_m + 0.02):
                continue
            return True
        return False


def are_touching(a: Placed, b: Placed, gap_m: float) -> bool:
    """Whether two upright boxes come nearer than a gap."""
    if a.z + a.low_m[2] >= b.z + b.high_m[2] - 1e-4 or b.z + b.low_m[2] >= a.z + a.high_m[2] - 1e-4:
        return False
    if math.hypot(a.x - b.x, a.y - b.y) > a.reach_m + b.reach_m + gap_m:
        return False
    return do_outlines_overlap(a.outline(gap_m / 2), b.outline(gap_m / 2))


def do_outlines_overlap(a: FloatArray, b: FloatArray) -> bool:
    """Whether two convex quadrilaterals (4, 2), corner next to corner, overlap (separating axes of parallelograms)."""
    sides = np.stack([a[1] - a[0], a[2] - a[1], b[1] - b[0], b[2] - b[1]])
    axes = sides[:, ::-1] * (-1, 1)
    p, q = a @ axes.T, b @ axes.T
    return bool(((p.max(axis=0) > q.min(axis=0)) & (q.max(axis=0) > p.min(axis=0))).all())
