"""Scalar noise fields from which textures are coloured. Every field tiles in both directions.

Fields depend on their name and variant only, so that a process makes each of them once, whatever world asks first.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ColorArray

Field = npt.NDArray[np.float32]
Rgb = tuple[int, int, int]

SIZE_PX = 512
VARIANTS = 3  # of each kind of field; more would only cost memory, as colours and scales differ anyway
_PAD = 2  # cells copied around a grid before it is enlarged, so that cubic weights see the other side


def make_tiling_noise(rng: np.random.Generator, cells_x: int, cells_y: int, size_px: int = SIZE_PX) -> Field:
    """(size, size) smooth tiling noise of standard deviation about 1 with the given number of cells per side."""
    grid = np.pad(rng.normal(0, 1, (cells_y, cells_x)).astype(np.float32), _PAD, mode="wrap")
    # One side after the other, so that of what few cells are padded by only a strip is enlarged.
    return _enlarge_columns(_enlarge_columns(grid, size_px).T, size_px).T.copy()


def _enlarge_columns(padded: Field, size_px: int) -> Field:
    """(rows, size) a padded grid (rows, cells + 2 pads) with its columns enlarged, and the pads cut off."""
    rows, cells = padded.shape[0], padded.shape[1] - 2 * _PAD
    pad_px = _PAD * size_px // cells
    large = cv2.resize(padded, (size_px + 2 * pad_px, rows), interpolation=cv2.INTER_CUBIC)
    return np.asarray(large[:, pad_px : pad_px + size_px], np.float32)


def make_fractal_noise(
    rng: np.random.Generator, first: int, octaves: int, fall: float = 0.6, size_px: int = SIZE_PX
) -> Field:
    """(size, size) noise of several octaves, scaled to 0..1 by its 1st and 99th percentile."""
    total = np.zeros((size_px, size_px), np.float32)
    for k in range(octaves):
        cells = min(first * 2**k, size_px // 2)
        total += np.float32(fall**k) * make_tiling_noise(rng, cells, cells, size_px)
    return scale_to_unit(total)


def scale_to_unit(field: Field) -> Field:
    """The field scaled to 0..1 between its 1st and 99th percentile, clipped."""
    low, high = np.percentile(field[::4, ::4], [1, 99])
    return np.asarray(np.clip((field - np.float32(low)) / np.float32(max(high - low, 1e-6)), 0, 1), np.float32)


def load_field(kind: str, variant: int = 0) -> Field:
    """One of the shared fields, (512, 512) in 0..1; a copy.

    kind: cloud (large soft blotches), grit (fine grain), grain (wood, along x), weave (cloth), knit, leather, speckle
    (sparse spots), brushed (metal, along x), marble, pile (carpet).
    """
    return _make_field(kind, variant % VARIANTS).astype(np.float32)


@lru_cache(maxsize=64)
def _make_field(kind: str, variant: int) -> npt.NDArray[np.float16]:
    rng = rng_for(0, "samples", "field", kind, str(variant))
    made = {
        "cloud": lambda: make_fractal_noise(rng, 4, 6, 0.62),
        "grit": lambda: make_fractal_noise(rng, 48, 4, 0.8),
        "grain": lambda: _make_grain(rng),
        "weave": lambda: _make_weave(rng, 64),
        "knit": lambda: _make_weave(rng, 32),
        "leather": lambda: _make_cells(rng, 900),
        "speckle": lambda: _make_speckle(rng),
        "brushed": lambda: scale_to_unit(make_tiling_noise(rng, 4, 256) + 0.5 * make_tiling_noise(rng, 16, 128)),
        "marble": lambda: _make_marble(rng),
        "pile": lambda: scale_to_unit(
            make_tiling_noise(rng, 200, 200)
            + 0.8 * make_tiling_noise(rng, 60, 60)
            + 0.6 * make_tiling_noise(rng, 10, 10)
        ),
    }[kind]()
    return made.astype(np.float16)  # kept for the life of the process; the eleven bits are more than colours show


def resize_field(field: Field, width: int, height: int) -> Field:
    """The field at another size."""
    return np.asarray(cv2.resize(field, (width, height), interpolation=cv2.INTER_LINEAR), np.float32)


def color_by_scale(field: Field, stops: Sequence[Rgb]) -> ColorArray:
    """(h, w, 3) uint8 by a colour scale of equally spaced stops over 0..1."""
    ends = np.linspace(0, 255, len(stops))
    scale = np.stack([np.interp(np.arange(256), ends, [stop[c] for stop in stops]) for c in range(3)], axis=-1)
    index = np.clip(field * 255, 0, 255).astype(np.uint8)
    table = np.clip(scale, 0, 255).astype(np.uint8)
    return np.asarray(cv2.merge([cv2.LUT(index, np.ascontiguousarray(channel)) for channel in table.T]), np.uint8)


def modulate_color(color: ColorArray, field: Field, strength: float) -> ColorArray:
    """The colours made darker and lighter by a field of 0..1 around its middle."""
    if field.shape != color.shape[:2]:
        repeat = [-(-color.shape[k] // field.shape[k]) for k in range(2)]
        field = np.tile(field, repeat)[: color.shape[0], : color.shape[1]]
    factor = 1 + np.float32(strength) * (field - np.float32(0.5))
    channels = [channel * factor for channel in cv2.split(color)]
    return np.clip(cv2.merge(channels), 0, 255).astype(np.uint8)


def shade(color: Rgb, factor: float) -> Rgb:
    """The colour times a factor, clipped."""
    r, g, b = (int(min(max(round(c * factor), 0), 255)) for c in color)
    return r, g, b


def mix(a: Rgb, b: Rgb, share: float) -> Rgb:
    """Colour between two."""
    r, g, b_ = (round(x * (1 - share) + y * share) for x, y in zip(a, b, strict=True))
    return r, g, b_


def _make_grain(rng: np.random.Generator) -> Field:
    v = np.linspace(0, 1, SIZE_PX, endpoint=False, dtype=np.float32)[:, None]
    bend = 0.03 * make_tiling_noise(rng, 1, 5) + 0.006 * make_tiling_noise(rng, 5, 24)
    rings = np.abs(((v + bend) * 22) % 1 * 2 - 1) ** 0.6
    fibres = scale_to_unit(
        make_tiling_noise(rng, 6, 256) + 0.7 * make_tiling_noise(rng, 20, 128) + 0.5 * make_tiling_noise(rng, 3, 64)
    )
    pores = (make_tiling_noise(rng, 24, 256) > 1.7).astype(np.float32)
    return scale_to_unit(0.4 * rings + 0.6 * fibres + 0.15 * make_tiling_noise(rng, 1, 6) - 0.6 * pores)


def _make_weave(rng: np.random.Generator, threads: int) -> Field:
    u = np.arange(SIZE_PX, dtype=np.float32) * (2 * np.pi * threads / SIZE_PX)
    warp, weft = np.sin(u)[None, :], np.sin(u)[:, None]
    over = (np.sin(u / 2)[None, :] * np.sin(u / 2)[:, None]) > 0
    cloth = np.where(over, np.abs(warp) + 0 * weft, np.abs(weft) + 0 * warp).astype(np.float32)
    return scale_to_unit(cloth + 0.5 * make_tiling_noise(rng, threads, threads) + 0.6 * make_tiling_noise(rng, 12, 12))


def _make_cells(rng: np.random.Generator, count: int) -> Field:
    seeds = np.full((SIZE_PX, SIZE_PX), 255, np.uint8)
    at = rng.integers(0, SIZE_PX, (count, 2))
    seeds[at[:, 0], at[:, 1]] = 0
    wrapped = np.pad(seeds, 32, mode="wrap")
    distance = cv2.distanceTransform(wrapped, cv2.DIST_L2, 5)[32:-32, 32:-32]
    return scale_to_unit(np.asarray(distance, np.float32) + 1.5 * make_tiling_noise(rng, 10, 10))


def _make_speckle(rng: np.random.Generator) -> Field:
    spots = np.zeros((SIZE_PX, SIZE_PX), np.float32)
    for threshold, cells in ((1.7, 40), (1.9, 90), (2.1, 160)):
        spots += (make_tiling_noise(rng, cells, cells) > threshold).astype(np.float32) * np.float32(rng.uniform(0.5, 1))
    return np.clip(spots, 0, 1)


def _make_marble(rng: np.random.Generator) -> Field:
    veins = 1 - np.abs(2 * make_fractal_noise(rng, 3, 5) - 1)
    return scale_to_unit(veins**6 + 0.25 * make_fractal_noise(rng, 6, 4))
