"""Transforms of ROS: a tree of frames, of which some edges move (REP 105; `ros2/geometry2`, tf2/src/buffer_core.cpp).

A message states parent_from_child: where a frame stands in the one above it.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.geometry.poses import make_pose

FIXED = ("map", "odom", "world")
"""Frames that stand still and have z up, the best first: a robot drifts least in `map`."""
_MAX_NORM_ERROR = 0.02  # of a quaternion
_STEPS = 4  # of the gap: so far apart may two stamps be between which a transform is interpolated

Edge = tuple[str, str]


class Transforms:
    """What a recording states of its frames."""

    def __init__(self) -> None:
        self._stated: dict[Edge, array[float]] = defaultdict(lambda: array("d"))
        self._moving: set[Edge] = set()

    def add(self, message: Any, is_static: bool) -> None:
        """Take the transforms of a message `tf2_msgs/msg/TFMessage`."""
        for each in message.transforms:
            move, turn, stamp = each.transform.translation, each.transform.rotation, each.header.stamp
            edge = clean_frame(each.header.frame_id), clean_frame(each.child_frame_id)
            row = (stamp.sec + stamp.nanosec * 1e-9, move.x, move.y, move.z, turn.x, turn.y, turn.z, turn.w)
            self._stated[edge].extend(array("d", row))
            self._moving |= set() if is_static else {edge}

    def find_chain(self, frame: str) -> list[Edge]:
        """The edges from the best fixed frame above a frame down to it; none where nothing is above it."""
        parents, names = {child: parent for parent, child in self._stated}, [frame]
        while (parent := parents.get(names[-1], frame)) not in names:
            names.append(parent)
        fixed = (name for best in FIXED for name in names if name.rpartition("/")[2] == best)
        names = names[: names.index(next(fixed, names[-1])) + 1]
        return list(zip(names[1:], names, strict=False))[::-1]

    def moves(self, chain: list[Edge]) -> bool:
        """Whether any edge of a chain ever changes."""
        rows = [self._list_rows(edge)[:, 1:] for edge in chain if edge in self._moving]
        return any((each[1:] != each[:1]).any() for each in rows)

    def compose(self, chain: list[Edge], times_s: FloatArray, gap_s: float) -> tuple[FloatArray, BoolArray]:
        """(N, 4, 4) first_from_last frame of a chain at times (N,), and for which of them every edge is known (N,).

        Between two stamps at most four gaps apart a transform is interpolated; else the nearest one within a gap holds.
        Rows that are no rigid transform are passed over.
        """
        whole, known = np.tile(np.eye(4), (len(times_s), 1, 1)), np.ones(len(times_s), bool)
        for edge in chain:
            rows = self._list_rows(edge)
            if not len(rows):
                return whole, np.zeros(len(times_s), bool)
            at_s = np.full(len(times_s), rows[-1, 0])
            if edge in self._moving:
                after = np.clip(np.searchsorted(rows[:, 0], times_s), 1, len(rows) - 1)
                first_s, last_s = rows[after - 1, 0], rows[after, 0]
                near_s = np.where(times_s - first_s < last_s - times_s, first_s, last_s)
                between = (first_s <= times_s) & (times_s <= last_s) & (last_s - first_s <= _STEPS * gap_s)
                at_s = np.where(between, times_s, near_s)
                known &= between | (np.abs(near_s - times_s) <= gap_s)
            t = np.stack([np.interp(at_s, rows[:, 0], rows[:, i]) for i in (1, 2, 3)], axis=1)
            ends = np.vstack([rows, rows[-1:] + np.eye(8)[0]])  # `Slerp` wants two
            whole = whole @ make_pose(Slerp(ends[:, 0], Rotation.from_quat(ends[:, 4:]))(at_s).as_matrix(), t)
        return whole, known

    def _list_rows(self, edge: Edge) -> FloatArray:
        """(M, 8) of time, place and quaternion, the last one of each time, in order; those that are rigid."""
        rows = np.array(self._stated[edge]).reshape(-1, 8)[::-1]
        with np.errstate(over="ignore", invalid="ignore"):
            sound = np.isfinite(rows).all(axis=1) & (np.abs(np.linalg.norm(rows[:, 4:], axis=1) - 1) < _MAX_NORM_ERROR)
        return np.asarray(rows[sound][np.unique(rows[sound][:, 0], return_index=True)[1]])


def clean_frame(name: str) -> str:
    """The name of a frame without the slash that ROS 1 once put before it."""
    return name.lstrip("/")
