"""The building around a room: floor, ceiling, walls with openings, doors, windows, curtains, blinds, baseboards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples import art, drawing, textures
from vgbench_gen.samples.arrange import Opening, Placed
from vgbench_gen.samples.fields import Rgb, mix
from vgbench_gen.samples.light import Window
from vgbench_gen.samples.parts import Model
from vgbench_gen.samples.textures import Texture

_SKY = np.array([0.86, 0.95, 1.08])
_EDGE_M = 0.16
_RECESS_M = 0.06  # of a window, from the wall's face to the frame, with a centimeter of air


@dataclass(frozen=True, eq=False)
class ShellMaterials:
    """Materials and sizes of the building."""

    floor: Texture
    ceiling: Texture
    walls: tuple[Texture, ...]
    """The material of each wall, in the order of their numbers."""
    trim: Texture
    door: Texture
    curtain: Texture
    brass: Texture
    wall_m: float
    sill_m: float


def draw_materials(rng: np.random.Generator, kind: str) -> ShellMaterials:
    """Draw the building's materials as they suit a kind of room."""
    pale: tuple[Rgb, ...] = (
        *((226, 220, 206), (214, 220, 222), (222, 214, 196), (206, 214, 202), (230, 226, 220), (214, 204, 196)),
        *((196, 206, 214), (224, 206, 186), (186, 196, 184)),
    )
    base = pale[int(rng.integers(len(pale)))]
    paint = textures.plaster(rng, base)
    accent_kind = rng.random()
    if kind in ("kitchen", "bathroom"):
        accent = textures.tiles(rng, mix(base, (240, 240, 236), 0.5), (150, 146, 140), (0.15, 0.15), 0.35)
    elif kind == "workshop":
        accent = textures.brick(rng, ((150, 84, 66), (206, 198, 188))[int(rng.integers(2))], (176, 168, 158))
    elif accent_kind < 0.55:
        accent = art.wallpaper(rng, base)
    elif accent_kind < 0.7:
        accent = textures.brick(rng, ((158, 92, 72), (214, 208, 200))[int(rng.integers(2))], (186, 178, 168))
    elif accent_kind < 0.85:
        accent = textures.planks(rng, "white oak")
    else:
        accent = textures.plaster(rng, mix(drawing.draw_hue(rng, 0.8, 1.1), base, 0.3))
    walls = [paint] * 4
    walls[int(rng.integers(4))] = accent
    if rng.random() < 0.4:
        walls = [accent if w is paint and rng.random() < 0.5 else w for w in walls]
    if kind == "kitchen":
        floor = textures.tiles(
            rng, ((190, 176, 158), (150, 144, 138), (214, 206, 194))[int(rng.integers(3))], (96, 92, 88), (0.3, 0.3)
        )
    elif kind == "workshop":
        floor = textures.concrete(rng, (146, 142, 136))
    elif kind == "office" and rng.random() < 0.6:
        floor = textures.carpet(rng, ((96, 102, 112), (120, 108, 96), (84, 92, 88))[int(rng.integers(3))])
    else:
        pick = rng.random()
        floor = (
            textures.herringbone(rng)
            if pick < 0.3
            else textures.terrazzo(rng, (196, 188, 176))
            if pick < 0.38
            else textures.planks(rng)
        )
    return ShellMaterials(
        floor,
        textures.plaster(rng, (228, 227, 222)),
        tuple(walls),
        textures.painted_wood(rng, (224, 222, 214)),
        textures.painted_wood(rng, (222, 220, 212)) if rng.random() < 0.5 else textures.wood(rng),
        textures.fabric(rng, mix(drawing.draw_hue(rng, 0.9, 1.2), (220, 214, 204), 0.45)),
        textures.metal(rng),
        float(rng.uniform(0.14, 0.28)),
        float(rng.uniform(0.05, 0.13)),
    )


def build_shell(
    rng: np.random.Generator, size_m: tuple[float, float, float], openings: tuple[Opening, ...], look: ShellMaterials
) -> tuple[list[Placed], list[Window], bool]:
    """(pieces of the building, windows as lights, whether the sun comes in)."""
    w, d, h = size_m
    made: list[Placed] = []

    def add(model: Model, edge_m: float = _EDGE_M, structural: bool = True) -> None:
        made.append(Placed(model, 0.0, 0.0, 0.0, 0.0, structural, edge_m))

    hidden = ("-x", "+x", "-y", "+y")
    floor_turn = int(rng.integers(2))
    add(
        Model("floor").add_box((w, d, 0.1), (w / 2, d / 2, -0.1), look.floor, coarse=(*hidden, "-z"), along=floor_turn),
        0.14,
    )
    add(Model("ceiling").add_box((w, d, 0.1), (w / 2, d / 2, h), look.ceiling, coarse=(*hidden, "+z")), 0.22)
    for wall in range(4):
        add(_build_wall(size_m, wall, [o for o in openings if o.wall == wall], look.walls[wall], look.wall_m))
        add(
            _build_baseboard(size_m, wall, [o for o in openings if o.wall == wall and o.kind == "door"], look.trim), 0.4
        )
    windows, sunny = [], False
    for opening in openings:
        if opening.kind == "door":
            add(_build_door(size_m, opening, look), 0.25)
            continue
        add(_build_window(size_m, opening, look), 0.25)
        blinds = bool(rng.random() < 0.25)
        if blinds:
            add(_build_blinds(size_m, opening, look), 0.3, structural=False)
        elif rng.random() < 0.75:
            for side in (-1, 1):
                add(_build_curtain(rng, size_m, opening, side, look), 0.3, structural=False)
        sunny |= not blinds
        windows.append(_make_window_light(size_m, opening, 0.55 if blinds else 1.0))
    return made, windows, sunny


def _get_wall_frame(size_m: tuple[float, float, float], wall: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Start of a wall, unit vector along it, inward normal."""
    w, d, _ = size_m
    start = np.array([[0, 0, 0], [w, 0, 0], [0, d, 0], [0, 0, 0]], dtype=np.float64)[wall]
    along = np.array([[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 1, 0]], dtype=np.float64)[wall]
    inward = np.array([[0, 1, 0], [-1, 0, 0], [0, -1, 0], [1, 0, 0]], dtype=np.float64)[wall]
    return start, along, inward


def _add_slab(
    model: Model,
    size_m: tuple[float, float, float],
    wall: int,
    span: tuple[float, float, float, float],
    off: tuple[float, float],
    texture: Texture,
    coarse: tuple[str, ...] = (),
    upright: bool = False,
    bevel: bool = True,
) -> None:
    """A box on a wall: (along1, along2, z1, z2) and from `off[0]` to `off[1]` before its face; `upright`: grain."""
    start, along, inward = _get_wall_frame(size_m, wall)
    a1, a2, z1, z2 = span
    middle = start + along * (a1 + a2) / 2 + inward * (off[0] + off[1]) / 2
    across, deep = a2 - a1, off[1] - off[0]
    size = (across, deep, z2 - z1) if wall % 2 == 0 else (deep, across, z2 - z1)
    grain = 2 if upright else wall % 2
    model.add_box(size, (middle[0], middle[1], z1), texture, coarse=coarse, along=grain, bevel=bevel and not coarse)


def _build_wall(
    size_m: tuple[float, float, float], wall: int, openings: list[Opening], texture: Texture, wall_m: float
) -> Model:
    model, h, length = Model("wall"), size_m[2], size_m[wall % 2]
    outer = ("-y", "+x", "+y", "-x")[wall]
    hidden = (outer, "+z", "-z")
    ends = ("-x", "+x") if wall % 2 == 0 else ("-y", "+y")
    at = 0.0
    for o in sorted(openings, key=lambda o: o.low_m):
        _add_slab(model, size_m, wall, (at, o.low_m, 0, h), (-wall_m, 0), texture, hidden)
        if o.bottom_m > 0:
            _add_slab(
                model, size_m, wall, (o.low_m, o.high_m, 0, o.bottom_m), (-wall_m, 0), texture, (outer, "-z", *ends)
            )
        _add_slab(model, size_m, wall, (o.low_m, o.high_m, o.top_m, h), (-wall_m, 0), texture, (outer, "+z", *ends))
        at = o.high_m
    _add_slab(model, size_m, wall, (at, length, 0, h), (-wall_m, 0), texture, hidden)
    return model


def _build_baseboard(size_m: tuple[float, float, float], wall: int, doors: list[Opening], texture: Texture) -> Model:
    model, at = Model("baseboard"), 0.013 if wall % 2 else 0.0
    end = size_m[wall % 2] - at
    for door in sorted(doors, key=lambda o: o.low_m):
        _add_slab(model, size_m, wall, (at, door.low_m - 0.07, 0, 0.08), (0, 0.012), texture)
        at = door.high_m + 0.07
    _add_slab(model, size_m, wall, (at, end, 0, 0.08), (0, 0.012), texture)
    return model


def _build_door(size_m: tuple[float, float, float], o: Opening, look: ShellMaterials) -> Model:
    model, a1, a2, top = Model("door"), o.low_m, o.high_m, o.top_m
    _add_slab(model, size_m, o.wall, (a1 + 0.03, a2 - 0.03, 0.004, top - 0.03), (-0.09, -0.05), look.door, upright=True)
    _add_slab(model, size_m, o.wall, (a1 + 0.03, a2 - 0.03, -0.02, 0.004), (-look.wall_m, 0.0), look.trim)
    for low, high, z1, z2 in ((0.14, 0.86, 0.15, 0.42), (0.14, 0.86, 0.52, 0.92)):
        wide, tall = a2 - a1, top
        span = (a1 + low * wide, a1 + high * wide, z1 * tall, z2 * tall)
        _add_slab(model, size_m, o.wall, span, (-0.05, -0.04), look.door, upright=True)
    for span in ((a1 - 0.07, a1, 0, top + 0.07), (a2, a2 + 0.07, 0, top + 0.07), (a1, a2, top, top + 0.07)):
        _add_slab(model, size_m, o.wall, span, (0, 0.015), look.trim)
    for span in ((a1, a1 + 0.03, 0, top), (a2 - 0.03, a2, 0, top), (a1 + 0.03, a2 - 0.03, top - 0.03, top)):
        _add_slab(model, size_m, o.wall, span, (-look.wall_m, 0), look.trim)
    _add_slab(model, size_m, o.wall, (a1 + 0.07, a1 + 0.19, 1.0, 1.02), (-0.03, -0.015), look.brass)
    _add_slab(model, size_m, o.wall, (a1 + 0.06, a1 + 0.1, 0.94, 1.08), (-0.05, -0.038), look.brass)
    return model


def _find_middle(size_m: tuple[float, float, float], o: Opening) -> FloatArray:
    """The point on the floor, at the wall's face, that is below the middle of an opening."""
    start, along, _ = _get_wall_frame(size_m, o.wall)
    return start + along * (o.low_m + o.high_m) / 2


def _build_window(size_m: tuple[float, float, float], o: Opening, look: ShellMaterials) -> Model:
    model, a1, a2, z1, z2 = Model("window"), o.low_m, o.high_m, o.bottom_m, o.top_m
    bar = 0.05
    panes = max(1, round((a2 - a1) / 0.75))
    for k in range(panes + 1):
        s = a1 + (a2 - a1 - bar) * k / panes
        _add_slab(model, size_m, o.wall, (s, s + bar, z1, z2), (-0.13, -0.07), look.trim, bevel=False)
    for z in (z1, z1 + 0.62 * (z2 - z1), z2 - bar):
        for k in range(panes):
            s = a1 + (a2 - a1 - bar) * k / panes
            e = a1 + (a2 - a1 - bar) * (k + 1) / panes
            _add_slab(model, size_m, o.wall, (s + bar, e, z, z + bar), (-0.13, -0.07), look.trim, bevel=False)
    _add_slab(model, size_m, o.wall, (a1 - 0.05, a2 + 0.05, z1 - 0.03, z1), (0.0, look.sill_m), look.trim)
    # Things may stand on the sill and before the frame.
    _, along, inward = _get_wall_frame(size_m, o.wall)
    x, y = (np.array(_find_middle(size_m, o)[:2]) + inward[:2] * (look.sill_m - _RECESS_M) / 2).tolist()
    half = np.abs(along[:2] * (a2 - a1 - 0.1) / 2 + inward[:2] * (look.sill_m + _RECESS_M) / 2).tolist()
    model.add_shelf((x, y, z1), (half[0], half[1]), 0.5)
    for span in ((a1 - 0.06, a1, z1, z2 + 0.06), (a2, a2 + 0.06, z1, z2 + 0.06), (a1, a2, z2, z2 + 0.06)):
        _add_slab(model, size_m, o.wall, span, (0, 0.012), look.trim)
    return model


def _build_blinds(size_m: tuple[float, float, float], o: Opening, look: ShellMaterials) -> Model:
    model = Model("blinds")
    _add_slab(
        model, size_m, o.wall, (o.low_m + 0.01, o.high_m - 0.01, o.top_m - 0.06, o.top_m), (-0.06, -0.015), look.trim
    )
    count = int((o.top_m - o.bottom_m - 0.08) / 0.045)
    glowing = Texture(look.trim.image, look.trim.size_m, glow=0.5)
    for k in range(count):
        z = o.top_m - 0.06 - 0.045 * (k + 1)
        _add_slab(
            model, size_m, o.wall, (o.low_m + 0.01, o.high_m - 0.01, z, z + 0.04), (-0.045 - 0.004, -0.045), glowing
        )
    return model


def _build_curtain(
    rng: np.random.Generator, size_m: tuple[float, float, float], o: Opening, side: int, look: ShellMaterials
) -> Model:
    wide, over, deep = rng.uniform(0.26, 0.5), rng.uniform(0.16, 0.28), rng.uniform(0.016, 0.042)
    low, high = (o.low_m - over, o.low_m - over + wide) if side < 0 else (o.high_m + over - wide, o.high_m + over)
    low, high = max(low, 0.03), min(high, size_m[o.wall % 2] - 0.03)
    start, along, inward = _get_wall_frame(size_m, o.wall)
    s = np.linspace(low, high, 29)
    off = look.sill_m + 0.006 + deep  # hangs before the sill
    fold = off + deep * np.sin(np.arange(29) * 2 * np.pi / 4.6 + rng.uniform(0, 6))
    path = start + s[:, None] * along + fold[:, None] * inward
    top, bottom = min(o.top_m + rng.uniform(0.1, 0.22), size_m[2] - 0.03), rng.uniform(0.015, 0.3) * o.bottom_m
    back = path - 0.006 * inward
    ends = np.array([0, 0, bottom]), np.array([0, 0, top])
    rings = np.stack([path + ends[0], back + ends[0], back + ends[1], path + ends[1]], axis=1)
    model = Model("curtain").add_tube(rings, look.curtain)
    left, right = (start + x * along + off * inward for x in (low - 0.02, high + 0.02))
    rod = top + 0.012
    return model.add_rod((left[0], left[1], rod), (right[0], right[1], rod), 0.012, look.brass)


def _make_window_light(size_m: tuple[float, float, float], o: Opening, strength: float) -> Window:
    _, along, inward = _get_wall_frame(size_m, o.wall)
    middle = _find_middle(size_m, o) + inward * 0.01
    middle[2] = (o.bottom_m + o.top_m) / 2
    half = np.stack([along * (o.high_m - o.low_m) / 2, np.array([0, 0, (o.top_m - o.bottom_m) / 2])])
    return Window(middle, half, inward, strength * np.pi * _SKY)
