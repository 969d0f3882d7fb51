"""Furniture and things: label -> maker. A maker draws sizes and materials; each thing is then stretched to its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vgbench_gen.samples.furniture import decor, devices, everyday, seating, small, storage, tables
from vgbench_gen.samples.furniture.sizes import draw_size_factors, stretch_model
from vgbench_gen.samples.furniture.style import Style
from vgbench_gen.samples.parts import Model

Maker = Callable[[np.random.Generator, Style], Model]

MAKERS: Mapping[str, Maker] = {
    **{f.__name__.replace("_", " ").strip(): f for f in (
        seating.chair, seating.office_chair, seating.stool, seating.bar_stool, seating.armchair, seating.sofa,
        seating.bench, seating.ottoman, seating.bed,
        tables.table, tables.round_table, tables.coffee_table, tables.side_table, tables.desk, tables.workbench,
        storage.bookshelf, storage.low_shelf, storage.wall_shelf, storage.cabinet, storage.sideboard, storage.dresser,
        storage.nightstand, storage.tv_stand, storage.wardrobe, storage.filing_cabinet, storage.counter,
        storage.upper_cabinet, storage.refrigerator, storage.stove, storage.crate_rack,
        devices.monitor, devices.television, devices.laptop, devices.keyboard, devices.tower, devices.speaker,
        devices.printer, devices.microwave, devices.toaster, devices.kettle, devices.coffee_machine,
        devices.floor_lamp, devices.table_lamp, devices.desk_lamp, devices.fan,
        decor.picture, decor.whiteboard, decor.clock, decor.rug, decor.plant, decor.small_plant, decor.cactus,
        decor.vase, decor.candle, decor.radiator, decor.guitar, decor.globe, decor.mirror_tray,
        small.mug, small.bowl, small.bottle, small.pot, small.package, small.books, small.papers, small.box,
        small.crate, small.bin_, small.basket, small.backpack, small.suitcase, small.toolbox, small.bucket, small.ball,
        small.teddy, small.blocks, small.toy_car, small.shoes, small.pillow, small.helmet, small.watering_can,
        everyday.remote_control, everyday.phone, everyday.notebook, everyday.magazines, everyday.pen_holder,
        everyday.headphones, everyday.paper_tray, everyday.tape, everyday.game_controller,
        everyday.tissues, everyday.photo_frame, everyday.canisters, everyday.container, everyday.hat,
        everyday.folded_cloth, everyday.blanket, everyday.book_row, everyday.plates, everyday.cutting_board,
        everyday.fruit, everyday.paper_towel, everyday.soap, everyday.dish_rack, everyday.stacking_rings,
        everyday.toy_train, everyday.hammer, everyday.paint_can, everyday.power_strip, everyday.tote_bag,
        everyday.dumbbells, everyday.slippers,
    )},
}  # fmt: skip


def make(kind: str, rng: np.random.Generator, style: Style, size_rng: np.random.Generator) -> Model:
    """One thing, standing on z = 0; `kind` is a name of `MAKERS`, its label may be another word for it.

    size_rng: stream of the thing's own size, see `sizes`.
    """
    model = MAKERS[kind](rng, style)
    low, high = model.extent_m()
    low_m = float(low[2])
    if low_m != 0:
        for part in model.parts:
            part.vertices_m = part.vertices_m - [0, 0, low_m]
        for shelf in model.shelves:
            shelf.center_m = shelf.center_m - [0, 0, low_m]
    return stretch_model(model, draw_size_factors(kind, float(high[2]) - low_m, size_rng))
