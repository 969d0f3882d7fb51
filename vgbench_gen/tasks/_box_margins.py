"""How far boxes of objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class BoxMargins(TaskGates):
    """How far boxes of objects must be apart."""

    section = "box"

    iou_max: float = 0.15  # the lowest overlap that detection benchmarks count as a hit
    depth_ratio_max: float = 2.2
    ladder_ratio_min: float = 1.20
    ladder_ratio_max: float = 1.30  # three steps stay within the ceiling
    # What is known of objects before looking; options are balanced for a reader who knows it where a build has too few
    # facts to say more (`tasks._known`). Depth is log-normal, hardly changed by how large the object appears (slope
    # -0.07). A box tells by its edges where down is, and most things stand on the floor or on a table: (share, mean,
    # standard deviation) of metres from the camera down to the lowest corner. Fitted to 863 facts of the sample scenes.
    depth_typical_m: float = 2.17
    depth_log_sd: float = 0.44
    drop_m: tuple[tuple[float, float, float], ...] = ((0.545, 1.45, 0.16), (0.377, 0.57, 0.28), (0.078, -0.44, 0.77))
