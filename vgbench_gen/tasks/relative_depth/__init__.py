"""Which of four marked regions is the nearest or the farthest."""

from vgbench_gen.tasks.relative_depth.task import RelativeDepth

__all__ = ["RelativeDepth"]
