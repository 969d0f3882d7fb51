"""All textures of a world and their smaller versions in one picture, so that one `cv2.remap` samples them all."""

from __future__ import annotations

from collections.abc import Sequence

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.samples.bands import take_columns
from vgbench_gen.samples.textures import Texture

Float32 = npt.NDArray[np.float32]

LEVELS = 8
_WIDTH = 4096
_FOLD = 1024
_GUTTER = 2  # pixels copied around every picture, so that bilinear weights see its other side


class Atlas:
    """See the module. size_px: (T, 2) full width and height of each texture. mean: (T, 3) mean linear colour."""

    def __init__(self, textures: Sequence[Texture]) -> None:
        pieces: list[tuple[int, int, ColorArray]] = []
        for number, texture in enumerate(textures):
            image = texture.image
            for level in range(LEVELS):
                pieces.append((number, level, image))
                if min(image.shape[:2]) <= 4:
                    break
                size = (max(image.shape[1] // 2, 1), max(image.shape[0] // 2, 1))
                image = np.asarray(cv2.resize(image, size, interpolation=cv2.INTER_AREA), np.uint8)
        # [x, y, width, height] of every level; levels that are too small repeat the last one.
        place = np.zeros((len(textures), LEVELS, 4), np.float32)
        places, height = _pack_rows([piece[2].shape for piece in pieces])
        self.image = np.zeros((height, _WIDTH, 3), np.uint8)
        for (number, level, image), (x, y) in zip(pieces, places, strict=True):
            mode = cv2.BORDER_WRAP if textures[number].tiles else cv2.BORDER_REPLICATE
            g = _GUTTER
            h, w = image.shape[:2]
            self.image[y - g : y + h + g, x - g : x + w + g] = cv2.copyMakeBorder(image, g, g, g, g, mode)
            place[number, level:] = x, y, w, h
        following = np.concatenate([place[:, 1:], place[:, -1:]], axis=1)
        # [x, y, width, height] of a level and of the next.
        self._place: Float32 = np.concatenate([place, following], axis=2).reshape(-1, 8)
        self.size_px = np.array([[t.image.shape[1], t.image.shape[0]] for t in textures], dtype=np.float64)
        self.mean = np.array([_compute_linear_mean(t.image) for t in textures])

    def sample(self, texture: npt.NDArray[np.int32], u: Float32, v: Float32, level: Float32) -> Float32:
        """(3, ..., N) linear 0..1 of textures (N,) at (u, v), (..., N) each, and fractional levels (N,), trilinear.

        u and v are overwritten.
        """
        level = np.clip(level, 0, np.float32(LEVELS - 1.001))
        low = level.astype(np.int32)
        # Of the way between two levels half is mixed; elsewhere one of them is enough.
        share = np.clip(2 * (level - low) - np.float32(0.5), 0, 1)
        low += share == 1
        u -= np.floor(u)
        v -= np.floor(v)
        places = take_columns(self._place, texture * LEVELS + low)
        color = self._look_up(places[:4], u, v)
        mixed = np.flatnonzero((share > 0) & (share < 1))
        if len(mixed):
            few = len(mixed) < len(share)
            u, v, share, places = (np.take(a, mixed, axis=-1) if few else a for a in (u, v, share, places))
            coarse = self._look_up(places[4:], u, v)
            fine = np.take(color, mixed, axis=-1) if few else color
            coarse -= fine
            coarse *= share
            fine += coarse
            if few:
                color[..., mixed] = fine
        return color

    def _look_up(self, places: Float32, u: Float32, v: Float32) -> Float32:
        """(3, ...) linear colour at (u, v) of 0..1, (...,) each, of pictures at `places` (4, ...)."""
        x, y, w, h = places
        # remap wants pictures of less than 32,768 rows and columns; long lists of points are folded.
        folded: Float32 = np.zeros((2, -(-u.size // _FOLD), _FOLD), np.float32)
        for wide, at, first, size in zip(folded, (u, v), (x, y), (w, h), strict=True):
            out = wide.ravel()[: u.size].reshape(u.shape)
            np.multiply(at, size, out=out)
            out += first - np.float32(0.5)  # the first pixel begins at 0
        found = cv2.remap(self.image, folded[0], folded[1], cv2.INTER_LINEAR)
        channels = [cv2.LUT(channel, _LINEAR).ravel()[: u.size] for channel in cv2.split(found)]
        return np.asarray(channels, np.float32).reshape(3, *u.shape)


def linear_from_srgb(color: Float32) -> Float32:
    """sRGB 0..255 as linear 0..1 (power 2.2)."""
    return np.asarray(np.power(np.asarray(color, np.float32) * np.float32(1 / 255), np.float32(2.2)), np.float32)


_LINEAR = linear_from_srgb(np.arange(256, dtype=np.float32))


def _compute_linear_mean(image: ColorArray) -> FloatArray:
    small = np.asarray(cv2.resize(image, (16, 16), interpolation=cv2.INTER_AREA), np.float32)
    return np.asarray(linear_from_srgb(small).reshape(-1, 3).mean(axis=0), dtype=np.float64)


def _pack_rows(shapes: Sequence[tuple[int, ...]]) -> tuple[list[tuple[int, int]], int]:
    """Top left corners of pictures in rows of falling height, and the height needed."""
    g = _GUTTER
    order = sorted(range(len(shapes)), key=lambda i: (-shapes[i][0], -shapes[i][1], i))
    places = [(0, 0)] * len(shapes)
    x, y, tall = 0, 0, 0
    for i in order:
        h, w = shapes[i][0] + 2 * g, shapes[i][1] + 2 * g
        if x + w > _WIDTH:
            x, y, tall = 0, y + tall, 0
        places[i] = (x + g, y + g)
        x, tall = x + w, max(tall, h)
    return places, y + tall
