"""Materials of surfaces: pictures with a size in meters. sRGB colours, mostly between 15 and 240 of 255."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray
from vgbench_gen.samples.fields import SIZE_PX, VARIANTS, Rgb, color_by_scale, load_field, mix, modulate_color, shade

WOODS: dict[str, tuple[Rgb, Rgb]] = {
    "oak": ((142, 101, 60), (203, 163, 112)),
    "beech": ((178, 134, 88), (226, 190, 146)),
    "walnut": ((62, 40, 27), (122, 84, 56)),
    "cherry": ((112, 58, 34), (172, 104, 66)),
    "pine": ((190, 146, 88), (236, 202, 146)),
    "grey oak": ((112, 102, 92), (174, 164, 150)),
    "ebony": ((34, 28, 25), (70, 60, 53)),
    "white oak": ((186, 172, 150), (228, 217, 198)),
}


@dataclass(frozen=True, eq=False)
class Texture:
    """What covers a surface."""

    image: ColorArray
    """The picture, (h, w, 3) uint8 sRGB."""
    size_m: tuple[float, float]
    """How many meters the width and the height of the picture cover."""
    tiles: bool = True
    """Whether the picture repeats; otherwise it is stretched over a side."""
    gloss: float = 0.0
    """How much of the light is mirrored at normal incidence, from 0 to 1 and times 0.1."""
    glow: float = 0.0
    """The light that it gives off, relative to a white wall in daylight."""


def _draw_variant(rng: np.random.Generator) -> int:
    return int(rng.integers(VARIANTS))


def plain(rng: np.random.Generator, color: Rgb, gloss: float = 0.25) -> Texture:
    """Plastic, lacquer or enamel: nearly even, with faint grain and wear."""
    field = 0.6 * load_field("grit", _draw_variant(rng)) + 0.4 * load_field("cloud", _draw_variant(rng))
    image = color_by_scale(field, [shade(color, 0.9), color, shade(color, 1.07)])
    return Texture(image, (0.5, 0.5), gloss=gloss)


def plaster(rng: np.random.Generator, color: Rgb) -> Texture:
    """Painted plaster: roller grain, blotches, a few marks and scratches."""
    grit = np.tile(load_field("grit", _draw_variant(rng)), (2, 2))
    cloud = cv2.resize(load_field("cloud", _draw_variant(rng)), (1024, 1024), interpolation=cv2.INTER_LINEAR)
    image = color_by_scale(0.5 * cloud + 0.5 * grit, [shade(color, 0.91), color, shade(color, 1.05)])
    marks = np.zeros((1024, 1024), np.uint8)
    for _ in range(int(rng.integers(16, 34))):
        x, y = (int(c) for c in rng.integers(20, 1000, 2))
        dx, dy = (int(c) for c in rng.normal(0, 14, 2))
        if rng.random() < 0.4:
            cv2.line(marks, (x, y), (x + dx, y + dy), int(rng.integers(40, 120)), 1, cv2.LINE_AA)
        else:
            axes = (int(rng.integers(1, 5)), int(rng.integers(1, 4)))
            cv2.ellipse(marks, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, int(rng.integers(30, 110)), -1)
    image = np.clip(image * (1 - marks[..., None] / np.float32(420)), 0, 255).astype(np.uint8)
    return Texture(image, (2.4, 2.4))


def wood(rng: np.random.Generator, kind: str = "", gloss: float = 0.3) -> Texture:
    """Solid wood or veneer, grain along x."""
    dark, light = WOODS[kind or list(WOODS)[int(rng.integers(len(WOODS)))]]
    image = color_by_scale(load_field("grain", _draw_variant(rng)), [dark, mix(dark, light, 0.6), light])
    return Texture(modulate_color(image, load_field("cloud", _draw_variant(rng)), 0.08), (0.9, 0.45), gloss=gloss)


def painted_wood(rng: np.random.Generator, color: Rgb) -> Texture:
    """Paint through which the grain shows faintly."""
    field = (
        0.5 * load_field("grain", _draw_variant(rng))
        + 0.3 * load_field("grit", _draw_variant(rng))
        + 0.2 * load_field("cloud")
    )
    return Texture(color_by_scale(field, [shade(color, 0.84), color, shade(color, 1.06)]), (0.9, 0.6), gloss=0.2)


def planks(rng: np.random.Generator, kind: str = "") -> Texture:
    """Floor boards along x, 2.4 m long, each of its own tone."""
    dark, light = WOODS[kind or ("oak", "walnut", "pine", "grey oak", "cherry", "white oak")[int(rng.integers(6))]]
    size, rows = 1024, int(rng.choice([12, 16, 20]))
    image = np.zeros((size, size, 3), np.uint8)
    bounds = np.linspace(0, size, rows + 1).round().astype(int)
    grain = color_by_scale(load_field("grain", _draw_variant(rng)), [dark, mix(dark, light, 0.6), light])
    big = np.tile(cv2.resize(grain, (size, SIZE_PX)), (2, 1, 1))
    for top, bottom in itertools.pairwise(bounds.tolist()):
        joints = np.sort(rng.choice(np.arange(60, size - 60), 2, replace=False))
        for left, right in ((0, joints[0]), (joints[0], joints[1]), (joints[1], size)):
            y, x = int(rng.integers(SIZE_PX)), int(rng.integers(size))
            board = np.roll(big[y : y + bottom - top], x, axis=1)[:, left:right]
            image[top:bottom, left:right] = np.clip(board * np.float32(rng.uniform(0.84, 1.12)), 0, 255)
            image[top:bottom, left : left + 2] = shade(dark, 0.5)
        image[top : top + 2] = shade(dark, 0.5)
    return Texture(image, (2.4, 2.4), gloss=0.45)


def herringbone(rng: np.random.Generator) -> Texture:
    """Parquet: blocks in pairs across each other."""
    dark, light = WOODS[("oak", "walnut", "cherry", "white oak")[int(rng.integers(4))]]
    size, unit = 1024, 64
    grain = color_by_scale(load_field("grain", _draw_variant(rng)), [dark, mix(dark, light, 0.6), light])
    image = np.zeros((size, size, 3), np.uint8)
    # Blocks of 1 x 2 units in zigzag: (i - j) mod 4 of a cell says which block begins there.
    for j in range(size // unit):
        for i in range(size // unit):
            step = (i - j) % 4
            if step not in (0, 3):
                continue
            lying = step == 0
            y, x = (int(c) for c in rng.integers(0, SIZE_PX - 3 * unit, 2))
            block = grain[y : y + unit, x : x + 2 * unit] * np.float32(rng.uniform(0.8, 1.12))
            block[:2] = block[:, :2] = shade(dark, 0.5)
            block = np.clip(block, 0, 255).astype(np.uint8)
            block = block if lying else np.rot90(block)
            rows = np.arange(j * unit, j * unit + block.shape[0]) % size
            columns = np.arange(i * unit, i * unit + block.shape[1]) % size
            image[np.ix_(rows, columns)] = block
    return Texture(image, (1.6, 1.6), gloss=0.4)


def tiles(
    rng: np.random.Generator, color: Rgb, grout: Rgb, side_m: tuple[float, float] = (0.3, 0.3), marbled: float = 0.5
) -> Texture:
    """Ceramic or stone tiles with grout; each tile of its own tone and vein."""
    nx, ny = (8, 8) if side_m[0] < 0.2 else (4, 4)
    size = 1024
    vein = color_by_scale(load_field("marble", _draw_variant(rng)), [color, shade(color, 1 - 0.5 * marbled)])
    speck = load_field("speckle", _draw_variant(rng))
    image = modulate_color(np.tile(vein, (2, 2, 1)), np.tile(speck, (2, 2)), -0.25 * marbled)
    w, h = size // nx, size // ny
    for j in range(ny):
        shift = (w // 2) * (j % 2) if side_m[0] > 1.5 * side_m[1] else 0
        for i in range(nx):
            columns = (np.arange(i * w, (i + 1) * w) + shift) % size
            y, x = (int(c) for c in rng.integers(0, SIZE_PX, 2))
            piece = np.roll(vein, (y, x), axis=(0, 1))[:h, :w] * np.float32(rng.uniform(0.9, 1.08))
            piece = np.clip(piece, 0, 255)
            piece[:3], piece[:, :3] = grout, grout
            image[j * h : (j + 1) * h, columns] = piece.astype(np.uint8)
    image = modulate_color(image, load_field("grit", _draw_variant(rng)), 0.12)
    return Texture(image, (side_m[0] * nx, side_m[1] * ny), gloss=0.6)


def brick(rng: np.random.Generator, color: Rgb, mortar: Rgb) -> Texture:
    """Brickwork in half bond."""
    made = tiles(rng, color, mortar, (0.24, 0.08), 0.3)
    image = modulate_color(made.image, load_field("grit", _draw_variant(rng)), 0.28)
    return Texture(image, (0.96, 0.32))


def terrazzo(rng: np.random.Generator, color: Rgb) -> Texture:
    """Stone chips in cement."""
    image = np.full((1024, 1024, 3), color, np.uint8)
    chips = [shade(color, f) for f in (0.45, 0.65, 0.8, 1.15)] + [(150, 96, 74), (96, 104, 96)]
    for _ in range(1500):
        x, y = (int(c) for c in rng.integers(0, 1024, 2))
        axes = (int(rng.integers(2, 11)), int(rng.integers(2, 8)))
        cv2.ellipse(image, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, chips[int(rng.integers(len(chips)))], -1)
    return Texture(modulate_color(image, load_field("grit"), 0.1), (1.6, 1.6), gloss=0.5)


def carpet(rng: np.random.Generator, color: Rgb) -> Texture:
    """Wall-to-wall carpet: pile with flecks."""
    image = color_by_scale(load_field("pile", _draw_variant(rng)), [shade(color, 0.6), color, shade(color, 1.3)])
    return Texture(modulate_color(image, load_field("cloud", _draw_variant(rng)), 0.2), (1.1, 1.1))


def concrete(rng: np.random.Generator, color: Rgb) -> Texture:
    """Cast concrete: clouds, pores."""
    field = 0.7 * load_field("cloud", _draw_variant(rng)) + 0.3 * load_field("grit", _draw_variant(rng))
    image = color_by_scale(field, [shade(color, 0.7), color, shade(color, 1.15)])
    return Texture(modulate_color(image, load_field("speckle", _draw_variant(rng)), -0.6), (1.8, 1.8), gloss=0.15)


def fabric(rng: np.random.Generator, color: Rgb, pattern: str = "") -> Texture:
    """Cloth. pattern: plain, stripes, plaid, dots, chevron; drawn at random when empty."""
    pattern = pattern or ("plain", "plain", "plain", "stripes", "plaid", "dots", "chevron")[int(rng.integers(7))]
    other = _draw_contrast(rng, color)
    image = np.full((SIZE_PX, SIZE_PX, 3), color, np.uint8)
    v, u = np.mgrid[:SIZE_PX, :SIZE_PX]
    if pattern == "stripes":
        period = int(rng.choice([32, 64, 128]))
        image[(u % period) < period * rng.uniform(0.15, 0.5)] = other
        image[((u + period // 2) % period) < 4] = shade(color, 0.6)
    elif pattern == "plaid":
        period = int(rng.choice([64, 128]))
        across, along = (u % period) < period // 3, (v % period) < period // 3
        image[across] = mix(color, other, 0.5)
        image[along] = mix(color, other, 0.5)
        image[across & along] = other
        image[(u % period) == period // 2] = shade(other, 0.7)
        image[(v % period) == period // 2] = shade(other, 0.7)
    elif pattern == "dots":
        step = int(rng.choice([32, 64]))
        a, b = (u % step) - step / 2, (v % step) - step / 2
        image[a * a + b * b < (step * 0.28) ** 2] = other
    elif pattern == "chevron":
        period = 64
        image[((v + np.abs((u % period) - period // 2)) % 32) < 15] = other
    cloth = load_field("knit" if rng.random() < 0.3 else "weave", _draw_variant(rng))
    image = modulate_color(modulate_color(image, cloth, 0.5), load_field("cloud", _draw_variant(rng)), 0.16)
    return Texture(image, (0.55, 0.55))


def leather(rng: np.random.Generator, color: Rgb) -> Texture:
    """Leather or its like."""
    image = color_by_scale(load_field("leather", _draw_variant(rng)), [shade(color, 0.65), color, shade(color, 1.2)])
    return Texture(modulate_color(image, load_field("cloud", _draw_variant(rng)), 0.4), (0.4, 0.4), gloss=0.4)


def metal(rng: np.random.Generator, color: Rgb = (168, 170, 172)) -> Texture:
    """Brushed metal: strokes finer and fainter than the grain of wood."""
    image = color_by_scale(load_field("brushed", _draw_variant(rng)), [shade(color, 0.86), color, shade(color, 1.08)])
    return Texture(modulate_color(image, load_field("cloud", _draw_variant(rng)), 0.12), (0.25, 0.25), gloss=0.8)


def stone(rng: np.random.Generator, color: Rgb) -> Texture:
    """Worktop of stone: veins and specks."""
    image = color_by_scale(load_field("marble", _draw_variant(rng)), [color, shade(color, 0.62)])
    return Texture(modulate_color(image, load_field("speckle", _draw_variant(rng)), -0.5), (0.8, 0.8), gloss=0.7)


def wicker(rng: np.random.Generator, color: Rgb = (166, 122, 74)) -> Texture:
    """Basketwork."""
    v, u = np.mgrid[:256, :256].astype(np.float32)
    over = ((u // 32).astype(int) + (v // 16).astype(int)) % 2
    round_ = np.abs(np.sin(v * np.pi / 16)) * (0.7 + 0.3 * over) * (0.75 + 0.25 * np.abs(np.sin(u * np.pi / 32)))
    image = color_by_scale(round_.astype(np.float32), [shade(color, 0.3), shade(color, 0.8), shade(color, 1.2)])
    return Texture(modulate_color(image, load_field("grit", _draw_variant(rng))[:256, :256], 0.4), (0.26, 0.26))


def foliage(rng: np.random.Generator, color: Rgb = (64, 108, 50)) -> Texture:
    """Leaf surface: blotches with veins."""
    field = 0.6 * load_field("cloud", _draw_variant(rng)) + 0.4 * load_field("grain", _draw_variant(rng))
    return Texture(color_by_scale(field, [shade(color, 0.5), color, shade(color, 1.5)]), (0.3, 0.3), gloss=0.3)


def _draw_contrast(rng: np.random.Generator, color: Rgb) -> Rgb:
    light = sum(color) > 360
    base = shade(color, rng.uniform(0.35, 0.6)) if light else mix(color, (240, 232, 215), rng.uniform(0.5, 0.8))
    return mix(base, (int(rng.integers(40, 220)), int(rng.integers(40, 200)), int(rng.integers(40, 200))), 0.3)
