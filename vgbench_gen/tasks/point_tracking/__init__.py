"""Which marked point of image 2 is the marked point of image 1."""

from vgbench_gen.tasks.point_tracking.task import PointTracking

__all__ = ["PointTracking"]
