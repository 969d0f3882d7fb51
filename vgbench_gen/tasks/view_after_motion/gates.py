"""Which motions lead to views that can be told apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class ViewMargins(TaskGates):
    """Which motions lead to views that can be told apart.

    Calibrated on real captures: with gaps of 12 degrees or 0.3 m and a spread of 15 points no capture gave a single
    set of four, although many sets were more than 8 D% apart in the image, which is what an eye goes by. Pose noise
    of a degree and 3 cm is an eighth of the gaps below. Set-first already puts the rule "most similar to the source"
    at chance, whatever the spread; the ceiling keeps candidates that hardly overlap from being told by that alone.
    """

    section = "view"

    motion_min_deg: float = 10.0
    motion_min_m: float = 0.25
    rotation_gap_min_deg: float = 8.0
    shift_gap_min_m: float = 0.2
    image_gap_min_d: float = 8.0
    overlap_min: float = 0.30
    overlap_spread_max: float = 0.30
