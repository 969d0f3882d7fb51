"""What tools with downloaded weights share: which models they use, where those lie, and one copy of each in a process.

A model is named by a folder as `save_pretrained` writes it, or by ORGANISATION/NAME[@REVISION] of the Hub. Nothing is
fetched before a call uses it; no code of a model's own runs, and pickled weights are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from vgbench_gen.agent.tool import FunctionT, ToolOptions, tool
from vgbench_gen.backends.model_files import locate_model
from vgbench_gen.core.config import Config
from vgbench_gen.core.errors import ConfigError

Model = str
"""A folder, or ORGANISATION/NAME[@REVISION] of the Hub."""
SLOTS = ("detector", "segmenter", "depth_indoor", "depth_outdoor", "matcher", "flow", "orientation")
"""Options that name a model."""


class WeightsOptions(ToolOptions):
    """How weights are used, whichever they are."""

    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")
    """Where models run; auto is the first GPU, else the CPU."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    """Of the weights."""

    def list_slots(self, arguments: Config) -> tuple[str, ...]:
        """The options that name models which a call uses: of the two depth models only that of its surroundings."""
        where = getattr(arguments, "indoor_or_outdoor", "")
        unused = {"indoor": "depth_outdoor", "outdoor": "depth_indoor"}.get(where)
        return tuple(slot for slot in SLOTS if slot in type(self).model_fields and slot != unused)

    def settle(self, tool_name: str, arguments: Config) -> ToolOptions:
        """As `ToolOptions.settle`: models that the call uses as folders, the others left empty."""
        used = self.list_slots(arguments)
        models = {slot: getattr(self, slot) for slot in SLOTS if slot in type(self).model_fields}
        found = {
            slot: str(find_model(model, f"[{tool_name}] {slot} = {model!r}")[0]) if slot in used else ""
            for slot, model in models.items()
        }
        return self.model_copy(update=found)

    def describe_state(self) -> str:
        """As `ToolOptions.describe_state`: of models that are there the digest of their content, else the name."""
        told = {slot: _describe_model(model) for slot in SLOTS if (model := getattr(self, slot, None)) is not None}
        return self.model_copy(update={**told, "device": self.device.partition(":")[0]}).model_dump_json()

    def prepare(self) -> None:
        for slot in SLOTS:
            if getattr(self, slot, ""):
                load_part(self, slot)


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


class OrientationOptions(DetectorOptions):
    """For tools that tell how objects face. No default: the published weights are pickled and have to be converted."""

    orientation: Model
    """Folder with Orient-Anything (`models.orientations`) in model.safetensors, config.json as of its DINOv2."""


class FlowOptions(WeightsOptions):
    """For tools that measure flow. No default: torchvision's weights are pickled and have to be converted."""

    flow: Model
    """Folder with RAFT in model.safetensors and a config.json that says {"model_type": "raft_large"} or raft_small."""


weights_tool: Callable[..., Callable[[FunctionT], FunctionT]] = partial(
    tool, tier="weights", runs="device", timeout_s=120.0, extra="transformers", packages=("torch", "transformers")
)
"""As `tool`, for those whose models stay loaded in the process of a device."""


@cache
def find_model(model: str, where: str) -> tuple[Path, str]:
    """As `locate_model`; kept for the life of the process."""
    return locate_model(model, where)


def _describe_model(model: str) -> str:
    return find_model(model, model)[1].rpartition("@")[2] if model and Path(model).is_dir() else model


def load_part(options: WeightsOptions, slot: str) -> Any:
    """The model of an option, loaded once in a process for each device and dtype.

    Raises:
        ConfigError: it cannot be loaded.
    """
    return _load(slot, getattr(options, slot), options.device, options.dtype)


@cache
def _load(slot: str, folder: str, device: str, dtype: str) -> Any:
    from vgbench_gen.agent.models import boxes, depth, flow, loading, masks, matches, orientations

    kinds: Mapping[str, Any] = {
        "detector": boxes.OpenDetector,
        "segmenter": masks.BoxSegmenter,
        "depth_indoor": depth.DepthModel,
        "depth_outdoor": depth.DepthModel,
        "matcher": matches.PairMatcher,
        "flow": flow.RaftFlow,
        "orientation": orientations.OrientationModel,
    }
    try:
        loading.check_files(Path(folder))
        return kinds[slot](Path(folder), device, dtype)
    except ConfigError as error:
        raise ConfigError(f"{slot}: {error}") from error
