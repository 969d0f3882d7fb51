"""`EstimateOpticalFlow` by RAFT, as the published tool has it; there only where its weights are set up.

Signs of both modes are those of `estimate_optical_flow`, which tells why they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.tool import ImagePair, Mode, ToolError, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools.estimate_optical_flow import EstimateOpticalFlow, EstimateOpticalFlowOfficial
from vgbench_gen.agent.weights import FlowOptions, WeightsTool, load_part
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray


class _Arguments(Config):
    image: ImagePair


class _Raft(WeightsTool[_Arguments]):
    name = "EstimateOpticalFlow"
    Options = FlowOptions
    extra = "flow"
    packages = ("torch", "torchvision", "safetensors")
    argument_aliases: ClassVar = {"images": "image"}
    example: ClassVar = {"image": ["image-0", "image-1"]}
    backward: ClassVar[bool] = False
    """Whether flow is measured from the second image to the first."""

    def run_batch(self, given: Sequence[ToolInput[_Arguments]]) -> list[ToolOutput | ToolError]:
        outcomes: dict[int, ToolOutput | ToolError] = {}
        pairs = {}
        for k, one in enumerate(given):
            first, second = one.images[::-1] if self.backward else one.images
            if first.size != second.size:
                sizes = f"{first.size} and {second.size}"
                outcomes[k] = ToolError(f"found images of {sizes} pixels; expected two of one size")
            else:
                pairs[k] = (first.color, second.color)
        flows = load_part(given[0].options, "flow").measure_flows([*pairs.values()]) if pairs else []
        moved = {k: flow * given[k].images[0].scale for k, flow in zip(pairs, flows, strict=True)}
        outcomes |= {k: ToolOutput(self.describe_flow(flow)) for k, flow in moved.items()}
        return [outcomes[k] for k in range(len(given))]

    def describe_flow(self, flow: FloatArray) -> dict[str, Any]:
        """The values of a call.

        Args:
            flow: (H, W, 2) pixels to the right and down.
        """
        x, y = flow.reshape(-1, 2).mean(axis=0)
        return {"mean_flow_x": round(float(x), 2), "mean_flow_y": round(float(y), 2)}


@tools.register("EstimateOpticalFlowRaft")
class EstimateOpticalFlowRaft(_Raft):
    """From the first image to the second."""

    modes: ClassVar[tuple[Mode, ...]] = ("sane",)
    does = EstimateOpticalFlow.does
    returns: ClassVar = EstimateOpticalFlow.returns

    def describe_flow(self, flow: FloatArray) -> dict[str, Any]:
        moves = flow.reshape(-1, 2)
        told = super().describe_flow(flow) | {"median_flow": np.median(moves, axis=0).round(2).tolist()}
        return told | {"spread": round(float(np.linalg.norm(moves, axis=1).std()), 2)}


@tools.register("EstimateOpticalFlowRaftOfficial")
class EstimateOpticalFlowRaftOfficial(_Raft):
    """As published."""

    modes: ClassVar[tuple[Mode, ...]] = ("official",)
    does = EstimateOpticalFlowOfficial.does
    returns: ClassVar = EstimateOpticalFlowOfficial.returns
    backward = True
