"""Tools that make new images: crop, zoom, and drawing on a copy."""

from __future__ import annotations

from typing import Annotated

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import OneImage, ToolError, ToolOutput, tool
from vgbench_gen.agent.tools._arguments import Coordinate, Pixel
from vgbench_gen.store.pictures import encode_jpeg

SIDE_MAX = 1600  # the longest side of an enlarged image, pixels
MARKS_MAX = 50  # the most points, boxes and lines in a call, each
_COLORS = ((230, 30, 30), (30, 120, 255), (20, 180, 60), (255, 160, 0), (190, 60, 220), (0, 190, 190))
_REACH = 20_000  # coordinates are clipped to this, far beyond any image, because OpenCV's integers could overflow
_SHIFT = 3  # fractional bits of pixel coordinates in OpenCV
Share = Annotated[float, Field(ge=0, le=1)]


@tool(
    "Crop",
    tier="utility",
    returns={
        "image": "name of the new image",
        "rect_px": "[left, top, right, bottom] that was cut, pixels of the given image, ends included",
    },
    example={"image": "image-0", "bbox": [0.25, 0.4, 0.6, 0.8]},
)
def crop(
    image: OneImage,
    bbox: Annotated[
        tuple[Share, Share, Share, Share],
        "[left, top, right, bottom] as shares of the width and height, each 0 to 1, NOT pixels",
    ],
) -> ToolOutput:
    """Cuts a rectangle out of an image and gives it as a new image."""
    color = image.read_whole()
    height, width = color.shape[:2]
    left, top, right, bottom = bbox
    x1, x2 = round(left * width), round(right * width) - 1
    y1, y2 = round(top * height), round(bottom * height) - 1
    if x2 <= x1 or y2 <= y1:
        raise ToolError(f"bbox {list(bbox)}: found an empty rectangle; expected left < right, top < bottom")
    cut = np.ascontiguousarray(color[y1 : y2 + 1, x1 : x2 + 1])
    return ToolOutput({"rect_px": [x1, y1, x2, y2]}, (encode_jpeg(cut),))


@tool(
    "Zoom",
    tier="utility",
    returns={
        "image": "name of the new image",
        "rect_px": "[left, top, right, bottom] that it shows, pixels of the given image, ends included",
        "factor": "[along u, along v]: pixel (a, b) of the new image is pixel (left - 0.5 + (a + 0.5) / factor, "
        "likewise v) of the given one",
    },
    example={"image": "image-0", "bbox": [200, 150, 300, 250], "factor": 4},
)
def zoom(
    image: OneImage,
    bbox: Annotated[
        tuple[Coordinate, Coordinate, Coordinate, Coordinate],
        "[left, top, right, bottom] in pixels of the image; what lies outside is left out",
    ],
    factor: Annotated[float, Field(ge=1, le=16), f"enlargement; the new image is at most {SIDE_MAX} wide"] = 3.0,
) -> ToolOutput:
    """Enlarges a part of an image and gives it as a new image."""
    color = image.read_whole()
    height, width = color.shape[:2]
    x1, y1 = max(0, round(bbox[0])), max(0, round(bbox[1]))
    x2, y2 = min(width - 1, round(bbox[2])), min(height - 1, round(bbox[3]))
    if x2 < x1 or y2 < y1:
        raise ToolError(
            f"bbox {list(bbox)}: found nothing of an image of {width} x {height} pixels; expected "
            "[left, top, right, bottom] in pixels"
        )
    cut = color[y1 : y2 + 1, x1 : x2 + 1]
    factor = min(factor, max(1.0, SIDE_MAX / max(cut.shape[:2])))
    size = max(1, round(cut.shape[1] * factor)), max(1, round(cut.shape[0] * factor))
    enlarged = np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
    factors = [round(size[0] / cut.shape[1], 4), round(size[1] / cut.shape[0], 4)]
    return ToolOutput({"rect_px": [x1, y1, x2, y2], "factor": factors}, (encode_jpeg(enlarged),))


@tool(
    "Draw",
    tier="utility",
    returns={
        "image": "name of the new image",
        "colors": "colours in the order of the marks of each kind, then from the start again",
    },
    example={"image": "image-0", "points": [[320, 240]], "lines": [[[0, 200], [639, 260]]]},
)
def draw(
    image: OneImage,
    points: Annotated[tuple[Pixel, ...], Field(max_length=MARKS_MAX), "[[u, v], ...], pixels"] = (),
    boxes: Annotated[
        tuple[tuple[Coordinate, Coordinate, Coordinate, Coordinate], ...],
        Field(max_length=MARKS_MAX),
        "[[left, top, right, bottom], ...], pixels",
    ] = (),
    lines: Annotated[
        tuple[tuple[Pixel, Pixel], ...], Field(max_length=MARKS_MAX), "[[[u, v], [u, v]], ...], both ends in pixels"
    ] = (),
) -> ToolOutput:
    """Draws numbered points, boxes and lines on a copy of an image."""
    if not (points or boxes or lines):
        raise ToolError("found nothing to draw; expected points, boxes or lines")
    canvas = np.ascontiguousarray(image.read_whole())
    stroke = max(1, round(max(image.size) / 400))

    for number, (start, end) in enumerate(lines):
        color = _choose_color(number)
        cv2.line(canvas, _to_integers(*start), _to_integers(*end), color, stroke, cv2.LINE_AA, _SHIFT)
    for number, (left, top, right, bottom) in enumerate(boxes):
        color, corners = _choose_color(number), (_to_integers(left, top), _to_integers(right, bottom))
        cv2.rectangle(canvas, *corners, color, stroke, cv2.LINE_AA, _SHIFT)
        _write(canvas, str(number), left, top, color, stroke)
    for number, (u, v) in enumerate(points):
        color = _choose_color(number)
        cv2.circle(canvas, _to_integers(u, v), (4 * stroke) << _SHIFT, color, stroke, cv2.LINE_AA, _SHIFT)
        _write(canvas, str(number), u + 5 * stroke, v - 5 * stroke, color, stroke)
    return ToolOutput({"colors": ["red", "blue", "green", "orange", "purple", "teal"]}, (encode_jpeg(canvas),))


def _choose_color(number: int) -> tuple[int, int, int]:
    return _COLORS[number % len(_COLORS)]


def _to_integers(u: float, v: float, shift: int = _SHIFT) -> tuple[int, int]:
    """Clipped pixel coordinates with fractional bits."""
    u, v = (float(np.clip(x, -_REACH, _REACH)) * (1 << shift) for x in (u, v))
    return round(u), round(v)


def _write(canvas: np.ndarray, text: str, u: float, v: float, color: tuple[int, int, int], stroke: int) -> None:
    at = _to_integers(u, v, shift=0)
    cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.5 * stroke, color, stroke, cv2.LINE_AA)
