"""Which warps may be asked, in both directions."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class HomographyGates(TaskGates):
    """Which warps both homography tasks may ask about, and how far apart the options must be.
    `docs/validity.md#homographies` gives the reason of each number."""

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
