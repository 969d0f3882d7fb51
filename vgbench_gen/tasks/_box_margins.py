"""How far boxes of objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class BoxMargins(TaskGates):
    """How far apart the boxes of one set of options must be.
    `docs/validity.md#object-location` gives the reason of each number."""

    section = "box"

    iou_max: float = 0.15
    """Largest overlap (intersection over union) of two options; the lowest that detection benchmarks count as a hit."""
    depth_ratio_max: float = 2.2
    """Largest ratio of the largest to the smallest depth of a box's centre in one set."""
    ladder_ratio_min: float = 1.20
    """Smallest scale from one option to the next larger one; below it nearly all boxes overlap too much."""
    ladder_ratio_max: float = 1.30
    """Largest scale from one option to the next larger one; three such steps stay within `depth_ratio_max`."""
    depth_step_max: float = 1.8
    """Largest ratio of the two depths of a factorial set."""
    footprint_gap_min: float = 0.4
    """Smallest difference of the footprints of two boxes at one depth, as `_box_factors.measure_footprint_gaps` has it:
    one is 1.5 times as elongated as the other one, or both are as much and turned far enough."""
    corner_shift_min: float = 0.05
    """Smallest mean distance in the image from the corners of a box to those of another one at its depth, over the
    diagonal of the rectangle that both fill."""
    thickness_ratio: float = 1.8
    """Ratio of the lengths along the view of two boxes that differ in it."""
    elongation_max: float = 2.8
    """Largest ratio of the ground sides of boxes that differ in length along the view."""
    side_ratio_max: float = 1.8
    """Largest ratio of the footprints' scales, and of the heights, of boxes that fill one rectangle at one depth."""
    view_rise_min: float = 0.2
    """Smallest sine of the angle by which an object is seen from above, where its sides along the view are asked."""
    view_rise_max: float = 0.87
    """Largest sine of that angle."""
    view_along_min: float = 0.8
    """Smallest cosine, on the ground, between the view and the side that goes along it."""
    fit_spread_max: float = 0.06
    """Largest difference in overlap with the drawn rectangle between the printed boxes of one set."""
