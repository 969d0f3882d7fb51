"""Furniture whose parts follow from its size, plants, and what is drawn anew for every wall and floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vgbench_gen.samples import art, textures
from vgbench_gen.samples.drawing import draw_hue
from vgbench_gen.samples.furniture.build import add_book_row, list_corners
from vgbench_gen.samples.furniture.style import Style, pick
from vgbench_gen.samples.parts import Model
from vgbench_gen.samples.textures import Texture

Rng = np.random.Generator
Size = tuple[float, float, float]
_BOARD_M = 0.022

_FRONTS: Mapping[str, tuple[str, Size, Size, int, int, bool]] = {
    # label, least and largest size, columns and rows of fronts, whether things may stand on it.
    "cabinet": ("cabinet", (0.6, 0.36, 0.8), (0.9, 0.45, 1.25), 2, 1, True),
    "sideboard": ("sideboard", (1.3, 0.4, 0.7), (1.8, 0.46, 0.85), 3, 2, True),
    "dresser": ("dresser", (0.8, 0.42, 0.75), (1.1, 0.48, 1.0), 2, 4, True),
    "nightstand": ("nightstand", (0.4, 0.36, 0.45), (0.5, 0.42, 0.58), 1, 2, True),
    "tv stand": ("tv stand", (1.2, 0.38, 0.42), (1.6, 0.44, 0.55), 3, 1, True),
    "wardrobe": ("wardrobe", (0.9, 0.54, 1.85), (1.5, 0.6, 2.1), 2, 1, False),
    "filing cabinet": ("filing cabinet", (0.4, 0.48, 0.95), (0.47, 0.58, 1.05), 1, 3, True),
    "upper cabinet": ("kitchen cabinet", (0.8, 0.33, 0.6), (1.5, 0.35, 0.72), 3, 1, False),
}
_LEGS: Mapping[str, tuple[Size, Size]] = {
    "table": ((1.2, 0.8, 0.72), (1.8, 0.95, 0.77)),
    "coffee table": ((0.8, 0.5, 0.38), (1.15, 0.65, 0.46)),
    "side table": ((0.42, 0.4, 0.5), (0.5, 0.48, 0.6)),
}
_SHELVES: Mapping[str, tuple[str, Size, Size, int, float]] = {
    # label, least and largest size, rows, share of the rows that have books.
    "bookshelf": ("bookshelf", (0.7, 0.26, 1.5), (1.0, 0.34, 2.0), 4, 0.75),
    "low shelf": ("shelf", (0.8, 0.3, 0.7), (1.3, 0.38, 0.9), 2, 0.6),
}


def _make_chair(rng: Rng, style: Style) -> Model:
    """Dining chair: four legs, seat, back of slats or a board."""
    w, d, seat, back = rng.uniform((0.4, 0.42, 0.43, 0.8), (0.48, 0.5, 0.47, 1.0)).tolist()
    wood, leg = (style.wood2 if rng.random() < 0.6 else style.white), 0.038
    model = Model("chair")
    for x, y in list_corners((w - leg) / 2, (d - leg) / 2):
        model.add_box((leg, leg, back if y > 0 else seat - 0.03), (x, y, 0), wood)
        if y > 0:
            model.add_box((0.02, d - 2 * leg, 0.03), (x, 0, 0.2), wood)
    model.add_box((w - 2 * leg, 0.02, 0.05), (0, -(d - leg) / 2, seat - 0.08), wood)
    model.add_cushion((w, d - leg, 0.045), (0, -leg / 2, seat - 0.03), pick(rng, style.fabrics), 0.018)
    behind = (d - leg) / 2
    if rng.random() < 0.5:
        for x in (-0.25 * w, 0.0, 0.25 * w):
            model.add_box((0.03, 0.018, back - seat - 0.08), (x, behind, seat + 0.01), wood)
        return model.add_box((w - 2 * leg, 0.024, 0.07), (0, behind, back - 0.07), wood)
    return model.add_box((w - 2 * leg, 0.02, 0.3), (0, behind, back - 0.32), wood)


def _make_upholstered(rng: Rng, style: Style, label: str) -> Model:
    """Armchair, or sofa of two or three seats with pillows."""
    seats = 1 if label == "armchair" else int(rng.integers(2, 4))
    w = rng.uniform(0.75, 0.9) if seats == 1 else 0.35 + seats * rng.uniform(0.56, 0.66)
    d, arm, back, seat, arm_h = rng.uniform((0.8, 0.12, 0.74, 0.4, 0.54), (0.92, 0.17, 0.88, 0.45, 0.62)).tolist()
    model, cloth = Model(label), style.leather if rng.random() < 0.2 else pick(rng, style.fabrics)
    for x, y in list_corners(w / 2 - 0.06, d / 2 - 0.06):
        model.add_cylinder(0.025, 0.1, (x, y, 0), style.wood2, sections=10)
    for x in ((arm - w) / 2, (w - arm) / 2):
        model.add_cushion((arm, d - 0.02, arm_h - 0.08), (x, 0, 0.08), cloth, 0.05)
    model.add_cushion((w - 2 * arm + 0.02, d - 0.04, seat - 0.22), (0, 0, 0.09), cloth, 0.03)
    model.add_cushion((w - 0.04, 0.2, back - 0.12), (0, d / 2 - 0.1, 0.1), cloth, 0.07)
    inner = (w - 2 * arm) / seats
    for k in range(seats):
        x = (k + 0.5 - seats / 2) * inner
        model.add_cushion((inner - 0.008, d - 0.26, 0.16), (x, -0.12, seat - 0.14), cloth, 0.05, 0.03)
        model.add_cushion((inner - 0.02, 0.16, 0.4), (x, d / 2 - 0.27, seat + 0.03), cloth, 0.06, turn_deg=(-10, 0, 0))
    for side in (-1, 1):
        if rng.random() < 0.7 and seats > 1:
            at = (side * (w / 2 - arm - 0.2), d / 2 - 0.46, seat + 0.06)
            model.add_cushion((0.4, 0.12, 0.38), at, pick(rng, style.fabrics), 0.055, turn_deg=(-18, 0, -8 * side))
    return model


def _make_bed(rng: Rng, style: Style) -> Model:
    """Frame, mattress, blanket, pillows; head at +y."""
    w, d = float(rng.choice([0.95, 1.45, 1.65])), 2.05
    model, wood, cover, second = Model("bed"), style.wood, pick(rng, style.fabrics), pick(rng, style.fabrics)
    head, top = rng.uniform(0.8, 1.1), rng.uniform(0.42, 0.5)
    model.add_box((w + 0.06, 0.05, head), (0, d / 2 - 0.025, 0), wood, along=0)
    model.add_box((w + 0.06, 0.04, 0.36), (0, -d / 2 + 0.02, 0), wood, along=0)
    for x in (-(w + 0.03) / 2, (w + 0.03) / 2):
        model.add_box((0.03, d - 0.09, 0.2), (x, -0.005, 0.12), wood)
    model.add_box((w, d - 0.09, 0.05), (0, -0.005, 0.16), style.white)
    model.add_cushion((w - 0.01, d - 0.1, top - 0.23), (0, 0, 0.2), style.white, 0.05)
    model.add_cushion((w + 0.005, d - 0.7, 0.1), (0, -0.3, top - 0.06), cover, 0.045, 0.015)
    model.add_cushion((w - 0.02, 0.5, 0.05), (0, -0.62, top + 0.035), second, 0.02)
    for x in (-w / 4, w / 4) if w > 1.2 else (0.0,):
        turn = (8, 0, rng.uniform(-6, 6))
        model.add_cushion((0.62, 0.4, 0.12), (x, d / 2 - 0.3, top - 0.02), style.white, 0.055, 0.03, turn)
        cloth, at = pick(rng, style.fabrics), (x, d / 2 - 0.48, top + 0.02)
        model.add_cushion((0.42, 0.13, 0.36), at, cloth, 0.06, turn_deg=(-32, 0, 5))
    return model


def _make_table(rng: Rng, style: Style, label: str) -> Model:
    """Table with four legs and an apron; coffee tables often have a lower board."""
    w, d, h = rng.uniform(*_LEGS[label]).tolist()
    model = _add_legs(Model(label), rng, style, (w, d, h))
    if label == "coffee table" and rng.random() < 0.6:
        model.add_box((w - 0.14, d - 0.14, 0.02), (0, 0, 0.12), style.wood)
        model.hollow = None
        model.add_shelf((0, 0, 0.14), (w / 2 - 0.12, d / 2 - 0.12), h - 0.24)
    return model


def _make_desk(rng: Rng, style: Style) -> Model:
    """Desk on legs, or with a block of drawers."""
    w, d, h = rng.uniform((1.2, 0.62, 0.71), (1.6, 0.75, 0.75)).tolist()
    model = Model("desk")
    if rng.random() < 0.4:
        return _add_legs(model, rng, style, (w, d, h))
    side, block, tall = (1 if rng.random() < 0.5 else -1), 0.4, (h - 0.08) / 3
    x = side * (w / 2 - block / 2 - 0.015)
    model.add_box((w, d, 0.032), (0, 0, h - 0.032), style.wood)
    model.add_box((0.03, d - 0.04, h - 0.032), (-side * (w / 2 - 0.03), 0, 0), style.wood, along=2)
    model.add_box((block, d - 0.06, h - 0.032), (x, 0.02, 0), style.wood)
    for z in (0.02, 0.02 + tall, 0.02 + 2 * tall):
        model.add_box((block - 0.02, 0.016, tall - 0.012), (x, -(d - 0.06) / 2 + 0.012, z), style.white)
        model.add_box((0.12, 0.02, 0.012), (x, -(d - 0.06) / 2 - 0.006, z + tall * 0.6), style.metal)
    model.add_box((w - block - 0.08, 0.02, 0.3), (-side * block / 2, d / 2 - 0.06, h - 0.34), style.wood)
    return model.add_shelf((0, 0, h), (w / 2 - 0.04, d / 2 - 0.04), 0.9)


def _add_legs(model: Model, rng: Rng, style: Style, size: Size) -> Model:
    (w, d, h), top, leg = size, rng.uniform(0.02, 0.035), rng.uniform(0.04, 0.065)
    legs = pick(rng, (style.black, style.wood2, style.wood))
    model.add_box((w, d, top), (0, 0, h - top), style.wood)
    inset = leg / 2 + rng.uniform(0.01, 0.04)
    for x, y in list_corners(w / 2 - inset, d / 2 - inset):
        model.add_box((leg, leg, h - top), (x, y, 0), legs)
    for side in (-1, 1):
        at = side * (w / 2 - inset), side * (d / 2 - inset)
        model.add_box((0.02, d - 2 * inset - leg, 0.07), (at[0], 0, h - top - 0.07), legs)
        model.add_box((w - 2 * inset - leg, 0.02, 0.07), (0, at[1], h - top - 0.07), legs)
    model.hollow = (w / 2 - inset - leg, d / 2 - 0.04, h - top - 0.09)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.03), 0.9)


def _make_wall_shelf(rng: Rng, style: Style) -> Model:
    """A board on brackets, with books."""
    w, d = rng.uniform(0.6, 1.0), rng.uniform(0.19, 0.24)
    model = Model("wall shelf").add_box((w, d, 0.025), (0, 0, 0.12), style.wood)
    for x in (0.1 - w / 2, w / 2 - 0.1):
        model.add_box((0.02, d - 0.04, 0.02), (x, 0.01, 0.1), style.black)
        model.add_box((0.02, 0.02, 0.12), (x, d / 2 - 0.01, 0), style.black)
    end = add_book_row(model, rng, style, -w / 2 + 0.04, rng.uniform(-0.05, 0.2), (0.0, 0.145), d - 0.03, 0.27)
    free = (w / 2 - 0.03 - end) / 2
    return model.add_shelf((end + free, 0, 0.145), (max(free - 0.02, 0.01), d / 2 - 0.02), 0.3)


def _make_open_shelf(rng: Rng, style: Style, kind: str) -> Model:
    """Open shelf with rows of books and free places."""
    label, low, high, rows, full = _SHELVES[kind]
    (w, d, h), model = rng.uniform(low, high).tolist(), Model(label)
    rows += int(rng.integers(2)) if rows > 2 else 0
    wood, board = pick(rng, (style.wood, style.white, style.wood2)), _BOARD_M
    for x in (-1, 1):
        model.add_box((board, d, h), (x * (w - board) / 2, 0, 0), wood)
    model.add_box((w - 2 * board, 0.008, h - 0.04), (0, d / 2 - 0.004, 0.04), style.white)
    levels = np.linspace(0.06, h - board, rows + 1)
    for z in levels:
        model.add_box((w - 2 * board, d - 0.01, board), (0, -0.001, z), wood)
    for z, clear in zip(levels[:-1] + board, np.diff(levels) - board, strict=True):
        left, right = -w / 2 + board + 0.006, w / 2 - board - 0.006
        if rng.random() < full:
            end = left + (right - left) * rng.uniform(0.45, 1.0)
            left = add_book_row(model, rng, style, left, end, (0.0, z), d - 0.02, min(clear, 0.34)) + 0.02
        if right - left > 0.14:
            half = ((right - left) / 2 - 0.01, d / 2 - 0.03)
            model.add_shelf(((left + right) / 2, -0.01, z), half, clear - 0.02)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.02), 0.4)


def _make_cupboard(rng: Rng, style: Style, kind: str) -> Model:
    """Closed furniture with doors or drawers."""
    label, low, high, columns, rows, top = _FRONTS[kind]
    w, d, h = rng.uniform(low, high).tolist()
    body = {"filing cabinet": style.metal, "upper cabinet": style.white}.get(kind)
    model = _add_fronts(Model(label), rng, style, (w, d, h), columns, rows, body)
    return model.add_shelf((0, 0, h), (w / 2 - 0.03, d / 2 - 0.03), 0.7) if top else model


def _make_counter(rng: Rng, style: Style) -> Model:
    """Kitchen base cabinets under a worktop, with a sink in many."""
    w, d, h, top = rng.uniform(1.4, 2.2), 0.6, 0.87, 0.905
    model = _add_fronts(Model("kitchen counter"), rng, style, (w, d - 0.02, h), round(w / 0.5), 1, style.white)
    model.add_box((w + 0.01, d + 0.02, 0.035), (0, -0.01, h), style.stone, along=0)
    if rng.random() >= 0.7:
        return model.add_shelf((0, 0, top), (w / 2 - 0.04, d / 2 - 0.05), 0.45)
    x = rng.uniform(-0.3, 0.3) * w
    model.add_box((0.5, 0.4, 0.006), (x, -0.02, top), style.metal)
    model.add_rod((x, 0.2, top), (x, 0.2, top + 0.24), 0.013, style.metal)
    model.add_rod((x, 0.205, top + 0.235), (x, 0.05, top + 0.225), 0.012, style.metal)
    for low, high in ((-w / 2 + 0.03, x - 0.28), (x + 0.28, w / 2 - 0.03)):
        if high - low > 0.2:
            model.add_shelf(((low + high) / 2, 0, top), ((high - low) / 2, d / 2 - 0.05), 0.45)
    return model


def _add_fronts(
    model: Model, rng: Rng, style: Style, size: Size, columns: int, rows: int, body: Texture | None
) -> Model:
    """A body on a plinth, with fronts in columns and rows, and handles."""
    w, d, h = size
    body = body or pick(rng, (style.wood, style.white, style.wood2))
    front = body if rng.random() < 0.6 else style.white if body is not style.white else style.wood
    base = rng.uniform(0.05, 0.1)
    model.add_box((w - 0.04, d - 0.06, base), (0, 0.01, 0), style.black, bevel=False)
    model.add_box((w, d - 0.02, h - base), (0, 0.01, base), body)
    wide, tall = (w - 0.02) / columns, (h - base - 0.03) / rows
    for k in range(columns * rows):
        i, j = divmod(k, rows)
        x, z = -w / 2 + 0.01 + (i + 0.5) * wide, base + 0.01 + j * tall
        grain = 2 if tall > wide else 0
        model.add_box((wide - 0.008, 0.018, tall - 0.008), (x, -d / 2 + 0.009, z), front, along=grain)
        if tall > 0.3 and rows == 1:
            knob = (x + (0.4 if i % 2 == 0 else -0.4) * wide, -d / 2 - 0.012, z + 0.55 * tall)
            model.add_box((0.014, 0.024, 0.12), knob, style.brass)
        else:
            model.add_box((min(0.14, 0.4 * wide), 0.024, 0.014), (x, -d / 2 - 0.012, z + 0.6 * tall), style.brass)
    return model


def _make_book_row(rng: Rng, style: Style) -> Model:
    """Books standing between two ends."""
    model, long = Model("books"), rng.uniform(0.18, 0.34)
    end = add_book_row(model, rng, style, -long / 2, long / 2, (0.0, 0.0), 0.17, 0.24)
    for x, way in ((-long / 2 - 0.006, 1), (end + 0.005, -1)):
        model.add_box((0.008, 0.11, 0.13), (x, 0.01, 0), style.metal)
        model.add_box((0.07, 0.11, 0.003), (x - way * 0.035, 0.01, 0), style.metal)
    return model


def _make_picture(rng: Rng, style: Style) -> Model:
    """Framed picture or poster; back at +y."""
    w = rng.uniform(0.35, 0.95)
    h = min(w / float(rng.choice([0.7, 0.75, 1.0, 1.35, 1.5])), 1.0)
    frame, bar = pick(rng, (style.black, style.wood2, style.white, style.brass)), rng.uniform(0.012, 0.035)
    model = Model("picture").add_box((w, 0.012, h), (0, 0.006, 0), style.white, {"-y": art.picture(rng, w / h)})
    for x in (-1, 1):
        model.add_box((bar, 0.028, h + 2 * bar), (x * (w + bar) / 2, -0.002, -bar), frame)
        model.add_box((w, 0.028, bar), (0, -0.002, h if x > 0 else -bar), frame)
    return model


def _make_rug(rng: Rng, style: Style) -> Model:
    """Patterned rug."""
    w, d = rng.uniform(1.5, 2.4), rng.uniform(1.1, 1.6)
    edge = textures.fabric(rng, draw_hue(rng, 0.5, 0.9), "plain")
    return Model("rug").add_box((w, d, 0.006), (0, 0, 0), edge, {"+z": art.rug(rng, w / d)})


def _make_plant(rng: Rng, style: Style, label: str) -> Model:
    """Leaves on stems in a pot."""
    large = label == "plant"
    r, h, leaves = (0.155, rng.uniform(0.6, 1.1), 18) if large else (0.065, rng.uniform(0.2, 0.32), 12)
    profile = [(0, 0), (0.7, 0), (0.98, 1.35), (1, 1.4), (1, 1.55), (0.86, 1.55), (0.84, 1.4), (0, 1.4)]
    clay = pick(rng, (*style.ceramics, style.wicker))
    model = Model(label).add_lathe([(r * x, r * z) for x, z in profile], (0, 0, 0), clay)
    model.add_cylinder(0.84 * r, 0.04 * r, (0, 0, 1.38 * r), style.soil)
    base, long = 1.4 * r, rng.uniform(0.28, 0.45) * h
    trunk = base + rng.uniform(0.15, 0.5) * (h - base)
    model.add_rod((0, 0, base - 0.01), (0, 0, trunk), 0.06 * r + 0.004, style.wood2, 8)
    for k in range(leaves):
        yaw, rise = 2.4 * k + rng.uniform(-0.3, 0.3), rng.uniform(0.15, 1.2)
        z = base + (trunk - base) * rng.uniform(0.3, 1)
        _add_leaf(model, style, z, yaw, rise, long * rng.uniform(0.7, 1.15))
    return model


def _add_leaf(model: Model, style: Style, z: float, yaw: float, rise: float, length: float) -> None:
    """A bent blade that begins on the axis at a height, thick enough to be solid."""
    s = np.linspace(0, 1, 7)
    pitch, step = rise - 1.1 * s[:-1], length / 6
    reach, up = (np.append(0, np.cumsum(f(pitch) * step)) for f in (np.cos, np.sin))
    width = 0.16 * length * np.sin(np.pi * np.clip(s * 0.92 + 0.06, 0, 1)) ** 0.8 + 0.002
    side, fold, thick = np.array([-np.sin(yaw), np.cos(yaw), 0]), np.array([0, 0, 0.25]), np.array([0, 0, 0.0015])
    middle = np.stack([reach * np.cos(yaw), reach * np.sin(yaw), z + up], axis=1)
    left, right = middle + width[:, None] * (side + fold), middle + width[:, None] * (fold - side)
    model.add_tube(np.stack([left, middle + thick, right, middle - thick], axis=1), style.green, smooth=False)


Maker = Callable[[Rng, Style], Model]


def _name(make: Callable[[Rng, Style, str], Model], kind: str) -> Maker:
    return lambda rng, style: make(rng, style, kind)


LARGE: Mapping[str, Maker] = {
    "chair": _make_chair,
    "bed": _make_bed,
    "desk": _make_desk,
    "wall shelf": _make_wall_shelf,
    "counter": _make_counter,
    "book row": _make_book_row,
    "picture": _make_picture,
    "rug": _make_rug,
    "plant": _name(_make_plant, "plant"),
    "small plant": _name(_make_plant, "potted plant"),
    **{kind: _name(_make_upholstered, kind) for kind in ("armchair", "sofa")},
    **{kind: _name(_make_table, kind) for kind in _LEGS},
    **{kind: _name(_make_open_shelf, kind) for kind in _SHELVES},
    **{kind: _name(_make_cupboard, kind) for kind in _FRONTS},
}
"""By name of kind."""
