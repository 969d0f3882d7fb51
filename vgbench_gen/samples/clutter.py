"""The small things that lie about in rooms people live in, put where they belong once the furniture stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from vgbench_gen.samples.arrange import Placed
from vgbench_gen.samples.furnisher import Furnisher

_DESK = (
    "notebook", "pen holder", "paper tray", "headphones", "phone", "tape", "papers", "mug", "book row", "photo frame",
    "tissues", "magazines",
)  # fmt: skip
_LIVING = ("remote control", "game controller", "tissues", "mug", "fruit", "plates", "headphones", "photo frame")
_BEDSIDE = ("photo frame", "tissues", "remote control", "canisters", "candle", "headphones")
_DISHES = ("plates", "mug", "fruit", "canisters", "cutting board", "bowl", "tissues", "candle")
_COOKING = (
    "cutting board", "plates", "paper towel", "soap", "canisters", "dish rack", "fruit", "mug", "bowl", "folded cloth",
)  # fmt: skip
_SHOWN = (
    "photo frame", "container", "canisters", "hat", "folded cloth", "headphones", "tissues", "candle", "bowl",
    "remote control", "tape", "cactus",
)  # fmt: skip
_STORED = (
    "container", "book row", "canisters", "photo frame", "candle", "tape", "pen holder", "mug", "folded cloth",
    "cactus", "soap",
)  # fmt: skip
_TOYS = ("stacking rings", "toy train", "container", "hat", "game controller", "pen holder", "tape")
_TOOLS = ("hammer", "paint can", "tape", "canisters", "headphones", "container", "pen holder", "soap")
_CLOTHES = ("folded cloth", "blanket", "hat", "container")
_SILL = ("candle", "cactus", "canisters", "mug", "vase", "soap", "tape")

_ON: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("desk",), _DESK), **dict.fromkeys(("coffee table", "side table"), _LIVING),
    "nightstand": _BEDSIDE, **dict.fromkeys(("table", "round table"), _DISHES),
    **dict.fromkeys(("kitchen counter", "stove"), _COOKING), "tv stand": ("game controller", *_SHOWN),
    **dict.fromkeys(("sideboard", "dresser", "cabinet", "filing cabinet"), _SHOWN),
    **dict.fromkeys(("bookshelf", "shelf", "wall shelf"), _STORED), **dict.fromkeys(("bench", "box"), _CLOTHES),
    "workbench": _TOOLS, "storage rack": (*_TOOLS, "candle", "folded cloth", "cactus", "hat"), "window": _SILL,
}  # fmt: skip
"""What lies on what, by label."""
_IN: Mapping[str, Mapping[str, Sequence[str]]] = {
    "kitchen": {"cabinet": _COOKING, "sideboard": _COOKING, "shelf": _COOKING},
    "playroom": dict.fromkeys(("coffee table", "shelf", "bookshelf", "dresser"), _TOYS),
    "workshop": {"cabinet": _TOOLS, "filing cabinet": _TOOLS},
}
"""What is otherwise in rooms of a kind."""
_FLOOR: Mapping[str, Sequence[str]] = {
    "kitchen": ("tote bag", "slippers", "power strip"),
    "workshop": ("power strip", "paint can", "tote bag", "container"),
    "office": ("power strip", "tote bag", "container", "dumbbells"),
    "playroom": ("toy train", "stacking rings", "slippers", "power strip", "container"),
}
_ANY_FLOOR = ("slippers", "power strip", "tote bag", "dumbbells", "container", "hat")
_PER_M2 = 9.0  # things on a square meter of a surface, at most
_MANY = frozenset(["book row"])  # of these there are more than one in a room
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
