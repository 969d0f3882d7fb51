"""How much things of one kind differ in size, and the stretching that makes one of them its own.

Makers draw from a narrow catalogue. A question about a box can be answered without looking once sizes return from room
to room, so every instance is stretched along each axis on its own, within what people build and use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.samples.parts import Model

Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Variety:
    """Ranges of the factors by which things of one kind are stretched, each drawn log-uniformly."""

    scale: Range = (0.85, 1.2)
    """The factor of all axes together."""
    wide: Range = (0.78, 1.28)
    """The factor of x on top of it."""
    deep: Range = (0.78, 1.28)
    """The factor of y on top of it."""
    tall: Range = (0.78, 1.28)
    """The factor of z on top of it."""
    height_m: Range = (0.0, 2.3)
    """The limits of the height that comes out, meters."""
    tied: str = ""
    """The two axes, "xy" or "xz", that share the factor `wide`, which keeps round things round; empty for none."""


_ANY: Range = (0.8, 1.25)
_BODY: Range = (0.85, 1.2)  # what a sitting or lying body leaves free
_SMALL: Range = (0.86, 1.16)


def _case(low_m: float, high_m: float) -> Variety:
    return Variety(_ANY, (0.75, 1.3), (0.8, 1.25), (0.75, 1.3), (low_m, high_m))


def _seat(low_m: float, high_m: float, tied: str = "") -> Variety:
    return Variety((0.93, 1.08), _BODY, _BODY, (0.93, 1.08), (low_m, high_m), tied)


def _board(low_m: float, high_m: float, tied: str = "") -> Variety:
    return Variety(_ANY, (0.78, 1.25), (0.8, 1.25), (0.8, 1.25), (low_m, high_m), tied)


def _round(scale: Range = (0.75, 1.3), tall: Range = (0.8, 1.3), high_m: float = 2.3) -> Variety:
    return Variety(scale, (0.85, 1.2), (1.0, 1.0), tall, (0.0, high_m), "xy")


_EVEN = Variety((0.75, 1.25), (0.8, 1.25), (0.8, 1.25), (0.8, 1.25))

VARIETY: Mapping[str, Variety] = {
    "chair": _seat(0.7, 1.12), "office chair": _seat(0.85, 1.35, "xy"), "stool": _seat(0.36, 0.54, "xy"),
    "bar stool": Variety((0.93, 1.08), _BODY, _BODY, (0.88, 1.12), (0.55, 0.86), "xy"), "armchair": _seat(0.66, 1.0),
    "sofa": Variety((0.92, 1.1), (0.8, 1.22), (0.88, 1.15), (0.9, 1.1), (0.66, 1.0)),
    "bench": Variety(_ANY, (0.75, 1.3), _BODY, (0.9, 1.15), (0.37, 0.54)),
    "ottoman": Variety(_ANY, (0.85, 1.2), (0.85, 1.2), (0.8, 1.2), (0.27, 0.52)),
    "bed": Variety((0.97, 1.05), (0.9, 1.14), (0.93, 1.08), (0.8, 1.2), (0.6, 1.35)),
    "table": Variety(_ANY, (0.8, 1.15), (0.85, 1.2), (0.8, 1.25), (0.66, 0.82)),
    "round table": _board(0.64, 0.82, "xy"), "coffee table": _board(0.28, 0.56), "side table": _board(0.4, 0.72),
    "desk": Variety((0.88, 1.15), (0.8, 1.22), (0.88, 1.2), (0.85, 1.2), (0.66, 0.82)),
    "workbench": Variety((0.88, 1.15), (0.8, 1.22), (0.85, 1.2), (0.85, 1.2), (0.76, 1.0)),
    "bookshelf": _case(1.2, 2.3), "low shelf": _case(0.5, 1.15), "cabinet": _case(0.6, 1.55),
    "wall shelf": _case(0.2, 0.7), "sideboard": _case(0.55, 1.05), "dresser": _case(0.6, 1.3),
    "nightstand": _case(0.34, 0.72), "tv stand": _case(0.28, 0.7), "wardrobe": _case(1.6, 2.3),
    "filing cabinet": _case(0.5, 1.5), "crate rack": _case(1.2, 2.25),
    "counter": Variety((0.95, 1.05), (0.75, 1.25), (0.9, 1.12), (0.9, 1.1), (0.85, 1.25)),
    "stove": Variety((0.95, 1.05), (0.8, 1.4), (0.9, 1.12), (0.92, 1.06), (0.84, 0.96)),
    "upper cabinet": Variety((0.9, 1.1), (0.75, 1.25), (0.82, 1.15), (0.75, 1.25), (0.42, 0.92)),
    "refrigerator": Variety((0.9, 1.1), (0.85, 1.25), (0.85, 1.15), (0.75, 1.2), (1.2, 2.1)),
    "monitor": Variety(_BODY, _BODY, _ANY, _BODY, (0.32, 0.65)),
    "television": Variety((0.72, 1.3), _SMALL, _ANY, _SMALL, (0.42, 1.0)),
    "laptop": Variety(_SMALL, _SMALL, _SMALL, _SMALL), "keyboard": Variety(_SMALL, (0.78, 1.15), _BODY, (0.7, 1.4)),
    "fan": Variety(_ANY, (0.9, 1.12), _ANY, (1.0, 1.0), (0.4, 1.35), "xz"),
    "floor lamp": Variety((0.75, 1.3), _ANY, _ANY, (0.85, 1.2), (1.15, 2.05), "xy"),
    "table lamp": _round((0.75, 1.3), (0.8, 1.25), 0.75), "microwave": Variety((0.9, 1.15), _BODY, _BODY, _BODY),
    "kettle": _round(_ANY, (0.85, 1.25)), "speaker": _case(0.16, 1.25), "printer": Variety(_ANY, _ANY, _ANY, _ANY),
    "picture": Variety((0.7, 1.3), (0.75, 1.3), (0.7, 1.5), (0.75, 1.3), (0.2, 1.25)),
    "whiteboard": Variety((0.75, 1.25), _ANY, (0.7, 1.4), _ANY, (0.45, 1.25)),
    "clock": Variety((0.65, 1.5), (0.9, 1.1), (0.7, 1.5), (1.0, 1.0), (0.15, 0.7), "xz"),
    "rug": Variety((0.75, 1.3), (0.75, 1.3), (0.75, 1.3), (0.7, 1.4)),
    "radiator": Variety(_BODY, (0.75, 1.3), _BODY, _BODY, (0.4, 0.84)),
    "plant": _round((0.7, 1.35), (0.8, 1.25), 2.0), "small plant": _round((0.75, 1.4)), "cactus": _round((0.75, 1.5)),
    "vase": _round((0.7, 1.35)), "candle": _round((0.75, 1.4), (0.7, 1.4)),
    "globe": Variety((0.7, 1.35), (0.96, 1.04), (1.0, 1.0), (0.96, 1.04), (0.15, 0.7), "xy"),
    "mug": Variety((0.78, 1.3), (0.85, 1.18), (1.0, 1.0), (0.8, 1.25), (0.0, 0.14), "xy"), "bowl": _round((0.75, 1.4)),
    "bottle": _round((0.75, 1.25)),
    "pot": _round((0.75, 1.35)),
    "bin": _round((0.8, 1.3)), "bucket": _round((0.75, 1.25)), "papers": Variety((0.75, 1.2), _BODY, _BODY, (0.7, 1.5)),
    "ball": Variety((0.55, 1.5), (0.97, 1.03), (1.0, 1.0), (0.97, 1.03), (0.0, 0.5), "xy"),
    "box": Variety((0.75, 1.3), (0.75, 1.3), (0.75, 1.3), (0.7, 1.35), (0.1, 0.8)),
    "package": Variety((0.75, 1.3), (0.75, 1.3), (0.75, 1.3), (0.7, 1.35)),
    "teddy": Variety((0.7, 1.5), _BODY, _BODY, _BODY), "toy car": Variety((0.65, 1.35), _BODY, _BODY, _BODY),
    "blocks": Variety((0.65, 1.4), _BODY, _BODY, _BODY), "shoes": Variety((0.75, 1.15), _SMALL, _SMALL, _ANY),
    "helmet": Variety(_SMALL, _SMALL, _SMALL, _SMALL), "pillow": Variety((0.75, 1.3), _BODY, _BODY, (0.75, 1.4)),
    "suitcase": Variety((0.75, 1.25), _BODY, _BODY, (0.82, 1.22)),
    **dict.fromkeys(("plates", "paint can", "hat"), _round((0.8, 1.2), (0.75, 1.3))),
    **dict.fromkeys(("paper towel", "stacking rings", "pen holder", "tape"), _round((0.8, 1.12), (0.75, 1.25))),
    **dict.fromkeys(("fruit", "soap"), _round((0.85, 1.1), (0.9, 1.1))),
        "canisters": Variety((0.78, 1.2), (0.85, 1.18), (0.85, 1.18), (0.8, 1.25)),
    **dict.fromkeys(("remote control", "phone", "headphones", "game controller", "toy train", "hammer"), _EVEN),
    **dict.fromkeys(("dumbbells", "slippers", "book row", "power strip", "dish rack"), _EVEN),
}  # fmt: skip
"""By name of `MAKERS`; the others have the ranges that `Variety` begins with."""


def draw_size_factors(kind: str, height_m: float, rng: np.random.Generator) -> FloatArray:
    """(3,) factors of x, y and z for one thing of a kind whose maker gave it a height."""
    how = VARIETY.get(kind, Variety())
    scale = _log_uniform(rng, how.scale)
    x, y = scale * _log_uniform(rng, how.wide), scale * _log_uniform(rng, how.deep)
    # Cut the range, not the draw: heights must not heap up at a limit.
    low, high = (min(max(scale * f, how.height_m[0] / height_m), how.height_m[1] / height_m) for f in how.tall)
    z = _log_uniform(rng, (low, high))
    return np.array([x, x if how.tied == "xy" else y, x if how.tied == "xz" else z])


def stretch_model(model: Model, by: FloatArray) -> Model:
    """Stretch a model in place about its origin along x, y and z; what touches goes on touching."""
    for part in model.parts:
        part.vertices_m = part.vertices_m * by
        normals = part.normals / by
        part.normals = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    for shelf in model.shelves:
        shelf.center_m, shelf.half_m = shelf.center_m * by, shelf.half_m * by[:2]
        shelf.clear_m *= float(by[2])
    x, y, z = (float(f) for f in by)
    if model.hollow:
        model.hollow = (model.hollow[0] * x, model.hollow[1] * y, model.hollow[2] * z)
    if model.lamp:
        at, radius_m, power = model.lamp
        model.lamp = ((at[0] * x, at[1] * y, at[2] * z), radius_m * max(x, y), power)
    return model


def _log_uniform(rng: np.random.Generator, of: Range) -> float:
    return float(np.exp(rng.uniform(np.log(of[0]), np.log(of[1]))))
