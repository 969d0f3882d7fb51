"""Which image a camera sees after a stated motion."""

from vgbench_gen.tasks.view_after_motion.task import ViewAfterMotion

__all__ = ["ViewAfterMotion"]
