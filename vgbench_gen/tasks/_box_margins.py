"""How far boxes of objects must be apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class BoxMargins(TaskGates):
    """How far apart the boxes of one set of options must be. The options are one box scaled about the camera.
    `docs/validity.md#object-location` gives the reason of each number."""

    section = "box"

    iou_max: float = 0.15
    """Largest overlap (intersection over union) of two options; the lowest that detection benchmarks count as a hit."""
    depth_ratio_max: float = 2.2
    """Largest ratio of the largest to the smallest depth of a box's centre in one set."""
    ladder_ratio_min: float = 1.20
    """Smallest scale from one option to the next larger one; below it nearly all boxes overlap too much."""
    ladder_ratio_max: float = 1.30
    """Largest scale from one option to the next larger one; three such steps stay within `depth_ratio_max`."""
    depth_typical_m: float = 2.17
    """Typical depth of an object before the image is looked at, metres; depths are spread log-normally about it, and
    hardly change with how large the object appears (slope -0.07). Options are balanced for a reader who knows this
    where a build has too few facts to say more. Fitted to 863 facts of the sample scenes, like the two that follow."""
    depth_log_sd: float = 0.44
    """Standard deviation of the logarithm of that depth."""
    drop_m: tuple[tuple[float, float, float], ...] = ((0.545, 1.45, 0.16), (0.377, 0.57, 0.28), (0.078, -0.44, 0.77))
    """How the height of the camera above the lowest corner of a box is spread: (share, mean, standard deviation) in
    metres of things on the floor, on tables and elsewhere. A box tells by its edges where down is."""
