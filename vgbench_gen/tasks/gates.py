"""Gates and margins of the shipped tasks; `docs/constants.md` gives the reason of each number."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class BoxMargins(TaskGates):
    """How far apart the boxes of one set of options must be.
    `docs/constants.md#object-location` gives the reason of each number."""

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


class DepthMargins(TaskGates):
    """How far apart the depths of regions must be where the deepest or nearest is asked.
    `docs/constants.md#depth-of-regions` gives the reason of each number."""

    section = "depths"

    order_ratio_min: float = 1.15
    """Smallest ratio between the asked depth and every other depth of a set where the deepest or nearest region is
    asked."""
    order_gap_min_m: float = 0.25
    """Smallest difference between these depths, meters."""
    order_ratio_max: float = 4.0
    """Largest ratio of two depths of one set of regions where the deepest or nearest is asked."""


class HomographyGates(TaskGates):
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
    """Largest enlargement of lengths anywhere in the warped image; more is blurred."""
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


class PoseMargins(TaskGates):
    """How far apart the motions between two cameras must be in one set of options, and how large they may be.
    `docs/constants.md#relative-pose` gives the reason of each number."""

    section = "pose"

    rotation_gap_min_deg: float = 15.0
    """Smallest angle between the rotations of two options, degrees, unless their directions of translation differ
    enough."""
    direction_gap_min_deg: float = 30.0
    """Smallest angle between the directions of translation of two options whose rotations are alike, degrees."""
    direction_norm_min_m: float = 0.2
    """Length of a translation, meters, below which its direction is noise and does not count."""
    reprojection_gap_min_d: float = 8.0
    """Smallest median distance in the image between points moved by one option and by another, D% (per cent of the
    image diagonal)."""
    rotation_max_deg: float = 60.0
    """Largest rotation of an option, degrees."""
    norm_max_m: float = 2.0
    """Largest translation of an option, meters."""
    matched_within: float = 0.30
    """Largest relative difference of angles, and of lengths of translations, between the motions of one set."""
    pnp_rotation_max_deg: float = 3.0
    """Largest angle between the true rotation and the one that a registration finds from the images alone, degrees."""
    pnp_inliers_min: int = 60
    """Number of agreeing matches from which that registration is believed."""


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


class ViewMargins(TaskGates):
    """Which motions lead to views that can be told apart. `docs/constants.md#view-after-motion` gives the reason of
    each number."""

    section = "view"

    motion_min_deg: float = 10.0
    """Smallest rotation from the source to the view that is asked, degrees, unless the camera moves by
    `motion_min_m`."""
    motion_min_m: float = 0.25
    """Smallest shift of the camera from the source to the view that is asked, meters, unless it turns by
    `motion_min_deg`."""
    rotation_gap_min_deg: float = 8.0
    """Smallest rotation between two options, degrees, unless they are `shift_gap_min_m` apart."""
    shift_gap_min_m: float = 0.2
    """Smallest distance between the cameras of two options, meters, unless they differ by `rotation_gap_min_deg`."""
    image_gap_min_d: float = 8.0
    """Smallest median distance in the image between where two options show the points of the source, D% (per cent of
    the image diagonal)."""
    overlap_min: float = 0.30
    """Smallest overlap of an option with the source, the smaller of both visible fractions."""
    overlap_spread_max: float = 0.30
    """Largest difference between the overlaps that two options of a set have with the source."""
