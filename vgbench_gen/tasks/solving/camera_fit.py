"""Straight line segments of an image, the parts of them that crops show, and the camera that explains them.

Every segment belongs to one of three directions at right angles, seen in perspective, or to none, and points to the
vanishing point of its direction; what is known is the segments, and what the question states of the camera. Nobody says
which segments belong together: frames of directions are guessed from random segments, and weighted least squares
refines the best of them (Wildenauer and Hanbury 2012; `docs/validity.md#what-lines-determine`). All images of a batch
are fitted at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import ColorArray, FloatArray, IntArray

LENGTH_MIN = 0.03  # of the image's long side; a shorter segment carries no direction
SEGMENTS_MAX = 80  # 60 segments give a tenth fewer questions, 120 as many
SCALE = 0.6  # size at which segments are searched: half the time of 0.8 for 5 % fewer questions
NOISE_PX = 0.3  # standard deviation of an end across its segment, pixels of the image that was searched
# Where the focal length is not stated it is tried from these on, over the long side: 64, 42 and 27 degrees.
FOCAL_STARTS = (0.8, 1.3, 2.1)
# Before any line is looked at: log of the focal length about that of 45 degrees, principal point about the middle.
FOCAL_NEUTRAL, FOCAL_SPREAD, CENTRE_SPREAD = 1.2, 0.35, 0.3
TRIALS = 64  # frames of directions guessed per start
GUESSED_FROM = 40  # of the longest segments
GUESS_SPREAD = 0.04  # sine of the angle between a segment's plane and its direction, while the camera is a guess
KEPT_PER_START, KEPT = 2, 2
# Standard deviations of the segments, over their noise, while the fit closes in.
COARSE, FINE = (8.0, 4.5, 2.5), (1.6, 1.0, 1.0)
OUTLIERS = 0.3  # share of segments that follow none of the three directions; 0.15 and 0.45 give as many questions
_STATED_SPREAD = 1e-4
_STEP_MAX = 0.3  # radians, log of the focal length, shares of the long side


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Line segments of several images, each image's longest first.

    Coordinates are counted from the middle of the image, in shares of its long side.
    """

    middles: FloatArray
    """(2, B, N) x and y of the middles of the segments."""
    directions: FloatArray
    """(2, B, N) x and y of unit vectors along them."""
    halves: FloatArray
    """(B, N) half their lengths; 0 for the filling of images that show fewer than N."""
    noise: FloatArray
    """(B,) standard deviation of an end across its segment."""


def detect_segments(grey: ColorArray, scale: float = SCALE) -> FloatArray:
    """(N, 4) ends x1, y1, x2, y2 of the line segments (LSD, von Gioi et al. 2010) of a grey image (h, w), pixels."""
    found = cv2.createLineSegmentDetector(cv2.LSD_REFINE_NONE, scale).detect(grey)[0]
    return np.zeros((0, 4)) if found is None else np.asarray(found, dtype=np.float64).reshape(-1, 4)


def cut_segments(segments: FloatArray, rects: IntArray, noise_px: float) -> Lines:
    """What crops show of the segments of an image.

    Args:
        segments: (N, 4) ends x1, y1, x2, y2, pixels of the image.
        rects: (B, 4) crops as x0, y0, width, height, pixels of the image.
        noise_px: standard deviation of an end across its segment, pixels of the image.
    """
    starts, steps = segments[None, :, :2], segments[None, :, 2:] - segments[None, :, :2]
    lengths_px = np.linalg.norm(steps, axis=-1)
    steps = np.where(np.abs(steps) < 1e-9, 1e-9, steps)
    low = rects[:, None, :2] - 0.5
    at_low, at_high = (low - starts) / steps, (low + rects[:, None, 2:] - starts) / steps
    first = np.minimum(at_low, at_high).max(axis=-1).clip(0, 1)
    last = np.maximum(at_low, at_high).min(axis=-1).clip(0, 1)
    sides = rects[:, 2:].max(axis=1).astype(np.float64)
    halves = np.maximum(last - first, 0) * lengths_px / sides[:, None] / 2
    halves[halves < LENGTH_MIN / 2] = 0
    longest = np.argsort(-halves, axis=1, kind="stable")[:, : max(1, min(SEGMENTS_MAX, int((halves > 0).sum(1).max())))]
    halves, along = (np.take_along_axis(x, longest, 1) for x in (halves, (first + last) / 2))
    centres = rects[:, None, :2] + (rects[:, None, 2:] - 1) / 2
    middles = (starts[0][longest] + along[..., None] * steps[0][longest] - centres) / sides[:, None, None]
    directions = steps[0] / np.maximum(lengths_px[0], 1e-9)[:, None]
    middles, directions = (np.ascontiguousarray(np.moveaxis(found, -1, 0)) for found in (middles, directions[longest]))
    return Lines(middles, directions, halves, noise_px / sides)


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Cameras of several images; focal length and principal point in the units of `Lines`."""

    parameters: FloatArray
    """(B, 3) log of the focal length, and the principal point x, y."""
    deviations: FloatArray
    """(B, 3) their standard deviations by the segments alone; 0 where the question states them."""
    turns: FloatArray
    """(B, 3, 3) whose columns are unit vectors along the three directions at right angles, in the camera."""


@dataclass(slots=True)
class _State:
    """Fits under way: `turns` (B, 3, 3), whose columns are the directions in the camera, and `parameters` (B, 3)."""

    turns: FloatArray
    parameters: FloatArray

    def pick(self, places: IntArray) -> _State:
        return _State(self.turns[places], self.parameters[places])


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """Lines with what is believed of the cameras beforehand: (B, 3) means and inverse variances."""

    lines: Lines
    means: FloatArray
    weights: FloatArray

    def pick(self, places: IntArray) -> _Problem:
        one = self.lines
        lines = Lines(one.middles[:, places], one.directions[:, places], one.halves[places], one.noise[places])
        return _Problem(lines, self.means[places], self.weights[places])


def fit_cameras(lines: Lines, stated: FloatArray) -> Fit:
    """The cameras of a batch of images.

    Args:
        lines: their segments.
        stated: (B, 3) log of the focal length, and the principal point x, y, as the questions state them; NaN where
            they do not, which is the same for all images.
    """
    unknown = np.isnan(stated[0])
    neutral = np.array([np.log(FOCAL_NEUTRAL), 0, 0])
    spreads = np.where(unknown, [FOCAL_SPREAD, CENTRE_SPREAD, CENTRE_SPREAD], _STATED_SPREAD)
    means = np.where(unknown, neutral, stated)
    problem = _Problem(lines, means, np.broadcast_to(spreads**-2.0, means.shape))
    starts = []
    for focal in FOCAL_STARTS if unknown[0] else (0.0,):
        start = means.copy()
        if unknown[0]:
            start[:, 0] = np.log(focal)
        starts.append(start)
    count, images = len(starts) * KEPT_PER_START, np.arange(len(stated))
    turns = np.concatenate([_guess_turns(lines, start) for start in starts])
    state = _State(turns, np.concatenate([np.tile(start, (KEPT_PER_START, 1)) for start in starts]))
    state, likelihood = _refine(problem.pick(np.tile(images, count)), state, COARSE)
    best = np.argsort(-likelihood.reshape(count, -1), axis=0, kind="stable")[:KEPT] * len(images) + images
    again = problem.pick(np.tile(images, len(best)))
    state, likelihood = _refine(again, state.pick(best.ravel()), FINE)
    state = state.pick(likelihood.reshape(len(best), -1).argmax(axis=0) * len(images) + images)
    free = np.concatenate([np.ones(3, dtype=bool), unknown])
    information = _linearise(problem, state, 1.0)[0][:, free][:, :, free] + 1e-6 * np.eye(int(free.sum()))
    deviations = np.zeros_like(means)
    variances = np.diagonal(np.linalg.inv(information), axis1=1, axis2=2)[:, 3:]
    deviations[:, unknown] = np.sqrt(np.where(variances > 0, variances, np.inf))
    return Fit(state.parameters, deviations, state.turns)


def _refine(problem: _Problem, state: _State, schedule: tuple[float, ...]) -> tuple[_State, FloatArray]:
    """The state after one step per entry of the schedule, and (B,) log-likelihoods before the last of them."""
    likelihood = np.zeros(len(state.parameters))
    for widening in schedule:
        information, gradient, likelihood = _linearise(problem, state, widening)
        diagonal = np.arange(6)
        # Keeps turns about directions that no segment shows.
        information[:, diagonal[:3], diagonal[:3]] += 1.0
        information[:, diagonal[3:], diagonal[3:]] += problem.weights
        step = np.clip(-np.linalg.solve(information, gradient[..., None])[..., 0], -_STEP_MAX, _STEP_MAX)
        state = _State(_rotate(step[:, :3]) @ state.turns, state.parameters + step[:, 3:])
    return state, likelihood


def _linearise(problem: _Problem, state: _State, widening: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Weighted least squares about a state: (B, 6, 6) information of the segments on turn, log focal length and
    principal point, (B, 6) gradient with what was believed beforehand, (B,) log-likelihood.

    The residual of a segment is the distance of its ends from the line through its middle and its vanishing point.
    """
    lines, turns = problem.lines, state.turns
    focal, centre_x, centre_y = np.exp(state.parameters[:, :1]), state.parameters[:, 1:2], state.parameters[:, 2:]
    (along_x, along_y), noise = lines.directions, widening * lines.noise[:, None]
    off_x, off_y = centre_x - lines.middles[0], centre_y - lines.middles[1]
    # From the middle of the segment to the vanishing point, times the third coordinate of the direction: (3, B, N).
    x, y, z = turns.transpose(1, 2, 0)[..., None]
    to_x, to_y = focal * x + off_x * z, focal * y + off_y * z
    per_length = 1 / np.sqrt(to_x * to_x + to_y * to_y + 1e-12)
    sines = (along_x * to_y - along_y * to_x) * per_length
    # Each segment belongs to the direction that it points to best; from here on all is (B, N).
    nearest = np.abs(sines).argmin(axis=0)
    place = nearest * nearest.size + np.arange(nearest.size).reshape(nearest.shape)
    to_x, to_y, per_length, sine = (found.ravel()[place] for found in (to_x, to_y, per_length, sines))
    place = np.arange(len(turns))[:, None] * 9 + nearest
    x, y, z = (turns.ravel()[place + 3 * row] for row in range(3))

    residual, real = lines.halves * sine, lines.halves > 0
    inlier = (1 - OUTLIERS) / 3 / np.sqrt(2 * np.pi) / noise * np.exp(-0.5 * (residual / noise) ** 2)
    odds = inlier * (2 / OUTLIERS) * lines.halves
    weight = np.where(real, odds / (1 + odds) / noise**2, 0.0)
    off = state.parameters - problem.means
    likelihood = np.log1p(odds).sum(axis=1) - 0.5 * (off**2 * problem.weights).sum(axis=1)

    slope = np.empty((len(turns), 6, nearest.shape[1]))
    slope[:, 0] = to_x * (off_y * y - focal * z) - to_y * off_x * y
    slope[:, 1] = -to_x * off_y * x - to_y * (focal * z - off_x * x)
    slope[:, 2] = focal * (to_x * x + to_y * y)
    slope[:, 3] = focal * (to_x * y - to_y * x)
    slope[:, 4] = -to_y * z
    slope[:, 5] = to_x * z
    slope *= (lines.halves * (along_x * to_x + along_y * to_y) * per_length**3)[:, None]
    weighted = slope * weight[:, None]
    gradient = (weighted @ residual[..., None])[..., 0]
    gradient[:, 3:] += problem.weights * off
    return weighted @ slope.swapaxes(1, 2), gradient, likelihood


def _guess_turns(lines: Lines, parameters: FloatArray) -> FloatArray:
    """(KEPT_PER_START * B, 3, 3) frames of directions under which most length of segments points to a vanishing point.

    Two segments meet in one direction, a third one gives the next at a right angle to it.
    """
    (x, y), (along_x, along_y), halves = (
        found[..., :GUESSED_FROM] for found in (lines.middles, lines.directions, lines.halves)
    )
    images, segments = halves.shape
    # Normal of the plane through the camera and the segment.
    depth = (x - parameters[:, 1:2]) * along_y - (y - parameters[:, 2:]) * along_x
    normals = np.stack([-along_y, along_x, depth / np.exp(parameters[:, :1])], axis=-1)
    normals /= np.linalg.norm(normals, axis=-1, keepdims=True)
    share = halves / np.maximum(halves.sum(axis=1, keepdims=True), 1e-9)
    drawn = (np.cumsum(share, axis=1)[:, None, None] < _draw_trials()[..., None]).sum(axis=-1)
    picked = np.minimum(drawn, segments - 1).reshape(images, -1, 1)
    three = np.take_along_axis(normals, picked, 1).reshape(images, TRIALS, 3, 3)
    first, apart = _normalise(np.cross(three[:, :, 0], three[:, :, 1]))
    second, apart_too = _normalise(np.cross(first, three[:, :, 2]))
    axes = np.stack([first, second, np.cross(first, second)], axis=2)
    sines = (
        np.abs(axes.reshape(images, -1, 3) @ normals.swapaxes(1, 2)).reshape(images, TRIALS, 3, segments).min(axis=2)
    )
    score = (np.exp(-0.5 * (sines / GUESS_SPREAD) ** 2) @ share[..., None])[..., 0]
    score[(apart < 0.02) | (apart_too < 0.1)] = -1.0
    best = np.argsort(-score, axis=1, kind="stable")[:, :KEPT_PER_START]
    turns = np.take_along_axis(axes, best[..., None, None], 1).swapaxes(2, 3)
    return turns.swapaxes(0, 1).reshape(-1, 3, 3)


def _normalise(vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    lengths = np.linalg.norm(vectors, axis=-1)
    return vectors / (lengths + 1e-9)[..., None], lengths


@cache
def _draw_trials() -> FloatArray:
    """(TRIALS, 3) places among the segments, by length; the same for every image."""
    return rng_for(0, "camera_parameters", "trials").random((TRIALS, 3))


def _rotate(turns: FloatArray) -> FloatArray:
    """(B, 3, 3) rotations of rotation vectors (B, 3)."""
    angle = np.linalg.norm(turns, axis=-1)[:, None, None]
    cross = np.zeros((len(turns), 3, 3))
    cross[:, [2, 0, 1], [1, 2, 0]] = turns
    cross[:, [1, 2, 0], [2, 0, 1]] = -turns
    half = np.sinc(angle / 2 / np.pi)
    return np.asarray(np.eye(3) + np.sinc(angle / np.pi) * cross + 0.5 * half**2 * (cross @ cross))
