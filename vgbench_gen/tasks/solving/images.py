"""Delivered images at a working size, with local features (SIFT, Lowe 2004; RootSIFT, Arandjelovic and Zisserman 2012).

Pixels follow `vgbench_gen.geometry`: (0, 0) is the centre of the top-left pixel, resizing is edge-aligned.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray, IntArray
from vgbench_gen.store.pictures import decode, read_image_size

RATIO_MAX = 0.85  # nearest over second nearest descriptor; geometry weeds out what this lets through
_FEATURES_MAX = 1200
_CONTRAST_MIN = 0.02  # half of OpenCV's: indoor walls are faint


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Keypoints of an image with their descriptors."""

    uv: FloatArray
    """The keypoints, (N, 2), pixels of the image as it is delivered, whatever the working size."""
    descriptors: FloatArray
    """The descriptors, (N, 128), of unit length."""


class Image:
    """One delivered image; what is computed from it is kept, so that questions that share it share the work.

    Args:
        data: the encoded bytes.
        name: for messages.
        most_pixels: of `color` and `gray`, which hold a larger image made smaller; `scale` says by how much. All
            coordinates stay those of the image as delivered.

    Raises:
        DatasetError: on first use, where the bytes are no image.
    """

    def __init__(self, data: bytes, name: str = "image", most_pixels: float = np.inf) -> None:
        self.data, self._name, self._most_pixels = data, name, most_pixels
        self._shrunk: dict[int, ColorArray] = {}
        self._features: dict[int, Features] = {}
        self._matches: dict[tuple[Image, int], IntArray] = {}

    @cached_property
    def color(self) -> ColorArray:
        """(H, W, 3) uint8 RGB as delivered, or made smaller."""
        return self._hold(self.read_whole())

    def read_whole(self) -> ColorArray:
        """(H, W, 3) uint8 RGB as delivered, however large; decoded anew and not kept."""
        return decode(self.data, self._name)

    @cached_property
    def gray(self) -> ColorArray:
        """(H, W) uint8 as delivered, or made smaller.

        Decoded without its colours, which take time and are three times as many bytes.
        """
        return self._hold(self._decode_gray(cv2.IMREAD_GRAYSCALE))

    @cached_property
    def small(self) -> ColorArray:
        """(h, w, 3) uint8 RGB at a quarter of the size, decoded directly, in a third of the time.

        Raises:
            DatasetError: the bytes are no image.
        """
        flags = cv2.IMREAD_REDUCED_COLOR_4 | cv2.IMREAD_IGNORE_ORIENTATION
        image = cv2.imdecode(np.frombuffer(self.data, np.uint8), flags)
        if image is None:
            return self.color[::4, ::4]  # which says what is wrong with the bytes
        return np.asarray(image[..., ::-1], dtype=np.uint8)

    @cached_property
    def size(self) -> tuple[int, int]:
        """(width, height) in pixels, from the header alone."""
        return read_image_size(self.data, self._name)

    @property
    def diagonal_px(self) -> float:
        """Length of the diagonal in pixels."""
        return float(np.hypot(*self.size))

    @cached_property
    def scale(self) -> FloatArray:
        """(2,) pixels of the image as delivered, along u and v, for one of `color` and `gray`."""
        return np.array(self.size) / self._find_held_size()

    @property
    def delivered_from_held(self) -> FloatArray:
        """(3, 3), takes pixels (u, v, 1) of `color` and `gray` to pixels of the image as delivered."""
        (a, b), (u, v) = self.scale, (self.scale - 1) / 2
        return np.array([[a, 0, u], [0, b, v], [0, 0, 1]])

    def to_delivered(self, uv: FloatArray) -> FloatArray:
        """(..., 2) pixels of the image as delivered, of pixels of `color` and `gray`."""
        return np.asarray(uv * self.scale + (self.scale - 1) / 2)

    def to_held(self, uv: FloatArray) -> FloatArray:
        """(..., 2) pixels of `color` and `gray`, of pixels of the image as delivered."""
        return np.asarray((uv - (self.scale - 1) / 2) / self.scale)

    def _find_held_size(self) -> tuple[int, int]:
        width, height = self.size
        share = min(1.0, float(np.sqrt(self._most_pixels / (width * height))))
        wide = max(1, int(width * share))
        high = max(1, int(min(height * share, self._most_pixels / wide)))
        return int(min(wide, self._most_pixels / high)), high

    def _hold(self, pixels: ColorArray) -> ColorArray:
        if self._find_held_size() == self.size:
            return pixels
        return np.asarray(cv2.resize(pixels, self._find_held_size(), interpolation=cv2.INTER_AREA), dtype=np.uint8)

    def shrink(self, side: int) -> ColorArray:
        """(h, w) uint8 with the long side at most `side` pixels."""
        long = max(self.size)
        if side >= long:
            return self.gray
        if side not in self._shrunk:
            self._shrunk[side] = self._decode_shrunk(side, long)
        return self._shrunk[side]

    def _decode_shrunk(self, side: int, long: int) -> ColorArray:
        width, height = (max(round(x * side / long), 1) for x in self.size)
        # Half or a quarter of the size comes straight from the decoder, in a fraction of the time.
        flags = {4: cv2.IMREAD_REDUCED_GRAYSCALE_4, 2: cv2.IMREAD_REDUCED_GRAYSCALE_2, 1: cv2.IMREAD_GRAYSCALE}
        gray = self._decode_gray(next(flag for part, flag in flags.items() if long >= part * side))
        return np.asarray(cv2.resize(gray, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)

    def _decode_gray(self, flags: int) -> ColorArray:
        found = cv2.imdecode(np.frombuffer(self.data, np.uint8), flags | cv2.IMREAD_IGNORE_ORIENTATION)
        if found is None:
            found = cv2.cvtColor(self.color, cv2.COLOR_RGB2GRAY)  # which says what is wrong with the bytes
        return np.asarray(found, dtype=np.uint8)

    def find_features(self, side: int) -> Features:
        """SIFT features found with the long side at `side` pixels."""
        if side not in self._features:
            small = self.shrink(side)
            sift = cv2.SIFT.create(nfeatures=_FEATURES_MAX, contrastThreshold=_CONTRAST_MIN)
            points, descriptors = sift.detectAndCompute(small, None)
            uv = np.array([point.pt for point in points], dtype=np.float64).reshape(-1, 2)
            scale = np.array(self.size) / np.array(small.shape[1::-1])
            d = np.zeros((0, 128)) if descriptors is None else np.asarray(descriptors, dtype=np.float32)
            d = np.sqrt(d / np.maximum(d.sum(axis=1, keepdims=True), 1e-9))
            self._features[side] = Features((uv + 0.5) * scale - 0.5, d)
        return self._features[side]

    def match(self, other: Image, side: int) -> IntArray:
        """(M, 2) indices of features of this and the other image: mutual nearest neighbours that pass the ratio."""
        if (other, side) not in self._matches:
            ours, theirs = (image.find_features(side).descriptors for image in (self, other))
            self._matches[other, side] = match_descriptors(ours, theirs, RATIO_MAX, both_ways=False)
        return self._matches[other, side]

    def match_pixels(self, other: Image, side: int) -> tuple[FloatArray, FloatArray]:
        """((M, 2), (M, 2)) matched pixels of this and of the other image, as delivered."""
        pairs = self.match(other, side)
        return self.find_features(side).uv[pairs[:, 0]], other.find_features(side).uv[pairs[:, 1]]


def match_descriptors(a: Any, b: Any, ratio_max: float, both_ways: bool) -> IntArray:
    """(M, 2) rows of two tables of descriptors (N, 128) that are nearest to each other and much nearer than any other
    row of the second table, and where `both_ways` than any other of the first."""
    if min(len(a), len(b)) < 2:
        return np.zeros((0, 2), dtype=np.int64)
    distance = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1)[None] - 2 * (a @ b.T)
    best = distance.argmin(axis=1)
    rows = np.flatnonzero(distance.argmin(axis=0)[best] == np.arange(len(a)))
    near = distance[rows, best[rows]]
    distance[rows, best[rows]] = np.inf  # the smallest that is left is the second nearest
    keep = near <= ratio_max**2 * distance[rows].min(axis=1)
    if both_ways:
        keep &= near <= ratio_max**2 * distance.min(axis=0)[best[rows]]
    return np.stack([rows[keep], best[rows[keep]]], axis=1).astype(np.int64)
