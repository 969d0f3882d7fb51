"""The small things that lie about in rooms people live in, put where they belong once the furniture stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.furnisher import Furnisher

_DESK = (
    "notebook", "pen holder", "paper tray", "headphones", "phone", "tape", "papers", "mug", "book row",
    "photo frame", "tissue box", "magazines",
)  # fmt: skip
_LIVING = (
    "remote control", "magazines", "game controller", "tissue box", "phone", "notebook", "mug", "fruit", "plates",
    "headphones", "books",
)  # fmt: skip
_BEDSIDE = ("alarm clock", "phone", "photo frame", "tissue box", "remote control", "jars", "candle")
_DISHES = ("plates", "mug", "fruit", "jars", "magazines", "cutting board", "bottle", "phone", "bowl")
_COOKING = (
    "cutting board", "plates", "paper towel", "soap", "jars", "dish rack", "can", "fruit", "mug", "bottle", "books",
    "folded cloth",
)  # fmt: skip
_SHOWN = (
    "photo frame", "book row", "storage box", "jars", "hat", "folded cloth", "headphones", "tissue box",
    "magazines", "alarm clock", "candle", "bowl", "remote control", "phone", "tape",
)  # fmt: skip
_STORED = (
    "storage box", "book row", "jars", "photo frame", "alarm clock", "candle", "tape", "can", "pen holder", "mug",
    "folded cloth", "cactus", "soap",
)  # fmt: skip
_TOYS = (
    "stacking rings", "toy train", "storage box", "hat", "game controller", "book row", "pen holder", "can", "tape",
)  # fmt: skip
_TOOLS = ("hammer", "paint can", "tape", "can", "jars", "notebook", "headphones", "storage box", "bottle", "phone")
_CLOTHES = ("folded cloth", "blanket", "hat", "magazines", "storage box")
_SILL = ("candle", "cactus", "jars", "mug", "bottle", "vase", "can")

_ON: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("desk",), _DESK), **dict.fromkeys(("coffee table", "side table"), _LIVING),
    "nightstand": _BEDSIDE, **dict.fromkeys(("table", "round table"), _DISHES),
    **dict.fromkeys(("kitchen counter", "stove"), _COOKING), "tv stand": ("game controller", *_SHOWN),
    **dict.fromkeys(("sideboard", "dresser", "cabinet", "filing cabinet"), _SHOWN),
    **dict.fromkeys(("bookshelf", "shelf", "wall shelf"), _STORED),
    "workbench": _TOOLS, "storage rack": tuple(dict.fromkeys((*_TOOLS, *_STORED))), "bench": _CLOTHES,
    "box": _CLOTHES, "window": _SILL,
}  # fmt: skip
"""What lies on what, by label."""
_IN: Mapping[str, Mapping[str, Sequence[str]]] = {
    "kitchen": {"cabinet": _COOKING, "sideboard": _COOKING, "shelf": _COOKING},
    "playroom": dict.fromkeys(("coffee table", "shelf", "bookshelf", "dresser"), _TOYS),
    "office": dict.fromkeys(("cabinet", "shelf", "filing cabinet"), _DESK),
    "workshop": {"cabinet": _TOOLS, "filing cabinet": _TOOLS},
}
"""What is otherwise in rooms of a kind."""
_FLOOR: Mapping[str, Sequence[str]] = {
    "kitchen": ("shopping bag", "slippers", "power strip"),
    "workshop": ("power strip", "paint can", "shopping bag"),
    "office": ("power strip", "shopping bag", "magazines", "storage box"),
    "playroom": ("toy train", "stacking rings", "slippers", "power strip", "books"),
}
_ANY_FLOOR = ("slippers", "power strip", "shopping bag", "dumbbells", "magazines", "storage box")
_PER_M2 = 9.0  # things on a square metre of a surface, at most
_MANY = frozenset(["books", "book row", "magazines"])  # of these there are more than one in a room
_ON_FLOOR = 4
_TRIES = 24  # little is free where large things stand


def scatter_clutter(f: Furnisher, kind: str, surfaces: Sequence[Placed]) -> None:
    """Put small things on some surfaces and on the floor of a room of a kind.

    Most kinds of things are there once at most, so that what lies about can be told by name.
    """
    choices = {**_ON, **_IN.get(kind, {})}
    left = {name for names in (*choices.values(), *_FLOOR.values(), _ANY_FLOOR) for name in names}
    left -= {thing.model.label for thing in f.room.placed} - _MANY
    for surface in surfaces:
        for number, shelf in enumerate(surface.model.shelves):
            names = [name for name in choices.get(surface.model.label, ()) if name in left]
            area_m2 = 4 * float(shelf.half_m[0] * shelf.half_m[1])
            count = min(1 + int(area_m2 * _PER_M2 * f.rng.uniform(0.5, 1.0)), len(names))
            left -= f.put_on_top(surface, names, count, number, _TRIES) - _MANY
    f.scatter_on_floor([name for name in _FLOOR.get(kind, _ANY_FLOOR) if name in left], _ON_FLOOR)
