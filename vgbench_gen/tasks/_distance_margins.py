"""How far distances between objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class DistanceMargins(TaskGates):
    """How far apart two objects may be, and by how much the options of a question about their distance must differ.
    `docs/validity.md#object-distance` gives the reason of each number."""

    section = "distance"

    min_m: float = 0.4
    """Smallest distance that is asked, metres; objects that are nearer to each other touch."""
    max_m: float = 5.0
    """Largest distance that is asked, metres; the range of depth sensors."""
    rect_iou_max: float = 0.3
    """Largest overlap (intersection over union) of the two projected rectangles, which must be told apart."""
    box_iou_max: float = 0.05
    """Largest overlap (intersection over union) of the two boxes in space."""
    ratio_min: float = 1.30
    """Smallest ratio of two options of one question; people and the best generators cannot tell less apart."""
    gap_min_m: float = 0.15
    """Smallest difference between two options of one question, metres."""
    ratio_max: float = 3.0
    """Largest ratio of the largest to the smallest option of one question."""
