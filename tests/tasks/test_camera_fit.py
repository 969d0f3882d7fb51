"""Cameras from line segments: of made-up rooms whose camera is known, and beside a general-purpose optimiser."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.camera_parameters.estimate import estimate_parameters
from vgbench_gen.tasks.solving.camera_fit import LENGTH_MIN, Fit, Lines, cut_segments, fit_cameras

SIZE = np.array([640, 480])
NOISE = 0.3
UNKNOWN = np.full(3, np.nan)


def turn(yaw_deg: float, pitch_deg: float, roll_deg: float = 0.0) -> FloatArray:
    """(3, 3) whose columns are the directions of a room in a camera that looks down by `pitch_deg`."""
    return np.asarray(Rotation.from_euler("zxy", [roll_deg, pitch_deg, yaw_deg], degrees=True).as_matrix())


def draw_segments(
    rng: np.random.Generator, parameters: FloatArray, axes: FloatArray, count: int = 90, stray: int = 0
) -> FloatArray:
    """(count + stray, 4) noisy segments along the axes (columns), and stray ones, inside a 640 x 480 image.

    parameters: log of the focal length and principal point, in the units of `Lines`.
    """
    focal, centre = np.exp(parameters[0]) * 640, (SIZE - 1) / 2 + 640 * parameters[1:]
    found: list[FloatArray] = []
    while len(found) < count:
        start = np.append(rng.uniform(-1, 1, 2), 1.0) * rng.uniform(1.5, 5)
        ends = np.stack([start, start + axes[:, rng.integers(axes.shape[1])] * rng.uniform(0.4, 2)])
        if ends[:, 2].min() < 0.5:
            continue
        uv = ends[:, :2] / ends[:, 2:] * focal + centre
        if (uv < 0).any() or (uv > SIZE - 1).any() or np.linalg.norm(uv[1] - uv[0]) < 25:
            continue
        found.append((uv + rng.normal(0, NOISE, (2, 2))).ravel())
    for _ in range(stray):
        middle, half = rng.uniform(60, SIZE - 60), rng.uniform(12, 50)
        angle = rng.uniform(0, np.pi)
        step = half * np.array([np.cos(angle), np.sin(angle)])
        found.append(np.concatenate([middle - step, middle + step]))
    return np.array(found)


def whole(segments: FloatArray) -> Lines:
    return cut_segments(segments, np.array([[0, 0, 640, 480]]), NOISE)


def draw_rooms(seed: int, count: int, stray: int = 0) -> tuple[list[FloatArray], FloatArray]:
    """Segments of rooms seen obliquely, and the parameters (count, 3) of their cameras."""
    rng = np.random.default_rng(seed)
    truths = np.stack(
        [rng.uniform(np.log(0.8), np.log(1.8), count), rng.uniform(-0.2, 0.2, count), rng.uniform(-0.15, 0.15, count)],
        axis=1,
    )
    rooms = [
        draw_segments(rng, truth, turn(rng.uniform(20, 70), rng.uniform(15, 40), rng.uniform(-10, 10)), 90, stray)
        for truth in truths
    ]
    return rooms, truths


def fit_all(rooms: list[FloatArray], stated: FloatArray) -> Fit:
    fits = [fit_cameras(whole(room), one[None]) for room, one in zip(rooms, stated, strict=True)]
    parts = ([getattr(fit, name) for fit in fits] for name in ("parameters", "deviations", "turns"))
    return Fit(*map(np.concatenate, parts))


@pytest.mark.parametrize(("asked", "stray"), [((0,), 0), ((1,), 40), ((2,), 40), ((0, 1, 2), 0), ((0, 1, 2), 40)])
def test_cameras_are_found_as_exactly_as_predicted(asked: tuple[int, ...], stray: int) -> None:
    rooms, truths = draw_rooms(1, 40, stray)
    stated = truths.copy()
    stated[:, asked] = np.nan
    fit = fit_all(rooms, stated)
    known = [i for i in range(3) if i not in asked]
    np.testing.assert_allclose(fit.parameters[:, known], truths[:, known], atol=1e-3)
    assert (fit.deviations[:, known] == 0).all()
    off = np.abs(fit.parameters - truths)[:, asked]
    score = off / fit.deviations[:, asked]
    right = (off < 0.05).all(axis=1)
    assert right.mean() >= 0.85
    assert 0.25 < np.median(score) < 1.0  # 0.67 for errors as large as predicted
    assert np.quantile(score[right], 0.95) < 4


def test_what_no_lines_show_is_not_claimed_to_be_known() -> None:
    rng = np.random.default_rng(2)
    truth = np.array([np.log(1.1), 0.0, 0.0])
    stated = np.array([[np.nan, 0.0, 0.0]])
    oblique, front = turn(35, 25), turn(0, 0)
    for axes in (oblique[:, :1], front):
        fit = fit_cameras(whole(draw_segments(rng, truth, axes)), stated)
        # One direction, or a wall seen straight on: every focal length explains the lines as well.
        assert fit.deviations[0, 0] > 0.11, axes
    assert fit_cameras(whole(draw_segments(rng, truth, oblique)), stated).deviations[0, 0] < 0.02
    assert fit_cameras(whole(np.zeros((1, 4))), stated).deviations[0, 0] > 10


def test_a_general_optimiser_from_the_truth_finds_the_same() -> None:
    """scipy's Levenberg-Marquardt on angles between segments and true vanishing points, written down anew."""
    rng = np.random.default_rng(3)
    for _ in range(5):
        truth = np.array([rng.uniform(np.log(0.9), np.log(1.4)), rng.uniform(-0.1, 0.1), rng.uniform(-0.1, 0.1)])
        axes = turn(rng.uniform(25, 65), rng.uniform(20, 35))
        groups = [draw_segments(rng, truth, axes[:, [k]], 25) for k in range(3)]

        def residuals(x: FloatArray, groups: list[FloatArray] = groups, axes: FloatArray = axes) -> FloatArray:
            K = np.array(
                [[640 * np.exp(x[0]), 0, 319.5 + 640 * x[1]], [0, 640 * np.exp(x[0]), 239.5 + 640 * x[2]], [0, 0, 1]]
            )
            found = []
            for k, group in enumerate(groups):
                vanishing = K @ Rotation.from_rotvec(x[3:]).as_matrix() @ axes[:, k]
                ends = group.reshape(-1, 2, 2)
                middle = ends.mean(axis=1)
                joint = np.cross(np.append(middle, np.ones((len(group), 1)), axis=1), vanishing)
                joint /= np.linalg.norm(joint[:, :2], axis=1, keepdims=True)
                found.append((joint * np.append(ends[:, 1], np.ones((len(group), 1)), axis=1)).sum(axis=1))
            return np.concatenate(found)

        best = least_squares(residuals, np.append(truth, np.zeros(3)), method="lm").x[:3]
        fit = fit_cameras(whole(np.concatenate(groups)), UNKNOWN[None])
        assert (np.abs(fit.parameters[0] - best) < 0.5 * fit.deviations[0]).all()


def test_images_of_a_batch_do_not_touch_each_other() -> None:
    rooms, _ = draw_rooms(4, 1)
    rect = np.array([[0, 0, 640, 480], [100, 60, 400, 300], [60, 0, 400, 480]])
    alone = [estimate_parameters(cut_segments(rooms[0], r[None], NOISE), (640, 480), "hfov", [0.0] * 4) for r in rect]
    together = estimate_parameters(cut_segments(rooms[0], rect, NOISE), (640, 480), "hfov", [0.0] * 4)
    np.testing.assert_allclose(together, np.concatenate(alone, axis=1), rtol=1e-6)


def test_crops_show_the_parts_of_segments_that_lie_inside() -> None:
    rng = np.random.default_rng(5)
    segments = rng.uniform(-20, 660, (60, 4))
    segments[0] = [10, 50, 630, 50]  # level and upright ones too
    segments[1] = [300, -10, 300, 470]
    rects = np.array([[0, 0, 640, 480], [100, 60, 300, 300], [37, 11, 120, 400]])
    lines = cut_segments(segments, rects, NOISE)
    steps = np.linspace(0, 1, 4001)[:, None]
    for b, rect in enumerate(rects):
        side = rect[2:].max()
        inside = []
        for one in segments:
            points = one[:2] + steps * (one[2:] - one[:2])
            within = ((points >= rect[:2] - 0.5) & (points <= rect[:2] + rect[2:] - 0.5)).all(axis=1)
            inside.append(within.mean() * np.linalg.norm(one[2:] - one[:2]) / side)
        expected = np.sort([x for x in inside if x >= LENGTH_MIN])[::-1]
        lengths = 2 * lines.halves[b][lines.halves[b] > 0]
        np.testing.assert_allclose(lengths, expected, atol=2e-3)
        middles = lines.middles[:, b].T * side + rect[:2] + (rect[2:] - 1) / 2
        ends = (
            middles[:, None]
            + np.array([-1, 1])[:, None] * (lines.directions[:, b].T * lines.halves[b][:, None] * side)[:, None]
        )
        real = ends[lines.halves[b] > 0]
        assert (real >= rect[:2] - 0.5 - 1e-6).all()
        assert (real <= rect[:2] + rect[2:] - 0.5 + 1e-6).all()
        for pair in real:
            offs = []
            for one in segments:
                normal = np.array([one[1] - one[3], one[2] - one[0]])
                offs.append(np.abs((pair - one[:2]) @ normal / np.linalg.norm(normal)).max())
            assert min(offs) < 1e-6
        np.testing.assert_allclose(lines.noise[b], NOISE / side)
