"""The steps of which programs that furnish a room are made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.samples.arrange import Placed, Room
from vgbench_gen.samples.furniture import make
from vgbench_gen.samples.furniture.style import Style
from vgbench_gen.samples.parts import Model


class Furnisher:
    """A room, its style and the random stream, with the steps of programs; `kinds` are names that commas part."""

    def __init__(self, room: Room, style: Style, rng: np.random.Generator, main_wall: int, seed: int, key: str) -> None:
        """main_wall: wall against which the main group of the room stands. seed, key: name the room, see `rooms`."""
        self.room, self.style, self.rng, self.main = room, style, rng, main_wall
        self._name, self._count = (seed, key), Counter[str]()

    @property
    def opposite(self) -> int:
        """The wall across."""
        return (self.main + 2) % 4

    @property
    def sides(self) -> tuple[int, int]:
        """The walls beside the main one, in random order."""
        a, b = (self.main + 1) % 4, (self.main + 3) % 4
        return (a, b) if self.rng.random() < 0.5 else (b, a)

    def make_model(self, kind: str) -> Model:
        """A thing of a kind, of a size of its own."""
        self._count[kind] += 1
        return self._make_model_again(kind)

    def _make_model_again(self, kind: str) -> Model:
        """A thing of the size of the last one of its kind."""
        seed, key = self._name
        return make(kind, self.rng, self.style, rng_for(seed, "samples", "size", key, kind, str(self._count[kind])))

    def draw_chance(self, p: float) -> bool:
        """True with a probability."""
        return bool(self.rng.random() < p)

    def choose_kind(self, kinds: str) -> str:
        """One of several kinds, which commas part."""
        names = kinds.split(", ")
        return names[int(self.rng.integers(len(names)))]

    def _draw_kinds(self, kinds: str | Sequence[str], count: int) -> list[str]:
        names = kinds.split(", ") if isinstance(kinds, str) else kinds
        return [names[int(k)] for k in self.rng.permutation(len(names))[:count]]

    def place_at_wall(self, kinds: str, walls: Sequence[int], windows: bool = False) -> Placed | None:
        """Put one of several kinds against the first of some walls with room for it."""
        model = self.make_model(self.choose_kind(kinds))
        for wall in walls:
            found = self.room.place_against(model, wall, before_windows=windows)
            if found:
                return found
        return None

    def place_in_middle(self, kind: str, wall: int) -> Placed | None:
        """Against the middle of a wall, or as near to it as may be."""
        model, half = self.make_model(kind), self.room.wall_length_m(wall) / 2
        for shift in (0.0, 0.2, -0.2, 0.45, -0.45, 0.7, -0.7, 1.0, -1.0):
            found = self.room.place_against(model, wall, half + shift)
            if found:
                return found
        return self.room.place_against(model, wall)

    def put_on_top(
        self, other: Placed | None, kinds: str | Sequence[str], count: int, shelf: int = -1, tries: int = 12
    ) -> set[str]:
        """Put some of these kinds on another thing; returns those for which there was room."""
        return {
            kind
            for kind in self._draw_kinds(kinds, count)
            if other and self.room.place_on(self.make_model(kind), other, shelf, tries=tries)
        }

    def fill(self, other: Placed | None, kinds: str, most: int = 2) -> None:
        """Put random small things on every shelf of `other`."""
        for shelf in range(len(other.model.shelves) if other else 0):
            self.put_on_top(other, kinds, int(self.rng.integers(1, most + 1)), shelf)

    def hang(self, walls: Sequence[int], count: int, kinds: str = "picture") -> None:
        """Things on walls at eye height, over what stands there; the walls are tried in turn."""
        names = kinds.split(", ")
        for k in range(count):
            model = self.make_model(names[k % len(names)])
            tall = float(model.extent_m()[1][2])
            for wall in (*walls[k % len(walls) :], *walls[: k % len(walls)]):
                z = float(self.rng.uniform(1.5, 1.66)) - tall / 2
                if self.room.place_against(model, wall, z_m=z, off_m=0.004, tries=8):
                    break

    def scatter_on_floor(self, kinds: str | Sequence[str], count: int, edge: bool = True) -> None:
        """Things standing about: near walls and corners, or anywhere."""
        w, d, _ = self.room.size_m
        for kind in self._draw_kinds(kinds, count):
            model = self.make_model(kind)
            for _ in range(14):
                if edge:
                    wall = int(self.rng.integers(4))
                    s = float(self.rng.uniform(0.3, self.room.wall_length_m(wall) - 0.3))
                    x, y = self.room.find_wall_point(wall, s, float(self.rng.uniform(0.3, 0.75)))
                else:
                    x, y = float(self.rng.uniform(0.2, 0.8)) * w, float(self.rng.uniform(0.2, 0.8)) * d
                # Things with a front look into the room, a little askew.
                to_middle = float(np.degrees(np.arctan2(d / 2 - y, w / 2 - x))) + 90
                yaw = to_middle + float(self.rng.uniform(-35, 35))
                if self.room.put(Placed(model, x, y, 0.0, yaw)):
                    break

    def finish(self, pictures: int, hung: str, loose: str, count: int) -> None:
        """Add a radiator, pictures, other things on walls, and `count` of the loose things on the floor."""
        self.place_at_wall("radiator", (*self.sides, self.opposite), windows=True)
        self.hang((0, 1, 2, 3), pictures)
        self.hang((0, 1, 2, 3), hung.count(",") + 1, hung)
        self.scatter_on_floor(loose, count)

    def lay_rug(self, x: float, y: float, yaw_deg: float) -> None:
        """A rug centred on a point, if it fits."""
        model = self.make_model("rug")
        thing = Placed(model, x, y, 0.0, yaw_deg)
        w, d, _ = self.room.size_m
        corners = thing.outline()
        if (corners > 0.1).all() and (corners < np.array([w, d]) - 0.1).all():
            self.room.lay(model, x, y, yaw_deg)

    def place_seats(self, table: Placed | None, kind: str, sides: Sequence[str], jitter: float = 12) -> None:
        """Chairs of one kind at sides of a table."""
        if not table:
            return
        state = self.rng.bit_generator.state
        self._count[kind] += 1
        for side in sides:
            wide = table.high_m[0] if side[1] == "y" else table.high_m[1]
            spots = (-0.5 * wide, 0.5 * wide) if wide > 0.62 else (0.0,)
            for spot in spots:
                # The same stream again gives the same chair.
                later = self.rng.bit_generator.state
                self.rng.bit_generator.state = state
                model = self._make_model_again(kind)
                self.rng.bit_generator.state = later
                away = float(self.rng.uniform(0.03, 0.16))
                self.room.place_around(model, table, side, float(spot + self.rng.uniform(-0.05, 0.05)), away, jitter)
