"""Electric things."""

from __future__ import annotations

import itertools

import numpy as np

from vgbench_gen.samples import art
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model


def monitor(rng: np.random.Generator, style: Style) -> Model:
    """Screen on a foot."""
    w = rng.uniform(0.48, 0.64)
    h = w * 0.58
    model = Model("monitor").add_box((0.24, 0.18, 0.014), (0, 0.02, 0), style.black)
    model.add_box((0.05, 0.03, 0.26), (0, 0.05, 0.01), style.black)
    model.add_box((w, 0.035, h), (0, 0.01, 0.1), style.black)
    model.add_box((w - 0.02, 0.004, h - 0.03), (0, -0.009, 0.118), style.black, {"-y": art.screen(rng)})
    return model


def television(rng: np.random.Generator, style: Style) -> Model:
    """Flat screen on feet, with a picture."""
    w = rng.uniform(0.9, 1.15)
    h = w * 0.57
    model = Model("television")
    for x in (-1, 1):
        model.add_box((0.04, 0.22, 0.02), (x * w * 0.32, 0, 0), style.black)
        model.add_box((0.03, 0.03, 0.08), (x * w * 0.32, 0, 0.015), style.black)
    model.add_box((w, 0.05, h), (0, 0, 0.07), style.black)
    model.add_box((w - 0.03, 0.004, h - 0.04), (0, -0.026, 0.09), style.black, {"-y": art.screen(rng, 1.75)})
    return model


def laptop(rng: np.random.Generator, style: Style) -> Model:
    """Open laptop."""
    w, d = rng.uniform(0.31, 0.37), rng.uniform(0.21, 0.25)
    model = Model("laptop").add_box((w, d, 0.016), (0, 0, 0), style.metal, {"+z": style.keyboard})
    lean = rng.uniform(8, 22)
    model.add_box((w, 0.008, d), (0, d / 2, 0.012), style.metal, {"-y": art.screen(rng, 1.55)}, (-lean, 0, 0))
    return model


def keyboard(rng: np.random.Generator, style: Style) -> Model:
    """Keyboard."""
    return Model("keyboard").add_box(
        (rng.uniform(0.38, 0.46), 0.14, 0.022), (0, 0, 0), style.black, {"+z": style.keyboard}
    )


def tower(rng: np.random.Generator, style: Style) -> Model:
    """Computer tower."""
    w, d, h = rng.uniform(0.18, 0.22), rng.uniform(0.38, 0.45), rng.uniform(0.38, 0.46)
    model = Model("computer tower").add_box((w, d, h), (0, 0, 0), style.black)
    model.add_box((w - 0.03, 0.006, 0.1), (0, -d / 2 - 0.003, h - 0.13), style.metal)
    model.add_box((0.03, 0.008, 0.03), (0, -d / 2 - 0.004, 0.2), pick(rng, style.bright))
    for k in range(6):
        model.add_box((w - 0.06, 0.006, 0.008), (0, -d / 2 - 0.003, 0.05 + 0.02 * k), style.metal)
    return model


def speaker(rng: np.random.Generator, style: Style) -> Model:
    """Loudspeaker with two cones."""
    w, d, h = rng.uniform(0.18, 0.26), rng.uniform(0.2, 0.28), rng.uniform(0.3, 0.9)
    model = Model("speaker").add_box((w, d, h), (0, 0, 0), style.wood2)
    for z, r in ((0.62 * h, 0.36 * w), (0.85 * h, 0.18 * w), (0.25 * h, 0.36 * w)):
        model.add_rod((0, -d / 2 + 0.001, z), (0, -d / 2 - 0.012, z), r, style.black, 20)
        model.add_rod((0, -d / 2 + 0.001, z), (0, -d / 2 - 0.02, z), 0.4 * r, style.metal, 14)
    return model


def printer(rng: np.random.Generator, style: Style) -> Model:
    """Desktop printer with paper."""
    w, d, h = rng.uniform(0.38, 0.46), rng.uniform(0.32, 0.38), rng.uniform(0.18, 0.26)
    model = Model("printer").add_box((w, d, h), (0, 0, 0), style.white)
    model.add_box((w - 0.1, 0.03, 0.05), (0, -d / 2 + 0.005, 0.04), style.black)
    model.add_box((0.21, 0.16, 0.004), (0, -d / 2 - 0.05, 0.05), style.white, {"+z": style.sheet})
    model.add_box((w - 0.06, d - 0.1, 0.02), (0, 0.02, h), style.black)
    model.add_box((0.1, 0.06, 0.01), (0.12, -d / 2 + 0.04, h), pick(rng, style.bright))
    return model


def microwave(rng: np.random.Generator, style: Style) -> Model:
    """Microwave oven."""
    w, d, h = rng.uniform(0.45, 0.52), rng.uniform(0.34, 0.4), rng.uniform(0.26, 0.31)
    model = Model("microwave").add_box((w, d, h), (0, 0, 0), style.metal if rng.random() < 0.5 else style.white)
    model.add_box((0.66 * w, 0.012, h - 0.05), (-0.13 * w, -d / 2 - 0.005, 0.025), style.black)
    model.add_rod((0.22 * w, -d / 2 - 0.03, 0.05), (0.22 * w, -d / 2 - 0.03, h - 0.05), 0.009, style.metal)
    for k in range(4):
        model.add_box((0.07, 0.008, 0.03), (0.38 * w, -d / 2 - 0.003, 0.04 + 0.055 * k), style.black)
    return model


def toaster(rng: np.random.Generator, style: Style) -> Model:
    """Toaster with slots."""
    shell = style.metal if rng.random() < 0.5 else pick(rng, style.bright)
    model = Model("toaster").add_cushion((0.28, 0.17, 0.19), (0, 0, 0.01), shell, 0.04)
    model.add_box((0.24, 0.14, 0.012), (0, 0, 0), style.black)
    for y in (-0.035, 0.035):
        model.add_box((0.2, 0.022, 0.006), (0, y, 0.198), style.black)
    model.add_box((0.02, 0.03, 0.02), (0.148, 0, 0.12), style.black)
    return model


def kettle(rng: np.random.Generator, style: Style) -> Model:
    """Electric kettle with handle and spout."""
    shell = style.metal if rng.random() < 0.5 else pick(rng, style.bright)
    model = Model("kettle").add_cylinder(0.085, 0.02, (0, 0, 0), style.black)
    model.add_lathe([(0, 0.02), (0.08, 0.02), (0.078, 0.1), (0.06, 0.2), (0.03, 0.215), (0, 0.215)], (0, 0, 0), shell)
    model.add_rod((0, 0, 0.21), (0, 0, 0.235), 0.013, style.black)
    model.add_rod((0.065, 0, 0.19), (0.12, 0, 0.18), 0.011, style.black)
    model.add_rod((0.118, 0, 0.185), (0.1, 0, 0.06), 0.011, style.black)
    model.add_rod((-0.05, 0, 0.16), (-0.095, 0, 0.195), 0.015, shell)
    return model


def coffee_machine(rng: np.random.Generator, style: Style) -> Model:
    """Coffee machine."""
    shell = pick(rng, (style.black, style.metal, style.bright[0]))
    model = Model("coffee machine").add_box((0.2, 0.3, 0.03), (0, 0, 0), style.black)
    model.add_cushion((0.2, 0.14, 0.33), (0, 0.08, 0.03), shell, 0.02)
    model.add_cushion((0.2, 0.28, 0.09), (0, 0.0, 0.25), shell, 0.02)
    model.add_cylinder(0.03, 0.05, (0, -0.07, 0.2), style.metal)
    model.add_box((0.13, 0.1, 0.012), (0, -0.07, 0.03), style.metal)
    return model


def floor_lamp(rng: np.random.Generator, style: Style) -> Model:
    """Lamp on a tall stand."""
    h, r = rng.uniform(1.4, 1.65), rng.uniform(0.16, 0.22)
    model = Model("floor lamp").add_cylinder(0.14, 0.025, (0, 0, 0), style.brass)
    model.add_rod((0, 0, 0.02), (0, 0, h - 0.2), 0.012, style.brass)
    model.add_lathe([(0, h - 0.25), (r, h - 0.25), (0.75 * r, h), (0, h)], (0, 0, 0), style.shade, 28)
    model.lamp = ((0.0, 0.0, h - 0.12), r + 0.03, rng.uniform(0.4, 1.0))
    return model


def table_lamp(rng: np.random.Generator, style: Style) -> Model:
    """Lamp for tables."""
    h, r = rng.uniform(0.38, 0.52), rng.uniform(0.1, 0.15)
    body = pick(rng, style.ceramics)
    foot = [(0, 0), (0.07, 0), (0.075, 0.02), (0.05, 0.06), (0.065, 0.13), (0.03, 0.2), (0.012, 0.22), (0, 0.22)]
    model = Model("table lamp").add_lathe(foot, (0, 0, 0), body)
    model.add_rod((0, 0, 0.2), (0, 0, h - 0.16), 0.008, style.brass)
    model.add_lathe([(0, h - 0.18), (r, h - 0.18), (0.7 * r, h), (0, h)], (0, 0, 0), style.shade, 24)
    model.lamp = ((0.0, 0.0, h - 0.09), r + 0.02, rng.uniform(0.15, 0.4))
    return model


def desk_lamp(rng: np.random.Generator, style: Style) -> Model:
    """Jointed lamp."""
    paint = pick(rng, style.bright)
    model = Model("desk lamp").add_cylinder(0.085, 0.02, (0, 0.1, 0), paint)
    model.add_rod((0, 0.1, 0.015), (0, 0.16, 0.26), 0.008, style.metal)
    model.add_rod((0, 0.16, 0.255), (0, -0.04, 0.42), 0.008, style.metal)
    model.add_lathe([(0, 0.32), (0.075, 0.32), (0.03, 0.42), (0, 0.43)], (0, -0.06, 0), paint)
    return model


def fan(rng: np.random.Generator, style: Style) -> Model:
    """Standing fan."""
    h = rng.uniform(0.5, 0.95)
    model = Model("fan").add_cylinder(0.17, 0.025, (0, 0, 0), style.white)
    model.add_rod((0, 0.02, 0.02), (0, 0.02, h - 0.1), 0.014, style.white)
    model.add_rod((0, 0.09, h), (0, -0.03, h), 0.05, style.white, 16)
    for k in range(4):
        blade = style.bright[0]
        model.add_box(
            (0.15, 0.012, 0.075),
            (0.09 * np.cos(k * np.pi / 2), -0.05, h - 0.0375 + 0.09 * np.sin(k * np.pi / 2)),
            blade,
            turn_deg=(0, -90 * k, 0),
        )
    for r in (0.08, 0.14, 0.19):
        ring = [(r * np.cos(a), r * np.sin(a)) for a in np.linspace(0, 2 * np.pi, 19)]
        for (x1, z1), (x2, z2) in itertools.pairwise(ring):
            model.add_rod((x1, -0.07, h + z1), (x2, -0.07, h + z2), 0.004, style.metal, 5)
    for a in np.arange(0, 360, 30):
        c, s = np.cos(np.radians(a)), np.sin(np.radians(a))
        model.add_rod((0.02 * c, -0.07, h + 0.02 * s), (0.19 * c, -0.07, h + 0.19 * s), 0.003, style.metal, 5)
    return model
