"""How far distances between objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class DistanceMargins(TaskGates):
    """How far distances between objects must be apart."""

    section = "distance"

    min_m: float = 0.4
    max_m: float = 5.0
    rect_iou_max: float = 0.3
    box_iou_max: float = 0.05
    ratio_min: float = 1.30  # people and the best generators cannot tell less apart
    gap_min_m: float = 0.15
    ratio_max: float = 3.0
    # What the text alone tells of the answer: u = pixels between the rectangles / fx, at a typical depth. The logarithm
    # is off by a Student t, whose scale is guess_log_sd where u = 1/3 and falls with guess_log_sd_power of u. Options
    # are balanced for a reader who knows this where a build has too few facts to say more (`tasks._known`). Fitted by
    # likelihood to 769 facts of the sample scenes.
    guess_depth_m: float = 3.1
    guess_log_sd: float = 0.36
    guess_log_sd_power: float = -0.35
    guess_freedom: float = 8.0
