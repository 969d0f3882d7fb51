"""How far motions between two cameras must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class PoseMargins(TaskGates):
    """How far motions between two cameras must be apart."""

    section = "pose"

    rotation_gap_min_deg: float = 15.0
    direction_gap_min_deg: float = 30.0
    direction_norm_min_m: float = 0.2
    reprojection_gap_min_d: float = 8.0
    rotation_max_deg: float = 60.0
    norm_max_m: float = 2.0
    matched_within: float = 0.30  # angles and norms of one set
    pnp_rotation_max_deg: float = 3.0
    pnp_inliers_min: int = 60
