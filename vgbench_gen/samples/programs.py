"""How rooms of each kind are furnished. A program puts the large things first, then what stands on and around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.furnisher import Furnisher

SMALL_DESK = "mug, books, papers, desk lamp, small plant, speaker, bottle, globe, table lamp, package"
SMALL_SHELF = "vase, small plant, cactus, books, globe, candle, toy car, mug, package, bowl, teddy, blocks"
SMALL_KITCHEN = "kettle, toaster, microwave, pot, bowl, bottle, package, mug, coffee machine, small plant, pot"
LOOSE = (
    "box, basket, bin, backpack, ball, stool, ottoman, suitcase, crate, plant, bucket, "
    "toolbox, speaker, fan, pillow, teddy, watering can, shoes, floor lamp, box, plant, blocks"
)


def furnish_living_room(f: Furnisher) -> None:
    """Sofa, coffee table on a rug, armchairs, television, shelves, plants."""
    sofa = f.place_in_middle("sofa", f.main)
    if sofa:
        front = sofa.to_room(np.array([0.0, sofa.low_m[1] - 0.75, 0.0]))
        f.lay_rug(float(front[0]), float(front[1]), sofa.yaw_deg)
        table = f.room.place_before(f.make_model("coffee table"), sofa, 0.4, turn_deg=0)
        f.put_on_top(table, "books, mug, bowl, candle, vase, mirror tray, small plant, laptop", 4)
        if table and table.model.hollow is None:
            f.put_on_top(table, "books, basket, package", 1, 0)
        for side in (-1, 1):
            small = f.room.place_beside(
                f.make_model(f.choose_kind("side table, floor lamp, plant, side table")), sofa, side, 0.08
            )
            f.put_on_top(small, "table lamp, books, mug, vase", 2)
            if f.draw_chance(0.75):
                f.room.place_before(
                    f.make_model("armchair"),
                    sofa,
                    f.rng.uniform(0.5, 1.0),
                    side * f.rng.uniform(1.3, 1.6),
                    180 + side * -70,
                )
    stand = f.place_in_middle("tv stand", f.opposite)
    if stand:
        f.room.place_on(f.make_model("television"), stand, at=(0.0, 0.04), yaw_deg=0)
        f.put_on_top(stand, "speaker, vase, small plant, books", 2)
    shelf = f.place_at_wall("bookshelf, low shelf", f.sides)
    f.fill(shelf, SMALL_SHELF)
    if f.draw_chance(0.6):
        f.put_on_top(f.place_at_wall("sideboard, cabinet, dresser", f.sides), SMALL_SHELF, 3)
    f.finish(10, "clock, wall shelf", LOOSE, 13)


def furnish_dining_room(f: Furnisher) -> None:
    """Table with chairs, sideboard, cabinet."""
    w, d, _ = f.room.size_m
    yaw = float(f.rng.choice([0, 90]))
    f.lay_rug(w / 2, d / 2, yaw)
    table = Placed(
        f.make_model("table" if f.draw_chance(0.75) else "round table"),
        w / 2,
        d / 2,
        0.0,
        yaw + float(f.rng.uniform(-4, 4)),
    )
    if f.room.put(table):
        f.place_seats(table, "chair", ("-y", "+y", "-x") if f.draw_chance(0.5) else ("-y", "+y"))
        f.put_on_top(table, "bowl, vase, mug, bottle, candle, mirror tray, papers, laptop, books", 5)
    board = f.place_in_middle("sideboard", f.main)
    f.put_on_top(board, SMALL_SHELF + ", table lamp, table lamp", 5)
    f.fill(f.place_at_wall("cabinet, bookshelf, low shelf", f.sides), SMALL_SHELF)
    f.finish(11, "clock, wall shelf", LOOSE, 12)


def furnish_kitchen(f: Furnisher) -> None:
    """Counters with upper cabinets, stove, refrigerator, table."""
    first = f.place_in_middle("counter", f.main)
    row = [first]
    if first:
        row.append(
            f.room.place_beside(f.make_model("stove"), first, 1, 0.016)
            or f.room.place_beside(f.make_model("stove"), first, -1, 0.016)
        )
        last = row[-1] or first
        for side in (1, -1):
            found = f.room.place_beside(f.make_model("refrigerator"), last if side > 0 else first, side, 0.03)
            if found:
                break
    second = f.place_at_wall("counter", f.sides)
    for piece in (*row, second):
        if piece:
            for shelf in range(len(piece.model.shelves)):
                f.put_on_top(piece, SMALL_KITCHEN, 3, shelf)
            if f.draw_chance(0.8):
                wall = next(k for k, yaw in enumerate((180.0, -90.0, 0.0, 90.0)) if abs(piece.yaw_deg - yaw) < 1)
                at = (piece.x, piece.y)[wall % 2]
                f.room.place_against(f.make_model("upper cabinet"), wall, at, z_m=1.46)
    spot = f.room.find_wall_point(f.opposite, f.room.wall_length_m(f.opposite) / 2, 1.3)
    table = Placed(
        f.make_model(f.choose_kind("table, round table")),
        *spot,
        0.0,
        float(f.rng.choice([0, 90])) + float(f.rng.uniform(-5, 5)),
    )
    if f.room.put(table):
        f.place_seats(table, f.choose_kind("chair, chair, stool"), ("-y", "+y"))
        f.put_on_top(table, "bowl, mug, bottle, papers, vase, package, mug, pot", 5)
    f.put_on_top(f.place_at_wall("cabinet, low shelf, sideboard", (f.opposite, *f.sides)), SMALL_KITCHEN, 4)
    f.finish(
        7,
        "wall shelf, clock, wall shelf",
        "bin, basket, crate, bar stool, stool, bucket, plant, box, backpack, bar stool, watering can",
        11,
    )


def furnish_office(f: Furnisher) -> None:
    """Desks with computers, cabinets, whiteboard."""
    for wall in (f.main, f.sides[0]):
        furnish_workplace(f, wall)
    f.put_on_top(f.place_at_wall("filing cabinet", (*f.sides, f.opposite)), "printer, small plant, box, books", 1)
    f.fill(f.place_at_wall("bookshelf, low shelf, crate rack", (f.opposite, *f.sides)), SMALL_SHELF + ", box")
    f.put_on_top(
        f.place_at_wall("cabinet, low shelf", (f.opposite, *f.sides)),
        "printer, small plant, books, coffee machine, vase",
        3,
    )
    f.hang((f.opposite, *f.sides), 1, "whiteboard")
    f.finish(
        8,
        "wall shelf, clock, wall shelf",
        "bin, box, box, backpack, plant, fan, suitcase, floor lamp, stool, crate, speaker",
        12,
    )


def furnish_workplace(f: Furnisher, wall: int) -> None:
    """A desk against a wall with what belongs to it."""
    desk = f.place_in_middle("desk", wall)
    if not desk:
        return
    if f.draw_chance(0.75):
        f.room.place_on(
            f.make_model("monitor"),
            desk,
            at=(float(f.rng.uniform(-0.15, 0.15)), 0.12),
            yaw_deg=float(f.rng.uniform(-8, 8)),
        )
        f.room.place_on(f.make_model("keyboard"), desk, at=(0.0, -0.16), yaw_deg=float(f.rng.uniform(-5, 5)))
    else:
        f.room.place_on(
            f.make_model("laptop"),
            desk,
            at=(float(f.rng.uniform(-0.2, 0.2)), -0.08),
            yaw_deg=float(f.rng.uniform(-15, 15)),
        )
    f.put_on_top(desk, SMALL_DESK, 5)
    f.room.place_under(f.make_model(f.choose_kind("tower, bin, box, backpack")), desk)
    f.room.place_before(
        f.make_model(f.choose_kind("office chair, office chair, chair")),
        desk,
        f.rng.uniform(0.03, 0.3),
        f.rng.uniform(-0.2, 0.2),
        180 + f.rng.uniform(-40, 40),
    )


def furnish_study(f: Furnisher) -> None:
    """Desk, many books, an armchair."""
    furnish_workplace(f, f.main)
    for _ in range(2):
        f.fill(f.place_at_wall("bookshelf", (*f.sides, f.opposite)), SMALL_SHELF)
    chair = f.place_at_wall("armchair", (f.opposite, *f.sides))
    if chair:
        f.put_on_top(f.room.place_beside(f.make_model("side table"), chair, 1, 0.1), "table lamp, books, mug", 2)
        f.room.place_beside(f.make_model("floor lamp"), chair, -1, 0.1)
        f.room.place_before(f.make_model("ottoman"), chair, 0.25)
    w, d, _ = f.room.size_m
    f.lay_rug(w / 2, d / 2, float(f.rng.choice([0, 90])))
    f.put_on_top(f.place_at_wall("dresser, cabinet, low shelf", (f.opposite, *f.sides)), SMALL_SHELF, 4)
    f.finish(10, "wall shelf, clock, wall shelf", LOOSE, 12)


def furnish_bedroom(f: Furnisher) -> None:
    """Bed with nightstands, wardrobe, dresser."""
    bed = f.place_in_middle("bed", f.main)
    if bed:
        for side in (-1, 1):
            stand = f.room.place_beside(f.make_model("nightstand"), bed, side, 0.07)
            f.put_on_top(stand, "table lamp, books, mug, candle, small plant", 3)
        end = bed.to_room(np.array([0.0, bed.low_m[1] - 0.2, 0.0]))
        f.lay_rug(float(end[0]), float(end[1]), bed.yaw_deg)
        if f.draw_chance(0.6):
            bench = f.room.place_before(f.make_model("bench"), bed, 0.08, turn_deg=0)
            f.put_on_top(bench, "books, teddy, helmet, package", 2)
    f.place_at_wall("wardrobe", (*f.sides, f.opposite))
    f.put_on_top(f.place_at_wall("dresser", (f.opposite, *f.sides)), SMALL_SHELF + ", table lamp, television", 5)
    f.fill(f.place_at_wall("low shelf, bookshelf", (f.opposite, *f.sides)), SMALL_SHELF)
    if f.draw_chance(0.5):
        furnish_workplace(f, f.opposite)
    f.finish(10, "clock, wall shelf", LOOSE, 12)


def furnish_playroom(f: Furnisher) -> None:
    """Toys, low shelves, a small table."""
    w, d, _ = f.room.size_m
    f.lay_rug(w / 2, d / 2, float(f.rng.choice([0, 90])))
    toys = "teddy, toy car, blocks, ball, books, globe, helmet, package, toy car, blocks"
    for wall in (f.main, *f.sides):
        f.fill(f.place_at_wall("low shelf, dresser, bookshelf", (wall, f.opposite)), toys, 3)
    table = Placed(
        f.make_model("coffee table"),
        w * f.rng.uniform(0.4, 0.6),
        d * f.rng.uniform(0.4, 0.6),
        0.0,
        f.rng.uniform(0, 90),
    )
    if f.room.put(table):
        f.put_on_top(table, "papers, toy car, blocks, mug, books", 4)
        for side in ("-y", "+y"):
            f.room.place_around(f.make_model("stool"), table, side, 0.0, 0.1, 30)
    f.place_at_wall("sofa", (f.opposite, *f.sides))
    f.finish(11, "wall shelf, clock, wall shelf", LOOSE + ", teddy, ball, toy car, blocks, pillow", 14)
    f.scatter_on_floor("toy car, ball, teddy, blocks, pillow, helmet", 3, edge=False)


def furnish_workshop(f: Furnisher) -> None:
    """Benches, racks, boxes."""
    tools = "toolbox, box, crate, bucket, bottle, package, helmet, speaker, desk lamp, watering can, pot"
    for wall in (f.main, f.sides[0]):
        f.fill(f.place_in_middle("workbench", wall), tools, 4)
    for _ in range(2):
        f.fill(
            f.place_at_wall("crate rack", (*f.sides, f.opposite)), "box, toolbox, crate, bucket, suitcase, package", 2
        )
    f.put_on_top(f.place_at_wall("cabinet", (f.opposite, *f.sides)), tools, 2)
    f.place_at_wall("filing cabinet", (f.opposite, *f.sides))
    f.finish(
        4, "wall shelf, clock", "stool, bar stool, box, box, crate, bucket, bin, fan, toolbox, suitcase, shoes", 14
    )


PROGRAMS: Mapping[str, Callable[[Furnisher], None]] = {
    "living room": furnish_living_room,
    "kitchen": furnish_kitchen,
    "office": furnish_office,
    "bedroom": furnish_bedroom,
    "study": furnish_study,
    "dining room": furnish_dining_room,
    "playroom": furnish_playroom,
    "workshop": furnish_workshop,
}
