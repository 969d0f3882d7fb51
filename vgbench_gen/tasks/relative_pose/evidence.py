"""What is kept of a relative pose and of each motion that could have been asked about, and what must hold in it."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks._poses import compare_with_way_back
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.evidence import FactEvidence, Points, PosesEvidence, StoredCamera


class InliersEvidence(FactEvidence):
    """What is kept of a fact besides its motions."""

    essential_inliers: int
    """Matches that fit one essential matrix of the asked pair; 0 where too few do to compare its rotation."""


class MotionEvidence(PosesEvidence):
    """What is kept of a motion. One that was named, not measured, has the points and the second camera alone."""

    points_m: Points
    """Points of which both frames see most, in the frame of the first camera, meters."""
    camera_1: StoredCamera | None = None
    """Of the first image; kept where the motion was turned around, since that image is another one then."""
    camera_2: StoredCamera
    """Of the second image, in which options must stand apart."""
    pair: TwoViewEvidence | None = None
    """What was measured between both frames."""


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion between its own two frames."""
    found: Problems = []
    for option in fact.candidates:
        stored = MotionEvidence.of(option)
        if stored.poses():
            there, back = stored.list_poses(option.frame_ids)
            found += compare_with_way_back(option, poses.relative_pose(back, there))
    return found
