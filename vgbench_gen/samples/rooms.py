"""From a number to a lit, furnished room."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.spatial import ConvexHull

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.samples import art, shell
from vgbench_gen.samples.arrange import Opening, Placed, Room
from vgbench_gen.samples.atlas import Atlas
from vgbench_gen.samples.base import SampleObject
from vgbench_gen.samples.clutter import scatter_clutter
from vgbench_gen.samples.furnisher import Furnisher
from vgbench_gen.samples.furniture.style import Style, make_style
from vgbench_gen.samples.light import Lamp, Lights, Window, bake_light
from vgbench_gen.samples.mesh import join_parts, refine_mesh
from vgbench_gen.samples.parts import Model
from vgbench_gen.samples.programs import PROGRAMS
from vgbench_gen.samples.render import RoomWorld

_RESERVED = "reserved"
_WARM = np.array([1.0, 0.80, 0.58])
_SUN = np.array([1.0, 0.90, 0.74])
_MIDDLE_GREY = 0.175  # where the exposure puts the 60th percentile of what the room's surfaces send out
_SAME_AREA = 1.02  # a footprint has to be smaller than this share to turn a box away from its thing's own axes


@dataclass(eq=False)
class RoomPlan:
    """What stands where, before there is any light."""

    seed: int
    key: str
    kind: str
    """The kind of room, a name of `PROGRAMS`."""
    size_m: tuple[float, float, float]
    main_wall: int
    """The number of the wall against which the main group of the room stands."""
    openings: tuple[Opening, ...]
    placed: list[Placed]
    """Everything in the room, the building first; instance ids count from 1 in this order."""
    focus: Placed | None
    """The thing that the room was made around; None where there is none."""
    windows: list[Window]
    sunny: bool
    """Whether the sun may come in, because not every window has its blinds down."""
    rng: np.random.Generator = field(repr=False)
    """The random numbers that the light of the room goes on with."""

    def objects(self) -> list[SampleObject]:
        """The things with their boxes, in the order of `placed`."""
        found = []
        for number, thing in enumerate(self.placed, start=1):
            points = np.concatenate([part.vertices_m for part in thing.parts()])
            box = fit_upright_box(points, thing.yaw_deg)
            found.append(SampleObject(number, thing.model.label, box, thing.structural))
        return found


@dataclass(eq=False)
class BuiltRoom:
    """A lit room and its plan."""

    world: RoomWorld
    plan: RoomPlan


def build_room(seed: int, key: str, kind: str = "", focus_kind: str = "", scale: float = 1.0) -> BuiltRoom:
    """The room that `seed` and `key` name, lit; see `plan_room`."""
    plan = plan_room(seed, key, kind, focus_kind, scale)
    return BuiltRoom(_light_room(plan), plan)


def plan_room(seed: int, key: str, kind: str = "", focus_kind: str = "", scale: float = 1.0) -> RoomPlan:
    """The furnished room that `seed` and `key` name.

    Args:
        kind: name of `PROGRAMS`, drawn when empty. focus_kind: name of `MAKERS`; such a thing stands free in the middle
            of the room, on the floor or on a table. scale: of the floor's sides.
    """
    rng = rng_for(seed, "samples", "room", key)
    drawn = list(PROGRAMS)[int(rng.integers(len(PROGRAMS)))]
    kind = kind or drawn
    long, short = scale * float(rng.uniform(4.3, 6.2)), scale * float(rng.uniform(3.5, 4.5))
    w, d = (long, short) if rng.random() < 0.5 else (short, long)
    size = (w, d, float(rng.uniform(2.45, 2.8)))
    main = int(rng.integers(4))
    openings = _draw_openings(rng, size, main)
    look = shell.draw_materials(rng, kind)
    building, windows, sunny = shell.build_shell(rng, size, openings, look)
    room = Room(rng, size, openings)
    room.placed += [piece for piece in building if not piece.structural]
    style = make_style(rng)
    furnisher = Furnisher(room, style, rng, main, seed, key)
    focus = _place_centrepiece(furnisher, focus_kind) if focus_kind else None
    PROGRAMS[kind](furnisher)
    _scatter_clutter(room, style, building, (seed, key, kind, main))
    things = [thing for thing in room.placed if thing.model.label != _RESERVED]
    placed = [piece for piece in building if piece.structural] + things + [_place_ceiling_lamp(rng, size, style)]
    return RoomPlan(seed, key, kind, size, main, openings, placed, focus, windows, sunny, rng)


def _scatter_clutter(room: Room, style: Style, building: list[Placed], of: tuple[int, str, str, int]) -> None:
    """Small things everywhere, drawn from a stream of their own: the furniture stands as it would without them."""
    seed, key, kind, main = of
    furnished = len(room.placed)
    room.rng = rng_for(seed, "samples", "clutter", key)
    sills = [piece for piece in building if piece.structural and piece.model.shelves]
    furnisher = Furnisher(room, style, room.rng, main, seed, f"{key} clutter")
    scatter_clutter(furnisher, kind, [*room.placed, *sills])
    for thing in room.placed[furnished:]:
        thing.clutter = True


def fit_upright_box(points: FloatArray, yaw_deg: float) -> OrientedBox:
    """Smallest upright box around points (N, 3): at the given yaw unless another has a clearly smaller footprint."""
    hull = points[ConvexHull(points[:, :2]).vertices, :2]
    sides = np.roll(hull, -1, axis=0) - hull
    angles = np.concatenate([[np.radians(yaw_deg)], np.arctan2(sides[:, 1], sides[:, 0])])
    c, s = np.cos(angles), np.sin(angles)
    across = c[:, None] * hull[:, 0] + s[:, None] * hull[:, 1]
    along = -s[:, None] * hull[:, 0] + c[:, None] * hull[:, 1]
    area = np.ptp(across, axis=1) * np.ptp(along, axis=1)
    k = 0 if area[0] <= _SAME_AREA * area.min() else int(area.argmin())
    rotation = np.array([[c[k], -s[k], 0], [s[k], c[k], 0], [0, 0, 1.0]])
    local = points @ rotation
    low, high = local.min(axis=0), local.max(axis=0)
    return OrientedBox(rotation @ ((low + high) / 2), high - low, rotation)


def _light_room(plan: RoomPlan) -> RoomWorld:
    rng, lamps = plan.rng, []
    evening = bool(rng.random() < 0.25)
    for thing in plan.placed:
        if thing.model.lamp:
            center, radius, power = thing.model.lamp
            lamps.append(Lamp(thing.to_room(np.array(center)), radius, power * _WARM * (1.5 if evening else 0.5)))
    parts = [(n, part, thing.edge_m) for n, thing in enumerate(plan.placed, start=1) for part in thing.parts()]
    mesh = refine_mesh(join_parts(parts))
    del parts
    atlas = Atlas(mesh.textures)
    sun, strength = None, 0.0
    if plan.sunny and not evening and rng.random() < 0.75:
        sun, strength = _draw_sun_direction(rng, plan.openings), float(rng.uniform(5, 9))
    day = 0.35 if evening else 1.0
    dimmed = [Window(w.center_m, w.half_m, w.normal, w.radiance * day) for w in plan.windows]
    mesh, light = bake_light(mesh, atlas.mean, Lights(dimmed, lamps, sun, strength * _SUN), rng)
    seen = mesh.edge_m < 10
    shown = np.maximum((light * atlas.mean[mesh.texture]).mean(axis=1)[seen], 1e-4)
    exposure = _MIDDLE_GREY / float(np.percentile(shown, 60))
    tint = np.array([rng.uniform(0.96, 1.05), 1.0, rng.uniform(0.94, 1.06)])
    return RoomWorld(mesh, light, atlas, plan.objects(), art.make_outside_panorama(rng), exposure, tint)


def _place_centrepiece(f: Furnisher, kind: str) -> Placed:
    """The thing on a table, or on the floor where it is large, with room to walk round it."""
    room, rng = f.room, f.rng
    w, d, _ = room.size_m
    x, y = w / 2 + float(rng.uniform(-0.15, 0.15)), d / 2 + float(rng.uniform(-0.1, 0.1))
    model = f.make_model(kind)
    low, high = model.extent_m()
    yaw = float(rng.uniform(0, 360))
    if max(high - low) > 0.55:
        f.lay_rug(x, y, float(rng.choice([0, 90])))
        thing = Placed(model, x, y, 0.0, yaw)
    else:
        reach = float(np.hypot(*np.maximum(-low[:2], high[:2])))
        for board in (*(f.choose_kind("round table, side table, coffee table, table") for _ in range(4)), "table"):
            table = Placed(f.make_model(board), x, y, 0.0, float(rng.uniform(0, 90)))
            if (
                min(max(table.model.shelves, key=lambda shelf: shelf.center_m[2]).half_m) > 0.7 * reach
            ):  # a handle may reach over the edge
                break
        room.placed.append(table)
        top = max(float(shelf.center_m[2]) for shelf in table.model.shelves)  # a coffee table has a board below too
        thing = Placed(model, x, y, top + 0.0005, yaw)
    room.placed.append(thing)
    if thing.z > 0:
        f.put_on_top(table, "mug, papers, books, candle, package", 3)
    clear = Model(_RESERVED).add_box((2.3, 2.3, 1.5), (0, 0, 0), f.style.wood)
    room.placed.append(Placed(clear, x, y, 0.25, 0.0))
    return thing


def _draw_openings(rng: np.random.Generator, size: tuple[float, float, float], main: int) -> tuple[Opening, ...]:
    """One door, one or two windows; never a door in the main wall."""
    walls = [(main + 1) % 4, (main + 2) % 4, (main + 3) % 4]
    door_wall = walls[int(rng.integers(3))]
    wide, tall = float(rng.uniform(0.76, 0.98)), float(rng.uniform(1.95, 2.15))
    length = size[door_wall % 2]
    low = float(rng.uniform(0.2, 0.6)) if rng.random() < 0.5 else length - wide - float(rng.uniform(0.2, 0.6))
    made = [Opening(door_wall, low, low + wide, 0.0, tall, "door")]
    for wall in [int(w) for w in rng.permutation([w for w in range(4) if w != door_wall])[: int(rng.integers(1, 3))]]:
        length = size[wall % 2]
        bottom, top = float(rng.uniform(0.85, 1.0)), float(rng.uniform(2.05, 2.25))
        wide = float(rng.uniform(1.0, 1.7))
        middle = float(rng.uniform(0.35, 0.65)) * length
        made.append(Opening(wall, middle - wide / 2, middle + wide / 2, bottom, top, "window"))
    return tuple(made)


def _draw_sun_direction(rng: np.random.Generator, openings: Sequence[Opening]) -> FloatArray:
    """Unit vector towards a sun that shines through one of the windows."""
    windows = [o for o in openings if o.kind == "window"]
    wall = windows[int(rng.integers(len(windows)))].wall
    outward = (-90.0, 0.0, 90.0, 180.0)[wall]
    azimuth, height = np.radians(outward + rng.uniform(-50, 50)), np.radians(rng.uniform(24, 46))
    return np.array([np.cos(azimuth) * np.cos(height), np.sin(azimuth) * np.cos(height), np.sin(height)])


def _place_ceiling_lamp(rng: np.random.Generator, size: tuple[float, float, float], style: Style) -> Placed:
    model, drop = Model("ceiling lamp"), float(rng.uniform(0.15, 0.5))
    r = float(rng.uniform(0.13, 0.3))
    model.add_lathe([(0, 0), (r, 0), (0.75 * r, 0.16), (0, 0.18)], (0, 0, 0), style.shade, 28)
    model.add_rod((0, 0, 0.17), (0, 0, 0.18 + drop), 0.008, style.brass)
    model.lamp = ((0.0, 0.0, 0.08), r + 0.03, float(rng.uniform(0.6, 1.6)))
    return Placed(model, size[0] / 2, size[1] / 2, size[2] - 0.18 - drop, 0.0)
