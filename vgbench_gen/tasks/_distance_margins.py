"""How far distances between objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class DistanceMargins(TaskGates):
    """How far apart two objects may be, and by how much the options of a question about their distance must differ.
    `docs/validity.md#object-distance` gives the reason of each number."""

    section = "distance"

    min_m: float = 0.4
    """Smallest distance that is asked, metres; objects that are nearer to each other touch."""
    max_m: float = 5.0
    """Largest distance that is asked, metres; the range of depth sensors."""
    rect_iou_max: float = 0.3
    """Largest overlap (intersection over union) of the two projected rectangles, which must be told apart."""
    box_iou_max: float = 0.05
    """Largest overlap (intersection over union) of the two boxes in space."""
    ratio_min: float = 1.30
    """Smallest ratio of two options of one question; people and the best generators cannot tell less apart."""
    gap_min_m: float = 0.15
    """Smallest difference between two options of one question, metres."""
    ratio_max: float = 3.0
    """Largest ratio of the largest to the smallest option of one question."""
    guess_depth_m: float = 3.1
    """Typical depth of the objects, metres. From it and from u, the pixels between the centres of the rectangles over
    the focal length fx, the text alone gives a guess of the distance. Options are balanced for a reader who makes this
    guess where a build has too few facts to say more. Fitted by likelihood to 769 facts of the sample scenes, like the
    three that follow."""
    guess_log_sd: float = 0.36
    """Scale of the guess's error in the logarithm of the distance where u is 1/3; the error follows a Student t
    distribution."""
    guess_log_sd_power: float = -0.35
    """Power of 3 u with which that scale changes; it is negative, as the guess is better for objects that are farther
    apart in the image."""
    guess_freedom: float = 8.0
    """Degrees of freedom of that Student t distribution."""
