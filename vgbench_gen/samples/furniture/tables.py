"""Tables and desks."""

from __future__ import annotations

import numpy as np

from vgbench_gen.samples.furniture.style import Style
from vgbench_gen.samples.parts import Model


def table(rng: np.random.Generator, style: Style) -> Model:
    """Dining table with four legs and an apron."""
    return _make_table_with_legs(
        Model("table"), rng, style, (rng.uniform(1.2, 1.8), rng.uniform(0.8, 0.95), rng.uniform(0.72, 0.77))
    )


def round_table(rng: np.random.Generator, style: Style) -> Model:
    """Round top on a column and a foot."""
    r, h = rng.uniform(0.42, 0.58), rng.uniform(0.71, 0.76)
    model = Model("round table")
    model.add_lathe(
        [(0, h - 0.03), (r - 0.01, h - 0.03), (r, h - 0.015), (r - 0.005, h), (0, h)], (0, 0, 0), style.wood, 36
    )
    model.add_lathe(
        [(0, 0), (0.28, 0), (0.26, 0.03), (0.06, 0.06), (0.045, 0.3), (0.05, h - 0.03), (0, h - 0.03)],
        (0, 0, 0),
        style.black,
    )
    return model.add_shelf((0, 0, h), (0.66 * r, 0.66 * r), 1.0)


def coffee_table(rng: np.random.Generator, style: Style) -> Model:
    """Low table, often with a lower board."""
    size = (rng.uniform(0.8, 1.15), rng.uniform(0.5, 0.65), rng.uniform(0.38, 0.46))
    model = _make_table_with_legs(Model("coffee table"), rng, style, size)
    if rng.random() < 0.6:
        model.add_box((size[0] - 0.14, size[1] - 0.14, 0.02), (0, 0, 0.12), style.wood)
        model.hollow = None
        model.add_shelf((0, 0, 0.14), (size[0] / 2 - 0.12, size[1] / 2 - 0.12), size[2] - 0.24)
    return model


def side_table(rng: np.random.Generator, style: Style) -> Model:
    """Small table beside a sofa."""
    if rng.random() < 0.5:
        return _make_table_with_legs(
            Model("side table"), rng, style, (rng.uniform(0.42, 0.5), rng.uniform(0.4, 0.48), rng.uniform(0.5, 0.6))
        )
    r, h = rng.uniform(0.2, 0.26), rng.uniform(0.5, 0.6)
    model = Model("side table")
    model.add_lathe([(0, h - 0.025), (r, h - 0.025), (r, h), (0, h)], (0, 0, 0), style.wood, 32)
    model.add_cylinder(0.02, h - 0.04, (0, 0, 0.02), style.brass)
    model.add_cylinder(0.15, 0.02, (0, 0, 0), style.brass)
    return model.add_shelf((0, 0, h), (0.66 * r, 0.66 * r), 0.8)


def desk(rng: np.random.Generator, style: Style) -> Model:
    """Desk, with a drawer block on one side or plain legs."""
    w, d, h = rng.uniform(1.2, 1.6), rng.uniform(0.62, 0.75), rng.uniform(0.71, 0.75)
    model = Model("desk")
    if rng.random() < 0.4:
        return _make_table_with_legs(model, rng, style, (w, d, h))
    model.add_box((w, d, 0.032), (0, 0, h - 0.032), style.wood)
    side = 1 if rng.random() < 0.5 else -1
    model.add_box((0.03, d - 0.04, h - 0.032), (-side * (w / 2 - 0.03), 0, 0), style.wood, along=2)
    block = 0.4
    x = side * (w / 2 - block / 2 - 0.015)
    model.add_box((block, d - 0.06, h - 0.032), (x, 0.02, 0), style.wood)
    for k in range(3):
        height = (h - 0.08) / 3
        z = 0.02 + k * height
        model.add_box((block - 0.02, 0.016, height - 0.012), (x, -(d - 0.06) / 2 + 0.012, z), style.white)
        model.add_box((0.12, 0.02, 0.012), (x, -(d - 0.06) / 2 - 0.006, z + height * 0.6), style.metal)
    model.add_box((w - block - 0.08, 0.02, 0.3), (-side * block / 2, d / 2 - 0.06, h - 0.34), style.wood)
    model.hollow = None
    return model.add_shelf((0, 0, h), (w / 2 - 0.04, d / 2 - 0.04), 0.9)


def workbench(rng: np.random.Generator, style: Style) -> Model:
    """Heavy bench with a lower board."""
    w, d, h = rng.uniform(1.3, 1.8), rng.uniform(0.6, 0.7), rng.uniform(0.82, 0.9)
    model = Model("workbench").add_box((w, d, 0.06), (0, 0, h - 0.06), style.wood)
    for x in (-1, 1):
        for y in (-1, 1):
            model.add_box((0.08, 0.08, h - 0.06), (x * (w / 2 - 0.08), y * (d / 2 - 0.07), 0), style.wood2)
        model.add_box((0.06, d - 0.22, 0.08), (x * (w / 2 - 0.08), 0, 0.16), style.wood2)
    model.add_box((w - 0.1, d - 0.1, 0.024), (0, 0, 0.24), style.wood2)
    model.add_box((w - 0.24, 0.03, 0.1), (0, d / 2 - 0.07, h - 0.17), style.wood2)
    model.add_shelf((0, 0, 0.264), (w / 2 - 0.16, d / 2 - 0.14), h - 0.44)
    return model.add_shelf((0, 0, h), (w / 2 - 0.04, d / 2 - 0.04), 0.8)


def _make_table_with_legs(
    model: Model, rng: np.random.Generator, style: Style, size: tuple[float, float, float]
) -> Model:
    w, d, h = size
    top, leg = rng.uniform(0.02, 0.035), rng.uniform(0.04, 0.065)
    legs = style.black if rng.random() < 0.3 else style.wood2 if rng.random() < 0.4 else style.wood
    model.add_box((w, d, top), (0, 0, h - top), style.wood)
    inset = leg / 2 + rng.uniform(0.01, 0.04)
    for x in (-1, 1):
        for y in (-1, 1):
            at = (x * (w / 2 - inset), y * (d / 2 - inset), 0)
            model.add_box((leg, leg, h - top), at, legs)
        model.add_box((0.02, d - 2 * inset - leg, 0.07), (x * (w / 2 - inset), 0, h - top - 0.07), legs)
    for y in (-1, 1):
        model.add_box((w - 2 * inset - leg, 0.02, 0.07), (0, y * (d / 2 - inset), h - top - 0.07), legs)
    model.hollow = (w / 2 - inset - leg, d / 2 - 0.04, h - top - 0.09)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.03), 0.9)
