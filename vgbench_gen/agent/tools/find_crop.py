"""`FindCrop`: where a smaller image was cut out of a larger one (template matching over sizes)."""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import ColorArray

_SIDE = 480  # long side at which the whole is searched
_SIZES = np.geomspace(0.1, 1.0, 28)  # of the crop's fitting size in the whole
_ALIKE_MIN, _LEAD_MIN = 0.6, 0.05


class _Arguments(Config):
    image: ImagePair = Field(description="two image names: the whole, and the part to look for in it")


@tools.register("FindCrop")
class FindCrop(Tool[_Arguments]):
    name = "FindCrop"
    aliases = ("MatchTemplate",)
    tier: ClassVar[Tier] = "classical"
    does = "Finds where the second image appears in the first one, upright and at any size (template matching)."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "bbox": "[left, top, right, bottom] in the first image, pixels; null where it is not found",
        "likeness": "correlation at the best place, -1 to 1",
        "second_likeness": "at the best place elsewhere",
        "sigma_px": "how far the edges may be off, pixels",
        "cannot_tell": "why there is no place",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        whole, part = given.images
        small, scale = whole.shrink(_SIDE), whole.size[0] / whole.shrink(_SIDE).shape[1]
        fit = min(small.shape[1] / part.size[0], small.shape[0] / part.size[1])
        found: list[tuple[float, int, int, int, int]] = []
        last, runner_up = None, -1.0
        for share in _SIZES:
            wide, high = (max(1, int(side * fit * share + 1e-6)) for side in part.size)
            if min(wide, high) < 8 or (wide, high) == last:
                continue
            last = (wide, high)
            template = cv2.resize(part.gray, (wide, high), interpolation=cv2.INTER_AREA)
            found += _search(small, np.asarray(template))
        if not found:
            return ToolOutput({"bbox": None, "cannot_tell": "the image is too small, or has no texture"})
        found.sort(reverse=True)
        likeness, x, y, wide, high = found[0]
        for other in found[1:]:
            apart = max(abs(other[1] + other[3] / 2 - x - wide / 2), abs(other[2] + other[4] / 2 - y - high / 2))
            if apart > 0.25 * max(wide, high):
                runner_up = other[0]
                break
        told: dict[str, Any] = {"likeness": round(likeness, 3), "second_likeness": round(runner_up, 3)}
        if likeness < _ALIKE_MIN or likeness - runner_up < _LEAD_MIN:
            return ToolOutput(told | {"bbox": None, "cannot_tell": "no place looks clearly like it"})
        edges = [(x - 0.0) * scale, y * scale, (x + wide) * scale - 1, (y + high) * scale - 1]
        told |= {"bbox": [round(edge, 1) for edge in edges], "sigma_px": round((0.05 * max(wide, high) + 1) * scale, 1)}
        return ToolOutput(told)


def _search(image: ColorArray, template: ColorArray) -> list[tuple[float, int, int, int, int]]:
    """The best places of a template, none beside another: (likeness, x, y, width, height)."""
    if float(template.std()) < 2.0:
        return []
    high, wide = template.shape
    alike = np.nan_to_num(cv2.matchTemplate(image, template, cv2.TM_CCOEFF_NORMED), nan=-1.0, posinf=-1.0, neginf=-1.0)
    found = []
    for _ in range(3):
        y, x = np.unravel_index(int(alike.argmax()), alike.shape)
        found.append((float(alike[y, x]), int(x), int(y), wide, high))
        alike[max(0, y - high // 4) : y + high // 4 + 1, max(0, x - wide // 4) : x + wide // 4 + 1] = -1.0
    return found
