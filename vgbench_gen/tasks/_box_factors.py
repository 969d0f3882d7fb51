"""Boxes that fill the same rectangle of an image, yet stand elsewhere, otherwise turned or otherwise shaped.

Depth of the centre, axes and ratio of the ground sides are given; where the centre stands across the view, how large
the footprint and how high the box is follow from the rectangle. So a box, turned in steps of 30 degrees, belongs to a
family of six, which is the same family whichever member is the true one. A set is two members at two depths; members
are drawn with chances that are the same from either of them (`docs/validity.md#object-location`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.types import Camera, FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.projection import project
from vgbench_gen.tasks._box_pairs import find_up, measure_footprint_gaps
from vgbench_gen.tasks.gates import BoxMargins

DEPTH, YAW, THICKNESS = "depth", "yaw", "thickness"
_TURN_DEG, _TURNS = 30.0, 6  # a cuboid turned by 180 degrees is the same
_CROSSWISE = _TURNS // 2  # turns that exchange which ground side is the longer one
_UPRIGHT_COS_MIN = 0.995  # within 6 degrees; boxes that lean are not turned about the vertical
_RATIOS = 3  # of depths, tried one after the other
_STEPS, _SETTLED_PX, _STRIDE = 15, 1e-3, 0.5  # of Newton's method; no logarithm of a side moves by more in one step
_ROUNDS = 40  # of balancing weights; the rest is below a hundredth

Pair = tuple[str, int, int]
"""`YAW` or `THICKNESS`, by which two members of a family differ, and their places in it."""


@dataclass(frozen=True, slots=True, eq=False)
class BoxFamily:
    """The boxes at one depth that fill one rectangle and may stand beside the true one."""

    box: OrientedBox
    """The true one."""
    others: tuple[tuple[str, OrientedBox], ...]
    """Each of the others, with the part in which it differs from the true one: `YAW` or `THICKNESS`."""
    chances: FloatArray
    """(others,) with which they are drawn; what they lack to 1 is the chance that none is."""
    missing: str
    """Why there are none at all, or ""."""

    def draw(self, pick: float) -> tuple[str, OrientedBox]:
        """One of the others, by a number from 0 to 1.

        Raises:
            TooFewOptionsError: there is none, or the number falls beyond their chances.
        """
        place = int(np.searchsorted(np.cumsum(self.chances), pick, side="right"))
        if place < len(self.others):
            return self.others[place]
        detail = f"{len(self.others)} boxes with chances of {self.chances.sum():.2f} together"
        raise TooFewOptionsError(self.missing or "family_small", detail)


def draw_box_sets(
    family: BoxFamily, gates: BoxMargins, reach_m: tuple[float, float], rng: np.random.Generator
) -> Iterator[tuple[str, tuple[OrientedBox, OrientedBox, OrientedBox]]]:
    """One draw of another box and of another depth, in some ratios of depth in turn: the part in which the box differs,
    and the boxes that differ in it, in depth and in both.

    Nothing else is drawn again where a draw fails: values from which more draws succeed would be the truth less often.
    Ratios may be tried in turn, as whether one is large enough depends on the shapes of the set alone. All are larger
    or all are smaller than 1, both as likely.

    Args:
        family: of the true box.
        gates: margins between boxes.
        reach_m: nearest and farthest depth that could have been asked, meters.
        rng: the only source of chance.

    Raises:
        TooFewOptionsError: what was drawn gives no set; says why.
    """
    steps = rng.uniform(math.log(gates.ladder_ratio_min), math.log(gates.depth_step_max), _RATIOS)
    steps *= 1 if rng.integers(2) else -1
    part, other = family.draw(float(rng.random()))
    for ratio in np.exp(steps).tolist():
        if not reach_m[0] <= ratio * family.box.center_m[2] <= reach_m[1]:
            raise TooFewOptionsError("depth_out_of_reach", f"{ratio * family.box.center_m[2]:.2f} m was never asked")
        nearer, both = (boxes.scale_about_camera(box, ratio) for box in (family.box, other))
        yield part, (other, nearer, both)


def balance_chances(pairs: Sequence[Sequence[int]], count: int) -> FloatArray:
    """(pairs,) chance of each pair, given that one of its members is the true one: the same for both of them.

    The chances of the pairs of a member add up to 1 at most, and to nearly 1 where that can be had (iterative
    proportional fitting, Sinkhorn and Knopp 1967). What is missing is the chance that no pair is drawn. With even
    chances, a member with few others is likelier the true one: whoever counts them finds 62 % of 327 truths among two.

    Args:
        pairs: members of each pair, from 0 to count - 1.
        count: of members.
    """
    members = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    chances = np.ones(len(members))

    def sum_up() -> FloatArray:
        return np.asarray(np.bincount(members.ravel(), np.repeat(chances, 2), count)[members])

    for _ in range(_ROUNDS):
        chances = chances / np.sqrt(sum_up().prod(axis=1))
    return np.asarray(chances / sum_up().max(axis=1))


def make_family(box: OrientedBox, upright: int, camera: Camera, gates: BoxMargins) -> BoxFamily:
    """The box turned in steps of 30 degrees, with its ground sides in ratios that are `thickness_ratio` apart.

    Args:
        box: the true one in the camera frame, before it is rounded.
        upright: which of its axes stands upright.
        camera: of the image.
        gates: margins between boxes.
    """
    axis, (first, second) = box.rotation[:, upright], (k for k in range(3) if k != upright)
    step, end = math.log(gates.thickness_ratio), math.log(gates.elongation_max)
    ratio = math.log(box.size_m[first] / box.size_m[second])
    most = math.ceil(2 * end / step)
    moves = [0, *(k for k in range(-most, most + 1) if k and max(abs(ratio), abs(ratio + k * step)) <= end)]
    turns = Rotation.from_rotvec(np.radians(_TURN_DEG * np.arange(_TURNS))[:, None] * axis).as_matrix()
    shapes = []
    for move in moves:
        scale = np.ones(3)
        scale[[first, second]] = np.exp(np.array([0.5, -0.5]) * move * step)  # of the same area, so that scales compare
        shapes += [replace(box, rotation=turn @ box.rotation, size_m=box.size_m * scale) for turn in turns]
    fitted, logs = fit_to_rect(shapes, upright, camera)
    with np.errstate(invalid="ignore"):
        together = (np.abs(logs[:, None] - logs) <= math.log(gates.side_ratio_max)).all(axis=2)
    together &= measure_footprint_gaps(fitted, find_up(axis)) >= gates.footprint_gap_min
    together &= _measure_corner_shifts(fitted, camera) >= gates.corner_shift_min
    length_seen = gates.view_rise_min <= _measure_rise(box, upright) <= gates.view_rise_max
    along = [length_seen and _goes_along(one, upright, gates) for one in fitted]
    pairs = [pair for pair in _list_pairs(moves, along) if together[pair[1:]]]
    chances = balance_chances([pair[1:] for pair in pairs], len(fitted))
    mine = [k for k, pair in enumerate(pairs) if 0 in pair[1:]]
    return BoxFamily(
        box,
        tuple((pairs[k][0], fitted[sum(pairs[k][1:])]) for k in mine),
        chances[mine],
        "" if mine else "near_square" if 2 * abs(ratio) < gates.footprint_gap_min else "no_other_box",
    )


def _measure_corner_shifts(found: Sequence[OrientedBox], camera: Camera) -> FloatArray:
    """(n, n) mean distance in the image from the corners of a box to the nearest ones of another box, over the diagonal
    of the rectangle that all of them fill; 0 where a corner is not in front of the camera."""
    uv_px, _ = project(camera, np.stack([boxes.corners(box) for box in found]))
    apart = np.linalg.norm(uv_px[:, None, :, None] - uv_px[None, :, None], axis=-1).min(axis=3).mean(axis=2)
    return np.asarray(np.nan_to_num(np.maximum(apart, apart.T) / np.linalg.norm(np.ptp(uv_px[0], axis=0))))


def _list_pairs(moves: Sequence[int], along: Sequence[bool]) -> list[Pair]:
    """All pairs, where members are numbered by moves, then by turns.

    Args:
        moves: of the ratio of the ground sides, in steps.
        along: per member whether one of its sides clearly goes along the view.
    """
    found: list[Pair] = []
    for move, start in zip(moves, range(0, len(along), _TURNS), strict=True):
        turns = itertools.combinations(range(start, start + _TURNS), 2)
        found += [(YAW, i, j) for i, j in turns if j - i != _CROSSWISE]
        if move + 1 in moves:
            beside = ((start + k, _TURNS * moves.index(move + 1) + k) for k in range(_TURNS))
            found += [(THICKNESS, i, j) for i, j in beside if along[i] and along[j]]
    return found


def fit_to_rect(shapes: Sequence[OrientedBox], upright: int, camera: Camera) -> tuple[list[OrientedBox], FloatArray]:
    """Boxes as they fill the rectangle that the first one fills: the centre moved across the view, the footprint and
    the height scaled. Depth of the centre, axes and ratio of the ground sides stay.

    Args:
        shapes: n boxes in the camera frame, the first one in front of the camera.
        upright: which of their axes stands upright.
        camera: of the image; the rectangle may reach beyond it.

    Returns:
        The boxes, and (n, 2) the logarithms by which footprint and height were scaled: NaN where no such box was found,
        and the box is as it was.
    """
    n, ground = len(shapes), np.arange(3) != upright
    axes = np.stack([shape.rotation for shape in shapes])
    offsets = boxes.CORNER_SIGNS * np.stack([shape.size_m / 2 for shape in shapes])[:, None]
    flat, high = ((offsets * part) @ axes.transpose(0, 2, 1) for part in (ground, ~ground))
    focal, middle = np.array([camera.fx, camera.fy]), np.array([camera.cx, camera.cy])
    centres, logs = np.stack([shape.center_m for shape in shapes]), np.zeros((n, 2))
    row, side = np.arange(n)[:, None], np.array([0, 1, 0, 1])
    target: FloatArray | None = None
    settled = np.zeros(n, dtype=bool)
    for _ in range(_STEPS):
        scaled = flat * np.exp(logs[:, :1, None]), high * np.exp(logs[:, 1:, None])
        corners = scaled[0] + scaled[1] + centres[:, None]
        front = (corners[..., 2] > 0).all(axis=1)
        z_m = np.where(front[:, None], corners[..., 2], 1.0)
        uv_px = corners[..., :2] / z_m[..., None] * focal + middle
        ends = np.concatenate([uv_px.argmin(axis=1), uv_px.argmax(axis=1)], axis=1)
        reached = uv_px[row, ends, side]
        target = reached[0] if target is None else target
        off_px = reached - target
        settled = front & (np.abs(off_px).max(axis=1) < _SETTLED_PX)
        if settled.all():
            break
        # How the pixel at each end moves with the centre's x and y and with both logarithms.
        moves = np.zeros((n, 4, 4))
        moves[:, :, :2] = np.eye(2)[side]
        slopes = (reached - middle[side]) / focal[side]
        for k, part in enumerate(scaled):
            moves[:, :, 2 + k] = part[row, ends, side] - slopes * part[row, ends, 2]
        moves *= (focal[side] / z_m[row, ends])[..., None]
        open_ = front & ~settled & (np.abs(np.linalg.det(moves)) > 1e-9)
        step = np.linalg.solve(np.where(open_[:, None, None], moves, np.eye(4)), -off_px[..., None])[..., 0]
        step[~open_] = 0
        centres[:, :2] += step[:, :2]
        logs += np.clip(step[:, 2:], -_STRIDE, _STRIDE)
    logs[~settled] = np.nan
    fitted = []
    for shape, centre, (footprint, height), done in zip(shapes, centres, logs, settled.tolist(), strict=True):
        scale = np.exp(np.where(ground, footprint, height))
        fitted.append(replace(shape, center_m=centre, size_m=shape.size_m * scale) if done else shape)
    return fitted, logs


def find_upright(box: OrientedBox, up: FloatArray | None) -> int | None:
    """Which axis of a box stands upright; None where the direction up (3,) is not known or none does."""
    if up is None:
        return None
    cosines = np.abs(up @ box.rotation)
    axis = int(np.argmax(cosines))
    return axis if cosines[axis] >= _UPRIGHT_COS_MIN else None


def _goes_along(box: OrientedBox, upright: int, gates: BoxMargins) -> bool:
    """Whether one of the ground sides clearly goes along the view."""
    level = np.delete(box.center_m @ box.rotation, upright)
    return bool(np.abs(level).max() >= gates.view_along_min * np.linalg.norm(level))


def _measure_rise(box: OrientedBox, upright: int) -> float:
    """Sine of the angle by which the camera looks down at the middle of the box."""
    return -float(box.center_m @ find_up(box.rotation[:, upright]) / np.linalg.norm(box.center_m))
