"""`EstimateOpticalFlow`: mean motion of pixels between two frames (DIS, Kroeger et al. 2016).

The published text says that a positive mean_flow_x means that objects move to the left. That is the flow from the
second image to the first one. In mode `official` the text stays and the flow is that one, so that both agree; in mode
`sane` the flow goes from the first image to the second.
"""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.agent.tool import ImagePair, Mode, Tier, Tool, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Image

SIDE_MIN_PX = 16  # below, the flow has no pyramid


class _Arguments(Config):
    image: ImagePair


def measure_flow(first: Image, second: Image) -> FloatArray:
    """(H, W, 2) by how many pixels each pixel of the first image moves right and down on its way to the second.

    Raises:
        ToolError: the images differ in size, or are too small.
    """
    if first.size != second.size:
        raise ToolError(f"found images of {first.size} and {second.size} pixels; expected two of one size")
    if min(first.size) < SIDE_MIN_PX:
        raise ToolError(f"found images of {first.size} pixels; expected at least {SIDE_MIN_PX} a side")
    start = np.zeros((*first.gray.shape, 2), np.float32)
    flow = cv2.DISOpticalFlow.create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM).calc(first.gray, second.gray, start)
    return np.asarray(flow, dtype=np.float64) * first.scale


class _Flow(Tool[_Arguments]):
    name = "EstimateOpticalFlow"
    tier: ClassVar[Tier] = "classical"
    argument_aliases: ClassVar = {"images": "image"}
    example: ClassVar = {"image": ["image-0", "image-1"]}


@tools.register("EstimateOpticalFlow")
class EstimateOpticalFlow(_Flow):
    """From the first image to the second."""

    modes: ClassVar[tuple[Mode, ...]] = ("sane",)
    does = "Measures how image content moves from the first image to the second."
    returns: ClassVar = {
        "mean_flow_x": "mean shift of image content to the right, pixels; the camera turns or moves left where it is "
        "positive",
        "mean_flow_y": "mean shift downwards, pixels; the camera turns up or moves up where it is positive",
        "median_flow": "[x, y] medians of both",
        "spread": "standard deviation of the shifts' lengths, pixels: large where parts move differently",
    }

    def run(self, given: ToolInput) -> ToolOutput:
        flow = measure_flow(*given.images).reshape(-1, 2)
        x, y = (round(float(mean), 2) for mean in flow.mean(axis=0))
        return ToolOutput(
            {
                "mean_flow_x": x,
                "mean_flow_y": y,
                "median_flow": np.median(flow, axis=0).round(2).tolist(),
                "spread": round(float(np.linalg.norm(flow, axis=1).std()), 2),
            }
        )


@tools.register("EstimateOpticalFlowOfficial")
class EstimateOpticalFlowOfficial(_Flow):
    """As published."""

    modes: ClassVar[tuple[Mode, ...]] = ("official",)
    does = "Estimates the optical flow between two images, the earlier one first."
    returns: ClassVar = {
        "mean_flow_x": "positive: objects move left, or the camera moves right",
        "mean_flow_y": "positive: objects move up, or the camera moves down",
    }

    def run(self, given: ToolInput) -> ToolOutput:
        first, second = given.images
        x, y = measure_flow(second, first).reshape(-1, 2).mean(axis=0)
        return ToolOutput({"mean_flow_x": round(float(x), 2), "mean_flow_y": round(float(y), 2)})
