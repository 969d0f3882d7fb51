"""Point tracking by matches around the query: local transfer, epipolar line, and the look of the candidate patches."""

from __future__ import annotations

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_marks, read_point
from vgbench_gen.tasks.solving.transfer import score_places


def score_by_transfer(seen: VisibleQuestion) -> FloatArray:
    """Score per marked point, higher for the more plausible; of a judgment, of the claimed point and of the other.

    Raises:
        Unread: the text does not hold the query and the marked points.
    """
    if len(seen.images) != 2:
        raise Unread(f"{len(seen.images)} images")
    return score_places(seen.images[0], seen.images[1], read_point(seen.question), list_marks(seen))


SOLVERS = (Solver("epipolar line, local transfer, patch", score_by_transfer, 85.0),)
