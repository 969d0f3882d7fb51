"""`Draw`: points, boxes and lines on a copy of an image."""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import Pixel
from vgbench_gen.agent.tools._pairs import Coordinate
from vgbench_gen.core.config import Config
from vgbench_gen.store.pictures import encode_jpeg

MARKS_MAX = 50  # of each kind
_COLORS = ((230, 30, 30), (30, 120, 255), (20, 180, 60), (255, 160, 0), (190, 60, 220), (0, 190, 190))
_REACH = 20_000  # pixels; far beyond any image, within what the drawing library can count
_SHIFT = 3  # binary digits of a part of a pixel


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    points: tuple[Pixel, ...] = Field(default=(), max_length=MARKS_MAX, description="[[u, v], ...], pixels")
    boxes: tuple[tuple[Coordinate, Coordinate, Coordinate, Coordinate], ...] = Field(
        default=(), max_length=MARKS_MAX, description="[[left, top, right, bottom], ...], pixels"
    )
    lines: tuple[tuple[Pixel, Pixel], ...] = Field(
        default=(), max_length=MARKS_MAX, description="[[[u, v], [u, v]], ...], both ends in pixels"
    )


@tools.register("Draw")
class DrawMarks(Tool[_Arguments]):
    name = "Draw"
    tier: ClassVar[Tier] = "utility"
    does = "Draws numbered points, boxes and lines on a copy of an image."
    returns: ClassVar = {
        "image": "name of the new image",
        "colors": "colours in the order of the marks of each kind, then from the start again",
    }
    example: ClassVar = {"image": "image-0", "points": [[320, 240]], "lines": [[[0, 200], [639, 260]]]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        if not (arguments.points or arguments.boxes or arguments.lines):
            raise ToolError("found nothing to draw; expected points, boxes or lines")
        canvas = np.ascontiguousarray(given.images[0].read_whole())
        stroke = max(1, round(max(given.images[0].size) / 400))

        def place(u: float, v: float) -> tuple[int, int]:
            return tuple(round(float(np.clip(x, -_REACH, _REACH)) * (1 << _SHIFT)) for x in (u, v))  # type: ignore[return-value]

        for number, (one, two) in enumerate(arguments.lines):
            cv2.line(canvas, place(*one), place(*two), _choose_color(number), stroke, cv2.LINE_AA, _SHIFT)
        for number, (left, top, right, bottom) in enumerate(arguments.boxes):
            color = _choose_color(number)
            cv2.rectangle(canvas, place(left, top), place(right, bottom), color, stroke, cv2.LINE_AA, _SHIFT)
            _write(canvas, str(number), left, top, color, stroke)
        for number, (u, v) in enumerate(arguments.points):
            color = _choose_color(number)
            cv2.circle(canvas, place(u, v), (4 * stroke) << _SHIFT, color, stroke, cv2.LINE_AA, _SHIFT)
            _write(canvas, str(number), u + 5 * stroke, v - 5 * stroke, color, stroke)
        return ToolOutput({"colors": ["red", "blue", "green", "orange", "purple", "teal"]}, (encode_jpeg(canvas),))


def _choose_color(number: int) -> tuple[int, int, int]:
    return _COLORS[number % len(_COLORS)]


def _write(canvas: np.ndarray, text: str, u: float, v: float, color: tuple[int, int, int], stroke: int) -> None:
    at = (round(float(np.clip(u, -_REACH, _REACH))), round(float(np.clip(v, -_REACH, _REACH))))
    cv2.putText(canvas, text, at, cv2.FONT_HERSHEY_SIMPLEX, 0.5 * stroke, color, stroke, cv2.LINE_AA)
