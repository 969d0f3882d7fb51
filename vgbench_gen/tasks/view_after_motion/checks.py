"""Whether each option of a view after motion is the motion from the source to its own frame."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._motion_checks import compare_with_way_back
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.view_after_motion.evidence import SourceEvidence, ViewEvidence


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion from the source to its own frame."""
    (source,) = SourceEvidence.of(fact).list_poses(fact.frame_ids)
    found: Problems = []
    for option in fact.candidates:
        (view,) = ViewEvidence.of(option).list_poses(option.frame_ids)
        found += compare_with_way_back(option, poses.relative_pose(view, source))
    return found
