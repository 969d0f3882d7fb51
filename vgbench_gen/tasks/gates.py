"""Gates and margins of the shipped tasks; `docs/constants.md` gives the reason of each number."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates
from vgbench_gen.core.types import Notation


class NotationGates(TaskGates):
    """Base of the gates of tasks whose values a recipe has printed in words or in numbers alone."""

    notation: Notation = "words"
    """How values are printed: "words", in which a person can answer, or "matrix", as in published questions."""


class BoxMargins(NotationGates):
    """How far apart the boxes of one set of options must be.
    `docs/constants.md#object-location` gives the reason of each number."""

    section = "box"

    iou_max: float = 0.15
    """Largest overlap (intersection over union) of two options; the lowest that detection benchmarks count as a hit."""
    printed_iou_min: float = 0.9
    """Smallest overlap of a box with its corners as printed, in centimeters: thin things are lost in rounding."""
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


class HomographyGates(NotationGates):
    """Which warps both homography tasks may ask about, and how far apart the options must be.
    `docs/constants.md#homographies` gives the reason of each number."""

    section = "homography"

    crop_share: float = 0.57
    """Side of the first image, as a share of the frame's; a smaller crop shows too little of a room, around a larger
    one no room is left for the warp."""
    denominator_min: float = 0.6
    """Smallest denominator of the projection over the image, over that at its centre; stronger perspective tears the
    picture."""
    denominator_max: float = 1.67
    """Largest denominator of the projection over the image, over that at its centre."""
    enlarged_max: float = 2.0
    """Largest enlargement of lengths anywhere in the warped image; images are shown at 0.6 of the frame's size, so that
    nothing is enlarged by more than 1.2."""
    kept_min: float = 0.50
    """Smallest share of either image that the other one shows as well."""
    keypoints_min: int = 40
    """Smallest number of corners found in the first image; a plain picture determines no homography."""
    gap_min_d: float = 6.0
    """Smallest mean corner error between two options, and between a warp and no warp, D% (per cent of the image
    diagonal)."""
    gap_max_d: float = 35.0
    """Largest mean corner error between two options, and between a warp and no warp, D% (per cent of the image
    diagonal)."""


class TrackGates(TaskGates):
    """Which points may be followed from one image to the other. `docs/constants.md#point-tracking` gives the reason of
    each number."""

    section = "track"

    gap_min_d: float = 6.0
    """Smallest distance between two options in the image, D% (per cent of the image diagonal); it is above the loosest
    threshold of TAP-Vid."""
    gap_min_m: float = 0.10
    """Smallest distance between two options in space, meters."""
    motion_min_d: float = 8.0
    """Smallest distance by which the right point moves in the image, D% (per cent of the image diagonal)."""
    cycle_max_px_at_640: float = 1.0
    """Largest distance from its start at which a point ends when both depth images lead it there and back, pixels of an
    image 640 wide."""
