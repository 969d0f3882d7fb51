"""How far depths of regions must be apart, for both tasks that ask them."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class DepthMargins(TaskGates):
    """How far depths of regions must be apart, for both tasks that ask them."""

    section = "depths"

    ratio_min: float = 1.25
    gap_min_m: float = 0.15
    ratio_max: float = 3.0
    order_ratio_min: float = 1.15
    order_gap_min_m: float = 0.25
    order_ratio_max: float = 4.0
