"""What may be asked of the camera behind one image."""

from __future__ import annotations

from vgbench_gen.core.gates import TaskGates


class CameraGates(TaskGates):
    """What may be asked of the camera behind one image."""

    section = "camera"

    zoom_max: float = 3.0  # a crop can only raise f/W
    focal_ratio_min: float = 1.25  # best single-image solvers reach 59 % at 10 degrees of field of view
    focal_ratio_max: float = 2.4
    fov_gap_min_deg: float = 7.0
    principal_gap_min: float = 0.12  # of the image width (height for cy); 8 % is 3 degrees of pitch, too little to see
    principal_off_centre_min: float = 0.10  # otherwise half the image size answers it
    lines_min: int = 30
    depth_spread_min: float = 2.0  # p95 / p5
    corners_min: int = 50  # in the crop at 640: a blank wall with a shadow passes the two above and shows nothing
