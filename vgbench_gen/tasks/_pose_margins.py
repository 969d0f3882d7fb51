"""How far motions between two cameras must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class PoseMargins(TaskGates):
    """How far apart the motions between two cameras must be in one set of options, and how large they may be.
    `docs/validity.md#relative-pose` gives the reason of each number."""

    section = "pose"

    rotation_gap_min_deg: float = 15.0
    """Smallest angle between the rotations of two options, degrees, unless their directions of translation differ
    enough."""
    direction_gap_min_deg: float = 30.0
    """Smallest angle between the directions of translation of two options whose rotations are alike, degrees."""
    direction_norm_min_m: float = 0.2
    """Length of a translation, metres, below which its direction is noise and does not count."""
    reprojection_gap_min_d: float = 8.0
    """Smallest median distance in the image between points moved by one option and by another, D% (per cent of the
    image diagonal)."""
    rotation_max_deg: float = 60.0
    """Largest rotation of an option, degrees."""
    norm_max_m: float = 2.0
    """Largest translation of an option, metres."""
    matched_within: float = 0.30
    """Largest relative difference of angles, and of lengths of translations, between the motions of one set."""
    pnp_rotation_max_deg: float = 3.0
    """Largest angle between the true rotation and the one that a registration finds from the images alone, degrees."""
    pnp_inliers_min: int = 60
    """Number of agreeing matches from which that registration is believed."""
