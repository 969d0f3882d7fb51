"""Hand-held camera paths: arcs walked around a part of the room and back again, looks all around from several places,
and orbits around one thing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.core.types import Camera, FloatArray

_CANDIDATES = 400
_CLEAR_M = 0.32
_STEP_M = (0.21, 0.36)  # between frames: past the keyframe gate, short enough for a walk
_NEAR_M, _FAR_M = 0.5, 5.0  # distances at which a thing is seen well
# Seeing a thing from near and far counts more than twice from the same distance.
_BANDS_M = (_NEAR_M, 1.1, 2.0, 3.2, _FAR_M)

_STATIONS = 3  # of a tour
_FROM_WALL_M = 0.7

_NOISE_TURNS = np.array([1.3, 2.9, 5.3])[:, None, None]  # of the sines, in a whole path

Clearance = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True, eq=False)
class FilmingTarget:
    """Something worth filming."""

    center_m: FloatArray
    """Its centre in the world frame, (3,) meters."""
    size_m: float
    """Its largest side in meters."""


def make_looking_poses(eyes: FloatArray, targets: FloatArray, turns_deg: FloatArray) -> FloatArray:
    """(F, 4, 4) world_from_camera at `eyes` (F, 3) looking at `targets` (F, 3), upright, then turned by yaw, pitch and
    roll (F, 3) in degrees."""
    forward = targets - eyes
    forward = forward / np.linalg.norm(forward, axis=1, keepdims=True)
    right = np.stack([forward[:, 1], -forward[:, 0], np.zeros(len(eyes))], axis=1)  # forward x up
    right /= np.linalg.norm(right, axis=1, keepdims=True)
    level = np.stack([right, np.cross(forward, right), forward], axis=2)
    poses = np.tile(np.eye(4), (len(eyes), 1, 1))
    poses[:, :3, :3] = level @ Rotation.from_euler("YXZ", turns_deg, degrees=True).as_matrix()
    poses[:, :3, 3] = eyes
    return poses


def make_slow_noise(rng: np.random.Generator, frames: int, columns: int) -> FloatArray:
    """(F, C) slow noise of standard deviation about 1: a few sines with random phases."""
    pace, phase = rng.random((3, 2, 1, columns)).transpose(1, 0, 2, 3)
    turns = _NOISE_TURNS * (0.8 + (1.25 - 0.8) * pace)
    angle = 2 * np.pi * (turns * np.linspace(0, 1, frames)[:, None] + phase)
    return np.asarray(np.sin(angle).sum(axis=0) * np.sqrt(2 / 3))


def make_walk(
    rng: np.random.Generator,
    frames: int,
    camera: Camera,
    targets: list[FilmingTarget],
    size_m: tuple[float, float, float],
    clearance: Clearance,
) -> FloatArray:
    """(F, 4, 4) world_from_camera of the best of many random arcs out and back.

    Candidates that come too near to anything or move too fast or slowly between frames are refused; among the others
    the one that sees many things well and long wins.

    Raises:
        ConfigError: no way of so few frames is free.
    """
    centers, sizes_m = np.stack([target.center_m for target in targets]), np.array([each.size_m for each in targets])
    ease = _make_ease(frames, 3)
    best: tuple[float, FloatArray] | None = None
    for relaxed in (False, True):
        for _ in range(_CANDIDATES):
            eyes, gaze, turns = _draw_arc(rng, ease, centers, size_m)
            steps = np.linalg.norm(np.diff(eyes, axis=0), axis=1)
            if steps.max() > 2 * _STEP_M[1] or (np.median(steps) < _STEP_M[0] and not relaxed):
                continue
            margin = 0.4 if not relaxed else 0.25
            inside = (eyes[:, :2] > margin).all() and (eyes[:, :2] < np.array(size_m[:2]) - margin).all()
            if not inside:
                continue
            poses = make_looking_poses(eyes, gaze, turns)
            score = _score_path(poses, camera, centers, sizes_m)
            if best is not None and score <= best[0]:
                continue
            if clearance(eyes).min() < (_CLEAR_M if not relaxed else 0.12):
                continue
            best = (score, poses)
        if best is not None:
            return best[1]
    raise ConfigError(
        f"--frames {frames}: found no camera path through the room in so few frames. Use --frames 24 or more."
    )


def make_tour(
    rng: np.random.Generator, frames: int, size_m: tuple[float, float, float], clearance: Clearance
) -> FloatArray:
    """(F, 4, 4) world_from_camera of someone who looks all around from each of three free places, which are as far from
    each other as the room allows."""
    low, high = np.full(2, _FROM_WALL_M), np.array(size_m[:2]) - _FROM_WALL_M
    free = np.column_stack([rng.uniform(low, high, (_CANDIDATES, 2)), rng.uniform(1.3, 1.6, _CANDIDATES)])
    room_m = clearance(free)
    free = free[room_m >= min(_CLEAR_M, float(np.sort(room_m)[-_STATIONS]))]
    stations = [free[0]]
    while len(stations) < _STATIONS:
        stations.append(free[np.linalg.norm(free[:, None] - stations, axis=2).min(axis=1).argmax()])
    which = np.arange(frames) * _STATIONS // frames
    counts = np.bincount(which)
    turn = np.concatenate([rng.uniform(0, 2 * np.pi) + np.arange(n) * 2 * np.pi / n for n in counts])
    eyes = np.array(stations)[which] + 0.06 * make_slow_noise(rng, frames, 3)
    tilt = np.radians(14 + 5 * make_slow_noise(rng, frames, 1)[:, 0])  # down, where most things stand
    ahead = np.stack([np.cos(tilt) * np.cos(turn), np.cos(tilt) * np.sin(turn), -np.sin(tilt)], axis=1)
    return make_looking_poses(eyes, eyes + ahead, make_slow_noise(rng, frames, 3) * np.array([4.0, 2.0, 1.6]))


def make_orbit(
    rng: np.random.Generator, frames: int, center_m: FloatArray, radius_m: float, clearance: Clearance
) -> FloatArray:
    """(F, 4, 4) poses on an arc of more than half a circle round a thing and back again, higher or lower."""
    best: tuple[float, FloatArray] | None = None
    out, ease = frames // 2, _make_ease(frames, 2)
    for _ in range(40):
        start, span = rng.uniform(0, 2 * np.pi), np.radians(rng.uniform(190, 215))
        angle = start + span * np.concatenate([np.linspace(0, 1, out), np.linspace(0.97, 0.03, frames - out)])
        low, high = rng.uniform(20, 28), rng.uniform(38, 46)
        lift = np.radians(low + (high - low) * ease + 2.5 * make_slow_noise(rng, frames, 1)[:, 0])
        radius = radius_m * (1 + 0.1 * make_slow_noise(rng, frames, 1)[:, 0])
        eyes = center_m + np.stack(
            [radius * np.cos(lift) * np.cos(angle), radius * np.cos(lift) * np.sin(angle), radius * np.sin(lift)],
            axis=1,
        )
        free = float(clearance(eyes).min())
        if best is not None and free <= best[0]:
            continue
        aim = center_m + 0.05 * radius_m * make_slow_noise(rng, frames, 3)
        turns = make_slow_noise(rng, frames, 3) * np.array([1.6, 1.6, 2.0])
        poses = make_looking_poses(eyes, aim, turns)
        best = (free, poses)
        if free > 0.25:
            break
    assert best is not None
    return best[1]


def _make_ease(frames: int, reach: int) -> FloatArray:
    """(F,) 0 on the way out and 1 on the way back, with a slope over `reach` frames to either side of the change."""
    turn = np.arange(-reach, frames + reach) >= frames // 2
    return np.convolve(turn, np.ones(2 * reach + 1) / (2 * reach + 1), mode="valid")


def _draw_arc(
    rng: np.random.Generator, ease: FloatArray, centers: FloatArray, size_m: tuple[float, float, float]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Eyes, targets and turns as `make_looking_poses` takes them. ease: of `_make_ease`. centers: (N, 3) of things."""
    frames, (w, d, _) = len(ease), size_m
    hub = centers[int(rng.integers(len(centers)))]
    near = centers[np.linalg.norm(centers[:, :2] - hub[:2], axis=1) < 1.3]
    aim = np.array([*near[:, :2].mean(axis=0), rng.uniform(0.45, 0.95)])
    # Towards the middle of the room, give or take.
    facing = np.arctan2(d / 2 - aim[1], w / 2 - aim[0]) + rng.uniform(-0.7, 0.7)
    # One way close to the things, the other across the room; people drift towards what they film, and away from it.
    close, wide = np.exp(rng.uniform(np.log([0.55, 2.0]), np.log([1.4, 4.6])))
    there, back = (close, wide) if rng.random() < 0.5 else (wide, close)
    out = frames // 2
    radius = np.exp(
        np.log(there) + np.log(back / there) * ease + rng.uniform(0, 0.2) * make_slow_noise(rng, frames, 1)[:, 0]
    )
    half, other = (rng.uniform(0.5, 1.5) for _ in range(2))
    angle = facing + np.concatenate([np.linspace(-half, half, out), np.linspace(other, -other, frames - out)])
    low, high = rng.uniform(1.2, 1.4), rng.uniform(1.4, 1.7)
    if rng.random() < 0.5:
        low, high = high, low
    height = low + (high - low) * ease
    eyes = np.stack([aim[0] + radius * np.cos(angle), aim[1] + radius * np.sin(angle), height], axis=1)
    eyes += make_slow_noise(rng, frames, 3) * np.array([0.05, 0.05, 0.04])
    drift = np.append(rng.uniform(-0.7, 0.7, 2), 0.0)
    gaze = aim + drift * (ease[:, None] - 0.5) + make_slow_noise(rng, frames, 3) * np.array([0.16, 0.16, 0.1])
    turns = make_slow_noise(rng, frames, 3) * np.array([2.0, 1.6, 1.6])
    return eyes, gaze, turns


def _score_path(poses: FloatArray, camera: Camera, centers: FloatArray, sizes_m: FloatArray) -> float:
    """Mean number of things well in view, with little gain from the same ones again at the same distance."""
    seen = np.einsum("fji,fnj->fni", poses[:, :3, :3], centers[None] - poses[:, None, :3, 3])
    z = np.maximum(seen[..., 2], 1e-3)
    u, v = camera.fx * seen[..., 0] / z + camera.cx, camera.fy * seen[..., 1] / z + camera.cy
    reach = 0.4 * sizes_m * camera.fx / z
    inside = (u > reach) & (u < camera.width - reach) & (v > reach) & (v < camera.height - reach)
    score = 0.0
    for low_m, high_m in itertools.pairwise(_BANDS_M):
        times = (inside & (seen[..., 2] > low_m) & (seen[..., 2] < high_m)).sum(axis=0)
        score += float(np.minimum(times, 4).sum() + 0.1 * times.sum())
    return score
