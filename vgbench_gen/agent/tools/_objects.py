"""What tools that look for named objects share: arguments, boxes, and depth within them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from vgbench_gen.agent.tool import ImageName, ToolError, ToolInput
from vgbench_gen.agent.weights import DetectorOptions, load_part
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import BoolArray, FloatArray

if TYPE_CHECKING:
    from vgbench_gen.agent.models.boxes import FoundBox

MOST_NAMES = 30
Name = Annotated[str, Field(min_length=1, max_length=120)]
Box = tuple[float, float, float, float]
BOX = "[left, top, right, bottom] in pixels, (0, 0) the centre of the top-left pixel"
SCORE = "the detector's own score from 0 to 1, no probability"
NO_ERROR_BARS = "unknown: the depth model gives no error bars; spread_m tells only how depths differ within the region"


def _listed(value: Any) -> Any:
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES), BeforeValidator(_listed)]


class ObjectsArguments(Config):
    """An image and what to look for in it."""

    image: ImageName = Field(description="name of the image")
    """The image."""
    objects: Names = Field(description='names of the objects, such as ["lamp", "red chair"]')
    """Their names."""


def find_objects(given: Sequence[ToolInput], names: Sequence[Sequence[str]]) -> list[list[FoundBox | None]]:
    """The best box of each name of each call, in one pass, pixels of `Image.color`; None where it scores too little."""
    options = given[0].options
    assert isinstance(options, DetectorOptions)
    detector = load_part(options, "detector")
    found = detector.find_boxes([one.images[0].color for one in given], names)
    return [[box if box.score >= options.box_score_min and _has_area(box) else None for box in own] for own in found]


def _has_area(found: FoundBox) -> bool:
    left, top, right, bottom = found.box
    return right - left >= 1 and bottom - top >= 1  # pixel


def round_box(box: Sequence[float]) -> list[float]:
    """A box as plain numbers."""
    return [round(float(edge), 1) + 0.0 for edge in box]


def move_box(box: Sequence[float], move: Callable[[FloatArray], FloatArray]) -> Box:
    """A box, its corners taken by `Image.to_delivered` or `Image.to_held`."""
    left, top, right, bottom = move(np.reshape(box, (2, 2))).ravel().tolist()
    return left, top, right, bottom


def say_missing(name: str, score_min: float) -> str:
    """Why an object has no box."""
    return f"{name[:120]} was not found (no box scores {score_min:g})"


def cover_box(box: Sequence[float], size: tuple[int, int], share: float = 1.0) -> tuple[slice, slice]:
    """(rows, columns) of the pixels whose centres lie in a box, at least one.

    Args:
        box: [left, top, right, bottom], pixels.
        size: (height, width) of the image.
        share: of each side about the box's centre.

    Raises:
        ToolError: the box does not touch the image.
    """
    left, top, right, bottom = box
    height, width = size
    if not (left < right and top < bottom and left < width - 0.5 and top < height - 0.5 and right > -0.5 < bottom):
        raise ToolError(
            f"box {round_box(box)}: found no part of an image of {width} x {height} pixels; expected [left, top, "
            "right, bottom] in pixels with left < right and top < bottom"
        )
    spans = []
    for low, high, side in ((top, bottom, height), (left, right, width)):
        low, high = max(low, -0.5), min(high, side - 0.5)
        middle, reach = (low + high) / 2, (high - low) / 2 * share
        first = int(np.clip(np.ceil(middle - reach), 0, side - 1))
        last = int(np.clip(np.floor(middle + reach), 0, side - 1))
        nearest = int(np.clip(np.round(middle), 0, side - 1))
        spans.append(slice(first, last + 1) if first <= last else slice(nearest, nearest + 1))
    return spans[0], spans[1]


def describe_depth(depth_m: FloatArray, within: BoolArray | tuple[slice, slice]) -> dict[str, float]:
    """{"depth", "spread_m"} median and half the range of the middle half, meters, of a region's pixels."""
    low, middle, high = np.percentile(depth_m[within], [25, 50, 75])
    return {"depth": round(float(middle), 3), "spread_m": round(float(high - low) / 2, 3)}
