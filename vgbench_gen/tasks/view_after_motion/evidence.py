"""What is kept of the source of a view after motion and of each view that could have been asked about."""

from __future__ import annotations

from typing import Annotated

from pydantic import Strict

from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks.evidence import FactEvidence, Points, PosesEvidence, StoredCamera


class SourceEvidence(FactEvidence):
    """What is kept of the source frame."""

    points_m: Points
    """Points that the source sees, in its camera's frame, metres."""


class ViewEvidence(PosesEvidence):
    """What is kept of a view."""

    camera: StoredCamera
    """Of the view."""
    pair: TwoViewEvidence
    """What was measured between the source and the view."""
    seen_points: Annotated[tuple[int, ...], Strict(False)] | None = None
    """Places in `SourceEvidence.points_m` of the points that the view sees as well; None where it is not known."""
