"""Second_from_first [R|t] as an answer: printing, differences, and a route from stored poses by quaternions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera, Candidate, FloatArray, Notation
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.poses import join_turns, split_turns_deg
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.presentation import say_signed
from vgbench_gen.tasks.revealed import RevealedMotion
from vgbench_gen.text.numbers import format_fixed, format_matrix, format_vector
from vgbench_gen.text.render import fill_word

ROTATION_DECIMALS, TRANSLATION_DECIMALS = 3, 2
TURN_DECIMALS = 1  # degrees in words; three such errors turn by at most 1.6e-3, below `POSE_ENTRY`
_VALUE_DECIMALS = 9  # of a value in words, so that the last bit of a sine does not count
_SHIFTS = (("shift.right", "shift.left"), ("shift.down", "shift.up"), ("shift.forward", "shift.back"))
_TURNS = (("turn.right", "turn.left"), ("turn.up", "turn.down"), ("turn.clockwise", "turn.counterclockwise"))
ORTHONORMAL_MAX = 2e-3  # of the printed R (docs/validity.md#relative-pose)
HIDDEN_SHIFT_D = 100.0  # what a point behind a camera counts as having moved


def round_as_printed(value: FloatArray, notation: Notation = "matrix") -> FloatArray:
    """(3, 4) [R|t] as a reader of `print_pose` gets it back; as a matrix, R is a rotation to three decimals only."""
    if notation == "words":
        turns_deg, shifts_m = _split(value)
        turns = join_turns([float(format_fixed(x, TURN_DECIMALS)) for x in turns_deg])
        centre_m = np.array([float(format_fixed(x, TRANSLATION_DECIMALS)) for x in shifts_m])
        told = turn_around(np.concatenate([turns, centre_m[:, None]], axis=1))
        # In one order of memory, as a row gives it back, or the last bit of what is computed from it differs.
        return np.ascontiguousarray(np.round(told, _VALUE_DECIMALS) + 0.0)  # no negative zero
    R = [[float(format_fixed(float(x), ROTATION_DECIMALS)) for x in row[:3]] for row in value]
    t = [float(format_fixed(float(row[3]), TRANSLATION_DECIMALS)) for row in value]
    return np.concatenate([np.array(R), np.array(t)[:, None]], axis=1)


def make_slots(value: FloatArray, notation: Notation = "matrix") -> dict[str, str]:
    """`motion`, the second camera as the first one sees it, in words; or `rotation`, one row per line, and
    `translation`, in meters."""
    if notation == "words":
        turns_deg, shifts_m = _split(value)
        said = [say_signed(x, TRANSLATION_DECIMALS, keys) for x, keys in zip(shifts_m, _SHIFTS, strict=True)]
        said += [say_signed(x, TURN_DECIMALS, keys) for x, keys in zip(turns_deg, _TURNS, strict=True)]
        return {"motion": fill_word("option.motion", **dict(zip("xyzabc", said, strict=True)))}
    return {
        "rotation": format_matrix(value[:, :3], lambda x: format_fixed(x, ROTATION_DECIMALS)),
        "translation": format_vector(value[:, 3], lambda x: format_fixed(x, TRANSLATION_DECIMALS)),
    }


def print_pose(value: FloatArray, notation: Notation = "matrix") -> str:
    """The pose as an option text."""
    slots = make_slots(value, notation)
    return slots["motion"] if notation == "words" else fill_word("option.pose", **slots)


def turn_around(motions: FloatArray) -> FloatArray:
    """The inverse of motions [R|t] (..., 3, 4): of second_from_first the second camera as the first one sees it, whose
    last column is where it stands."""
    turns = np.swapaxes(motions[..., :3], -1, -2)
    return np.concatenate([turns, -turns @ motions[..., 3:]], axis=-1)


def _split(value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(turns (3,), degrees; place (3,), meters) of the second camera as the first one sees it."""
    seen = turn_around(value)
    return split_turns_deg(seen[:, :3]), seen[:, 3]


def is_pose(value: FloatArray) -> bool:
    """Whether a printed (3, 4) is a proper rotation within print precision, and a finite translation."""
    if value.shape != (3, 4) or not np.isfinite(value).all():
        return False
    R = value[:, :3]
    return bool(poses.measure_orthonormality_deviation(R) <= ORTHONORMAL_MAX and np.linalg.det(R) > 0)


def measure_rotation_between_deg(a: FloatArray, b: FloatArray) -> float:
    """Angle of the rotation that remains between two [R|t], degrees, by the chord |R_a - R_b| = 2 sqrt(2) sin(a / 2).

    One norm: it is asked for every pair of every pool.
    """
    chord = float(np.linalg.norm(a[:, :3] - b[:, :3])) / (2 * math.sqrt(2))
    return math.degrees(2 * math.asin(min(chord, 1.0)))


def measure_direction_between_deg(a: FloatArray, b: FloatArray) -> float:
    """Angle between the translations of two [R|t], degrees; 0 where one has no length."""
    t_a, t_b = a[:, 3], b[:, 3]
    norm_a, norm_b = math.sqrt(t_a @ t_a), math.sqrt(t_b @ t_b)
    if not norm_a * norm_b:
        return 0.0
    chord = t_a / norm_a - t_b / norm_b
    return math.degrees(2 * math.asin(min(math.sqrt(chord @ chord) / 2, 1.0)))


def compare_all(measure: Callable[[FloatArray, FloatArray], float], values: FloatArray) -> FloatArray:
    """(n, n) a symmetric measure of all pairs of values (n, ...); the diagonal is 0."""
    table = np.zeros((len(values), len(values)))
    for i, j in itertools.combinations(range(len(values)), 2):
        table[i, j] = table[j, i] = measure(values[i], values[j])
    return table


def move_points(value: FloatArray, points: FloatArray) -> FloatArray:
    """Points (N, 3) of the first camera's frame in the second's."""
    mapped: FloatArray = points @ value[:, :3].T + value[:, 3]
    return mapped


def measure_median_shifts_d(
    camera: Camera, value: FloatArray, others: FloatArray, points: FloatArray, inside: bool = False
) -> FloatArray:
    """(n,) median distance between where one pose and each of others (n, 3, 4) put points (p, 3) in an image, D%.

    A point behind the camera under one pose counts `HIDDEN_SHIFT_D`, which is also the most that any point counts. With
    `inside` only points that fall into the image under at least one of the poses count. 0 where none counts.
    """
    if not len(points):
        return np.zeros(len(others))
    poses_ = np.concatenate([value[None], others])
    in_camera = points @ poses_[:, :, :3].transpose(0, 2, 1) + poses_[:, None, :, 3]
    front = in_camera[..., 2] > 0
    uv = in_camera[..., :2] / np.where(front, in_camera[..., 2], 1.0)[..., None] * np.array([camera.fx, camera.fy])
    uv += np.array([camera.cx, camera.cy])
    apart = uv[1:] - uv[0]
    shift = np.sqrt((apart * apart).sum(axis=-1)) * (100 / math.hypot(*camera.size))
    shift[~(front[1:] & front[0])] = HIDDEN_SHIFT_D
    shift = np.minimum(shift, HIDDEN_SHIFT_D)
    counted = np.ones_like(front[1:])
    if inside:
        in_image = ((uv >= -0.5) & (uv < np.array(camera.size) - 0.5)).all(axis=-1) & front
        counted = in_image[1:] | in_image[0]
    counts = counted.sum(axis=1)
    # What does not count sorts to the end.
    shift = np.sort(np.where(counted, shift, np.inf), axis=1)
    rows, last = np.arange(len(shift)), np.maximum(counts, 1)
    middle = (shift[rows, (last - 1) // 2] + shift[rows, last // 2]) / 2
    return np.where(counts > 0, middle, 0.0)


def measure_mean_displacement_m(a: FloatArray, b: FloatArray, points: FloatArray) -> float:
    """Mean distance between where two poses put the points, meters (ADD, Hinterstoisser et al. 2012)."""
    return float(np.linalg.norm(move_points(a, points) - move_points(b, points), axis=-1).mean())


def compute_by_quaternions(first: FloatArray, second: FloatArray) -> FloatArray:
    """(3, 4) second_from_first of two poses `world_from_camera` (4, 4), by quaternions and the camera centres."""
    q_first, q_second = Rotation.from_matrix(first[:3, :3]), Rotation.from_matrix(second[:3, :3])
    R = (q_second.inv() * q_first).as_matrix()
    t = q_second.inv().apply(first[:3, 3] - second[:3, 3])
    return np.concatenate([R, t[:, None]], axis=1)


def perturb_pose(value: FloatArray, rotation_deg: float, translation_m: float, rng: np.random.Generator) -> FloatArray:
    """The pose turned by up to `rotation_deg` about a random axis and shifted by up to `translation_m`."""
    axis, direction = rng.normal(size=(2, 3))
    turn = Rotation.from_rotvec(axis / np.linalg.norm(axis) * np.radians(rng.uniform(0, rotation_deg)))
    shift = direction / np.linalg.norm(direction) * rng.uniform(0, translation_m)
    return np.concatenate([turn.as_matrix() @ value[:, :3], (value[:, 3] + shift)[:, None]], axis=1)


def measure_centre_distance_m(a: FloatArray, b: FloatArray) -> float:
    """Distance between the second cameras of two [R|t] with one first camera, meters."""
    return float(np.linalg.norm(a[:, :3].T @ a[:, 3] - b[:, :3].T @ b[:, 3]))


def reveal_pose(
    second_from_first: FloatArray, allowed_rotation_deg: float, allowed_direction_deg: float, second: int = 1
) -> RevealedMotion:
    """How the camera of the image at the place `second` stands to that of the first image; (4, 4), meters."""
    return RevealedMotion(
        first=0,
        second=second,
        second_from_first=second_from_first,
        allowed_rotation_deg=allowed_rotation_deg,
        allowed_direction_deg=allowed_direction_deg,
    )


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
