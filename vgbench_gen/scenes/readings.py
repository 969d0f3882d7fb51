"""Which reading of a scan's poses, depth and unit its own pictures bear out (`docs/formats.md#which-reading-is-right`).

A file of poses does not say whether it maps cameras to the world or back, along which axes a camera looks, or in which
order a quaternion stands. Depth of one view, carried into another by a reading, agrees with the depth there for one
reading alone, if the camera turned enough. The angle between two views is the same under every direction and all axes,
so it may choose the pairs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import quarter_turn_rotation
from vgbench_gen.geometry.poses import invert, make_pose, relative_pose, rotation_angle_deg, transform
from vgbench_gen.geometry.projection import back_project_depth, project, sample_nearest, valid_mask

MIN_SHARE = 0.5
"""The least share of agreeing points for a reading to be believed."""
MIN_LEAD = 0.2
"""How far it must lead every other reading, and no motion at all, to be decided."""
MIN_UNIT_LEAD = 0.1
"""How far one unit of depth must lead the others to be decided."""
TURN_DEG = (3.0, 30.0)
"""Between which angles two views must lie: with less every reading agrees, with more the views hardly overlap."""
MIN_PARALLAX = 0.1
"""The least distance between two views, as a share of the median depth, for the unit to show."""
UNITS = (1.0, 0.2, 5.0, 0.763, 1.0 / 0.763, 0.001, 1000.0)
"""By what stored depth may be off: 1000 for 5000 a meter, 5000 for 6553.5, meters for millimeters, and back."""

_WANTED_TURN_DEG = 10.0
_MAX_PAIRS = 16
_POINTS = 500  # of one view: a share of 32 views to about half a per cent
_RELATIVE, _OF_MEDIAN = 0.02, 0.0025  # 2 % and 5 mm at 2 m; by shares alone, or small units would always win
_MIN_SEEN = 0.2  # of the points of a view, below which those that fall into the other say little

_OPENCV = np.eye(3)
_AXES: Mapping[str, FloatArray] = {  # camera_from_opencv: what the file calls a camera, from x right, y down, z forward
    "OpenCV": _OPENCV,
    "OpenGL": np.diag([1.0, -1.0, -1.0]),
    "ROS body": np.array([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]]),
    "NED body": np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "mirrored": np.diag([1.0, -1.0, 1.0]),
    "turned left": quarter_turn_rotation(1),
    "turned right": quarter_turn_rotation(3),
}
AXES = tuple(_AXES)
"""Axes of a camera in a file. OpenCV: x right, y down, z forward; OpenGL and ARKit: y up, z back; ROS body: x forward,
y left, z up; NED body: x forward, y right, z down; mirrored: y up, z forward, in a left-handed world; turned left or
right: OpenCV's, of the picture after a quarter turn."""
DIRECTIONS = ("camera to world", "world to camera")
_TRANSPOSED, OTHER_ORDER = "transposed", "quaternion in the other order"
OTHER_OF = {"xyzw": "wxyz", "wxyz": "xyzw"}
"""Of an order of quaternions the other one."""
# Of an order that is stated: the places of x, y, z and w if the numbers stand in the other one.
_ORDERS = {"xyzw": (1, 2, 3, 0), "wxyz": (3, 0, 1, 2)}


@dataclass(frozen=True, slots=True)
class Reading:
    """How a stored transform becomes `world_from_camera`."""

    direction: str = DIRECTIONS[0]
    axes: str = AXES[0]
    rotation: str = ""
    """What is done to the rotation as the file states it: "" nothing, "quaternion in the other order", "transposed"."""

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.direction, self.axes, self.rotation)))

    def apply(self, stored: FloatArray, order: str = "") -> FloatArray:
        """`world_from_camera` (..., 4, 4) of transforms as stored.

        order: "xyzw" or "wxyz" where the rotation was a quaternion.
        """
        stored = np.array(stored, dtype=np.float64)
        if self.rotation == _TRANSPOSED:
            stored[..., :3, :3] = np.swapaxes(stored[..., :3, :3], -1, -2)
        elif self.rotation:
            q = Rotation.from_matrix(stored[..., :3, :3].reshape(-1, 3, 3)).as_quat()[:, _ORDERS[order]]
            stored[..., :3, :3] = Rotation.from_quat(q).as_matrix().reshape(stored[..., :3, :3].shape)
        if self.direction == DIRECTIONS[1]:
            stored = invert(stored)
        axes = make_pose(_AXES[self.axes], np.zeros(3))
        return np.asarray(axes @ stored @ axes if self.axes == "mirrored" else stored @ axes)

    def undo(self, world_from_camera: FloatArray) -> FloatArray:
        """The stored transforms (..., 4, 4) that `apply` turns into these; of a rotation as the file states it."""
        axes = make_pose(_AXES[self.axes].T, np.zeros(3))
        world_from = world_from_camera @ axes
        stored = axes @ world_from if self.axes == "mirrored" else world_from
        return invert(stored) if self.direction == DIRECTIONS[1] else stored


STATED = Reading()


@dataclass(frozen=True, slots=True)
class PosedDepth:
    """Poses of a scan's views, and their depth when it is asked for."""

    poses: FloatArray
    """(N, 4, 4) `world_from_camera` by the stated reading."""
    camera: Callable[[int], Camera]
    """The camera of the depth of view i."""
    depth_m: Callable[[int], DepthArray | None]
    """The depth of view i, meters, 0 where unknown; None where it cannot be read."""


@dataclass(frozen=True, slots=True)
class ViewAgreement:
    """How well depth and poses of a scan agree under each reading; shares are of the points that two views show."""

    stated: Reading
    shares: Mapping[Reading, float]
    """The share under each reading, the highest first; empty where no two views could be compared."""
    still: float
    """The share if the camera had not moved at all; NaN where nothing was compared."""
    units: Mapping[float, float]
    """The share by what stored depth is multiplied with; empty where no pair has enough parallax."""
    ray: float
    """The share if depth were measured along the ray instead of along the optical axis, or the other way round."""
    rescue: tuple[Reading, float, float] | None = None
    """Where no reading fits: the reading that fits with another unit of depth, that unit, and the share; else None."""

    @property
    def share(self) -> float:
        """The share under the stated reading, NaN where nothing was compared."""
        return self.shares.get(self.stated, math.nan)

    @property
    def best(self) -> Reading | None:
        """The reading that is decided: the best one by a clear lead over all others and over no motion, else None."""
        ranked = list(self.shares.items())
        if not ranked or ranked[0][1] < MIN_SHARE:
            return None
        # A transposed rotation with a right translation is so rare that it must lead, but need not be led.
        others = max([self.still, *(share for reading, share in ranked[1:] if reading.rotation != _TRANSPOSED)])
        return ranked[0][0] if ranked[0][1] - others >= MIN_LEAD else None

    @property
    def next_share(self) -> float:
        """The highest share of any reading but the stated one, NaN where there is none."""
        return max((share for reading, share in self.shares.items() if reading != self.stated), default=math.nan)

    @property
    def unit(self) -> float | None:
        """What stored depth is to be multiplied with, where that is decided: 1 if the stated unit is right."""
        ranked = sorted(self.units.items(), key=lambda pair: -pair[1])
        if len(ranked) < 2 or ranked[0][1] < MIN_SHARE or ranked[0][1] - ranked[1][1] < MIN_UNIT_LEAD:
            return None
        return ranked[0][0]

    @property
    def fits_nothing(self) -> bool:
        """Whether views were compared and no reading fits."""
        return bool(self.shares) and max(self.shares.values()) < MIN_SHARE

    @property
    def problem(self) -> str:
        """What is certainly wrong, in one clause; "" where nothing is."""
        if self.rescue is not None:
            reading, unit, share = self.rescue
            poses = "" if reading == self.stated else f", and the poses are {reading}"
            return f"depth is to be multiplied by {unit:.4g}{poses} ({share:.0%}; as stated {self.share:.0%})"
        if self.best is not None and self.best != self.stated:
            found = f"the poses are {self.best} ({self.shares[self.best]:.0%}), not {self.stated} ({self.share:.0%})"
            return found + (
                "; state qw first, or last, among their columns" if self.best.rotation == OTHER_ORDER else ""
            )
        if self.best is not None and self.unit not in (None, 1.0):
            found = f"{self.units[self.unit]:.0%}; as stated {self.share:.0%}"
            return f"depth is to be multiplied by {self.unit:.4g} ({found})"
        if self.ray >= max(MIN_SHARE, self.share + MIN_LEAD):
            return f"depth is measured the other way, along the ray or the optical axis ({self.ray:.0%})"
        return ""

    @property
    def doubt(self) -> str:
        """Why the stated reading cannot be decided, and what to do, in one sentence; "" where it is decided."""
        if self.best is not None:
            return ""
        if not self.shares:
            return "No two frames turn by 3 to 30 degrees and overlap: give frames that lie closer together."
        (first, top), *below = self.shares.items()
        if self.fits_nothing:
            return (
                f"No reading fits (best: {first}, {top:.0%}): poses drift, or belong to other pictures, or intrinsics "
                "or the unit of depth are wrong."
            )
        if top - self.still < MIN_LEAD:
            return (
                f"The camera hardly moves between frames ({self.still:.0%} agree without any motion): give every tenth "
                "frame of a longer take."
            )
        second, share = next(pair for pair in below if pair[0].rotation != _TRANSPOSED)  # as of `best`
        return f"{first} ({top:.0%}) and {second} ({share:.0%}) fit alike: give frames that turn further."


def measure_agreement(views: PosedDepth, stated: Reading = STATED, order: str = "") -> ViewAgreement:
    """Compare depth of pairs of views under every reading.

    Args:
        views: the scan. stated: the reading by which its poses were made.
        order: "xyzw" or "wxyz" where the file has quaternions, "" where it has matrices.
    """
    stored = stated.undo(views.poses)
    kept: Kept = {}
    forms = ("", _TRANSPOSED, OTHER_ORDER)[: 3 if order else 2]
    readings = {form: [Reading(*names, form) for names in product(DIRECTIONS, AXES)] for form in forms}
    poses = {form: np.stack([reading.apply(stored, order) for reading in readings[form]]) for form in forms}
    pairs = {form: [p for p in choose_pairs(poses[form][0]) if all(_load(views, i, kept) for i in p)] for form in forms}

    def rank(unit: float) -> dict[Reading, float]:
        shares: dict[Reading, float] = {}
        for form in filter(pairs.__getitem__, forms):
            shares |= dict(zip(readings[form], _compare(views, poses[form], pairs[form], kept, unit), strict=True))
        return dict(sorted(shares.items(), key=lambda item: -item[1]))

    shares, chosen = rank(1.0), pairs[stated.rotation]
    if not chosen:
        return ViewAgreement(stated, {}, math.nan, {}, math.nan)
    still = _compare(views, np.broadcast_to(np.eye(4), (1, *views.poses.shape)), chosen, kept)[0]
    moved = [pair for pair in chosen if _measure_parallax(views.poses, pair, kept) >= MIN_PARALLAX]
    units = [_compare(views, views.poses[None], moved, kept, unit)[0] for unit in UNITS] if moved else []
    others = [{i: _reshape(views, i, kept, power) for i in {i for pair in chosen for i in pair}} for power in (-1, 1)]
    ray = max(_compare(views, views.poses[None], chosen, other)[0] for other in others)
    found = ViewAgreement(stated, shares, still, dict(zip(UNITS, units, strict=False)), ray)
    if next(iter(shares.values())) >= MIN_SHARE:
        return found
    tried = ((unit, ViewAgreement(stated, rank(unit), still, {}, math.nan)) for unit in UNITS[1:])
    rescues = [(each.best, unit, each.shares[each.best]) for unit, each in tried if each.best is not None]
    return replace(found, rescue=max(rescues, key=lambda rescue: rescue[2], default=None))


def choose_pairs(poses: FloatArray, count: int = _MAX_PAIRS) -> list[tuple[int, int]]:
    """At most `count` pairs of views (N, 4, 4) spread over the scan: one and the nearest in order that is turned by 10
    to 30 degrees from it, else the one that is turned furthest by less."""
    pairs: dict[tuple[int, int], None] = {}
    for anchor in np.unique(np.linspace(0, len(poses) - 1, 2 * count).astype(int)).tolist() if len(poses) else ():
        turn_deg = rotation_angle_deg(relative_pose(poses, poses[anchor])[:, :3, :3])
        near = (turn_deg >= TURN_DEG[0]) & (turn_deg <= TURN_DEG[1])
        enough = near & (turn_deg >= _WANTED_TURN_DEG)
        if enough.any():
            partner = int(np.argmin(np.where(enough, np.abs(np.arange(len(poses)) - anchor), len(poses))))
        elif near.any():
            partner = int(np.argmax(np.where(near, turn_deg, -1.0)))
        else:
            continue
        pairs[min(anchor, partner), max(anchor, partner)] = None
    spread = np.unique(np.linspace(0, len(pairs) - 1, min(count, len(pairs))).astype(int))
    return [list(pairs)[i] for i in spread.tolist()]


Kept = dict[int, tuple[FloatArray, DepthArray] | None]
_NOTHING = np.ones((1, 3)), np.zeros((1, 1), np.float32)  # of views without depth, which no pair has


def _load(views: PosedDepth, i: int, kept: Kept) -> bool:
    """Whether depth of a view can be read; keeps its depth and some of its points, (N, 3) in its camera."""
    if i not in kept:
        depth_m = views.depth_m(i)
        points = np.zeros((0, 3))
        if depth_m is not None:
            stride = max(1, math.isqrt(depth_m.size // _POINTS))
            points, _ = back_project_depth(views.camera(i), depth_m, stride)
        kept[i] = (points, depth_m) if depth_m is not None and len(points) else None
    return kept[i] is not None


def _compare(
    views: PosedDepth, poses: FloatArray, pairs: Sequence[tuple[int, int]], kept: Kept, unit: float = 1.0
) -> list[float]:
    """The share of points that agree over the pairs in both directions, for each of R sets of poses (R, N, 4, 4)."""
    agree, seen, offered = np.zeros(len(poses)), np.zeros(len(poses)), 0
    for a, b in [*pairs, *((b, a) for a, b in pairs)]:
        (points, _), (others, depth_m) = kept[a] or _NOTHING, kept[b] or _NOTHING
        middle = float(np.median(others[:, 2]))
        moved = transform(relative_pose(poses[:, a], poses[:, b]), points * unit)
        uv, z = project(views.camera(b), moved)
        measured = sample_nearest(depth_m, uv).astype(np.float64) * unit
        both = valid_mask(measured) & (z > 0)
        close = np.abs(z - measured) <= _RELATIVE * measured + _OF_MEDIAN * middle * unit
        agree += (both & close).sum(axis=1)
        seen += both.sum(axis=1)
        offered += len(points)
    shares: list[float] = (agree / np.maximum(seen, max(_MIN_SEEN * offered, 1))).tolist()
    return shares


def _measure_parallax(poses: FloatArray, pair: tuple[int, int], kept: Kept) -> float:
    """Distance between two views over the median depth of the first."""
    found = kept[pair[0]]
    middle = float(np.median(found[0][:, 2])) if found else math.nan
    return float(np.linalg.norm(poses[pair[0], :3, 3] - poses[pair[1], :3, 3])) / middle


def _reshape(views: PosedDepth, i: int, kept: Kept, power: int) -> tuple[FloatArray, DepthArray] | None:
    """A view as if its depth were the distance along the ray (-1), or as if that had been z already (1)."""
    found = kept[i]
    if found is None:
        return None
    (points, depth_m), camera = found, views.camera(i)
    lengths = np.linalg.norm(points, axis=1) / points[:, 2]
    return points * lengths[:, None] ** power, depth_m * measure_ray_lengths(camera) ** np.float32(power)


def measure_ray_lengths(camera: Camera) -> DepthArray:
    """(h, w) distance along the ray of each pixel over its z."""
    x = (np.arange(camera.width) - camera.cx) / camera.fx
    y = (np.arange(camera.height) - camera.cy) / camera.fy
    return np.asarray(np.sqrt(1.0 + x**2 + (y**2)[:, None]), dtype=np.float32)
