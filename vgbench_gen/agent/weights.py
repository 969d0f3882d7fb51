"""Options of tools with downloaded weights, and loading of their models, once per process.

A model is named by a folder as `save_pretrained` writes it, or by ORGANISATION/NAME[@REVISION] of the Hub. Models are
fetched when a call first uses them; code that comes with a model is not run, and pickled weights are not read.
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
"""Names of the options that name a model."""


class WeightsOptions(ToolOptions):
    """Options of all tools with weights."""

    device: str = Field(default="auto", pattern=r"^(auto|cpu|mps|cuda(:[0-9]+)?)$")
    """Where models run; auto is the first GPU, else the CPU."""
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"

    def list_slots(self) -> list[str]:
        """The options of this tool that name a model."""
        return [slot for slot in SLOTS if slot in type(self).model_fields]

    def settle(self, tool_name: str, arguments: Config) -> ToolOptions:
        """As `ToolOptions.settle`; a depth model that the call does not use becomes ""."""
        where = getattr(arguments, "indoor_or_outdoor", "")
        unused = {"indoor": "depth_outdoor", "outdoor": "depth_indoor"}.get(where)
        folders = {}
        for slot in self.list_slots():
            model = getattr(self, slot)
            folders[slot] = "" if slot == unused else str(find_model(model, f"[{tool_name}] {slot} = {model!r}")[0])
        return self.model_copy(update=folders)

    def describe_state(self) -> str:
        """As `ToolOptions.describe_state`, with a digest of the content for models that are folders, else the name."""
        models = {slot: _describe_model(getattr(self, slot)) for slot in self.list_slots()}
        return self.model_copy(update={**models, "device": self.device.partition(":")[0]}).model_dump_json()

    def prepare(self) -> None:
        for slot in self.list_slots():
            if getattr(self, slot):
                load_part(self, slot)


class DetectorOptions(WeightsOptions):
    """Options of tools that find named objects."""

    detector: Model = "google/owlv2-base-patch16-ensemble"
    """OWLv2 or Grounding DINO."""
    box_score_min: float = Field(default=0.1, ge=0, le=1)
    """An object whose best box scores less counts as not found."""


class MaskOptions(DetectorOptions):
    """Options of tools that outline objects."""

    segmenter: Model = "facebook/sam2.1-hiera-small"
    """SAM 2."""


class DepthOptions(WeightsOptions):
    """Options of tools that measure depth, by Depth Anything V2 metric, ZoeDepth or Depth Pro."""

    depth_indoor: Model = "depth-anything/Depth-Anything-V2-Metric-Indoor-Small-hf"
    depth_outdoor: Model = "depth-anything/Depth-Anything-V2-Metric-Outdoor-Small-hf"


class MatcherOptions(WeightsOptions):
    """Options of tools that match two images."""

    matcher: Model = "ETH-CVG/lightglue_superpoint"
    """LightGlue with its keypoint detector."""


class OrientationOptions(DetectorOptions):
    """Options of tools that estimate orientations. There is no default, because the published weights are pickled."""

    orientation: Model
    """A folder with Orient-Anything (`models.orientations`) in model.safetensors, and the config.json of its DINOv2."""


class FlowOptions(WeightsOptions):
    """Options of tools that measure flow by RAFT. There is no default, because torchvision's weights are pickled."""

    flow: Model
    """A folder with RAFT in model.safetensors, and {"model_type": "raft_large"} or raft_small in config.json."""


weights_tool: Callable[..., Callable[[FunctionT], FunctionT]] = partial(
    tool, tier="weights", runs="device", timeout_s=120.0, extra="transformers", packages=("torch", "transformers")
)
"""As `tool`, for tools whose models stay loaded in the process of a device."""

find_model = cache(locate_model)
"""As `locate_model`; each model is looked up once in a process."""


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
