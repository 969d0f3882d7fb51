"""Cupboards, shelves and kitchen furniture."""

from __future__ import annotations

import numpy as np

from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model
from vgbench_gen.samples.textures import Texture


def bookshelf(rng: np.random.Generator, style: Style) -> Model:
    """Open shelf with rows of books and free places."""
    w, d, h = rng.uniform(0.7, 1.0), rng.uniform(0.26, 0.34), rng.uniform(1.5, 2.0)
    return _open_shelf(Model("bookshelf"), rng, style, (w, d, h), int(rng.integers(4, 6)), 0.75)


def low_shelf(rng: np.random.Generator, style: Style) -> Model:
    """Open shelf of knee to hip height."""
    size = (rng.uniform(0.8, 1.3), rng.uniform(0.3, 0.38), rng.uniform(0.7, 0.9))
    return _open_shelf(Model("shelf"), rng, style, size, 2, 0.6)


def wall_shelf(rng: np.random.Generator, style: Style) -> Model:
    """A board on brackets, with books."""
    w, d = rng.uniform(0.6, 1.0), rng.uniform(0.19, 0.24)
    model = Model("wall shelf").add_box((w, d, 0.025), (0, 0, 0.12), style.wood)
    for x in (-1, 1):
        model.add_box((0.02, d - 0.04, 0.02), (x * (w / 2 - 0.1), 0.01, 0.1), style.black)
        model.add_box((0.02, 0.02, 0.12), (x * (w / 2 - 0.1), d / 2 - 0.01, 0), style.black)
    end = add_book_row(model, rng, style, -w / 2 + 0.04, rng.uniform(-0.05, 0.2), (0.0, 0.145), d - 0.03, 0.27)
    free = (w / 2 - 0.03 - end) / 2
    return model.add_shelf((end + free, 0, 0.145), (max(free - 0.02, 0.01), d / 2 - 0.02), 0.3)


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


def cabinet(rng: np.random.Generator, style: Style) -> Model:
    """Closed cabinet with doors."""
    size = (rng.uniform(0.6, 0.9), rng.uniform(0.36, 0.45), rng.uniform(0.8, 1.25))
    return _add_fronts(Model("cabinet"), rng, style, size, 2, 1)


def sideboard(rng: np.random.Generator, style: Style) -> Model:
    """Long low cabinet."""
    return _add_fronts(
        Model("sideboard"), rng, style, (rng.uniform(1.3, 1.8), rng.uniform(0.4, 0.46), rng.uniform(0.7, 0.85)), 3, 2
    )


def dresser(rng: np.random.Generator, style: Style) -> Model:
    """Chest of drawers."""
    return _add_fronts(
        Model("dresser"), rng, style, (rng.uniform(0.8, 1.1), rng.uniform(0.42, 0.48), rng.uniform(0.75, 1.0)), 2, 4
    )


def nightstand(rng: np.random.Generator, style: Style) -> Model:
    """Small chest beside a bed."""
    return _add_fronts(
        Model("nightstand"), rng, style, (rng.uniform(0.4, 0.5), rng.uniform(0.36, 0.42), rng.uniform(0.45, 0.58)), 1, 2
    )


def tv_stand(rng: np.random.Generator, style: Style) -> Model:
    """Long low stand with an open compartment."""
    return _add_fronts(
        Model("tv stand"), rng, style, (rng.uniform(1.2, 1.6), rng.uniform(0.38, 0.44), rng.uniform(0.42, 0.55)), 3, 1
    )


def wardrobe(rng: np.random.Generator, style: Style) -> Model:
    """Tall cupboard with doors."""
    model = _add_fronts(
        Model("wardrobe"), rng, style, (rng.uniform(0.9, 1.5), rng.uniform(0.54, 0.6), rng.uniform(1.85, 2.1)), 2, 1
    )
    model.shelves.clear()
    return model


def filing_cabinet(rng: np.random.Generator, style: Style) -> Model:
    """Metal drawers."""
    size = (rng.uniform(0.4, 0.47), rng.uniform(0.48, 0.58), float(rng.choice([0.7, 1.0, 1.3])))
    return _add_fronts(Model("filing cabinet"), rng, style, size, 1, round(size[2] / 0.33), style.metal)


def counter(rng: np.random.Generator, style: Style) -> Model:
    """Kitchen base cabinets under a worktop, with a sink in many."""
    w, d, h = rng.uniform(1.4, 2.2), 0.6, 0.87
    model = _add_fronts(Model("kitchen counter"), rng, style, (w, d - 0.02, h), round(w / 0.5), 1, style.white)
    model.add_box((w + 0.01, d + 0.02, 0.035), (0, -0.01, h), style.stone, along=0)
    top = h + 0.035
    model.shelves.clear()
    if rng.random() < 0.7:
        x = rng.uniform(-0.3, 0.3) * w
        model.add_box((0.5, 0.4, 0.006), (x, -0.02, top), style.metal)
        model.add_rod((x, 0.2, top), (x, 0.2, top + 0.24), 0.013, style.metal)
        model.add_rod((x, 0.205, top + 0.235), (x, 0.05, top + 0.225), 0.012, style.metal)
        for s in (-1, 1):
            low, high = (-w / 2 + 0.03, x - 0.28) if s < 0 else (x + 0.28, w / 2 - 0.03)
            if high - low > 0.2:
                model.add_shelf(((low + high) / 2, 0, top), ((high - low) / 2, d / 2 - 0.05), 0.45)
    else:
        model.add_shelf((0, 0, top), (w / 2 - 0.04, d / 2 - 0.05), 0.45)
    return model


def upper_cabinet(rng: np.random.Generator, style: Style) -> Model:
    """Cabinet on a kitchen wall."""
    w = rng.uniform(0.8, 1.5)
    model = _add_fronts(
        Model("kitchen cabinet"), rng, style, (w, 0.34, rng.uniform(0.6, 0.72)), round(w / 0.42), 1, style.white
    )
    model.shelves.clear()
    return model


def refrigerator(rng: np.random.Generator, style: Style) -> Model:
    """Fridge-freezer with handles and notes on the door."""
    w, d, h = rng.uniform(0.58, 0.7), rng.uniform(0.6, 0.68), rng.uniform(1.6, 1.85)
    body = style.metal if rng.random() < 0.5 else style.white
    model = Model("refrigerator").add_box((w, d - 0.05, h), (0, 0.025, 0), body)
    split = rng.uniform(0.3, 0.4) * h
    for z, tall in ((0.03, split - 0.04), (split, h - split - 0.01)):
        model.add_box((w, 0.045, tall), (0, -d / 2 + 0.025, z), body)
        model.add_rod(
            (-w / 2 + 0.06, -d / 2 - 0.025, z + 0.1 * tall),
            (-w / 2 + 0.06, -d / 2 - 0.025, z + 0.6 * tall),
            0.012,
            style.metal,
        )
    for _ in range(int(rng.integers(2, 6))):
        size = rng.uniform(0.07, 0.16)
        at = (rng.uniform(-0.1, 0.32) * w, -d / 2 + 0.001, rng.uniform(split + 0.2, h - 0.3))
        model.add_box(
            (size, 0.003, size * 1.3),
            at,
            style.white,
            {"-y": style.sheet if rng.random() < 0.5 else pick(rng, style.packages)},
        )
    return model


def stove(rng: np.random.Generator, style: Style) -> Model:
    """Oven with hob."""
    w, d, h = 0.6, 0.6, 0.88
    model = Model("stove").add_box((w, d, h), (0, 0, 0), style.metal)
    model.add_box((w - 0.06, 0.02, 0.46), (0, -d / 2 - 0.008, 0.2), style.black)
    model.add_rod((-w / 2 + 0.08, -d / 2 - 0.05, 0.7), (w / 2 - 0.08, -d / 2 - 0.05, 0.7), 0.012, style.metal)
    for k in range(5):
        at = -0.22 + 0.11 * k
        model.add_rod((at, -d / 2, 0.79), (at, -d / 2 - 0.03, 0.79), 0.022, style.black)
    model.add_box((w - 0.02, d - 0.04, 0.012), (0, 0, h), style.black)
    for x in (-0.14, 0.14):
        for y in (-0.13, 0.13):
            model.add_cylinder(0.085, 0.008, (x, y, h + 0.012), style.metal)
    return model.add_shelf((0, 0, h + 0.02), (w / 2 - 0.06, d / 2 - 0.06), 0.6)


def crate_rack(rng: np.random.Generator, style: Style) -> Model:
    """Metal rack with boards."""
    w, d, h = rng.uniform(0.8, 1.1), rng.uniform(0.36, 0.45), rng.uniform(1.5, 1.8)
    model = Model("storage rack")
    for x in (-1, 1):
        for y in (-1, 1):
            model.add_box((0.03, 0.03, h), (x * (w - 0.03) / 2, y * (d - 0.03) / 2, 0), style.metal)
    levels = np.linspace(0.12, h - 0.06, 4)
    for z, above in zip(levels, [*levels[1:], h + 0.3], strict=True):
        model.add_box((w - 0.01, d - 0.01, 0.025), (0, 0, z), style.wood2)
        model.add_shelf((0, 0, z + 0.025), (w / 2 - 0.06, d / 2 - 0.05), above - z - 0.06)
    return model


def _open_shelf(
    model: Model, rng: np.random.Generator, style: Style, size: tuple[float, float, float], rows: int, full: float
) -> Model:
    w, d, h = size
    wood, board = (style.wood, style.white, style.wood2)[int(rng.integers(3))], 0.022
    for x in (-1, 1):
        model.add_box((board, d, h), (x * (w - board) / 2, 0, 0), wood)
    model.add_box((w - 2 * board, 0.008, h - 0.04), (0, d / 2 - 0.004, 0.04), style.white)
    levels = np.linspace(0.06, h - board, rows + 1)
    for k, z in enumerate(levels):
        model.add_box((w - 2 * board, d - 0.01, board), (0, -0.001, z), wood)
        if k == rows:
            model.add_shelf((0, 0, z + board), (w / 2 - 0.03, d / 2 - 0.02), 0.4)
            break
        clear = levels[k + 1] - z - board
        left, right = -w / 2 + board + 0.006, w / 2 - board - 0.006
        if rng.random() < full:
            end = left + (right - left) * rng.uniform(0.45, 1.0)
            left = add_book_row(model, rng, style, left, end, (0.0, z + board), d - 0.02, min(clear, 0.34)) + 0.02
        if right - left > 0.14:
            model.add_shelf(
                ((left + right) / 2, -0.01, z + board), ((right - left) / 2 - 0.01, d / 2 - 0.03), clear - 0.02
            )
    return model


def _add_fronts(
    model: Model,
    rng: np.random.Generator,
    style: Style,
    size: tuple[float, float, float],
    columns: int,
    rows: int,
    body: Texture | None = None,
) -> Model:
    """A body on a plinth, with fronts in columns and rows, and handles."""
    w, d, h = size
    body = body or (style.wood, style.white, style.wood2)[int(rng.integers(3))]
    front = body if rng.random() < 0.6 else style.white if body is not style.white else style.wood
    base = rng.uniform(0.05, 0.1)
    model.add_box((w - 0.04, d - 0.06, base), (0, 0.01, 0), style.black, bevel=False)
    model.add_box((w, d - 0.02, h - base), (0, 0.01, base), body)
    wide, tall = (w - 0.02) / columns, (h - base - 0.03) / rows
    for i in range(columns):
        for j in range(rows):
            x, z = -w / 2 + 0.01 + (i + 0.5) * wide, base + 0.01 + j * tall
            model.add_box(
                (wide - 0.008, 0.018, tall - 0.008), (x, -d / 2 + 0.009, z), front, along=2 if tall > wide else 0
            )
            if tall > 0.3 and rows == 1:
                knob = (x + (0.4 if i % 2 == 0 else -0.4) * wide, -d / 2 - 0.012, z + 0.55 * tall)
                model.add_box((0.014, 0.024, 0.12), knob, style.brass)
            else:
                model.add_box((min(0.14, 0.4 * wide), 0.024, 0.014), (x, -d / 2 - 0.012, z + 0.6 * tall), style.brass)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.03), 0.7)
