"""Marks on images: points and regions that are easy to see, easy to tell apart and cover nothing that is asked about.

Every stroke is a coloured line between a dark and a light one, so it stands out on any background. Colours are the
Okabe-Ito set (Okabe and Ito 2008, "Color Universal Design"), which colour-blind readers can tell apart. Shapes are
drawn from exact distances in numpy; only label text depends on OpenCV's font.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray

COLORS: dict[str, tuple[int, int, int]] = {
    "orange": (230, 159, 0),
    "sky_blue": (86, 180, 233),
    "bluish_green": (0, 158, 115),
    "yellow": (240, 228, 66),
    "blue": (0, 114, 178),
    "vermillion": (213, 94, 0),
    "reddish_purple": (204, 121, 167),
}
_DARK, _LIGHT = (20, 20, 20), (255, 255, 255)
_REFERENCE_PX = 640.0  # the long side at which the sizes below hold

Box = tuple[int, int, int, int]  # x1, y1, x2, y2, inclusive


@dataclass(frozen=True, slots=True)
class StrokeSizes:
    """Sizes of drawn marks in pixels, for one image size."""

    line: float
    """Width of the coloured stroke."""
    edge: int
    """Width of the dark and of the light stroke, each."""
    ring: float
    """Radius of the middle line of the ring."""
    tick: float
    """Length of the ticks outside the ring."""
    text: int
    """Height of the text of a label."""

    @classmethod
    def of(cls, width: int, height: int) -> StrokeSizes:
        """Sizes for an image of width x height pixels; never so small that a mark is lost or its centre closes."""
        scale = max(max(width, height) / _REFERENCE_PX, 0.5)
        return cls(
            line=max(2.0 * scale, 1.5),
            edge=max(round(scale), 1),
            ring=max(9.0 * scale, 8.0),
            tick=max(6.0 * scale, 4.0),
            text=max(round(15 * scale), 11),
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
        """Pixels from a point to the end of its marker."""
        return int(np.ceil(self.ring + self.tick + self.stroke + 0.5))

    @property
    def frame(self) -> int:
        """Width of a region's outline in whole pixels."""
        return 2 * self.edge + max(round(self.line), 2)


def draw(image: ColorArray, marks: Sequence[Mapping[str, Any]]) -> ColorArray:
    """A copy of an (H, W, 3) uint8 RGB image with `point` and `region` marks on it (see `pictures`).

    A region's own outline changes no pixel inside it (where regions overlap, the other's outline runs on, so that
    both stay rectangles), no marker changes a pixel within `Style.open_centre` of any point, and labels keep off both
    wherever the image leaves room.
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
    _draw_labels(canvas, marks, style)
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
    """A ring and four ticks that point at the centre from outside."""
    u, v = mark["uv"]
    y, x, patch = _cut_patch(canvas, u, v, style.reach)
    dx, dy = np.abs(x - u)[None, :], np.abs(y - v)[:, None]
    ring = np.abs(np.hypot(dx, dy) - style.ring)
    along, across = np.maximum(dx, dy), np.minimum(dx, dy)
    past = np.maximum(np.maximum(style.ring - along, along - (style.ring + style.tick)), 0.0)
    distance = np.minimum(ring, np.hypot(past, across))
    for half, color in (
        (style.stroke, _DARK),
        (style.line / 2 + style.edge, _LIGHT),
        (style.line / 2, COLORS[mark["color"]]),
    ):
        cover = np.clip(half + 0.5 - distance, 0.0, 1.0)[..., None]
        patch[:] = np.rint(patch * (1.0 - cover) + np.array(color) * cover)


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


def _draw_labels(canvas: ColorArray, marks: Sequence[Mapping[str, Any]], style: StrokeSizes) -> None:
    height, width = canvas.shape[:2]
    precious = [_find_clear_box(m, style) for m in marks]
    strokes = [_find_extent(m, style) for m in marks]
    placed: list[Box] = []
    for mark in marks:
        if not mark["label"]:
            continue
        chip = _draw_chip(mark["label"], COLORS[mark["color"]], style)
        h, w = chip.shape[:2]
        if w > width or h > height:
            chip = chip[: min(h, height), : min(w, width)]
            h, w = chip.shape[:2]
        best, best_cost = (0, 0), np.inf
        for rank, (x, y) in enumerate(_list_places(mark, w, h, style)):
            x, y = min(max(x, 0), width - w), min(max(y, 0), height - h)
            box = (x, y, x + w - 1, y + h - 1)
            # Hiding what is asked about is worse than covering another label, that worse than a stroke.
            cost = (
                100.0 * sum(_measure_overlap(box, other) for other in precious)
                + 10.0 * sum(_measure_overlap(box, other) for other in placed)
                + sum(_measure_overlap(box, other) for other in strokes)
                + 1e-3 * rank
            )
            if cost < best_cost:
                best, best_cost = (x, y), cost
        x, y = best
        placed.append((x, y, x + w - 1, y + h - 1))
        canvas[y : y + h, x : x + w] = chip


def _list_places(mark: Mapping[str, Any], w: int, h: int, style: StrokeSizes) -> list[tuple[int, int]]:
    """Top-left corners to try, best first."""
    x1, y1, x2, y2 = _find_extent(mark, style)
    cx, cy = (x1 + x2) // 2, (y1 + y2) // 2
    if mark["op"] == "point":
        return [
            (x2 + 1, cy - h // 2), (x1 - w, cy - h // 2), (cx - w // 2, y1 - h), (cx - w // 2, y2 + 1),
            (x2 + 1, y1 - h), (x2 + 1, y2 + 1), (x1 - w, y1 - h), (x1 - w, y2 + 1),
        ]  # fmt: skip
    return [
        (x1, y1 - h), (x1, y2 + 1), (x2 - w + 1, y1 - h), (x2 - w + 1, y2 + 1),
        (x2 + 1, y1), (x1 - w, y1), (x2 + 1, y2 - h + 1), (x1 - w, y2 - h + 1),
        (cx - w // 2, y1 - h), (cx - w // 2, y2 + 1), (x2 + 1, cy - h // 2), (x1 - w, cy - h // 2),
        (x1 + style.frame, y1 + style.frame),
    ]  # fmt: skip


def _draw_chip(text: str, color: tuple[int, int, int], style: StrokeSizes) -> ColorArray:
    """The label: text on its colour, with the same dark and light edges as the strokes."""
    import cv2

    face = cv2.FontFace("sans")
    weight, size = 600, style.text
    x, _, w, _ = cv2.getTextSize((0, 0), text, (0, 0), face, size, weight)
    _, cap_y, _, cap_h = cv2.getTextSize((0, 0), "Hg", (0, 0), face, size, weight)
    pad_x, pad_y, edge = max(size // 3, 3), max(size // 6, 2), style.edge
    canvas = np.empty((cap_h + 2 * (pad_y + edge), w + 2 * (pad_x + edge), 3), np.uint8)
    canvas[:] = _DARK
    canvas[edge:-edge, edge:-edge] = color
    ink = _DARK if _measure_luminance(color) > 0.18 else _LIGHT
    cv2.putText(canvas, text, (edge + pad_x - x, edge + pad_y - cap_y), ink, face, size, weight)
    return canvas


def _measure_luminance(color: tuple[int, int, int]) -> float:
    """Relative luminance of an sRGB colour in 0..1 (WCAG 2); black and white text contrast equally at 0.18."""
    c: FloatArray = np.array(color) / 255.0
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def _find_clear_box(mark: Mapping[str, Any], style: StrokeSizes) -> Box:
    if mark["op"] == "region":
        x1, y1, x2, y2 = mark["rect"]
        return x1, y1, x2, y2
    (u, v), r = mark["uv"], int(np.ceil(style.ring))
    return u - r, v - r, u + r, v + r


def _find_extent(mark: Mapping[str, Any], style: StrokeSizes) -> Box:
    if mark["op"] == "region":
        x1, y1, x2, y2 = mark["rect"]
        g = style.frame
        return x1 - g, y1 - g, x2 + g, y2 + g
    (u, v), r = mark["uv"], style.reach
    return u - r, v - r, u + r, v + r


def _measure_overlap(a: Box, b: Box) -> int:
    """Common pixels of two boxes."""
    w = min(a[2], b[2]) - max(a[0], b[0]) + 1
    h = min(a[3], b[3]) - max(a[1], b[1]) + 1
    return max(w, 0) * max(h, 0)
