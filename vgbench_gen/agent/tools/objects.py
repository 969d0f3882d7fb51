"""Finds named objects in an image: boxes by an open-vocabulary detector, masks by SAM 2, orientations.

The published `DetectObjects` tags images by RAM++, which has no package that works with our other requirements. Here
the core model names candidates and the detector keeps those that it finds; the result says so.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import BeforeValidator, Field

from vgbench_gen.agent.models.masks import bound_mask
from vgbench_gen.agent.tool import OneImage, ToolError, Values
from vgbench_gen.agent.weights import DetectorOptions, MaskOptions, OrientationOptions, load_part, weights_tool
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.tasks.solving import Image

if TYPE_CHECKING:
    from vgbench_gen.agent.models.boxes import FoundBox

MOST_NAMES = 30
Box = tuple[float, float, float, float]
BOX = "[left, top, right, bottom] in pixels, (0, 0) the centre of the top-left pixel"
SCORE = "the detector's own score from 0 to 1, no probability"
ALIASES = {"object": "objects", "object_descs": "objects"}
_MAX_CHARACTERS = 60  # the longest line of a list that counts as a name
_BULLET = re.compile(r"^[\s\-*•\d.)\]]+|[\s.\"'`]+$|^[\"'`]+")


def _list_names(value: Any) -> Any:
    """Names as a tuple, also of a single name."""
    return (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value


Name = Annotated[str, Field(min_length=1, max_length=120)]
Names = Annotated[tuple[Name, ...], Field(min_length=1, max_length=MOST_NAMES), BeforeValidator(_list_names)]
ObjectNames = Annotated[Names, 'names of the objects, such as ["lamp", "red chair"]']


def find_objects(image: Image, names: Sequence[str], options: DetectorOptions) -> list[FoundBox | None]:
    """The best box of each name, pixels of `Image.color`; None if its score is too low or it is under a pixel wide."""
    found: list[FoundBox | None] = []
    for best in load_part(options, "detector").find_boxes(image.color, names):
        left, top, right, bottom = best.box
        is_found = best.score >= options.box_score_min and right - left >= 1 and bottom - top >= 1
        found.append(best if is_found else None)
    return found


def round_box(box: Sequence[float]) -> list[float]:
    """A box with edges rounded to tenths of a pixel."""
    return [round(float(edge), 1) + 0.0 for edge in box]


def move_box(box: Sequence[float], move: Callable[[FloatArray], FloatArray]) -> Box:
    """A box with its corners moved by `Image.to_delivered` or `Image.to_held`."""
    left, top, right, bottom = move(np.reshape(box, (2, 2))).ravel().tolist()
    return left, top, right, bottom


def describe_missing(name: str, score_min: float) -> str:
    """Why an object has no box."""
    return f"{name[:120]} was not found (no box scores {score_min:g})"


def cover_box(box: Sequence[float], size: tuple[int, int], share: float = 1.0) -> tuple[slice, slice]:
    """(rows, columns) of the pixels whose centres are in a box; at least one pixel.

    Args:
        box: [left, top, right, bottom], pixels.
        size: (height, width) of the image.
        share: the box is first shrunk about its centre to this share of each side.

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


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """The mask of a named object, or why there is none."""

    name: str
    error: str = ""
    """Why there is no mask; "" if there is one."""
    score: float = 0.0
    """The detector's score of the box."""
    mask: BoolArray | None = None
    """(H, W)."""
    mask_score: float = 0.0
    """As `FoundMask.score`."""
    bounds: Box | None = None
    """Edges of the mask, pixels of the image as delivered."""


def outline_objects(image: Image, names: Sequence[str], options: MaskOptions) -> list[Outline]:
    """The outline of each named object, by a box and the mask in it."""
    boxes = find_objects(image, names, options)
    found = [box.box for box in boxes if box is not None]
    masks = iter(load_part(options, "segmenter").find_masks(image.color, found) if found else ())
    outlines = []
    for name, box in zip(names, boxes, strict=True):
        if box is None:
            outlines.append(Outline(name, describe_missing(name, options.box_score_min)))
            continue
        mask = next(masks)
        bounds = bound_mask(mask.mask)
        if bounds is None:
            outlines.append(Outline(name, f"{name} has a box, but nothing in it could be outlined"))
            continue
        outlines.append(Outline(name, "", box.score, mask.mask, mask.score, move_box(bounds, image.to_delivered)))
    return outlines


@weights_tool(
    "LocalizeObjects",
    key="LocalizeObjectsWeights",
    argument_aliases=ALIASES,
    returns={
        "regions": f'[{{"label", "bbox", "score"}}] of the names that were found; bbox is {BOX}; score is {SCORE}',
        "not_found": "names without a box",
    },
    example={"image": "image-0", "objects": ["dog", "cat"]},
)
def localize_objects(image: OneImage, objects: ObjectNames, options: DetectorOptions) -> Values:
    """Finds named objects in an image: the best box of each name."""
    boxes = find_objects(image, objects, options)
    return {
        "regions": [
            {"label": name, "bbox": round_box(move_box(box.box, image.to_delivered)), "score": round(box.score, 3)}
            for name, box in zip(objects, boxes, strict=True)
            if box is not None
        ],
        "not_found": [name for name, box in zip(objects, boxes, strict=True) if box is None],
    }


def read_names(text: str) -> tuple[str, ...]:
    """The different names in a model's list, separated by lines or commas, without bullets and long phrases."""
    names: dict[str, str] = {}
    for line in re.split(r"[\n,;]", text[:20_000]):
        name = _BULLET.sub("", _BULLET.sub("", line)).strip()
        if 0 < len(name) <= _MAX_CHARACTERS and len(name.split()) <= 6:
            names.setdefault(name.casefold(), name)
    return tuple(names.values())[:MOST_NAMES]


@weights_tool(
    "DetectObjects",
    key="DetectObjectsWeights",
    returns={
        "objects": "names of what was found, best first",
        "scores": "the detector's own score of each, from 0 to 1, no probability",
        "not_found": "what was named and not found",
        "named_by": "always the core model",
        "checked_by": "the kind of detector",
    },
    example={"image": "image-0"},
    core_query=f"List the objects that you see in this image: one noun or short name a line, at most {MOST_NAMES} "
    "lines, nothing else.",
    core_argument="candidates",
    read_core=read_names,
)
def detect_objects(
    image: OneImage,
    options: DetectorOptions,
    candidates: Annotated[tuple[Name, ...], Field(max_length=MOST_NAMES)] = (),
) -> Values:
    """Lists the objects in an image: the model names candidates, and a detector keeps those that it finds."""
    if not candidates:
        raise ToolError("the core model named nothing")
    boxes = find_objects(image, candidates, options)
    scored = [(name, box.score) for name, box in zip(candidates, boxes, strict=True) if box is not None]
    scored.sort(key=lambda pair: -pair[1])
    return {
        "objects": [name for name, _ in scored],
        "scores": [round(score, 3) for _, score in scored],
        "not_found": [name for name, box in zip(candidates, boxes, strict=True) if box is None],
        "named_by": "the core model",
        "checked_by": "open-vocabulary detector",
    }


@weights_tool(
    "GetObjectMask",
    key="GetObjectMaskWeights",
    argument_aliases=ALIASES,
    returns={
        "results": '[{"object", "mask_area", "bbox", "score", "mask_score", "error"}] in the order of the names; '
        f"mask_area is the share of the image's area from 0 to 1, bbox bounds the mask, {BOX}; score is {SCORE}; "
        "mask_score is the overlap with the truth that SAM 2 expects; error says why there is none"
    },
    example={"image": "image-0", "objects": ["dog", "cat"]},
)
def get_object_mask(image: OneImage, objects: ObjectNames, options: MaskOptions) -> Values:
    """Outlines named objects in an image and tells how large they are in it."""
    results = [
        {
            "object": outline.name,
            "mask_area": None if outline.mask is None else round(float(outline.mask.mean()), 5),
            "bbox": None if outline.bounds is None else round_box(outline.bounds),
            "score": None if outline.mask is None else round(outline.score, 3),
            "mask_score": None if outline.mask is None else round(outline.mask_score, 3),
            "error": outline.error or None,
        }
        for outline in outline_objects(image, objects, options)
    ]
    return {"results": results}


@weights_tool(
    "GetObjectOrientation",
    key="GetObjectOrientationWeights",
    argument_aliases=ALIASES,
    returns={
        "results": '[{"object", "azimuth", "polar", "rotation", "confidence", "score", "error"}] in the order of the '
        "names, degrees; azimuth is the side of the object that the camera sees, 0 to 360: 0 its front, then 90, 180 "
        "its back and 270 as the camera goes around it clockwise seen from above; polar is the height from which it is "
        "seen, 0 from below to 180 from above, 90 from its own height; rotation is the turn of the camera about its "
        "view direction, -180 to 180; confidence is the model's own from 0 to 1 that it has a front, below 0.5 trust "
        f"no azimuth; score is {SCORE}; error says why there is none",
        "uncertainty": "why the angles have no error bars",
    },
    example={"image": "image-0", "objects": ["dog", "cat"]},
)
def get_object_orientation(image: OneImage, objects: ObjectNames, options: OrientationOptions) -> Values:
    """Estimates from which side, how high and how turned the camera sees named objects."""
    results: list[dict[str, Any]] = []
    for name, box in zip(objects, find_objects(image, objects, options), strict=True):
        if box is None:
            none = {"azimuth": None, "polar": None, "rotation": None, "confidence": None}
            results.append({"object": name, **none, "error": describe_missing(name, options.box_score_min)})
            continue
        rows, columns = cover_box(box.box, image.color.shape[:2])
        found = load_part(options, "orientation").measure_orientation(image.color[rows, columns])
        results.append(
            {
                "object": name,
                "azimuth": round(found.azimuth_deg, 1),
                "polar": round(found.polar_deg, 1),
                "rotation": round(found.rotation_deg, 1),
                "confidence": round(found.confidence, 3),
                "score": round(box.score, 3),
                "error": None,
            }
        )
    return {"results": results, "uncertainty": "unknown: the model gives no error bars"}
