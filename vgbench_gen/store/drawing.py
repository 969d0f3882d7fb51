"""Marks on images: points and regions that are easy to see, easy to tell apart and cover nothing that is asked about.

Every stroke is a coloured line between a dark and a light one, so it stands out on any background. Every colour is
what people call by its name, and no two look alike to colour-blind readers (`docs/validity.md#marks`). No mark carries
a letter or a number, which could be taken for an option. Shapes are drawn from exact distances in numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray

COLORS: dict[str, tuple[int, int, int]] = {
    "orange": (220, 105, 0),
    "yellow": (255, 255, 30),
    "green": (40, 215, 90),
    "blue": (10, 50, 220),
    "pink": (245, 135, 205),
}
# Corners of an outline around a point and the angle of the first one, clockwise from above; all have one inner radius.
_POLYGONS = {"triangle": (3, 0.0), "square": (4, np.pi / 4), "diamond": (4, 0.0)}
SHAPES = ("circle", *_POLYGONS)
CROSSHAIR = "crosshair"  # a circle with four ticks, for a mark that is no option
_DARK, _LIGHT = (20, 20, 20), (255, 255, 255)
_FRAME = (160, 160, 160)
_REFERENCE_PX = 640.0  # the long side at which the sizes below hold


@dataclass(frozen=True, slots=True)
class StrokeSizes:
    """Sizes of drawn marks in pixels, for one image size."""

    line: float
    """Width of the coloured stroke."""
    edge: int
    """Width of the dark and of the light stroke, each."""
    ring: float
    """Radius of the middle line of the ring, and of the largest circle within that of any other shape."""
    tick: float
    """Length of the ticks outside the ring."""

    @classmethod
    def of(cls, width: int, height: int) -> StrokeSizes:
        """Sizes for an image of width x height pixels; never so small that a mark is lost or its centre closes."""
        scale = max(max(width, height) / _REFERENCE_PX, 0.5)
        return cls(
            line=max(3.0 * scale, 2.5),
            edge=max(round(scale), 1),
            ring=max(9.5 * scale, 8.0),
            tick=max(6.0 * scale, 4.0),
        )

    @property
    def stroke(self) -> float:
        """Half the width of a whole stroke: coloured, light and dark together."""
        return self.line / 2 + 2 * self.edge

    @property
    def open_centre(self) -> float:
        """Radius in pixels around a point where nothing is drawn."""
        return self.ring - self.stroke - 0.5

    @property
    def reach(self) -> int:
        """Pixels from a point to the end of any marker around it; the corners of a triangle lie farthest out."""
        return int(np.ceil(max(2 * self.ring, self.ring + self.tick) + self.stroke + 0.5))

    @property
    def frame(self) -> int:
        """Width of a region's outline in whole pixels."""
        return 2 * self.edge + max(round(self.line), 2)


def draw(image: ColorArray, marks: Sequence[Mapping[str, Any]]) -> ColorArray:
    """A copy of an (H, W, 3) uint8 RGB image with `point` and `region` marks on it (see `pictures`).

    A region's own outline changes no pixel inside it (where regions overlap, the other's outline runs on, so that
    both stay rectangles), and no marker changes a pixel within `StrokeSizes.open_centre` of any point.
    """
    canvas = image.copy()
    height, width = canvas.shape[:2]
    style = StrokeSizes.of(width, height)
    for mark in marks:
        if mark["op"] == "region":
            _draw_outline(canvas, mark, style)
    for mark in marks:
        if mark["op"] == "point":
            _draw_marker(canvas, mark, style)
    for mark in marks:
        if mark["op"] == "point":
            _reopen(canvas, image, mark, style)
    return canvas


def draw_plan(plan: Mapping[str, Any]) -> ColorArray:
    """A drawing (H, W, 3) uint8 RGB by an operation `plan` (see `pictures`): filled hulls with dark outlines on white
    in a thin frame, later ones on earlier ones."""
    import cv2

    width, height = plan["size"]
    canvas = np.full((height, width, 3), 255, dtype=np.uint8)
    line = max(round(max(width, height) / 200), 1)
    cv2.rectangle(canvas, (0, 0), (width - 1, height - 1), _FRAME, line)
    for polygon, color in zip(plan["polygons"], plan["colors"], strict=True):
        hull = cv2.convexHull(np.array(polygon, dtype=np.int32))
        cv2.fillConvexPoly(canvas, hull, COLORS[color], cv2.LINE_AA)
        cv2.polylines(canvas, [hull], True, _DARK, line, cv2.LINE_AA)
    return canvas


def _draw_outline(canvas: ColorArray, mark: Mapping[str, Any], style: StrokeSizes) -> None:
    """Frames around the rectangle, widest first, then the inside as it was."""
    x1, y1, x2, y2 = mark["rect"]
    edge = style.edge
    inside = canvas[y1 : y2 + 1, x1 : x2 + 1].copy()
    for grow, color in (
        (style.frame, _DARK),
        (style.frame - edge, COLORS[mark["color"]]),
        (edge, _LIGHT),
    ):
        canvas[max(y1 - grow, 0) : y2 + grow + 1, max(x1 - grow, 0) : x2 + grow + 1] = color
    canvas[y1 : y2 + 1, x1 : x2 + 1] = inside


def _draw_marker(canvas: ColorArray, mark: Mapping[str, Any], style: StrokeSizes) -> None:
    """The outline of the mark's shape around its point."""
    u, v = mark["uv"]
    y, x, patch = _cut_patch(canvas, u, v, style.reach)
    rows, columns = (slice(at[0] - to + style.reach, at[-1] - to + style.reach + 1) for at, to in ((y, v), (x, u)))
    channels = patch.transpose(2, 0, 1).astype(np.float64)  # long runs of memory, which numpy is quick on
    for (cover, rest), color in zip(
        _cover_strokes(mark["shape"], style), (_DARK, _LIGHT, COLORS[mark["color"]]), strict=True
    ):
        channels *= rest[rows, columns]
        channels += np.array(color, np.float64)[:, None, None] * cover[rows, columns]
        np.rint(channels, out=channels)
    patch[:] = channels.transpose(1, 2, 0)


@lru_cache(maxsize=64)
def _cover_strokes(shape: str, style: StrokeSizes) -> list[tuple[FloatArray, FloatArray]]:
    """Around a point, the shares of pixels that the dark, the light and the coloured stroke cover, and what they leave
    of them; (2 reach + 1, 2 reach + 1) each."""
    off = np.arange(-style.reach, style.reach + 1.0)
    distance = _measure_from_outline(off[None, :], off[:, None], shape, style)
    halves = (style.stroke, style.line / 2 + style.edge, style.line / 2)
    covers = [np.asarray(np.clip(half + 0.5 - distance, 0.0, 1.0)) for half in halves]
    return [(cover, 1.0 - cover) for cover in covers]


def _measure_from_outline(dx: FloatArray, dy: FloatArray, shape: str, style: StrokeSizes) -> FloatArray:
    """Pixels from every place (dx, dy) beside a point to the middle line of the outline around it."""
    if shape in _POLYGONS:
        count, first = _POLYGONS[shape]
        angles = first + 2 * np.pi * np.arange(count) / count
        corners = style.ring / np.cos(np.pi / count) * np.stack([np.sin(angles), -np.cos(angles)], axis=1)
        sides = zip(corners, np.roll(corners, -1, axis=0), strict=True)
        return np.asarray(np.min([_measure_from_segment(dx, dy, a, b) for a, b in sides], axis=0))
    ring = np.abs(np.hypot(dx, dy) - style.ring)
    if shape != CROSSHAIR:
        return ring
    along, across = np.maximum(np.abs(dx), np.abs(dy)), np.minimum(np.abs(dx), np.abs(dy))
    past = np.maximum(np.maximum(style.ring - along, along - (style.ring + style.tick)), 0.0)
    return np.minimum(ring, np.hypot(past, across))


def _measure_from_segment(dx: FloatArray, dy: FloatArray, a: FloatArray, b: FloatArray) -> FloatArray:
    side = b - a
    along = np.clip(((dx - a[0]) * side[0] + (dy - a[1]) * side[1]) / (side @ side), 0.0, 1.0)
    return np.asarray(np.hypot(dx - a[0] - along * side[0], dy - a[1] - along * side[1]))


def _reopen(canvas: ColorArray, image: ColorArray, mark: Mapping[str, Any], style: StrokeSizes) -> None:
    """Put back what a neighbour's marker painted over this point."""
    u, v = mark["uv"]
    y, x, patch = _cut_patch(canvas, u, v, style.reach)
    centre = np.hypot(x - u, (y - v)[:, None]) <= style.open_centre
    patch[centre] = image[y[0] : y[-1] + 1, x[0] : x[-1] + 1][centre]


def _cut_patch(canvas: ColorArray, u: int, v: int, reach: int) -> tuple[Any, Any, ColorArray]:
    height, width = canvas.shape[:2]
    y = np.arange(max(v - reach, 0), min(v + reach + 1, height))
    x = np.arange(max(u - reach, 0), min(u + reach + 1, width))
    return y, x, canvas[y[0] : y[-1] + 1, x[0] : x[-1] + 1]
