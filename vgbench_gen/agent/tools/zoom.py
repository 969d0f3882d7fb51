"""`Zoom`: a part of an image, enlarged."""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import Coordinate
from vgbench_gen.core.config import Config
from vgbench_gen.store.pictures import encode_jpeg

SIDE_MAX = 1600  # of the new image, pixels


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    bbox: tuple[Coordinate, Coordinate, Coordinate, Coordinate] = Field(
        description="[left, top, right, bottom] in pixels of the image; what lies outside is left out"
    )
    factor: float = Field(
        default=3.0, ge=1, le=16, description=f"enlargement; the new image is at most {SIDE_MAX} wide"
    )


@tools.register("Zoom")
class ZoomImage(Tool[_Arguments]):
    name = "Zoom"
    tier: ClassVar[Tier] = "utility"
    does = "Enlarges a part of an image and gives it as a new image."
    returns: ClassVar = {
        "image": "name of the new image",
        "rect_px": "[left, top, right, bottom] that it shows, pixels of the given image, ends included",
        "factor": "[along u, along v]: pixel (a, b) of the new image is pixel (left - 0.5 + (a + 0.5) / factor, "
        "likewise v) of the given one",
    }
    example: ClassVar = {"image": "image-0", "bbox": [200, 150, 300, 250], "factor": 4}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        color = given.images[0].read_whole()
        height, width = color.shape[:2]
        x1, y1 = max(0, round(arguments.bbox[0])), max(0, round(arguments.bbox[1]))
        x2, y2 = min(width - 1, round(arguments.bbox[2])), min(height - 1, round(arguments.bbox[3]))
        if x2 < x1 or y2 < y1:
            raise ToolError(
                f"bbox {list(arguments.bbox)}: found nothing of an image of {width} x {height} pixels; expected "
                "[left, top, right, bottom] in pixels"
            )
        cut = color[y1 : y2 + 1, x1 : x2 + 1]
        factor = min(arguments.factor, max(1.0, SIDE_MAX / max(cut.shape[:2])))
        size = max(1, round(cut.shape[1] * factor)), max(1, round(cut.shape[0] * factor))
        made = np.asarray(cv2.resize(cut, size, interpolation=cv2.INTER_CUBIC), dtype=np.uint8)
        factors = [round(size[0] / cut.shape[1], 4), round(size[1] / cut.shape[0], 4)]
        return ToolOutput({"rect_px": [x1, y1, x2, y2], "factor": factors}, (encode_jpeg(made),))
