"""Whether each option of a view after motion is the motion from the source to its own frame."""

from __future__ import annotations

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import poses
from vgbench_gen.tasks._motion_checks import compare_with_way_back
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.records import read_stored_pose


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion from the source to its own frame."""
    source = read_stored_pose(fact.evidence, fact.frame_ids[0])
    found: Problems = []
    for option in fact.candidates:
        back = poses.relative_pose(read_stored_pose(option.evidence, option.frame_ids[0]), source)
        found += compare_with_way_back(option, back)
    return found
