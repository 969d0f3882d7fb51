"""Which motions lead to views that can be told apart."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class ViewMargins(TaskGates):
    """Which motions lead to views that can be told apart. `docs/validity.md#view-after-motion` gives the reason of each
    number.

    The numbers were chosen on real captures. With gaps of 12 degrees or 0.3 m and a spread of 15 points no capture gave
    a single set of four, although many sets were more than 8 D% (per cent of the image diagonal) apart in the image,
    which is what an eye goes by. Pose noise of a degree and 3 cm is an eighth of the gaps below. As every option of a
    set is equally likely to be the right one, the rule "most similar to the source" is at chance whatever the spread;
    the ceiling of the spread keeps out candidates that can be told by hardly overlapping the source.
    """

    section = "view"

    motion_min_deg: float = 10.0
    """Smallest rotation from the source to the view that is asked, degrees, unless the camera moves by
    `motion_min_m`."""
    motion_min_m: float = 0.25
    """Smallest shift of the camera from the source to the view that is asked, metres, unless it turns by
    `motion_min_deg`."""
    rotation_gap_min_deg: float = 8.0
    """Smallest rotation between two options, degrees, unless they are `shift_gap_min_m` apart."""
    shift_gap_min_m: float = 0.2
    """Smallest distance between the cameras of two options, metres, unless they differ by `rotation_gap_min_deg`."""
    image_gap_min_d: float = 8.0
    """Smallest median distance in the image between where two options show the points of the source, D% (per cent of
    the image diagonal)."""
    overlap_min: float = 0.30
    """Smallest overlap of an option with the source, the smaller of both visible fractions."""
    overlap_spread_max: float = 0.30
    """Largest difference between the overlaps that two options of a set have with the source."""
