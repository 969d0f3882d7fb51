"""Answering built questions by classical computer vision, from what a model is shown.

A solver gets a `VisibleQuestion`, which holds the delivered images (with every mark drawn on them) and the printed
text, and nothing else. All numbers are read back from that text, so neither the truth nor evidence that is not printed
(depth, poses, the unrounded K) can reach a solver. Nothing here learns, and everything runs on the CPU. A task names
its solvers in its own folder; this package holds what several of them share.

`vgbench audit` asks them for three reasons (`docs/validity.md#solvers`): a task whose solver answers most questions can
be answered from its pixels; the same solver on another question's images must guess; and a rule that understands
nothing must guess too.
"""

from vgbench_gen.tasks.solving.images import Image
from vgbench_gen.tasks.solving.seen import Unread, VisibleQuestion
from vgbench_gen.tasks.solving.solver import ImageRule, NoSolver, Score, Solver

__all__ = ["Image", "ImageRule", "NoSolver", "Score", "Solver", "Unread", "VisibleQuestion"]
