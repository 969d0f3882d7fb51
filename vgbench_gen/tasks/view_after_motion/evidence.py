"""What is kept of the source of a view after motion and of each view that could have been asked about, and what
must hold in it."""

from __future__ import annotations

from typing import Annotated

from pydantic import Strict

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks._poses import compare_with_way_back
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import FactEvidence, Points, PosesEvidence, StoredCamera


class SourceEvidence(FactEvidence):
    """What is kept of the source frame."""

    points_m: Points
    """Points that the source sees, in its camera's frame, meters."""


class ViewEvidence(PosesEvidence):
    """What is kept of a view."""

    camera: StoredCamera
    """Of the view."""
    pair: TwoViewEvidence
    """What was measured between the source and the view."""
    seen_points: Annotated[tuple[int, ...], Strict(False)] | None = None
    """Places in `SourceEvidence.points_m` of the points that the view sees as well; None where it is not known."""


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion from the source to its own frame."""
    (source,) = SourceEvidence.of(fact).list_poses(fact.frame_ids)
    found: Problems = []
    for option in fact.candidates:
        (view,) = ViewEvidence.of(option).list_poses(option.frame_ids)
        found += compare_with_way_back(option, poses.relative_pose(view, source))
    return found
