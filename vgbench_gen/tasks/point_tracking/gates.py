"""Which points may be followed from one image to the other."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class TrackGates(TaskGates):
    """Which points may be followed from one image to the other."""

    section = "track"

    gap_min_d: float = 6.0  # above TAP-Vid's loosest threshold
    gap_min_m: float = 0.10
    motion_min_d: float = 8.0
    cycle_max_px_at_640: float = 1.0
