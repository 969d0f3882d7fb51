"""Whether a printed motion is the inverse of the stored one that leads back."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.types import Candidate, FloatArray
from vgbench_gen.geometry import poses
from vgbench_gen.tasks.base import Problems

POSE_ENTRY = 2e-3  # docs/validity.md#evidence: of the printed R, made orthonormal
TRANSLATION_M = 0.005 * float(np.sqrt(3)) + 1e-6  # two decimals


def compare_with_way_back(option: Candidate, first_from_second: FloatArray) -> Problems:
    """The printed motion, its rotation made orthonormal, followed by the stored one back must lead nowhere."""
    printed, t = option.value[:, :3], option.value[:, 3]
    R = poses.find_nearest_rotation(printed)
    rounded = float(np.abs(R - printed).max())
    if not rounded <= POSE_ENTRY:
        return [("pose_inverse", f"{option.key}: the printed rotation is {rounded:.1e} from the nearest one")]
    turn = float(np.abs(R @ first_from_second[:3, :3] - np.eye(3)).max())
    # What the rounding of R turns grows with the distance to the other camera.
    shift_m = float(np.linalg.norm(R @ first_from_second[:3, 3] + t))
    allowed_m = TRANSLATION_M + POSE_ENTRY * float(np.linalg.norm(t))
    if turn <= POSE_ENTRY and shift_m <= allowed_m:
        return []
    return [("pose_inverse", f"{option.key}: there and back leaves {turn:.1e} of rotation and {shift_m:.3f} m")]
