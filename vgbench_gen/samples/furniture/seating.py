"""Things to sit or lie on."""

from __future__ import annotations

import numpy as np

from vgbench_gen.samples import textures
from vgbench_gen.samples.drawing import draw_hue
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model


def chair(rng: np.random.Generator, style: Style) -> Model:
    """Dining chair: four legs, seat, back of slats or a board."""
    w, d, seat, back = rng.uniform(0.4, 0.48), rng.uniform(0.42, 0.5), rng.uniform(0.43, 0.47), rng.uniform(0.8, 1.0)
    wood, leg = (style.wood2 if rng.random() < 0.6 else style.white), 0.038
    model = Model("chair")
    for x in (-1, 1):
        model.add_box((leg, leg, seat - 0.03), (x * (w - leg) / 2, -(d - leg) / 2, 0), wood)
        model.add_box((leg, leg, back), (x * (w - leg) / 2, (d - leg) / 2, 0), wood)
        model.add_box((0.02, d - 2 * leg, 0.03), (x * (w - leg) / 2, 0, 0.2), wood)
    model.add_box((w - 2 * leg, 0.02, 0.05), (0, -(d - leg) / 2, seat - 0.08), wood)
    model.add_cushion((w, d - leg, 0.045), (0, -leg / 2, seat - 0.03), pick(rng, style.fabrics), 0.018)
    if rng.random() < 0.5:
        for k in np.linspace(-0.5, 0.5, 5)[1:-1]:
            model.add_box((0.03, 0.018, back - seat - 0.08), (k * w, (d - leg) / 2, seat + 0.01), wood)
        model.add_box((w - 2 * leg, 0.024, 0.07), (0, (d - leg) / 2, back - 0.07), wood)
    else:
        model.add_box((w - 2 * leg, 0.02, 0.3), (0, (d - leg) / 2, back - 0.32), wood)
    return model


def office_chair(rng: np.random.Generator, style: Style) -> Model:
    """Five-star base with castors, column, padded seat and back, arm rests."""
    model, cloth = Model("office chair"), pick(rng, style.fabrics) if rng.random() < 0.7 else style.leather
    for k in range(5):
        a = np.radians(72 * k + 90)
        x, y = 0.29 * np.cos(a), 0.29 * np.sin(a)
        model.add_rod((0.02 * np.cos(a), 0.02 * np.sin(a), 0.1), (x, y, 0.075), 0.02, style.black)
        model.add_ball((0.028, 0.028, 0.03), (x, y, 0.03), style.black, 1)
    seat = rng.uniform(0.44, 0.5)
    model.add_cylinder(0.028, seat - 0.1, (0, 0, 0.08), style.metal)
    model.add_cushion((0.5, 0.48, 0.09), (0, -0.02, seat - 0.02), cloth, 0.04, 0.015)
    model.add_box((0.07, 0.03, 0.3), (0, 0.24, seat), style.black, turn_deg=(-6, 0, 0))
    model.add_cushion((0.46, 0.07, rng.uniform(0.5, 0.65)), (0, 0.25, seat + 0.12), cloth, 0.034, turn_deg=(-6, 0, 0))
    for x in (-0.27, 0.27):
        model.add_box((0.03, 0.03, 0.2), (x, 0.02, seat), style.black)
        model.add_cushion((0.06, 0.26, 0.03), (x, 0.0, seat + 0.2), style.black, 0.014)
    return model


def stool(rng: np.random.Generator, style: Style) -> Model:
    """Round seat on splayed legs."""
    model, h, r = Model("stool"), rng.uniform(0.42, 0.5), rng.uniform(0.16, 0.2)
    for k in range(4):
        a = np.radians(90 * k + 45)
        foot, top = 1.1 * r, 0.7 * r
        model.add_rod(
            (foot * np.cos(a), foot * np.sin(a), 0.001),
            (top * np.cos(a), top * np.sin(a), h - 0.03),
            0.016,
            style.wood2,
        )
    model.add_lathe([(0, h - 0.04), (r - 0.01, h - 0.04), (r, h - 0.02), (r - 0.008, h), (0, h)], (0, 0, 0), style.wood)
    return model


def bar_stool(rng: np.random.Generator, style: Style) -> Model:
    """High metal stool with a foot ring."""
    model, h = Model("bar stool"), rng.uniform(0.65, 0.76)
    for k in range(4):
        a = np.radians(90 * k + 45)
        c, s = np.cos(a), np.sin(a)
        model.add_rod((0.22 * c, 0.22 * s, 0.001), (0.13 * c, 0.13 * s, h - 0.03), 0.013, style.black)
        n = np.radians(90 * k + 135)
        model.add_rod((0.19 * c, 0.19 * s, 0.22), (0.19 * np.cos(n), 0.19 * np.sin(n), 0.22), 0.01, style.black)
    model.add_cushion((0.36, 0.36, 0.07), (0, 0, h - 0.03), style.leather, 0.03)
    return model


def armchair(rng: np.random.Generator, style: Style) -> Model:
    """Upholstered chair with arms."""
    return _make_upholstered(rng, style, "armchair", rng.uniform(0.75, 0.9), 1)


def sofa(rng: np.random.Generator, style: Style) -> Model:
    """Two or three seats, with cushions."""
    seats = int(rng.integers(2, 4))
    return _make_upholstered(rng, style, "sofa", 0.35 + seats * rng.uniform(0.56, 0.66), seats)


def _make_upholstered(rng: np.random.Generator, style: Style, label: str, w: float, seats: int) -> Model:
    model, d, arm = Model(label), rng.uniform(0.8, 0.92), rng.uniform(0.12, 0.17)
    cloth = style.leather if rng.random() < 0.2 else pick(rng, style.fabrics)
    back, seat, arm_h = rng.uniform(0.74, 0.88), rng.uniform(0.4, 0.45), rng.uniform(0.54, 0.62)
    for x in (-1, 1):
        for y in (-1, 1):
            model.add_cylinder(0.025, 0.1, (x * (w / 2 - 0.06), y * (d / 2 - 0.06), 0), style.wood2, sections=10)
        model.add_cushion((arm, d - 0.02, arm_h - 0.08), (x * (w - arm) / 2, 0, 0.08), cloth, 0.05)
    model.add_cushion((w - 2 * arm + 0.02, d - 0.04, seat - 0.22), (0, 0, 0.09), cloth, 0.03)
    model.add_cushion((w - 0.04, 0.2, back - 0.12), (0, d / 2 - 0.1, 0.1), cloth, 0.07)
    inner = (w - 2 * arm) / seats
    for k in range(seats):
        middle = (k + 0.5 - seats / 2) * inner
        model.add_cushion((inner - 0.008, d - 0.26, 0.16), (middle, -0.12, seat - 0.14), cloth, 0.05, 0.03)
        model.add_cushion(
            (inner - 0.02, 0.16, 0.4), (middle, d / 2 - 0.27, seat + 0.03), cloth, 0.06, turn_deg=(-10, 0, 0)
        )
    for x in (-1, 1):
        if rng.random() < 0.7 and seats > 1:
            pillow = pick(rng, style.fabrics)
            at = (x * (w / 2 - arm - 0.2), d / 2 - 0.46, seat + 0.06)
            model.add_cushion((0.4, 0.12, 0.38), at, pillow, 0.055, turn_deg=(-18, 0, -8 * x))
    return model


def bench(rng: np.random.Generator, style: Style) -> Model:
    """Wooden bench."""
    w, d, h = rng.uniform(0.9, 1.3), rng.uniform(0.32, 0.4), rng.uniform(0.42, 0.46)
    model = Model("bench").add_box((w, d, 0.04), (0, 0, h - 0.04), style.wood)
    for x in (-1, 1):
        model.add_box((0.04, d - 0.04, h - 0.04), (x * (w / 2 - 0.1), 0, 0), style.wood, along=2)
    model.add_box((w - 0.24, 0.03, 0.08), (0, 0, h - 0.14), style.wood)
    model.hollow = (w / 2 - 0.14, d / 2 - 0.02, h - 0.15)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.03), 0.4)


def ottoman(rng: np.random.Generator, style: Style) -> Model:
    """Pouf, round or square."""
    model, h = Model("ottoman"), rng.uniform(0.34, 0.44)
    cloth = textures.fabric(rng, draw_hue(rng))
    if rng.random() < 0.5:
        r = rng.uniform(0.22, 0.3)
        profile = [(0, 0), (0.9 * r, 0), (r, 0.25 * h), (r, 0.7 * h), (0.88 * r, 0.96 * h), (0.5 * r, h), (0, h)]
        return model.add_lathe(profile, (0, 0, 0), cloth)
    w = rng.uniform(0.42, 0.58)
    return model.add_cushion((w, w * rng.uniform(0.8, 1), h), (0, 0, 0), cloth, 0.05, 0.02)


def bed(rng: np.random.Generator, style: Style) -> Model:
    """Frame, mattress, blanket, pillows; head at +y."""
    w, d = float(rng.choice([0.95, 1.45, 1.65])), 2.05
    model, wood, cover = Model("bed"), style.wood, pick(rng, style.fabrics)
    head, top = rng.uniform(0.8, 1.1), rng.uniform(0.42, 0.5)
    model.add_box((w + 0.06, 0.05, head), (0, d / 2 - 0.025, 0), wood, along=0)
    model.add_box((w + 0.06, 0.04, 0.36), (0, -d / 2 + 0.02, 0), wood, along=0)
    for x in (-1, 1):
        model.add_box((0.03, d - 0.09, 0.2), (x * (w + 0.03) / 2, -0.005, 0.12), wood)
    model.add_box((w, d - 0.09, 0.05), (0, -0.005, 0.16), style.white)
    model.add_cushion((w - 0.01, d - 0.1, top - 0.23), (0, 0, 0.2), style.white, 0.05)
    model.add_cushion((w + 0.005, d - 0.7, 0.1), (0, -0.3, top - 0.06), cover, 0.045, 0.015)
    second = pick(rng, style.fabrics)
    model.add_cushion((w - 0.02, 0.5, 0.05), (0, -0.62, top + 0.035), second, 0.02)
    for k in range(2 if w > 1.2 else 1):
        middle = (k - 0.5) * w / 2 if w > 1.2 else 0.0
        model.add_cushion(
            (0.62, 0.4, 0.12), (middle, d / 2 - 0.3, top - 0.02), style.white, 0.055, 0.03, (8, 0, rng.uniform(-6, 6))
        )
        model.add_cushion(
            (0.42, 0.13, 0.36), (middle, d / 2 - 0.48, top + 0.02), pick(rng, style.fabrics), 0.06, turn_deg=(-32, 0, 5)
        )
    return model
