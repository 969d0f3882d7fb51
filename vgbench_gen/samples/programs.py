"""How rooms of each kind are furnished. A program puts the large things first, then what stands on and around them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.furnisher import Furnisher

SMALL_DESK = (
    "mug",
    "books",
    "papers",
    "desk lamp",
    "small plant",
    "speaker",
    "bottle",
    "globe",
    "table lamp",
    "package",
)
SMALL_SHELF = (
    "vase",
    "small plant",
    "cactus",
    "books",
    "globe",
    "candle",
    "toy car",
    "mug",
    "package",
    "bowl",
    "teddy",
    "blocks",
)
SMALL_KITCHEN = (
    "kettle",
    "toaster",
    "microwave",
    "pot",
    "bowl",
    "bottle",
    "package",
    "mug",
    "coffee machine",
    "small plant",
    "pot",
)
LOOSE = (
    *("box", "basket", "bin", "backpack", "ball", "stool", "ottoman", "suitcase", "crate", "plant", "guitar", "bucket"),
    *("toolbox", "speaker", "fan", "pillow", "teddy", "watering can", "shoes", "floor lamp", "box", "plant", "blocks"),
)


def living_room(f: Furnisher) -> None:
    """Sofa, coffee table on a rug, armchairs, television, shelves, plants."""
    sofa = f.middle("sofa", f.main)
    if sofa:
        front = sofa.to_room(np.array([0.0, sofa.low_m[1] - 0.75, 0.0]))
        f.rug(float(front[0]), float(front[1]), sofa.yaw_deg)
        table = f.room.before(f.new("coffee table"), sofa, 0.4, turn_deg=0)
        f.top(table, ("books", "mug", "bowl", "candle", "vase", "mirror tray", "small plant", "laptop"), 4)
        if table and table.model.hollow is None:
            f.top(table, ("books", "basket", "package"), 1, 0)
        for side in (-1, 1):
            small = f.room.beside(f.new(f.one(("side table", "floor lamp", "plant", "side table"))), sofa, side, 0.08)
            f.top(small, ("table lamp", "books", "mug", "vase"), 2)
            if f.chance(0.75):
                f.room.before(
                    f.new("armchair"), sofa, f.rng.uniform(0.5, 1.0), side * f.rng.uniform(1.3, 1.6), 180 + side * -70
                )
    stand = f.middle("tv stand", f.opposite)
    if stand:
        f.room.on(f.new("television"), stand, at=(0.0, 0.04), yaw_deg=0)
        f.top(stand, ("speaker", "vase", "small plant", "books"), 2)
    shelf = f.wall(f.one(("bookshelf", "low shelf")), f.sides)
    f.fill(shelf, SMALL_SHELF)
    if f.chance(0.6):
        f.top(f.wall(f.one(("sideboard", "cabinet", "dresser")), f.sides), SMALL_SHELF, 3)
    f.wall("radiator", f.sides, windows=True)
    f.hang((f.main, *f.sides, f.opposite), 10)
    f.hang((*f.sides, f.opposite), 2, ("clock", "wall shelf"))
    f.floor(LOOSE, 13)


def dining_room(f: Furnisher) -> None:
    """Table with chairs, sideboard, cabinet."""
    w, d, _ = f.room.size_m
    yaw = float(f.rng.choice([0, 90]))
    f.rug(w / 2, d / 2, yaw)
    table = Placed(
        f.new("table" if f.chance(0.75) else "round table"), w / 2, d / 2, 0.0, yaw + float(f.rng.uniform(-4, 4))
    )
    if f.room.put(table):
        f.seats(table, "chair", ("-y", "+y", "-x") if f.chance(0.5) else ("-y", "+y"))
        f.top(table, ("bowl", "vase", "mug", "bottle", "candle", "mirror tray", "papers", "laptop", "books"), 5)
    board = f.middle("sideboard", f.main)
    f.top(board, (*SMALL_SHELF, "table lamp", "table lamp"), 5)
    f.fill(f.wall(f.one(("cabinet", "bookshelf", "low shelf")), f.sides), SMALL_SHELF)
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.hang((0, 1, 2, 3), 11)
    f.hang((0, 1, 2, 3), 2, ("clock", "wall shelf"))
    f.floor(LOOSE, 12)


def kitchen(f: Furnisher) -> None:
    """Counters with upper cabinets, stove, refrigerator, table."""
    first = f.middle("counter", f.main)
    row = [first]
    if first:
        row.append(f.room.beside(f.new("stove"), first, 1, 0.016) or f.room.beside(f.new("stove"), first, -1, 0.016))
        last = row[-1] or first
        for side in (1, -1):
            found = f.room.beside(f.new("refrigerator"), last if side > 0 else first, side, 0.03)
            if found:
                break
    second = f.wall("counter", f.sides)
    for piece in (*row, second):
        if piece:
            for shelf in range(len(piece.model.shelves)):
                f.top(piece, SMALL_KITCHEN, 3, shelf)
            if f.chance(0.8):
                wall = next(k for k, yaw in enumerate((180.0, -90.0, 0.0, 90.0)) if abs(piece.yaw_deg - yaw) < 1)
                at = (piece.x, piece.y)[wall % 2]
                f.room.against(f.new("upper cabinet"), wall, at, z_m=1.46)
    spot = f.room.on_wall(f.opposite, f.room.wall_length_m(f.opposite) / 2, 1.3)
    table = Placed(
        f.new(f.one(("table", "round table"))), *spot, 0.0, float(f.rng.choice([0, 90])) + float(f.rng.uniform(-5, 5))
    )
    if f.room.put(table):
        f.seats(table, f.one(("chair", "chair", "stool")), ("-y", "+y"))
        f.top(table, ("bowl", "mug", "bottle", "papers", "vase", "package", "mug", "pot"), 5)
    f.top(f.wall(f.one(("cabinet", "low shelf", "sideboard")), (f.opposite, *f.sides)), SMALL_KITCHEN, 4)
    f.hang((*f.sides, f.opposite), 7)
    f.hang((0, 1, 2, 3), 3, ("wall shelf", "clock", "wall shelf"))
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.floor(
        (
            "bin",
            "basket",
            "crate",
            "bar stool",
            "stool",
            "bucket",
            "plant",
            "box",
            "backpack",
            "bar stool",
            "watering can",
        ),
        11,
    )


def office(f: Furnisher) -> None:
    """Desks with computers, cabinets, whiteboard."""
    for wall in (f.main, f.sides[0]):
        workplace(f, wall)
    f.top(f.wall("filing cabinet", (*f.sides, f.opposite)), ("printer", "small plant", "box", "books"), 1)
    f.fill(f.wall(f.one(("bookshelf", "low shelf", "crate rack")), (f.opposite, *f.sides)), (*SMALL_SHELF, "box"))
    f.top(
        f.wall(f.one(("cabinet", "low shelf")), (f.opposite, *f.sides)),
        ("printer", "small plant", "books", "coffee machine", "vase"),
        3,
    )
    f.hang((f.opposite, *f.sides), 1, ("whiteboard",))
    f.hang((0, 1, 2, 3), 8)
    f.hang((0, 1, 2, 3), 3, ("wall shelf", "clock", "wall shelf"))
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.floor(
        (
            "bin",
            "box",
            "box",
            "backpack",
            "plant",
            "fan",
            "suitcase",
            "floor lamp",
            "stool",
            "crate",
            "speaker",
            "guitar",
        ),
        12,
    )


def workplace(f: Furnisher, wall: int) -> None:
    """A desk against a wall with what belongs to it."""
    desk = f.middle("desk", wall)
    if not desk:
        return
    if f.chance(0.75):
        f.room.on(
            f.new("monitor"), desk, at=(float(f.rng.uniform(-0.15, 0.15)), 0.12), yaw_deg=float(f.rng.uniform(-8, 8))
        )
        f.room.on(f.new("keyboard"), desk, at=(0.0, -0.16), yaw_deg=float(f.rng.uniform(-5, 5)))
    else:
        f.room.on(
            f.new("laptop"), desk, at=(float(f.rng.uniform(-0.2, 0.2)), -0.08), yaw_deg=float(f.rng.uniform(-15, 15))
        )
    f.top(desk, SMALL_DESK, 5)
    f.room.under(f.new(f.one(("tower", "bin", "box", "backpack"))), desk)
    f.room.before(
        f.new(f.one(("office chair", "office chair", "chair"))),
        desk,
        f.rng.uniform(0.03, 0.3),
        f.rng.uniform(-0.2, 0.2),
        180 + f.rng.uniform(-40, 40),
    )


def study(f: Furnisher) -> None:
    """Desk, many books, an armchair."""
    workplace(f, f.main)
    for _ in range(2):
        f.fill(f.wall("bookshelf", (*f.sides, f.opposite)), SMALL_SHELF)
    chair = f.wall("armchair", (f.opposite, *f.sides))
    if chair:
        f.top(f.room.beside(f.new("side table"), chair, 1, 0.1), ("table lamp", "books", "mug"), 2)
        f.room.beside(f.new("floor lamp"), chair, -1, 0.1)
        f.room.before(f.new("ottoman"), chair, 0.25)
    w, d, _ = f.room.size_m
    f.rug(w / 2, d / 2, float(f.rng.choice([0, 90])))
    f.top(f.wall(f.one(("dresser", "cabinet", "low shelf")), (f.opposite, *f.sides)), SMALL_SHELF, 4)
    f.hang((0, 1, 2, 3), 10)
    f.hang((0, 1, 2, 3), 3, ("wall shelf", "clock", "wall shelf"))
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.floor(LOOSE, 12)


def bedroom(f: Furnisher) -> None:
    """Bed with nightstands, wardrobe, dresser."""
    bed = f.middle("bed", f.main)
    if bed:
        for side in (-1, 1):
            stand = f.room.beside(f.new("nightstand"), bed, side, 0.07)
            f.top(stand, ("table lamp", "books", "mug", "candle", "small plant"), 3)
        end = bed.to_room(np.array([0.0, bed.low_m[1] - 0.2, 0.0]))
        f.rug(float(end[0]), float(end[1]), bed.yaw_deg)
        if f.chance(0.6):
            bench = f.room.before(f.new("bench"), bed, 0.08, turn_deg=0)
            f.top(bench, ("books", "teddy", "helmet", "package"), 2)
    f.wall("wardrobe", (*f.sides, f.opposite))
    f.top(f.wall("dresser", (f.opposite, *f.sides)), (*SMALL_SHELF, "table lamp", "television"), 5)
    f.fill(f.wall(f.one(("low shelf", "bookshelf")), (f.opposite, *f.sides)), SMALL_SHELF)
    if f.chance(0.5):
        workplace(f, f.opposite)
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.hang((0, 1, 2, 3), 10)
    f.hang((0, 1, 2, 3), 2, ("clock", "wall shelf"))
    f.floor(LOOSE, 12)


def playroom(f: Furnisher) -> None:
    """Toys, low shelves, a small table."""
    w, d, _ = f.room.size_m
    f.rug(w / 2, d / 2, float(f.rng.choice([0, 90])))
    toys = ("teddy", "toy car", "blocks", "ball", "books", "globe", "helmet", "package", "toy car", "blocks")
    for wall in (f.main, *f.sides):
        f.fill(f.wall(f.one(("low shelf", "dresser", "bookshelf")), (wall, f.opposite)), toys, 3)
    table = Placed(
        f.new("coffee table"), w * f.rng.uniform(0.4, 0.6), d * f.rng.uniform(0.4, 0.6), 0.0, f.rng.uniform(0, 90)
    )
    if f.room.put(table):
        f.top(table, ("papers", "toy car", "blocks", "mug", "books"), 4)
        for side in ("-y", "+y"):
            f.room.around(f.new("stool"), table, side, 0.0, 0.1, 30)
    f.wall("sofa", (f.opposite, *f.sides))
    f.hang((0, 1, 2, 3), 11)
    f.hang((0, 1, 2, 3), 3, ("wall shelf", "clock", "wall shelf"))
    f.wall("radiator", (*f.sides, f.opposite), windows=True)
    f.floor((*LOOSE, "teddy", "ball", "toy car", "blocks", "pillow"), 14)
    f.floor(("toy car", "ball", "teddy", "blocks", "pillow", "helmet"), 3, edge=False)


def workshop(f: Furnisher) -> None:
    """Benches, racks, boxes."""
    tools = (
        "toolbox",
        "box",
        "crate",
        "bucket",
        "bottle",
        "package",
        "helmet",
        "speaker",
        "desk lamp",
        "watering can",
        "pot",
    )
    for wall in (f.main, f.sides[0]):
        f.fill(f.middle("workbench", wall), tools, 4)
    for _ in range(2):
        f.fill(
            f.wall("crate rack", (*f.sides, f.opposite)),
            ("box", "toolbox", "crate", "bucket", "suitcase", "package"),
            2,
        )
    f.top(f.wall("cabinet", (f.opposite, *f.sides)), tools, 2)
    f.wall("filing cabinet", (f.opposite, *f.sides))
    f.hang((0, 1, 2, 3), 6, ("picture", "wall shelf", "clock", "picture"))
    f.floor(
        ("stool", "bar stool", "box", "box", "crate", "bucket", "bin", "fan", "toolbox", "suitcase", "guitar", "shoes"),
        14,
    )


PROGRAMS: Mapping[str, Callable[[Furnisher], None]] = {
    "living room": living_room,
    "kitchen": kitchen,
    "office": office,
    "bedroom": bedroom,
    "study": study,
    "dining room": dining_room,
    "playroom": playroom,
    "workshop": workshop,
}
