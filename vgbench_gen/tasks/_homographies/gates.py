"""Which warps may be asked, in both directions."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class HomographyGates(TaskGates):
    """Both homography tasks."""

    section = "homography"

    denominator_min: float = 0.6
    denominator_max: float = 1.67
    kept_min: float = 0.60
    component_min_d: float = 1.0  # D%: a component is either absent or visible
    keypoints_min: int = 200
    gap_min_d: float = 6.0
    gap_max_d: float = 35.0
