"""`EstimateOpticalFlow`: mean motion of pixels between two images, by DIS (Kroeger et al. 2016), or RAFT if set up.

The published description says that objects move to the left if mean_flow_x is positive. That is true of the flow from
the second image to the first, which mode `official` therefore measures; mode `sane` measures from first to second.
"""

from __future__ import annotations

from functools import partial

import cv2
import numpy as np

from vgbench_gen.agent.tool import ImagePair, ToolError, Values, tool
from vgbench_gen.agent.weights import FlowOptions, load_part, weights_tool
from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Image

SIDE_MIN_PX = 16  # DIS needs this much for its image pyramid
_SANE = {
    "mean_flow_x": "mean shift of image content to the right, pixels; the camera turns or moves left where it is "
    "positive",
    "mean_flow_y": "mean shift downwards, pixels; the camera turns up or moves up where it is positive",
    "median_flow": "[x, y] medians of both",
    "spread": "standard deviation of the shifts' lengths, pixels: large where parts move differently",
}
_OFFICIAL = {
    "mean_flow_x": "positive: objects move left, or the camera moves right",
    "mean_flow_y": "positive: objects move up, or the camera moves down",
}
_flow_tool = partial(tool, "EstimateOpticalFlow", tier="classical", example={"image": ["image-0", "image-1"]})
_raft_tool = partial(
    weights_tool,
    "EstimateOpticalFlow",
    extra="flow",
    packages=("torch", "torchvision", "safetensors"),
    example={"image": ["image-0", "image-1"]},
)


def measure_flow(first: Image, second: Image, options: FlowOptions | None = None) -> FloatArray:
    """(N, 2) motion to the right and down of each pixel, from the first image to the second, pixels.

    Args:
        first: the earlier image.
        second: of the same size.
        options: of RAFT; None for DIS.

    Raises:
        ToolError: the images differ in size, or are too small.
    """
    if first.size != second.size:
        raise ToolError(f"found images of {first.size} and {second.size} pixels; expected two of one size")
    if options is not None:
        flow = load_part(options, "flow").measure_flow(first.color, second.color)
    else:
        if min(first.size) < SIDE_MIN_PX:
            raise ToolError(f"found images of {first.size} pixels; expected at least {SIDE_MIN_PX} a side")
        start = np.zeros((*first.gray.shape, 2), np.float32)
        flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM).calc(first.gray, second.gray, start)
    return (np.asarray(flow, dtype=np.float64) * first.scale).reshape(-1, 2)


@_flow_tool(modes=("sane",), returns=_SANE)
def estimate_optical_flow(image: ImagePair) -> Values:
    """Measures how image content moves from the first image to the second."""
    return _describe_fully(measure_flow(*image))


@_flow_tool(key="EstimateOpticalFlowOfficial", modes=("official",), returns=_OFFICIAL)
def estimate_optical_flow_official(image: ImagePair) -> Values:
    """Estimates the optical flow between two images, the earlier one first."""
    return _describe_mean(measure_flow(image[1], image[0]))


@_raft_tool(key="EstimateOpticalFlowRaft", modes=("sane",), returns=_SANE)
def estimate_optical_flow_raft(image: ImagePair, options: FlowOptions) -> Values:
    """Measures how image content moves from the first image to the second."""
    return _describe_fully(measure_flow(*image, options))


@_raft_tool(key="EstimateOpticalFlowRaftOfficial", modes=("official",), returns=_OFFICIAL)
def estimate_optical_flow_raft_official(image: ImagePair, options: FlowOptions) -> Values:
    """Estimates the optical flow between two images, the earlier one first."""
    return _describe_mean(measure_flow(image[1], image[0], options))


def _describe_mean(flow: FloatArray) -> Values:
    x, y = flow.mean(axis=0)
    return {"mean_flow_x": round(float(x), 2), "mean_flow_y": round(float(y), 2)}


def _describe_fully(flow: FloatArray) -> Values:
    values = _describe_mean(flow) | {"median_flow": np.median(flow, axis=0).round(2).tolist()}
    return values | {"spread": round(float(np.linalg.norm(flow, axis=1).std()), 2)}
