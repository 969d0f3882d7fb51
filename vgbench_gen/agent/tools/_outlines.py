"""Masks of named objects: boxes first, then what they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vgbench_gen.agent.models.masks import FoundMask, bound_mask
from vgbench_gen.agent.tool import ToolInput
from vgbench_gen.agent.tools._objects import Box, find_objects, move_box, say_missing
from vgbench_gen.agent.weights import MaskOptions, load_part
from vgbench_gen.core.types import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class Outline:
    """What was found of a named object."""

    name: str
    """As it was asked for."""
    error: str = ""
    """Why there is no mask; "" where there is."""
    score: float = 0.0
    """Of the box."""
    mask: BoolArray | None = None
    """(H, W)."""
    mask_score: float = 0.0
    """The overlap with the truth that the model expects."""
    bounds: Box | None = None
    """Edges of the mask, pixels of the image as delivered."""


def outline_objects(given: Sequence[ToolInput], names: Sequence[Sequence[str]]) -> list[list[Outline]]:
    """The outline of each named object of each call, in one pass of each model."""
    options = given[0].options
    assert isinstance(options, MaskOptions)
    boxes = find_objects(given, names)
    with_boxes = [k for k, own in enumerate(boxes) if any(box is not None for box in own)]
    masks: Iterator[FoundMask] = iter(())
    if with_boxes:
        segmenter = load_part(options, "segmenter")
        asked = [[box.box for box in boxes[k] if box is not None] for k in with_boxes]
        images = [given[k].images[0].color for k in with_boxes]
        masks = iter([mask for own in segmenter.find_masks(images, asked) for mask in own])
    made = []
    for one, own, found in zip(given, names, boxes, strict=True):
        outlines = []
        for name, box in zip(own, found, strict=True):
            if box is None:
                outlines.append(Outline(name, say_missing(name, options.box_score_min)))
                continue
            mask = next(masks)
            bounds = bound_mask(mask.mask)
            if bounds is None:
                outlines.append(Outline(name, f"{name} has a box, but nothing in it could be outlined"))
            else:
                edges = move_box(bounds, one.images[0].to_delivered)
                outlines.append(Outline(name, "", box.score, mask.mask, mask.score, edges))
        made.append(outlines)
    return made
