"""How far depths of regions must be apart, for both tasks that ask them."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class DepthMargins(TaskGates):
    """How far apart the depths of regions must be, for both tasks that ask about them. `docs/validity.md#metric-depth`
    and `docs/validity.md#relative-depth` give the reason of each number."""

    section = "depths"

    ratio_min: float = 1.25
    """Smallest ratio of two options where a depth in metres is asked."""
    gap_min_m: float = 0.15
    """Smallest difference between two options where a depth in metres is asked, metres."""
    ratio_max: float = 3.0
    """Largest ratio of the largest to the smallest option where a depth in metres is asked."""
    order_ratio_min: float = 1.15
    """Smallest ratio between the asked depth and every other depth of a set where the deepest or nearest region is
    asked."""
    order_gap_min_m: float = 0.25
    """Smallest difference between these depths, metres."""
    order_ratio_max: float = 4.0
    """Largest ratio of two depths of one set of regions where the deepest or nearest is asked."""
