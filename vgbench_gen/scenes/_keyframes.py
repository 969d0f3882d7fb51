"""Which frames of a long scan are looked at."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.gates import FrameGates
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.geometry import poses
from vgbench_gen.scenes.base import Frame


def choose_keyframes(frames: Sequence[Frame], gates: FrameGates) -> IntArray:
    """Frames at least a turn or a shift apart from the last kept one, thinned by farthest point to the maximum."""
    if not frames:
        return np.zeros(0, dtype=np.int64)
    world_from_camera = np.stack([frame.world_from_camera for frame in frames])
    kept = [0]
    for i in range(1, len(frames)):
        if _compute_distance(world_from_camera[kept[-1]], world_from_camera[i : i + 1], gates)[0] >= 1:
            kept.append(i)
    if len(kept) <= gates.max_keyframes:
        return np.array(kept, dtype=np.int64)
    pool = world_from_camera[kept]
    chosen = [0]
    nearest = _compute_distance(pool[0], pool, gates)
    while len(chosen) < gates.max_keyframes:
        chosen.append(int(np.argmax(nearest)))
        nearest = np.minimum(nearest, _compute_distance(pool[chosen[-1]], pool, gates))
    indices: IntArray = np.array(kept, dtype=np.int64)[np.sort(chosen)]
    return indices


def _compute_distance(pose: FloatArray, others: FloatArray, gates: FrameGates) -> FloatArray:
    turn_deg, shift_m = turn_and_shift(pose, others)
    distance: FloatArray = np.maximum(turn_deg / gates.keyframe_turn_deg, shift_m / gates.keyframe_shift_m)
    return distance


def turn_and_shift(pose: FloatArray, others: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Angles, degrees, and distances, meters, (N,) each, between one pose (4, 4) and others (N, 4, 4)."""
    turn_deg = poses.rotation_angle_deg(np.swapaxes(pose[:3, :3], -1, -2) @ others[:, :3, :3])
    return turn_deg, np.asarray(np.linalg.norm(others[:, :3, 3] - pose[:3, 3], axis=-1))
