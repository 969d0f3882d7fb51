"""Which points may be followed from one image to the other."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class TrackGates(TaskGates):
    """Which points may be followed from one image to the other. `docs/validity.md#point-tracking` gives the reason of
    each number."""

    section = "track"

    gap_min_d: float = 6.0
    """Smallest distance between two options in the image, D% (per cent of the image diagonal); it is above the loosest
    threshold of TAP-Vid."""
    gap_min_m: float = 0.10
    """Smallest distance between two options in space, metres."""
    motion_min_d: float = 8.0
    """Smallest distance by which the right point moves in the image, D% (per cent of the image diagonal)."""
    cycle_max_px_at_640: float = 1.0
    """Largest distance from its start at which a point ends when both depth images lead it there and back, pixels of an
    image 640 wide."""
