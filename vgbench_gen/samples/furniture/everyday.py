"""Small things that lie about where people live."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import trimesh

from vgbench_gen.samples.furniture.storage import add_book_row
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.paintings import paint_landscape
from vgbench_gen.samples.parts import Model, Vec3
from vgbench_gen.samples.textures import Texture

_CORD_SIDES = 6


def remote_control(rng: np.random.Generator, style: Style) -> Model:
    """Remote control with rows of buttons."""
    model = Model("remote control").add_box((0.046, 0.17, 0.018), (0, 0, 0), style.black)
    for row in range(4):
        for x in (-0.012, 0.012):
            model.add_box((0.013, 0.011, 0.003), (x, 0.045 - 0.026 * row, 0.018), style.white)
    return model.add_box((0.01, 0.01, 0.003), (0, 0.07, 0.018), style.bright[0])


def phone(rng: np.random.Generator, style: Style) -> Model:
    """Telephone lying on its back, its cord curled beside it."""
    model = Model("phone").add_box((0.075, 0.15, 0.009), (0, 0, 0), style.black, {"+z": pick(rng, style.packages)})
    turns = np.linspace(0, rng.uniform(3, 5), 9)
    points = [(0.03 + 0.05 * np.sin(t), -0.075 - 0.022 * t, 0.003) for t in turns]
    return _add_cord(model, [(0, -0.073, 0.004), *points], style.white)


def notebook(rng: np.random.Generator, style: Style) -> Model:
    """Open notebook with a pen on it."""
    model = Model("notebook").add_box((0.3, 0.2, 0.003), (0, 0, 0), pick(rng, style.bright))
    for x in (-1, 1):
        model.add_box((0.142, 0.19, 0.007), (x * 0.073, 0, 0.003), style.white, {"+z": style.sheet})
    lean = rng.uniform(-0.04, 0.04)
    return model.add_rod((0.04, -0.05, 0.0145), (0.09 + lean, 0.07, 0.0145), 0.0045, pick(rng, style.bright), 6)


def magazines(rng: np.random.Generator, style: Style) -> Model:
    """Magazines on each other, askew."""
    model = Model("magazine")
    for k in range(int(rng.integers(1, 4))):
        at = (rng.uniform(-0.02, 0.02), rng.uniform(-0.02, 0.02), 0.006 * k)
        sides = {"+z": pick(rng, style.packages)}
        model.add_box((0.21, 0.28, 0.006), at, style.white, sides, (0, 0, rng.uniform(-12, 12)), bevel=False)
    return model


def pen_holder(rng: np.random.Generator, style: Style) -> Model:
    """Cup with pens."""
    r, h = 0.038, rng.uniform(0.09, 0.11)
    model = Model("pen holder")
    _add_cup(model, r, h, pick(rng, (style.metal, style.black, *style.ceramics)))
    for k in range(int(rng.integers(3, 6))):
        a, lean = 2.2 * k + rng.uniform(0, 1), 0.026
        top = (lean * np.cos(a), lean * np.sin(a), h + rng.uniform(0.03, 0.08))
        model.add_rod((-0.015 * np.cos(a), -0.015 * np.sin(a), 0.01), top, 0.004, pick(rng, style.bright), 6)
    return model


def headphones(rng: np.random.Generator, style: Style) -> Model:
    """Headphones lying flat."""
    model = Model("headphones")
    a = np.linspace(-0.15, np.pi + 0.15, 13)
    arc = [(0.085 * np.cos(t), 0.09 * np.sin(t), 0.03) for t in a]
    _add_cord(model, arc, style.black, 0.007)
    for x in (-1, 1):
        model.add_cushion((0.035, 0.075, 0.07), (x * 0.077, -0.03, 0), style.leather, 0.016)
    return model


def paper_tray(rng: np.random.Generator, style: Style) -> Model:
    """Two letter trays on each other, with sheets in them."""
    model, shell = Model("paper tray"), pick(rng, (style.black, style.metal, style.white))
    for z in (0.0, 0.07):
        model.add_box((0.25, 0.32, 0.004), (0, 0, z), shell)
        model.add_box((0.25, 0.004, 0.05), (0, 0.158, z + 0.004), shell)
        for x in (-1, 1):
            model.add_box((0.004, 0.316, 0.05), (x * 0.123, -0.002, z + 0.004), shell)
            model.add_box((0.012, 0.012, 0.02), (x * 0.115, 0.145, z + 0.05), shell)
        tall = rng.uniform(0.005, 0.03)
        model.add_box((0.21, 0.29, tall), (0, 0, z + 0.004), style.white, bevel=False)
    return model


def tape(rng: np.random.Generator, style: Style) -> Model:
    """Roll of tape."""
    r = rng.uniform(0.04, 0.055)
    profile = [(0.6 * r, 0), (r, 0), (r, 0.045), (0.6 * r, 0.045), (0.6 * r, 0)]
    return Model("tape").add_lathe(profile, (0, 0, 0), pick(rng, (style.card, *style.bright)), 20)


def game_controller(rng: np.random.Generator, style: Style) -> Model:
    """Game controller with its sticks."""
    shell = pick(rng, (style.black, style.white))
    model = Model("game controller").add_cushion((0.13, 0.055, 0.032), (0, 0.01, 0.012), shell, 0.014)
    for x in (-1, 1):
        model.add_cushion((0.042, 0.1, 0.034), (x * 0.058, -0.012, 0), shell, 0.016, turn_deg=(0, 0, x * 14))
        model.add_cylinder(0.009, 0.012, (x * 0.025, 0.0, 0.043), style.metal, sections=10)
    return model


def tissues(rng: np.random.Generator, style: Style) -> Model:
    """Box of tissues, one of them pulled out."""
    model = Model("tissues").add_box((0.23, 0.12, 0.085), (0, 0, 0), pick(rng, style.bright + (style.wood2,)))
    for k in range(3):
        turn = (rng.uniform(-24, 24), rng.uniform(-10, 10), 40.0 * k)
        model.add_box((0.08, 0.002, 0.07), (0.02 * (k - 1), 0, 0.082), style.white, turn_deg=turn)
    return model


def photo_frame(rng: np.random.Generator, style: Style) -> Model:
    """Small picture leaning on its stand."""
    w, h, frame = 0.15, 0.2, pick(rng, (style.wood2, style.black, style.white, style.brass))
    model = Model("photo frame").add_box((w, 0.014, h), (0, 0, 0.001), frame, turn_deg=(-14, 0, 0))
    model.add_box((w - 0.03, 0.002, h - 0.03), (0, -0.004, 0.014), frame, {"-y": _make_photo(rng)}, (-14, 0, 0))
    return model.add_rod((0, 0.085, 0.003), (0, 0.035, 0.12), 0.004, frame, 6)


def canisters(rng: np.random.Generator, style: Style) -> Model:
    """Glazed jars with lids, side by side."""
    model, count = Model("canister"), int(rng.integers(1, 4))
    for k in range(count):
        r, h = rng.uniform(0.033, 0.042), rng.uniform(0.09, 0.15)
        at = (0.09 * (k - (count - 1) / 2), rng.uniform(-0.015, 0.015), 0.0)
        profile = [(0, 0), (r, 0), (r, 0.85 * h), (0.85 * r, 0.92 * h), (0, 0.92 * h)]
        model.add_lathe(profile, at, pick(rng, style.ceramics + style.bright), 16)
        model.add_cylinder(0.9 * r, 0.1 * h, (at[0], at[1], 0.9 * h), pick(rng, (style.metal, style.wood2)), None, 16)
    return model


def container(rng: np.random.Generator, style: Style) -> Model:
    """Box of cloth or wicker with a lid."""
    w, d, h = rng.uniform(0.2, 0.3), rng.uniform(0.15, 0.19), rng.uniform(0.11, 0.16)
    cover = pick(rng, (*style.fabrics, style.wicker, style.card))
    model = Model("container").add_box((w, d, h), (0, 0, 0), cover)
    model.add_box((w + 0.01, d + 0.01, 0.045), (0, 0, h - 0.03), cover)
    return model.add_box((0.07, 0.003, 0.04), (0, -d / 2 - 0.001, 0.4 * h), style.metal, {"-y": style.white})


def hat(rng: np.random.Generator, style: Style) -> Model:
    """Hat with a brim and a band."""
    cloth = pick(rng, (*style.fabrics, style.wicker))
    profile = [(0, 0), (0.15, 0), (0.152, 0.006), (0.09, 0.012), (0.084, 0.075), (0.06, 0.098), (0, 0.1)]
    model = Model("hat").add_lathe(profile, (0, 0, 0), cloth)
    return model.add_lathe([(0, 0.014), (0.0925, 0.014), (0.09, 0.036), (0, 0.036)], (0, 0, 0), style.black)


def folded_cloth(rng: np.random.Generator, style: Style) -> Model:
    """Folded towels, sheets or clothes on each other."""
    model, z = Model("towel" if rng.random() < 0.5 else "clothes"), 0.0
    w, d = rng.uniform(0.26, 0.34), rng.uniform(0.2, 0.26)
    for _ in range(int(rng.integers(2, 5))):
        tall = rng.uniform(0.028, 0.045)
        size = (w * rng.uniform(0.92, 1), d * rng.uniform(0.92, 1), tall)
        model.add_cushion(size, (0, 0, z), pick(rng, style.fabrics), 0.012, 0.003, (0, 0, rng.uniform(-4, 4)))
        z += tall - 0.002
    return model


def blanket(rng: np.random.Generator, style: Style) -> Model:
    """Folded blanket."""
    model, cloth, z = Model("blanket"), pick(rng, style.fabrics), 0.0
    for k in range(3):
        model.add_cushion((0.46 - 0.01 * k, 0.32 - 0.008 * k, 0.05), (0.004 * k, 0, z), cloth, 0.022, 0.004)
        z += 0.046
    return model


def book_row(rng: np.random.Generator, style: Style) -> Model:
    """Books standing between two ends."""
    model, long = Model("books"), rng.uniform(0.18, 0.34)
    end = add_book_row(model, rng, style, -long / 2, long / 2, (0.0, 0.0), 0.17, 0.24)
    for x, way in ((-long / 2 - 0.006, 1), (end + 0.005, -1)):
        model.add_box((0.008, 0.11, 0.13), (x, 0.01, 0), style.metal)
        model.add_box((0.07, 0.11, 0.003), (x - way * 0.035, 0.01, 0), style.metal)
    return model


def plates(rng: np.random.Generator, style: Style) -> Model:
    """A plate, or a few on each other."""
    model, paint, r = Model("plate"), pick(rng, style.ceramics), rng.uniform(0.1, 0.13)
    for k in range(int(rng.integers(1, 6))):
        z = 0.009 * k
        profile = [(0, z), (0.6 * r, z), (r, z + 0.018), (r, z + 0.022), (0.62 * r, z + 0.007), (0, z + 0.007)]
        model.add_lathe(profile, (0, 0, 0), paint)
    return model


def cutting_board(rng: np.random.Generator, style: Style) -> Model:
    """Board with a knife and something to cut."""
    model = Model("cutting board").add_box((0.36, 0.23, 0.018), (0, 0, 0), style.wood2)
    model.add_box((0.18, 0.026, 0.0025), (0.03, -0.07, 0.018), style.metal)
    model.add_box((0.11, 0.022, 0.016), (-0.11, -0.07, 0.018), style.black)
    for k in range(int(rng.integers(1, 4))):
        r = rng.uniform(0.028, 0.036)
        model.add_ball((r, r, r), (-0.09 + 0.09 * k, 0.045, 0.017 + r), pick(rng, style.bright))
    return model


def fruit(rng: np.random.Generator, style: Style) -> Model:
    """Fruit lying together."""
    model, peel = Model("fruit"), pick(rng, style.bright)
    for k in range(3):
        r, a = rng.uniform(0.034, 0.038), 2 * np.pi * k / 3
        model.add_ball((r, r, r), (0.046 * np.cos(a), 0.046 * np.sin(a), r), peel)
    return model


def paper_towel(rng: np.random.Generator, style: Style) -> Model:
    """Kitchen roll on its stand."""
    model = Model("paper towel").add_cylinder(0.075, 0.012, (0, 0, 0), style.wood2)
    model.add_cylinder(rng.uniform(0.045, 0.065), 0.23, (0, 0, 0.014), style.white)
    return model.add_cylinder(0.011, 0.31, (0, 0, 0.01), style.wood2, sections=10)


def soap(rng: np.random.Generator, style: Style) -> Model:
    """Dispenser of soap."""
    r, h = 0.034, rng.uniform(0.13, 0.17)
    model = Model("soap dispenser").add_lathe(
        [(0, 0), (r, 0), (r, 0.75 * h), (0.4 * r, 0.9 * h), (0, 0.9 * h)], (0, 0, 0), pick(rng, style.bright), 18
    )
    model.add_cylinder(0.007, 0.035 + 0.1 * h, (0, 0, 0.9 * h), style.white, sections=8)
    return model.add_box((0.016, 0.055, 0.012), (0, -0.016, h + 0.035), style.white)


def dish_rack(rng: np.random.Generator, style: Style) -> Model:
    """Wire rack with plates in it."""
    model, paint = Model("dish rack"), pick(rng, style.ceramics)
    model.add_box((0.36, 0.27, 0.012), (0, 0, 0), style.black)
    for y in (-1, 1):
        model.add_rod((-0.17, y * 0.12, 0.1), (0.17, y * 0.12, 0.1), 0.004, style.metal, 6)
        for x in (-0.17, 0.17):
            model.add_rod((x, y * 0.12, 0.01), (x, y * 0.12, 0.1), 0.004, style.metal, 6)
    for x in np.arange(-0.13, 0.14, 0.045)[: int(rng.integers(3, 7))]:
        model.add_rod((x, 0, 0.112), (x + 0.008, 0, 0.1145), 0.1, paint, 24)
    return model


def stacking_rings(rng: np.random.Generator, style: Style) -> Model:
    """Rings of falling size on a stick."""
    model = Model("stacking rings").add_cylinder(0.07, 0.015, (0, 0, 0), style.wood2)
    for k in range(4):
        r, z = 0.066 - 0.011 * k, 0.015 + 0.032 * k
        profile = [(0, z), (r - 0.01, z), (r, z + 0.008), (r, z + 0.024), (r - 0.01, z + 0.032), (0, z + 0.032)]
        model.add_lathe(profile, (0, 0, 0), style.bright[k], 20)
    return model.add_ball((0.016, 0.016, 0.016), (0, 0, 0.155), style.bright[0], 1)


def toy_train(rng: np.random.Generator, style: Style) -> Model:
    """Engine with two waggons."""
    model = Model("toy train")
    for k, x in enumerate((-0.15, 0.0, 0.15)):
        model.add_box((0.12, 0.06, 0.03), (x, 0, 0.022), style.bright[k])
        for wheel, y in itertools.product((-0.035, 0.035), (-1, 1)):
            at = x + wheel
            model.add_rod((at, y * 0.024, 0.02), (at, y * 0.036, 0.02), 0.02, style.black, 12)
        if k:
            model.add_box((0.1, 0.05, rng.uniform(0.02, 0.05)), (x, 0, 0.052), style.bright[3 - k])
            model.add_rod((x - 0.1, 0, 0.03), (x - 0.05, 0, 0.03), 0.005, style.metal, 6)
    model.add_box((0.045, 0.056, 0.06), (-0.115, 0, 0.052), style.bright[3])
    model.add_rod((-0.19, 0, 0.07), (-0.13, 0, 0.07), 0.022, style.black, 14)
    return model.add_cylinder(0.01, 0.04, (-0.18, 0, 0.085), style.black, 0.014, 10)


def hammer(rng: np.random.Generator, style: Style) -> Model:
    """Hammer lying on its side."""
    model = Model("hammer").add_rod((-0.15, 0, 0.014), (0.13, 0, 0.014), 0.014, pick(rng, style.bright), 10)
    model.add_box((0.028, 0.11, 0.028), (0.135, 0, 0), style.metal)
    return model


def paint_can(rng: np.random.Generator, style: Style) -> Model:
    """Tin of paint with its handle down."""
    r, h = rng.uniform(0.075, 0.09), rng.uniform(0.16, 0.2)
    model = Model("paint can").add_cylinder(r, h, (0, 0, 0), pick(rng, style.bright))
    model.add_cylinder(0.94 * r, 0.008, (0, 0, h), style.metal)
    angle = np.linspace(-np.pi / 2, np.pi / 2, 9)
    bail = [(1.05 * r * np.cos(t), (r + 0.006) * np.sin(t), 0.7 * h - 0.3 * h * np.cos(t)) for t in angle]
    return _add_cord(model, bail, style.metal, 0.003)


def power_strip(rng: np.random.Generator, style: Style) -> Model:
    """Sockets in a row with a cord that winds over the floor."""
    model, shell = Model("power strip"), pick(rng, (style.white, style.black))
    model.add_box((0.3, 0.055, 0.038), (0, 0, 0), shell)
    for k in range(5):
        model.add_cylinder(0.019, 0.002, (-0.11 + 0.055 * k, 0, 0.038), style.black, sections=14)
    model.add_box((0.035, 0.035, 0.03), (-0.055, 0, 0.038), style.black)
    turns = np.linspace(0, rng.uniform(5, 8), 15)
    points = [(0.16 + 0.035 * t, rng.uniform(0.03, 0.06) * np.sin(t), 0.004) for t in turns]
    return _add_cord(model, [(0.145, 0, 0.018), *points], shell, 0.004)


def tote_bag(rng: np.random.Generator, style: Style) -> Model:
    """Cloth bag with handles, full."""
    w, d, h = rng.uniform(0.28, 0.36), rng.uniform(0.12, 0.16), rng.uniform(0.28, 0.36)
    cloth = pick(rng, style.fabrics)
    model = Model("tote bag").add_cushion((w, d, h), (0, 0, 0), cloth, 0.05)
    for y in (-0.4 * d, 0.4 * d):
        arc = [(0.07 * np.cos(t), y, h - 0.03 + 0.12 * np.sin(t)) for t in np.linspace(0, np.pi, 8)]
        _add_cord(model, arc, cloth, 0.008)
    return model


def dumbbells(rng: np.random.Generator, style: Style) -> Model:
    """A pair of dumbbells."""
    model, paint = Model("dumbbell"), pick(rng, (style.black, *style.bright))
    for y in (-0.075, 0.075):
        model.add_rod((-0.1, y, 0.055), (0.1, y, 0.055), 0.014, style.metal, 10)
        for x in (-1, 1):
            model.add_rod((x * 0.06, y, 0.055), (x * 0.125, y, 0.055), 0.055, paint, 14)
    return model


def slippers(rng: np.random.Generator, style: Style) -> Model:
    """A pair of slippers, one before the other."""
    model, upper = Model("slippers"), pick(rng, style.fabrics)
    for x, y in ((-0.06, 0.0), (0.065, rng.uniform(-0.06, 0.06))):
        model.add_cushion((0.095, 0.27, 0.022), (x, y, 0), style.black, 0.01)
        model.add_cushion((0.1, 0.14, 0.06), (x, y - 0.062, 0.012), upper, 0.028)
    return model


def _make_photo(rng: np.random.Generator) -> Texture:
    """A landscape, as small as it is shown; it bears no writing."""
    return Texture(paint_landscape(rng, 128, 180), (1.0, 1.0), tiles=False, gloss=0.3)


def _add_cup(model: Model, r: float, h: float, texture: Texture) -> Model:
    wall = [(0, 0), (r, 0), (r, h), (r - 0.004, h), (r - 0.004, 0.008), (0, 0.008)]
    return model.add_lathe(wall, (0, 0, 0), texture, 20)


def _add_cord(model: Model, points: Sequence[Vec3], texture: Texture, radius: float = 0.003) -> Model:
    """A round cord along points."""
    middle = np.array(points, np.float64)
    ahead = np.gradient(middle, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    # Beside a cord is what lies across it and as level as can be; where it stands upright, any direction.
    side = np.cross(ahead, [0.0, 0.0, 1.0])
    side[np.linalg.norm(side, axis=1) < 1e-3] = [1.0, 0.0, 0.0]
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    up = np.cross(side, ahead)
    a = np.arange(_CORD_SIDES) * (2 * np.pi / _CORD_SIDES)
    rings = middle[:, None] + radius * (np.cos(a)[:, None] * side[:, None] + np.sin(a)[:, None] * up[:, None])
    count, (k, j) = len(middle), np.mgrid[: len(middle) - 1, :_CORD_SIDES].reshape(2, -1)
    first, beside = k * _CORD_SIDES + j, k * _CORD_SIDES + (j + 1) % _CORD_SIDES
    ends = np.arange(1, _CORD_SIDES - 1)
    low = np.stack([0 * ends, ends + 1, ends], axis=1)
    faces = [
        np.stack([first, beside, beside + _CORD_SIDES], axis=1),
        np.stack([first, beside + _CORD_SIDES, first + _CORD_SIDES], axis=1),
        low,
        low[:, ::-1] + (count - 1) * _CORD_SIDES,
    ]
    mesh = trimesh.Trimesh(rings.reshape(-1, 3), np.concatenate(faces), process=False)
    mesh.fix_normals()
    return model.add(mesh, texture, smooth=True)
