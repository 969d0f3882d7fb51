"""Boxes that fill the same rectangle of an image, yet stand elsewhere, otherwise turned or otherwise shaped.

Depth of the centre, axes and ratio of the ground sides are given; where the centre stands across the view, how large
the footprint and how high the box is follow from the rectangle. So a box, turned in steps of 30 degrees, belongs to a
family of six, which is the same family whichever member is the true one. Sets are drawn from a family with weights that
give every member the same chance (`docs/validity.md#object-location`).
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

DEPTH, YAW, SIZE_ORDER, THICKNESS = "depth", "yaw", "size_order", "thickness"
_TURN_DEG, _TURNS = 30.0, 6  # a cuboid turned by 180 degrees is the same
_CROSSWISE = _TURNS // 2  # turns that exchange which ground side is the longer one
_UPRIGHT_COS_MIN = 0.995  # within 6 degrees; boxes that lean are not turned about the vertical
_RATIOS = 3  # of depths, tried one after the other
_STEPS, _SETTLED_PX, _STRIDE = 15, 1e-3, 0.5  # of Newton's method; no logarithm of a side moves by more in one step
_ROUNDS = 40  # of balancing weights; the rest is below a hundredth


@dataclass(frozen=True, slots=True, eq=False)
class BoxSet:
    """Two parts of a box with another value of each."""

    parts: tuple[str, str]
    """Two of `DEPTH`, `YAW`, `SIZE_ORDER` and `THICKNESS`."""
    others: tuple[OrientedBox, OrientedBox, OrientedBox]
    """The boxes that have the other value of the second part, of the first and of both; in the camera frame."""


def draw_ratios(gates: BoxMargins, rng: np.random.Generator) -> list[float]:
    """Ratios of another depth to the true one, all larger or all smaller than 1, both as likely."""
    low, high = math.log(gates.ladder_ratio_min), math.log(gates.depth_step_max)
    steps = rng.uniform(low, high, _RATIOS) * (1 if rng.integers(2) else -1)
    return [math.exp(step) for step in steps.tolist()]


def draw_box_sets(
    family: BoxFamily, ratios: Sequence[float], reach_m: tuple[float, float], rng: np.random.Generator
) -> Iterator[BoxSet]:
    """One draw of two parts with another value of each; where depth is one of them, in all ratios of depth in turn.

    Nothing else is drawn again where a draw fails: values from which more draws succeed would be the truth less often.
    Ratios may be tried in turn, as whether one is large enough depends on the shapes of the set alone.

    Args:
        family: of the true box.
        ratios: of another depth to the true one, as `draw_ratios` gives them.
        reach_m: nearest and farthest depth that could have been asked, meters.
        rng: the only source of chance.

    Raises:
        TooFewOptionsError: what was drawn gives no set; says why.
    """
    chosen = family.draw(float(rng.random()))
    box, *rest = (family.boxes[k] for k in chosen.members)
    if len(rest) == 3:
        yield BoxSet(chosen.parts, (rest[0], rest[1], rest[2]))
        return
    for ratio in ratios:
        if not reach_m[0] <= ratio * box.center_m[2] <= reach_m[1]:
            raise TooFewOptionsError("depth_out_of_reach", f"{ratio * box.center_m[2]:.2f} m was never asked")
        elsewhere = boxes.scale_about_camera(box, ratio), boxes.scale_about_camera(rest[0], ratio)
        yield BoxSet(chosen.parts, (rest[0], *elsewhere))


@dataclass(frozen=True, slots=True)
class _Choice:
    """Members of a family that stand in one set, at one depth."""

    parts: tuple[str, str]
    """The parts that tell the options of the set apart."""
    members: tuple[int, ...]
    """Places in the family: two, or four of which the second differs from the first in the second part, the third in
    the first part and the fourth in both."""

    def start_with(self, member: int) -> _Choice:
        """The same set with this member first."""
        place = self.members.index(member)
        return replace(self, members=tuple(self.members[place ^ k] for k in range(len(self.members))))


@dataclass(frozen=True, slots=True, eq=False)
class BoxFamily:
    """Boxes at one depth that fill one rectangle, and the sets that they form."""

    boxes: tuple[OrientedBox, ...]
    """The boxes; the true one stands first."""
    choices: tuple[_Choice, ...]
    """The sets with the true box, which stands first in each."""
    chances: FloatArray
    """(choices,) with which they are drawn; what they lack to 1 is the chance that none is."""
    missing: str
    """Why there are no sets at all, or ""."""

    def draw(self, pick: float) -> _Choice:
        """One of the sets, by a number from 0 to 1.

        Raises:
            TooFewOptionsError: there is none, or the number falls beyond their chances.
        """
        place = int(np.searchsorted(np.cumsum(self.chances), pick, side="right"))
        if place < len(self.choices):
            return self.choices[place]
        detail = f"{len(self.choices)} sets with chances of {self.chances.sum():.2f} together"
        raise TooFewOptionsError(self.missing or "family_small", detail)


def balance_chances(sets: Sequence[tuple[int, ...]], count: int) -> FloatArray:
    """(sets,) chance of each set, given that one of its members is the true one: the same for all of them.

    The chances of the sets of a member add up to 1 at most, and to nearly 1 where that can be had (iterative
    proportional fitting, Sinkhorn and Knopp 1967). What is missing is the chance that no set is drawn.

    Args:
        sets: members of each set, from 0 to count - 1.
        count: of members.
    """
    holds = np.zeros((len(sets), count), dtype=bool)
    for k, members in enumerate(sets):
        holds[k, list(members)] = True
    chances, sizes = np.ones(len(sets)), np.maximum(holds.sum(axis=1), 1)
    for _ in range(_ROUNDS):
        totals = np.log(np.maximum(holds.T @ chances, 1e-300))
        chances = chances * np.exp(-(holds @ totals) / sizes)
    most = np.where(holds, holds.T @ chances, 0.0).max(axis=1, initial=1e-300)
    return np.asarray(chances / most)


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
    choices = [
        choice
        for choice in _list_choices(moves, [_goes_along(one, upright, gates) for one in fitted])
        if together[np.ix_(choice.members, choice.members)][~np.eye(len(choice.members), dtype=bool)].all()
        and (length_seen or choice.parts == (DEPTH, YAW))
    ]
    chances = balance_chances([choice.members for choice in choices], len(fitted))
    mine = [k for k, choice in enumerate(choices) if 0 in choice.members]
    longer = bool(box.size_m[first] > box.size_m[second])
    return BoxFamily(
        tuple(_list_sides(one, first, second, longer) for one in fitted),
        tuple(choices[k].start_with(0) for k in mine),
        chances[mine],
        "" if mine else "near_square" if 2 * abs(ratio) < gates.footprint_gap_min else "no_other_box",
    )


def _measure_corner_shifts(found: Sequence[OrientedBox], camera: Camera) -> FloatArray:
    """(n, n) mean distance in the image from the corners of a box to the nearest ones of another box, over the diagonal
    of the rectangle that all of them fill; 0 where a corner is not in front of the camera."""
    uv_px, _ = project(camera, np.stack([boxes.corners(box) for box in found]))
    apart = np.linalg.norm(uv_px[:, None, :, None] - uv_px[None, :, None], axis=-1).min(axis=3).mean(axis=2)
    return np.asarray(np.nan_to_num(np.maximum(apart, apart.T) / np.linalg.norm(np.ptp(uv_px[0], axis=0))))


def _list_choices(moves: Sequence[int], along: Sequence[bool]) -> list[_Choice]:
    """All sets, where members are numbered by moves, then by turns.

    Args:
        moves: of the ratio of the ground sides, in steps.
        along: per member whether one of its sides clearly goes along the view.
    """
    found = []
    for m, start in zip(moves, range(0, len(along), _TURNS), strict=True):
        for i, j in itertools.combinations(range(start, start + _TURNS), 2):
            found.append(_Choice((DEPTH, SIZE_ORDER if j - i == _CROSSWISE else YAW), (i, j)))
        for i, j in ((0, 1), (1, 2), (0, 5)):  # turned by one step, the smaller turn of two that lead there
            four = i, i + _CROSSWISE, j, (j + _CROSSWISE) % _TURNS
            found.append(
                _Choice((YAW, SIZE_ORDER), (start + four[0], start + four[1], start + four[2], start + four[3]))
            )
        if m + 1 in moves:
            other = _TURNS * moves.index(m + 1)
            pairs = ((start + k, other + k) for k in range(_TURNS))
            found += [_Choice((DEPTH, THICKNESS), pair) for pair in pairs if along[pair[0]] and along[pair[1]]]
    return found


def _list_sides(box: OrientedBox, first: int, second: int, first_longer: bool) -> OrientedBox:
    """The same box with its ground axes renamed so that the longer one has the place that it has in the true box:
    corners are listed by axes, and in many scans the first axis is the longer one."""
    if bool(box.size_m[first] > box.size_m[second]) == first_longer:
        return box
    rotation, size_m = box.rotation.copy(), box.size_m.copy()
    rotation[:, first], rotation[:, second] = box.rotation[:, second], -box.rotation[:, first]
    size_m[[first, second]] = size_m[[second, first]]
    return replace(box, rotation=rotation, size_m=size_m)


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
