"""What hangs on walls, lies on floors and stands about for its looks."""

from __future__ import annotations

import cv2
import numpy as np
import trimesh

from vgbench_gen.samples import art, drawing, textures
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model


def picture(rng: np.random.Generator, style: Style) -> Model:
    """Framed picture or poster; back at +y."""
    w = rng.uniform(0.35, 0.95)
    aspect = float(rng.choice([0.7, 0.75, 1.0, 1.35, 1.5]))
    h = min(w / aspect, 1.0)
    frame, bar = pick(rng, (style.black, style.wood2, style.white, style.brass)), rng.uniform(0.012, 0.035)
    model = Model("picture").add_box((w, 0.012, h), (0, 0.006, 0), style.white, {"-y": art.picture(rng, w / h)})
    for x in (-1, 1):
        model.add_box((bar, 0.028, h + 2 * bar), (x * (w + bar) / 2, -0.002, -bar), frame)
        model.add_box((w, 0.028, bar), (0, -0.002, h if x > 0 else -bar), frame)
    return model


def whiteboard(rng: np.random.Generator, style: Style) -> Model:
    """Board with writing."""
    w, h = rng.uniform(1.0, 1.5), rng.uniform(0.7, 0.95)
    image = np.full((384, 576, 3), (236, 238, 238), np.uint8)
    for _ in range(7):
        drawing.write(
            image,
            f"{drawing.make_word(rng)} {drawing.make_word(rng)}",
            (int(rng.integers(10, 300)), int(rng.integers(30, 370))),
            26,
            drawing.draw_hue(rng, 0.5, 0.9),
        )
    for _ in range(5):
        x, y = int(rng.integers(20, 450)), int(rng.integers(20, 300))
        cv2.rectangle(
            image,
            (x, y),
            (x + int(rng.integers(40, 110)), y + int(rng.integers(30, 70))),
            drawing.draw_hue(rng, 0.4, 0.9),
            2,
        )
        cv2.arrowedLine(
            image, (x, y), (int(rng.integers(576)), int(rng.integers(384))), drawing.draw_hue(rng, 0.3, 0.8), 2, 16
        )
    board = textures.Texture(image, (1.0, 1.0), tiles=False, gloss=0.6)
    model = Model("whiteboard").add_box((w, 0.012, h), (0, 0.006, 0), style.white, {"-y": board})
    for x in (-1, 1):
        model.add_box((0.02, 0.024, h + 0.04), (x * (w + 0.02) / 2, 0, -0.02), style.metal)
        model.add_box((w, 0.024, 0.02), (0, 0, h if x > 0 else -0.02), style.metal)
    model.add_box((0.5 * w, 0.06, 0.012), (0, -0.04, -0.02), style.metal)
    return model


def clock(rng: np.random.Generator, style: Style) -> Model:
    """Wall clock."""
    r = rng.uniform(0.12, 0.19)
    model = Model("clock").add_rod(
        (0, 0.02, r), (0, -0.02, r), r, pick(rng, (style.black, style.wood2, style.bright[0])), 32
    )
    angle = np.linspace(0, 2 * np.pi, 33)[:-1]
    outline = np.stack([0.9 * r * np.cos(angle), r + 0.9 * r * np.sin(angle)], axis=1)
    return model.add_prism(outline, 0.008, (0, -0.022, 0), art.clock_face(rng))


def rug(rng: np.random.Generator, style: Style) -> Model:
    """Patterned rug."""
    w, d = rng.uniform(1.5, 2.4), rng.uniform(1.1, 1.6)
    edge = textures.fabric(rng, drawing.draw_hue(rng, 0.5, 0.9), "plain")
    return Model("rug").add_box((w, d, 0.006), (0, 0, 0), edge, {"+z": art.rug(rng, w / d)})


def plant(rng: np.random.Generator, style: Style) -> Model:
    """Leaves on stems in a pot."""
    return _add_plant(
        Model("plant"), rng, style, rng.uniform(0.12, 0.19), rng.uniform(0.5, 1.2), int(rng.integers(14, 24))
    )


def small_plant(rng: np.random.Generator, style: Style) -> Model:
    """Plant for tables and sills."""
    return _add_plant(
        Model("potted plant"), rng, style, rng.uniform(0.05, 0.08), rng.uniform(0.18, 0.34), int(rng.integers(10, 16))
    )


def cactus(rng: np.random.Generator, style: Style) -> Model:
    """Cactus in a pot."""
    r, h = rng.uniform(0.05, 0.08), rng.uniform(0.12, 0.26)
    model = Model("cactus")
    _add_pot(model, style, pick(rng, style.ceramics), r)
    model.add_ball((0.7 * r, 0.7 * r, h / 2), (0, 0, 1.5 * r + h / 2 - 0.01), style.green)
    model.add_ball((0.32 * r, 0.32 * r, 0.25 * h), (0.75 * r, 0, 1.5 * r + 0.6 * h), style.green)
    return model


def vase(rng: np.random.Generator, style: Style) -> Model:
    """Vase, sometimes with twigs."""
    h, r = rng.uniform(0.18, 0.42), rng.uniform(0.05, 0.1)
    neck = rng.uniform(0.3, 0.8) * r
    profile = [
        (0, 0),
        (0.6 * r, 0),
        (0.9 * r, 0.15 * h),
        (r, 0.4 * h),
        (0.8 * r, 0.65 * h),
        (neck, 0.85 * h),
        (1.2 * neck, h),
        (0, h - 0.01),
    ]
    model = Model("vase").add_lathe(profile, (0, 0, 0), pick(rng, style.ceramics))
    if rng.random() < 0.5:
        for _ in range(6):
            a, lean = rng.uniform(0, 2 * np.pi), rng.uniform(0.04, 0.16)
            tip = (lean * np.cos(a), lean * np.sin(a), h + rng.uniform(0.12, 0.3))
            model.add_rod((0, 0, h - 0.02), tip, 0.004, style.wood2, 5)
            model.add_ball((0.025, 0.025, 0.035), tip, pick(rng, style.bright), 1)
    return model


def candle(rng: np.random.Generator, style: Style) -> Model:
    """Candle on a dish."""
    h = rng.uniform(0.08, 0.2)
    model = Model("candle").add_lathe([(0, 0), (0.05, 0), (0.062, 0.015), (0, 0.015)], (0, 0, 0), style.brass)
    return model.add_cylinder(0.032, h, (0, 0, 0.015), style.white)


def radiator(rng: np.random.Generator, style: Style) -> Model:
    """Ribbed heater on the wall."""
    w, h = rng.uniform(0.7, 1.1), rng.uniform(0.45, 0.6)
    model = Model("radiator")
    count = round(w / 0.06)
    for k in range(count):
        x = -w / 2 + (k + 0.5) * w / count
        model.add_box((w / count - 0.012, 0.066, h), (x, 0, 0.12), style.white, bevel=False)
        model.add_rod((x, -0.034, 0.13), (x, -0.034, h + 0.11), 0.5 * (w / count - 0.012), style.white, 8)
    for z in (0.16, h + 0.06):
        model.add_rod((-w / 2, 0, z), (w / 2, 0, z), 0.018, style.white)
    for x in (-1, 1):
        model.add_box((0.03, 0.06, 0.14), (x * w * 0.36, 0.01, 0), style.white)
    return model


def guitar(rng: np.random.Generator, style: Style) -> Model:
    """Guitar leaning on a stand."""
    # Half widths of the body by height: lower bout, waist, upper bout.
    half = [(0.0, 0.07), (0.03, 0.14), (0.09, 0.185), (0.16, 0.195), (0.23, 0.165), (0.29, 0.135), (0.34, 0.13)]
    half += [(0.4, 0.145), (0.45, 0.13), (0.48, 0.09), (0.49, 0.04)]
    outline = np.array([(x, z) for z, x in half] + [(-x, z) for z, x in half[::-1]])
    model = Model("guitar").add_prism(outline, 0.09, (0, 0, 0.09), style.wood)
    model.add_box((0.055, 0.03, 0.52), (0, -0.03, 0.56), style.wood2)
    model.add_box((0.08, 0.025, 0.16), (0, -0.03, 1.07), style.wood2)
    model.add_rod((0, -0.044, 0.42), (0, -0.048, 0.42), 0.045, style.black, 20)
    model.add_box((0.14, 0.012, 0.025), (0, -0.05, 0.24), style.black)
    for k in range(6):
        model.add_rod((-0.02 + 0.008 * k, -0.056, 0.25), (-0.02 + 0.008 * k, -0.05, 1.1), 0.0012, style.metal, 4)
    for x in (-0.14, 0.14):
        model.add_rod((x, -0.09, 0.008), (x * 0.5, 0.02, 0.16), 0.008, style.black)
        model.add_rod((x, 0.12, 0.008), (x * 0.5, 0.055, 0.4), 0.008, style.black)
    return model


def globe(rng: np.random.Generator, style: Style) -> Model:
    """Globe on a foot."""
    r = rng.uniform(0.12, 0.17)
    world = textures.Texture(art.world_map(rng), (1.0, 1.0), tiles=False, gloss=0.4)
    model = Model("globe").add_lathe(
        [(0, 0), (0.1, 0), (0.09, 0.02), (0.02, 0.035), (0.018, 0.08), (0, 0.08)], (0, 0, 0), style.wood2
    )
    profile = [(r * np.sin(t), 0.07 + r - r * np.cos(t)) for t in np.linspace(0, np.pi, 17)]
    return model.add_lathe(profile, (0, 0, 0), world, 28)


def mirror_tray(rng: np.random.Generator, style: Style) -> Model:
    """Tray with candles."""
    model = Model("tray").add_box((0.36, 0.24, 0.012), (0, 0, 0), style.wood2)
    for x in (-1, 1):
        model.add_box((0.012, 0.24, 0.03), (x * 0.174, 0, 0.012), style.wood2)
        model.add_box((0.336, 0.012, 0.03), (0, x * 0.114, 0.012), style.wood2)
    for k in range(2):
        model.add_cylinder(0.035, rng.uniform(0.06, 0.14), (-0.08 + 0.16 * k, 0, 0.012), pick(rng, style.ceramics))
    return model


def _add_pot(model: Model, style: Style, clay: textures.Texture, r: float) -> None:
    profile = [
        (0, 0),
        (0.7 * r, 0),
        (0.98 * r, 1.35 * r),
        (r, 1.4 * r),
        (r, 1.55 * r),
        (0.86 * r, 1.55 * r),
        (0.84 * r, 1.4 * r),
        (0, 1.4 * r),
    ]
    model.add_lathe(profile, (0, 0, 0), clay)
    model.add_cylinder(0.84 * r, 0.04 * r, (0, 0, 1.38 * r), style.soil)


def _add_plant(model: Model, rng: np.random.Generator, style: Style, r: float, h: float, leaves: int) -> Model:
    _add_pot(model, style, pick(rng, (*style.ceramics, style.wicker)), r)
    base, long = 1.4 * r, rng.uniform(0.28, 0.45) * h
    trunk = base + rng.uniform(0.15, 0.5) * (h - base)
    model.add_rod((0, 0, base - 0.01), (0, 0, trunk), 0.06 * r + 0.004, style.wood2, 8)
    for k in range(leaves):
        a, rise = 2.4 * k + rng.uniform(-0.3, 0.3), rng.uniform(0.15, 1.2)
        z = base + (trunk - base) * rng.uniform(0.3, 1)
        _add_leaf(model, rng, style, (0, 0, z), a, rise, long * rng.uniform(0.7, 1.15))
    return model


def _add_leaf(
    model: Model,
    rng: np.random.Generator,
    style: Style,
    at: tuple[float, float, float],
    yaw: float,
    rise: float,
    length: float,
) -> None:
    """A bent blade, thick enough to be solid."""
    s = np.linspace(0, 1, 7)
    pitch = rise - 1.1 * s
    step = length / 6
    reach = np.concatenate([[0], np.cumsum(np.cos(pitch[:-1]) * step)])
    up = np.concatenate([[0], np.cumsum(np.sin(pitch[:-1]) * step)])
    width = 0.16 * length * np.sin(np.pi * np.clip(s * 0.92 + 0.06, 0, 1)) ** 0.8 + 0.002
    side = np.array([-np.sin(yaw), np.cos(yaw), 0])
    middle = np.array(at) + np.stack([reach * np.cos(yaw), reach * np.sin(yaw), up], axis=1)
    fold = np.array([0, 0, 0.25])
    thick = np.array([0, 0, 0.0015])
    left, right = middle + width[:, None] * (side + fold), middle + width[:, None] * (-side + fold)
    rows = np.stack([left, middle + thick, right, middle - thick], axis=1)  # (7, 4, 3)
    faces = []
    for i in range(6):
        for j in range(4):
            a, b, c, d = 4 * i + j, 4 * i + (j + 1) % 4, 4 * i + 4 + j, 4 * i + 4 + (j + 1) % 4
            faces += [[a, b, c], [b, d, c]]
    faces += [[0, 2, 1], [0, 3, 2], [24, 25, 26], [24, 26, 27]]
    mesh = trimesh.Trimesh(rows.reshape(-1, 3), np.array(faces), process=False)
    mesh.fix_normals()
    model.add(mesh, style.green)
