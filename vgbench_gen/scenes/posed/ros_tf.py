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

FIXED = ("map", "odom", "world")
"""Frames that stand still and have z up, the best first: a robot drifts least in `map`."""
_MAX_NORM_ERROR = 0.02  # of a quaternion
_STEPS = 4  # of the gap: so far apart may two stamps be between which a transform is interpolated

Edge = tuple[str, str]


class Transforms:
    """What a recording states of its frames."""

    def __init__(self) -> None:
        self._moving: dict[Edge, array[float]] = defaultdict(lambda: array("d"))
        self._still: dict[Edge, array[float]] = defaultdict(lambda: array("d"))

    def add(self, message: Any, is_static: bool) -> None:
        """Take the transforms of a message `tf2_msgs/msg/TFMessage`."""
        for each in message.transforms:
            move, turn, stamp = each.transform.translation, each.transform.rotation, each.header.stamp
            edge = clean_frame(each.header.frame_id), clean_frame(each.child_frame_id)
            row = (stamp.sec + stamp.nanosec * 1e-9, move.x, move.y, move.z, turn.x, turn.y, turn.z, turn.w)
            (self._still if is_static else self._moving)[edge].extend(array("d", row))

    def find_chain(self, frame: str) -> list[Edge]:
        """The edges from the best fixed frame above a frame down to it; none where nothing is above it."""
        parents: dict[str, list[str]] = defaultdict(list)
        for parent, child in (*self._moving, *self._still):
            parents[child].append(parent)
        below, seen = {frame: ""}, [frame]
        for name in seen:
            new = [parent for parent in dict.fromkeys(parents.get(name, ())) if parent not in below]
            below.update(dict.fromkeys(new, name))
            seen += new
        fixed = (name for best in FIXED for name in seen if name.rpartition("/")[2] == best)
        top, chain = next(fixed, seen[-1]), []
        while top != frame:
            chain.append((top, below[top]))
            top = below[top]
        return chain

    def moves(self, chain: list[Edge]) -> bool:
        """Whether any edge of a chain ever changes."""
        rows = [_list_rows(self._moving[edge])[:, 1:] for edge in chain if edge in self._moving]
        return any((each[1:] != each[:1]).any() for each in rows)

    def compose(self, chain: list[Edge], times_s: FloatArray, gap_s: float) -> tuple[FloatArray, BoolArray]:
        """(N, 4, 4) first_from_last frame of a chain at times (N,), and for which of them every edge is known (N,).

        Between two stamps at most four gaps apart a transform is interpolated; else the nearest one within a gap holds.
        Rows that are no rigid transform are passed over.
        """
        whole, known = np.tile(np.eye(4), (len(times_s), 1, 1)), np.ones(len(times_s), bool)
        for edge in chain:
            rows = _list_rows(self._moving.get(edge) or self._still[edge])
            if not len(rows):
                return whole, np.zeros(len(times_s), bool)
            at_s = np.full(len(times_s), rows[-1, 0])
            if edge in self._moving:
                after = np.clip(np.searchsorted(rows[:, 0], times_s), min(1, len(rows) - 1), len(rows) - 1)
                first_s, last_s = rows[np.maximum(after - 1, 0), 0], rows[after, 0]
                near_s = np.where(times_s - first_s < last_s - times_s, first_s, last_s)
                between = (first_s <= times_s) & (times_s <= last_s) & (last_s - first_s <= _STEPS * gap_s)
                at_s = np.where(between, times_s, near_s)
                known &= between | (np.abs(near_s - times_s) <= gap_s)
            step = np.tile(np.eye(4), (len(times_s), 1, 1))
            step[:, :3, 3] = np.stack([np.interp(at_s, rows[:, 0], rows[:, i]) for i in (1, 2, 3)], axis=1)
            ends = np.vstack([rows, rows[-1:] + np.eye(8)[0]])  # `Slerp` wants two
            step[:, :3, :3] = Slerp(ends[:, 0], Rotation.from_quat(ends[:, 4:]))(at_s).as_matrix()
            whole = whole @ step
        return whole, known


def clean_frame(name: str) -> str:
    """The name of a frame without the slash that ROS 1 once put before it."""
    return name.lstrip("/")


def _list_rows(numbers: array[float]) -> FloatArray:
    """(M, 8) of time, place and quaternion, the last one of each time, in order; those that are rigid transforms."""
    rows = np.array(numbers).reshape(-1, 8)[::-1]
    with np.errstate(over="ignore", invalid="ignore"):
        sound = np.isfinite(rows).all(axis=1) & (np.abs(np.linalg.norm(rows[:, 4:], axis=1) - 1) < _MAX_NORM_ERROR)
    return np.asarray(rows[sound][np.unique(rows[sound][:, 0], return_index=True)[1]])
