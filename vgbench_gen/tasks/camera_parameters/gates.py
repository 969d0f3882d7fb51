"""What may be asked of the camera behind one image."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class CameraGates(TaskGates):
    """What may be asked of the camera behind one image. `docs/validity.md#camera-parameters` gives the reason of each
    number."""

    section = "camera"

    zoom_max: float = 3.0
    """Largest ratio of the width of a frame to the width of a crop; a crop can only raise the focal length over the
    width, and images enlarged more are blurred."""
    enlarged_max: float = 1.25
    """Largest ratio of the width of the delivered image to that of the crop in its frame, both in pixels; careful
    readers called images blurred that were enlarged 1.6 times."""
    focal_ratio_min: float = 1.25
    """Smallest ratio of two options where a focal length is asked; the best solvers from a single image reach 59 % at
    10 degrees of field of view."""
    focal_ratio_max: float = 2.4
    """Largest ratio of the largest to the smallest focal length in one set of options, whatever is asked."""
    fov_gap_min_deg: float = 7.0
    """Smallest difference of two options where a field of view is asked, degrees."""
    principal_gap_min: float = 0.12
    """Smallest difference of two options where a coordinate of the principal point is asked, as a share of the image
    width (the height for cy); 8 % is 3 degrees of pitch, too little to see."""
    principal_off_centre_min: float = 0.13
    """Smallest distance of the principal point from the image centre, as a share of the image side; otherwise half the
    image size is the answer."""
    undecided_max: float = 0.5
    """Largest error of the camera that the line segments of a crop give, and its largest standard deviation, as a share
    of the margin between options; beyond it the pixels do not tell the options apart."""
