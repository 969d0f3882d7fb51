"""What tools that measure depth share: which model, and its maps of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from vgbench_gen.agent.tool import ToolInput
from vgbench_gen.agent.weights import SLOTS, load_part
from vgbench_gen.core.config import Config

if TYPE_CHECKING:
    from vgbench_gen.agent.models.depth import DepthMap

Where = Literal["indoor", "outdoor"]
WHERE = "indoor (rooms, to about 20 m) or outdoor (to about 80 m)"


def list_depth_slots(options: Config, where: Where) -> tuple[str, ...]:
    """The models that a call uses: of the two depth models only that of its surroundings."""
    other = "depth_outdoor" if where == "indoor" else "depth_indoor"
    return tuple(slot for slot in SLOTS if slot in type(options).model_fields and slot != other)


def measure_depths(given: Sequence[ToolInput]) -> list[DepthMap]:
    """The depth of the first image of each call, in one pass: calls of a pass have one model of the two."""
    options = given[0].options
    model = load_part(options, "depth_indoor" if getattr(options, "depth_indoor", "") else "depth_outdoor")
    found: list[DepthMap] = model.measure_depths([one.images[0].color for one in given])
    return found
