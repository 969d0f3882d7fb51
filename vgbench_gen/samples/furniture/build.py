"""Things built by tables: every part is a shape with its material, numbers in meters and where it stands."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples import art, textures
from vgbench_gen.samples.drawing import draw_hue
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.paintings import paint_landscape
from vgbench_gen.samples.parts import Model, Vec3
from vgbench_gen.samples.textures import Texture

_CORD_SIDES = 6
_SMALL_M = 0.02  # rounds of smaller radius have fewer sides

MADE: Mapping[str, Callable[[np.random.Generator], Texture]] = {
    "screen": art.screen,
    "clock face": art.clock_face,
    "world": art.world_map,
    "whiteboard": art.whiteboard,
    "plain cloth": lambda rng: textures.fabric(rng, draw_hue(rng), "plain"),
    "cloth": lambda rng: textures.fabric(rng, draw_hue(rng)),
    "plaid": lambda rng: textures.fabric(rng, draw_hue(rng, 0.9, 1.2), "plaid"),
    "fur": lambda rng: textures.carpet(rng, ((150, 106, 66), (196, 160, 116), (110, 92, 84))[int(rng.integers(3))]),
    "glass": lambda rng: textures.plain(rng, ((40, 70, 44), (96, 56, 26), (60, 80, 110))[int(rng.integers(3))], 0.9),
    # A landscape as small as it is shown, without writing.
    "photo": lambda rng: Texture(paint_landscape(rng, 128, 180), (1.0, 1.0), tiles=False, gloss=0.3),
}
"""Materials that are made for one thing; all others are fields of `Style`."""


class TablePart(NamedTuple):
    """A row of a table; see `part`."""

    shape: str
    what: str
    values: tuple[float, ...]
    at: Vec3
    turn: Vec3
    mirror: str
    times: int
    step: Vec3
    jitter: Vec3
    sides: Mapping[str, str]


class Kind(NamedTuple):
    """A thing of a table."""

    label: str
    parts: Sequence[TablePart]
    copies: tuple[int, int] = (1, 1)
    """The least and the largest number of copies of parts whose `times` is 0."""


def part(
    shape: str,
    what: str,
    *values: float,
    at: Vec3 = (0, 0, 0),
    turn: Vec3 = (0, 0, 0),
    mirror: str = "",
    times: int = 1,
    step: Vec3 = (0, 0, 0),
    jitter: Vec3 = (0, 0, 0),
    sides: Mapping[str, str] | None = None,
) -> TablePart:
    """A part of a thing.

    Args:
        shape: box, cushion (width, depth, height, rounding, puff), ball (radii), cylinder (radius, height, upper
            radius), lathe (radius and height in turn), rod (way to its other end, radius), cord (radius, further points
            from `at`), shelf (half width, half depth, free height), hollow (the same, below) or lamp (radius, power).
        what: materials to choose from, with | between them; the same words give the same material within a thing,
            unless they end in *. A number after # tells equal words apart.
        at: where it stands, begins or has its center. turn: degrees about x, y and z.
        mirror: "x", "y" or "xy": copies across the middle.
        times: copies, each a `step` from the one before; 0 for the number that the thing draws.
        jitter: half of the range in x, y and degrees about z by which copies are moved.
        sides: other materials of a box's sides.
    """
    return TablePart(shape, what, values, at, turn, mirror, times, step, jitter, sides or {})


def build_thing(kind: Kind, rng: np.random.Generator, style: Style) -> Model:
    """Build a thing of a table with materials of a style."""
    model = Model(kind.label)
    drawn = int(rng.integers(kind.copies[0], kind.copies[1] + 1))
    found: dict[str, Texture] = {}

    def choose(what: str) -> Texture:
        if what not in found or what.endswith("*"):
            names = what.rstrip("*").split("#")[0].strip().split("|")
            choices = [MADE[n] if n in MADE else getattr(style, n) for n in names]
            flat = [c for each in choices for c in (each if isinstance(each, tuple) else (each,))]
            chosen = flat[int(rng.integers(len(flat)))] if len(flat) > 1 else flat[0]
            found[what] = chosen if isinstance(chosen, Texture) else chosen(rng)
        return found[what]

    for row in kind.parts:
        for k in range(row.times or drawn):
            moved = rng.uniform(-1, 1, 3) * row.jitter if any(row.jitter) else np.zeros(3)
            at = np.array(row.at) + k * np.array(row.step) + [moved[0], moved[1], 0]
            texture = choose(row.what) if row.what else style.white
            sides = {side: choose(what) for side, what in row.sides.items()}
            for x, y in itertools.product(*((1, -1) if axis in row.mirror else (1,) for axis in "xy")):
                turn = (row.turn[0] * y, row.turn[1] * x, row.turn[2] * x * y + float(moved[2]))
                _add(model, row, at * (x, y, 1), turn, np.array((x, y, 1)), texture, sides, style, rng)
    return model


def _add(
    model: Model,
    row: TablePart,
    place: FloatArray,
    turn: Vec3,
    sign: FloatArray,
    texture: Texture,
    sides: Mapping[str, Texture],
    style: Style,
    rng: np.random.Generator,
) -> None:
    v, at = row.values, (float(place[0]), float(place[1]), float(place[2]))
    if row.shape == "box":
        column = int(rng.integers(16)) / 16 if style.books in sides.values() else None
        region = None if column is None else (column + 0.002, 0.02, column + 1 / 16 - 0.002, 0.98)
        model.add_box((v[0], v[1], v[2]), at, texture, sides, turn, region=region, bevel=region is None)
    elif row.shape == "cushion":
        model.add_cushion((v[0], v[1], v[2]), at, texture, v[3], sum(v[4:]), turn)
    elif row.shape == "ball":
        model.add_ball((v[0], v[1], v[2]), at, texture, 2 if max(v) > _SMALL_M else 1)
    elif row.shape == "cylinder":
        model.add_cylinder(v[0], v[1], at, texture, v[2] if len(v) > 2 else None)
    elif row.shape == "lathe":
        model.add_lathe(list(zip(v[::2], v[1::2], strict=True)), at, texture)
    elif row.shape == "rod":
        end = place + sign * v[:3]
        model.add_rod(at, (end[0], end[1], end[2]), v[3], texture, 20 if v[3] > _SMALL_M else 8)
    elif row.shape == "cord":
        add_cord(model, np.vstack([place, place + sign * np.array(v[1:]).reshape(-1, 3)]), texture, v[0])
    elif row.shape == "shelf":
        model.add_shelf(at, (v[0], v[1]), v[2])
    elif row.shape == "hollow":
        model.hollow = (v[0], v[1], v[2])
    elif row.shape == "lamp":
        model.lamp = (at, v[0], v[1] * float(rng.uniform(0.6, 1.4)))
    else:
        raise ValueError(f"no shape {row.shape}")


def add_cord(model: Model, points: FloatArray, texture: Texture, radius: float) -> Model:
    """Add a round cord along points (N, 3)."""
    ahead = np.gradient(points, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    # Beside a cord is what lies across it and as level as can be; where it stands upright, any direction.
    side = np.cross(ahead, [0.0, 0.0, 1.0])
    side[np.linalg.norm(side, axis=1) < 1e-3] = [1.0, 0.0, 0.0]
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, ahead)
    a = (np.arange(_CORD_SIDES) * (2 * np.pi / _CORD_SIDES))[:, None]
    return model.add_tube(points[:, None] + radius * (np.cos(a) * side[:, None] + np.sin(a) * up[:, None]), texture)


def list_corners(x: float, y: float) -> list[tuple[float, float]]:
    """The four places (x, y) mirrored across the middle."""
    return [(x, y), (x, -y), (-x, y), (-x, -y)]


def add_book_row(
    model: Model,
    rng: np.random.Generator,
    style: Style,
    start: float,
    end: float,
    at: tuple[float, float],
    depth: float,
    height: float,
) -> float:
    """Books upright from x = start up to `end`, standing at (y, z); returns where they end."""
    x, (y, z) = start, at
    while True:
        thick, tall, deep = rng.uniform(0.018, 0.05), height * rng.uniform(0.62, 0.96), depth * rng.uniform(0.7, 0.95)
        if x + thick > end:
            return x
        k = int(rng.integers(16))
        u = (k / 16 + 0.002, 0.02, (k + 1) / 16 - 0.002, 0.98)
        pages = {"+z": style.pages, "-z": style.pages}
        plain = pick(rng, style.bright + style.ceramics)
        base = (x + thick / 2, y - (depth - deep) / 2 + 0.01, z)
        model.add_box((thick - 0.001, deep, tall), base, plain, {"-y": style.books, **pages}, region=u, bevel=False)
        x += thick
