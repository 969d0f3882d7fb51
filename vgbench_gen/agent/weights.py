"""What tools with downloaded weights share: which models they use, where those lie, and one copy of each in a process.

A model is named by a folder as `save_pretrained` writes it, or by ORGANISATION/NAME[@REVISION] of the Hub. Nothing is
fetched before a call uses it; no code of a model's own runs, and pickled weights are not read.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from vgbench_gen.agent.tool import ArgumentsT, Place, Tier, Tool, ToolError, ToolInput, ToolOutput
from vgbench_gen.backends.model_files import locate_model
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError

EXTRA = "transformers"
PACKAGES = ("torch", "transformers")
Model = str
"""A folder, or ORGANISATION/NAME[@REVISION] of the Hub."""


class WeightsOptions(Config):
    """How weights are used, whichever they are."""

    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")
    """Where models run; auto is the first GPU, else the CPU."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of the weights."""
    batch_size: int = Field(default=4, ge=1, le=256)
    """Calls in a pass, at most."""


class DetectorOptions(WeightsOptions):
    """For tools that look for named objects."""

    detector: Model = "google/owlv2-base-patch16-ensemble"
    """OWLv2 or Grounding DINO."""
    box_score_min: float = Field(default=0.1, ge=0, le=1)
    """A name whose best box scores less was not found."""


class MaskOptions(DetectorOptions):
    """For tools that outline objects."""

    segmenter: Model = "facebook/sam2.1-hiera-small"
    """SAM 2."""


class DepthOptions(WeightsOptions):
    """For tools that measure depth."""

    depth_indoor: Model = "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf"
    """For rooms: Depth Anything V2 metric, ZoeDepth or Depth Pro."""
    depth_outdoor: Model = "depth-anything/Depth-Anything-V2-Metric-Outdoor-Small-hf"
    """For streets and land; the same kinds."""


class MatcherOptions(WeightsOptions):
    """For tools that match two images."""

    matcher: Model = "ETH-CVG/lightglue_superpoint"
    """LightGlue with its keypoint detector."""


class FlowOptions(WeightsOptions):
    """For tools that measure flow. No default: torchvision's weights are pickled and have to be converted."""

    flow: Model
    """Folder with RAFT in model.safetensors and a config.json that says {"model_type": "raft_large"} or raft_small."""


SLOTS = ("detector", "segmenter", "depth_indoor", "depth_outdoor", "matcher", "flow")
"""Options that name a model."""


class WeightsTool(Tool[ArgumentsT]):
    """A tool whose models stay loaded in the process of a device."""

    tier: ClassVar[Tier] = "weights"
    runs: ClassVar[Place] = "device"
    timeout_s: ClassVar[float] = 120.0
    extra: ClassVar[str] = EXTRA
    packages: ClassVar[tuple[str, ...]] = PACKAGES

    def list_slots(self, options: Config, arguments: ArgumentsT) -> tuple[str, ...]:
        """The options that name models which this call uses."""
        return tuple(slot for slot in SLOTS if slot in type(options).model_fields)

    def settle_options(self, options: Config, arguments: ArgumentsT) -> Config:
        """As `Tool.settle_options`: models that the call uses as folders, the others left empty."""
        used = self.list_slots(options, arguments)
        models = {slot: getattr(options, slot) for slot in SLOTS if slot in type(options).model_fields}
        found = {
            slot: str(find_model(model, f"[{self.name}] {slot} = {model!r}")[0]) if slot in used else ""
            for slot, model in models.items()
        }
        return options.model_copy(update=found)

    def describe_state(self, options: Config) -> str:
        """As `Tool.describe_state`: of models that are there the digest of their content, of the others the name."""
        assert isinstance(options, WeightsOptions)
        told = {slot: _describe_model(model) for slot in SLOTS if (model := getattr(options, slot, None)) is not None}
        device = options.device.partition(":")[0]
        return options.model_copy(update={**told, "device": device}).model_dump_json(exclude={"batch_size"})

    def prepare(self, options: Config) -> None:
        """As `Tool.prepare`."""
        for slot in SLOTS:
            if getattr(options, slot, ""):
                load_part(options, slot)

    def run(self, given: ToolInput[ArgumentsT]) -> ToolOutput:
        """As `Tool.run`: a pass of one call."""
        outcome = self.run_batch([given])[0]
        if isinstance(outcome, ToolError):
            raise outcome
        return outcome

    @abc.abstractmethod
    def run_batch(self, given: Sequence[ToolInput[ArgumentsT]]) -> list[ToolOutput | ToolError]:
        """As `Tool.run_batch`, in one pass of each model."""


@cache
def find_model(model: str, where: str) -> tuple[Path, str]:
    """As `locate_model`; kept for the life of the process."""
    return locate_model(model, where)


def _describe_model(model: str) -> str:
    return find_model(model, model)[1].rpartition("@")[2] if model and Path(model).is_dir() else model


def load_part(options: Config, slot: str) -> Any:
    """The model of an option, loaded once in a process for each device and dtype.

    Raises:
        ConfigError: it cannot be loaded.
    """
    assert isinstance(options, WeightsOptions)
    return _load(slot, getattr(options, slot), options.device, options.dtype)


@cache
def _load(slot: str, folder: str, device: str, dtype: str) -> Any:
    from vgbench_gen.agent.models import boxes, depth, flow, loading, masks, matches

    kinds: Mapping[str, Any] = {
        "detector": boxes.OpenDetector,
        "segmenter": masks.BoxSegmenter,
        "depth_indoor": depth.DepthModel,
        "depth_outdoor": depth.DepthModel,
        "matcher": matches.PairMatcher,
        "flow": flow.RaftFlow,
    }
    try:
        loading.check_files(Path(folder))
        return kinds[slot](Path(folder), device, dtype)
    except ConfigError as error:
        raise ConfigError(f"{slot}: {error}") from error
