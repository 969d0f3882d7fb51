"""Metric depth of boxes and of named objects, by a depth model and a detector.

The published `EstimateObjectGeometryProperties` takes the camera from VGGT, whose pose of a single image is always the
identity. Here the depth model gives the intrinsics, if it estimates them; in mode `sane` the result says that one image
has no pose.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from vgbench_gen.agent.tool import OneImage, Values
from vgbench_gen.agent.tools.objects import (
    ALIASES,
    BOX,
    SCORE,
    Box,
    Names,
    ObjectNames,
    cover_box,
    describe_missing,
    find_objects,
    move_box,
    outline_objects,
    round_box,
)
from vgbench_gen.agent.weights import DepthOptions, DetectorOptions, MaskOptions, load_part, weights_tool
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.tasks.solving import Image

if TYPE_CHECKING:
    from vgbench_gen.agent.models.depth import DepthMap

NO_ERROR_BARS = "unknown: the depth model gives no error bars; spread_m tells only how depths differ within the region"
_CORE_SHARE = 0.5  # depth is measured in the middle of a box, this share of each side, to leave out the background
_UNKNOWN = "unknown: the depth model estimates no field of view"
_NO_POSE = "unknown: one image has no pose relative to anything"
Where = Annotated[Literal["indoor", "outdoor"], "indoor (rooms, to about 20 m) or outdoor (to about 80 m)"]


def _nest_boxes(value: Any) -> Any:
    """A list of boxes, also of a single box, as tuples."""
    if not isinstance(value, list | tuple):
        return value
    boxes = value if any(isinstance(each, list | tuple) for each in value) else [value]
    return tuple(tuple(box) if isinstance(box, list) else box for box in boxes)


Boxes = Annotated[tuple[Box, ...], Field(min_length=1, max_length=50), BeforeValidator(_nest_boxes)]


class ObjectDepthOptions(DetectorOptions, DepthOptions):
    """Options of tools that find objects and measure their depth."""


class GeometryOptions(MaskOptions, DepthOptions):
    """Options of tools that outline objects and measure their depth."""


def measure_depth(image: Image, options: DepthOptions) -> DepthMap:
    """The depth of each pixel, by the depth model that settled options name."""
    model = load_part(options, "depth_indoor" if options.depth_indoor else "depth_outdoor")
    depth_map: DepthMap = model.measure_depth(image.color)
    return depth_map


def describe_depth(depth_m: FloatArray, within: BoolArray | tuple[slice, slice]) -> dict[str, float]:
    """{"depth", "spread_m"}: median depth and half the interquartile range of a region's pixels, meters."""
    low, middle, high = np.percentile(depth_m[within], [25, 50, 75])
    return {"depth": round(float(middle), 3), "spread_m": round(float(high - low) / 2, 3)}


@weights_tool(
    "EstimateRegionDepth",
    key="EstimateRegionDepthWeights",
    argument_aliases={"bbox": "bboxes", "regions": "bboxes"},
    returns={
        "depths": "of each box in order, meters along the viewing axis",
        "unit": "always meters",
        "spread_m": "of each box, half the range of the middle half of its depths, meters",
        "uncertainty": "why the depths have no error bars",
    },
    example={"image": "image-0", "bboxes": [[120, 80, 260, 310]], "indoor_or_outdoor": "indoor"},
)
def estimate_region_depth(
    image: OneImage,
    bboxes: Annotated[Boxes, f"one box or a list of boxes, each {BOX}; NOT shares"],
    indoor_or_outdoor: Where,
    options: DepthOptions,
    mode: Annotated[Literal["mean", "center"], "over the box, or at its centre"] = "mean",
) -> Values:
    """Estimates how far regions of an image are from the camera."""
    for box in bboxes:
        cover_box(box, image.size[::-1])  # so that an error names the pixels of the call
    depth_m = measure_depth(image, options).depth_m
    size = depth_m.shape[0], depth_m.shape[1]
    depths, spreads = [], []
    for box in bboxes:
        held_box = move_box(box, image.to_held)
        within, centre = cover_box(held_box, size), cover_box(held_box, size, share=0.0)
        depths.append(round(float(np.mean(depth_m[within if mode == "mean" else centre])), 3))
        spreads.append(describe_depth(depth_m, within)["spread_m"])
    return {"depths": depths, "unit": "meters", "spread_m": spreads, "uncertainty": NO_ERROR_BARS}


@weights_tool(
    "EstimateObjectDepth",
    key="EstimateObjectDepthWeights",
    argument_aliases=ALIASES,
    returns={
        "results": '[{"object", "depth", "spread_m", "score", "error"}] in the order of the names; depth is the median '
        "over the middle of the object's box, meters along the viewing axis; spread_m is half the range of the middle "
        f"half of the depths there; score is {SCORE}; error says why there is none",
        "uncertainty": "why the depths have no error bars",
    },
    example={"image": "image-0", "objects": ["dog", "cat"], "indoor_or_outdoor": "outdoor"},
)
def estimate_object_depth(
    image: OneImage, objects: ObjectNames, indoor_or_outdoor: Where, options: ObjectDepthOptions
) -> Values:
    """Estimates how far named objects are from the camera."""
    boxes = find_objects(image, objects, options)
    depth_m = measure_depth(image, options).depth_m
    results: list[dict[str, Any]] = []
    for name, box in zip(objects, boxes, strict=True):
        if box is None:
            results.append({"object": name, "depth": None, "error": describe_missing(name, options.box_score_min)})
            continue
        depth = describe_depth(depth_m, cover_box(box.box, (depth_m.shape[0], depth_m.shape[1]), _CORE_SHARE))
        results.append({"object": name, **depth, "score": round(box.score, 3), "error": None})
    return {"results": results, "uncertainty": NO_ERROR_BARS}


def measure_geometry(
    image: Image, names: tuple[str, ...], options: GeometryOptions
) -> tuple[list[dict[str, Any]], list[list[float]] | None]:
    """(the result of each object, 3x3 intrinsics in pixels of the image or None)."""
    depth_map = measure_depth(image, options)
    results: list[dict[str, Any]] = []
    for outline in outline_objects(image, names, options):
        if outline.mask is None or outline.bounds is None:
            none = {"bbox": None, "mask_area": None, "depth": None}
            results.append({"object": outline.name, **none, "error": outline.error})
            continue
        values = {"bbox": round_box(outline.bounds), "mask_area": round(float(outline.mask.mean()), 5)}
        values |= describe_depth(depth_map.depth_m, outline.mask)
        results.append({"object": outline.name, **values, "score": round(outline.score, 3), "error": None})
    if depth_map.focal_px is None:
        return results, None
    width, height = image.size
    focal = round(depth_map.focal_px * float(image.scale[0]), 1)
    return results, [[focal, 0.0, (width - 1) / 2], [0.0, focal, (height - 1) / 2], [0.0, 0.0, 1.0]]


_RESULTS = (
    '[{"object", "bbox", "mask_area", "depth", "error"}] in the order of the descriptions; mask_area is a share of the '
    f"image's area from 0 to 1; bbox is {BOX}; depth is the median over the mask, meters along the viewing axis"
)
_geometry_tool = partial(
    weights_tool,
    "EstimateObjectGeometryProperties",
    argument_aliases={"objects": "object_descs", "object": "object_descs"},
    example={"image": "image-0", "object_descs": ["dog", "cat"]},
)
_Described = Annotated[Names, 'descriptions of the objects, such as ["red chair"]']


@_geometry_tool(
    key="EstimateObjectGeometryPropertiesWeights",
    modes=("sane",),
    returns={
        "results": f"{_RESULTS}; spread_m is half the range of the middle half of its depths",
        "camera_parameters": "intrinsic: 3x3 in pixels, or null where the depth model does not estimate it (principal "
        "point taken as the middle); pose: always unknown, because one image has none",
        "uncertainty": "why the depths have no error bars",
    },
)
def estimate_object_geometry_properties(
    image: OneImage, object_descs: _Described, options: GeometryOptions, indoor_or_outdoor: Where = "indoor"
) -> Values:
    """Estimates box, size in the image and depth of described objects, and the camera's focal length if it can."""
    results, intrinsic = measure_geometry(image, object_descs, options)
    camera = {"intrinsic": intrinsic, **({} if intrinsic else {"why_no_intrinsic": _UNKNOWN}), "pose": _NO_POSE}
    return {"results": results, "camera_parameters": camera, "uncertainty": NO_ERROR_BARS}


@_geometry_tool(
    key="EstimateObjectGeometryPropertiesWeightsOfficial",
    modes=("official",),
    returns={"results": _RESULTS, "camera_parameters": "intrinsic: 3x3, extrinsic: 3x4"},
)
def estimate_object_geometry_properties_official(
    image: OneImage, object_descs: _Described, options: GeometryOptions, indoor_or_outdoor: Where = "indoor"
) -> Values:
    """Estimates geometric properties of described objects and the parameters of the camera."""
    results, intrinsic = measure_geometry(image, object_descs, options)
    camera = {"intrinsic": intrinsic or _UNKNOWN, "extrinsic": np.eye(3, 4).tolist()}
    return {"results": results, "camera_parameters": camera, "uncertainty": NO_ERROR_BARS}
