"""Whether each option of a relative pose is the motion between its own two frames."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._motion_checks import compare_with_way_back
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.relative_pose.evidence import MotionEvidence


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion between its own two frames."""
    found: Problems = []
    for option in fact.candidates:
        stored = MotionEvidence.of(option)
        if stored.poses():
            there, back = stored.list_poses(option.frame_ids)
            found += compare_with_way_back(option, poses.relative_pose(back, there))
    return found
