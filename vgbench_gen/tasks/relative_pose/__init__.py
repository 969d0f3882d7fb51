"""How the second camera stands to the first."""

from vgbench_gen.tasks.relative_pose.task import RelativePose

__all__ = ["RelativePose"]
