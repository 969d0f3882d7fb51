"""Which warps may be asked, in both directions."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class HomographyGates(TaskGates):
    """Which warps both homography tasks may ask about, and how far apart the options must be.
    `docs/validity.md#homographies` gives the reason of each number."""

    section = "homography"

    denominator_min: float = 0.6
    """Smallest denominator of the projection over the image; stronger perspective tears the picture."""
    denominator_max: float = 1.67
    """Largest denominator of the projection over the image."""
    kept_min: float = 0.60
    """Smallest share of the source image that stays in the warped picture."""
    component_min_d: float = 1.0
    """Smallest distance by which a component (rotation, scale, translation, perspective) that is there moves the image
    corners, D% (per cent of the image diagonal); a component is either absent or visible."""
    keypoints_min: int = 200
    """Smallest number of corners found in the source image; a plain picture determines no homography."""
    gap_min_d: float = 6.0
    """Smallest mean corner error between two options, and between a warp and no warp, D% (per cent of the image
    diagonal)."""
    gap_max_d: float = 35.0
    """Largest mean corner error between two options, and between a warp and no warp, D% (per cent of the image
    diagonal)."""
