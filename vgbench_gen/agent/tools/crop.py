"""`Crop`: a part of an image as a new image."""

from __future__ import annotations

from typing import Annotated, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImageName, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config
from vgbench_gen.store.pictures import encode_jpeg

Share = Annotated[float, Field(ge=0, le=1)]


class _Arguments(Config):
    image: ImageName = Field(description="name of the image")
    bbox: tuple[Share, Share, Share, Share] = Field(
        description="[left, top, right, bottom] as shares of the width and height, each 0 to 1, NOT pixels"
    )


@tools.register("Crop")
class CropImage(Tool[_Arguments]):
    name = "Crop"
    tier: ClassVar[Tier] = "utility"
    does = "Cuts a rectangle out of an image and gives it as a new image."
    returns: ClassVar = {
        "image": "name of the new image",
        "rect_px": "[left, top, right, bottom] that was cut, pixels of the given image, ends included",
    }
    example: ClassVar = {"image": "image-0", "bbox": [0.25, 0.4, 0.6, 0.8]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        color = given.images[0].read_whole()
        height, width = color.shape[:2]
        left, top, right, bottom = given.arguments.bbox
        x1, x2 = round(left * width), round(right * width) - 1
        y1, y2 = round(top * height), round(bottom * height) - 1
        if x2 <= x1 or y2 <= y1:
            raise ToolError(
                f"bbox {list(given.arguments.bbox)}: found an empty rectangle; expected left < right, top < bottom"
            )
        cut = np.ascontiguousarray(color[y1 : y2 + 1, x1 : x2 + 1])
        return ToolOutput({"rect_px": [x1, y1, x2, y2]}, (encode_jpeg(cut),))
