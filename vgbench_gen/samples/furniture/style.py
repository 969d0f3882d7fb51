"""Materials that the things of one room share, so that a room looks furnished by one household."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.samples import art, drawing, textures
from vgbench_gen.samples.fields import Rgb, mix
from vgbench_gen.samples.textures import Texture

_SOFT: tuple[Rgb, ...] = (
    *((120, 126, 132), (168, 156, 138), (82, 96, 112), (150, 92, 72), (92, 112, 92), (176, 140, 84), (62, 70, 84)),
    *((188, 178, 162), (128, 74, 74), (96, 122, 138), (190, 150, 130), (70, 92, 88)),
)


@dataclass(frozen=True, eq=False)
class Style:
    """The materials of the things of one room."""

    wood: Texture
    wood2: Texture
    white: Texture
    black: Texture
    metal: Texture
    brass: Texture
    fabrics: tuple[Texture, ...]
    leather: Texture
    ceramics: tuple[Texture, ...]
    bright: tuple[Texture, ...]
    books: Texture  # spines, one book to each of 16 columns
    pages: Texture  # edges of the pages of books
    wicker: Texture
    green: Texture
    soil: Texture
    card: Texture
    card_label: Texture
    stone: Texture
    shade: Texture  # lampshades, which glow
    packages: tuple[Texture, ...]
    keyboard: Texture
    sheet: Texture


def make_style(rng: np.random.Generator) -> Style:
    """Draw the materials of one room."""
    woods = rng.permutation(list(textures.WOODS))
    soft = [_SOFT[int(k)] for k in rng.permutation(len(_SOFT))]
    lamp = textures.fabric(rng, (236, 222, 190), "plain")
    brights = [drawing.draw_hue(rng, 0.9, 1.25) for _ in range(4)]
    return Style(
        wood=textures.wood(rng, str(woods[0])),
        wood2=textures.wood(rng, str(woods[1])),
        white=textures.painted_wood(rng, (222, 219, 210)),
        black=textures.plain(rng, (42, 42, 46), 0.4),
        metal=textures.metal(rng),
        brass=textures.metal(rng, mix((176, 140, 78), (90, 84, 80), float(rng.uniform(0, 0.8)))),
        fabrics=tuple(textures.fabric(rng, color) for color in soft[:5]),
        leather=textures.leather(rng, ((96, 60, 40), (48, 44, 44), (140, 92, 58))[int(rng.integers(3))]),
        ceramics=tuple(
            textures.tiles(rng, color, color, (0.6, 0.6), 0.6) if k else textures.plain(rng, color, 0.7)
            for k, color in enumerate([(226, 222, 212), drawing.draw_hue(rng), drawing.draw_hue(rng)])
        ),
        bright=tuple(textures.plain(rng, color, 0.5) for color in brights),
        books=art.spines(rng),
        pages=textures.wood(rng, "white oak", 0.0),
        wicker=textures.wicker(rng),
        green=textures.foliage(rng),
        soil=textures.carpet(rng, (66, 48, 36)),
        card=art.cardboard(rng, False),
        card_label=art.cardboard(rng, True),
        stone=textures.stone(rng, ((206, 202, 196), (70, 70, 74), (170, 150, 128))[int(rng.integers(3))]),
        shade=Texture(lamp.image, lamp.size_m, glow=0.9),
        packages=tuple(art.package(rng) for _ in range(4)),
        keyboard=art.keyboard(rng),
        sheet=art.paper(rng),
    )


def pick(rng: np.random.Generator, of: tuple[Texture, ...]) -> Texture:
    """One of several textures."""
    return of[int(rng.integers(len(of)))]
