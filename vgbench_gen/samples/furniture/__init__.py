"""Furniture and things: label -> maker. A maker draws sizes and materials; each thing is then stretched to its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from vgbench_gen.samples.furniture.build import build_thing
from vgbench_gen.samples.furniture.large import LARGE, Maker
from vgbench_gen.samples.furniture.sizes import draw_size_factors, stretch_model
from vgbench_gen.samples.furniture.style import Style
from vgbench_gen.samples.furniture.things import THINGS
from vgbench_gen.samples.parts import Model

MAKERS: Mapping[str, Maker] = {**{name: partial(build_thing, kind) for name, kind in THINGS.items()}, **LARGE}


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
