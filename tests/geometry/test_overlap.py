"""Bulk overlap against the frame-by-frame route, plane share against made-up mixtures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vgbench_gen.geometry import overlap, visibility
from vgbench_gen.geometry.visibility import LASER, SENSOR


def Ks_of(room: Any) -> Any:
    """(F, 3, 3) K of every view."""
    return np.tile(room.camera.K, (len(room.poses), 1, 1))


def test_pairwise_states_agree_with_the_exact_route(room: Any) -> None:
    for a in range(6):
        exact = [
            visibility.find_co_visible(room.camera, room.depths[a], room.poses[a], room.camera, depth, pose, LASER)
            for depth, pose in zip(room.depths, room.poses, strict=True)
        ]
        points = exact[0].points_world
        states = overlap.compute_pairwise_states(points, Ks_of(room), room.depths, room.poses, LASER)
        assert (states == np.stack([e.state for e in exact])).mean() > 0.998
        shares = overlap.compute_pairwise_overlap(points, Ks_of(room), room.depths, room.poses, LASER)
        np.testing.assert_allclose(shares, [visibility.overlap_fraction(e.state) for e in exact], atol=0.005)
        assert shares[a] > 0.999


def test_each_view_uses_its_own_k(room: Any) -> None:
    Ks = Ks_of(room)
    Ks[2, 0, 2] += 40
    points = visibility.find_co_visible(
        room.camera, room.depths[0], room.poses[0], room.camera, room.depths[0], room.poses[0], LASER
    ).points_world
    plain = overlap.compute_pairwise_states(points, Ks_of(room), room.depths, room.poses, LASER)
    changed = overlap.compute_pairwise_states(points, Ks, room.depths, room.poses, LASER)
    np.testing.assert_array_equal((plain != changed).any(axis=1), [False, False, True, False, False, False])


def test_states_are_the_same_far_from_the_origin(room: Any) -> None:
    points = visibility.find_co_visible(
        room.camera, room.depths[0], room.poses[0], room.camera, room.depths[0], room.poses[0], LASER
    ).points_world
    near = overlap.compute_pairwise_states(points, Ks_of(room), room.depths, room.poses, LASER)
    shift = np.array([3e5, -2e5, 1e3])
    moved = room.poses.copy()
    moved[:, :3, 3] += shift
    far = overlap.compute_pairwise_states(points + shift, Ks_of(room), room.depths, moved, LASER)
    assert (near == far).mean() > 0.999
    assert overlap.compute_pairwise_states(points[:0], Ks_of(room), room.depths, room.poses, LASER).shape == (6, 0)


def test_overlap_is_the_same_in_any_chunk_and_with_holes(room: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    depths = room.depths.copy()
    depths[4, :, :60] = 0
    for a in range(5):
        pairs = [
            visibility.find_co_visible(room.camera, depths[a], room.poses[a], room.camera, depth, pose, SENSOR)
            for depth, pose in zip(depths, room.poses, strict=True)
        ]
        points = pairs[0].points_world
        shares = overlap.compute_pairwise_overlap(points, Ks_of(room), depths, room.poses, SENSOR)
        np.testing.assert_allclose(shares, [visibility.overlap_fraction(pair.state) for pair in pairs], atol=0.01)
        assert len(np.unique(shares.round(3))) > 4
        with monkeypatch.context() as patch:
            patch.setattr(overlap, "_CHUNK", 500)
            again = overlap.compute_pairwise_overlap(points, Ks_of(room), depths, room.poses, SENSOR)
        np.testing.assert_array_equal(again, shares)


def test_too_few_decisions_are_no_overlap(room: Any) -> None:
    depths = np.zeros_like(room.depths)
    depths[0], depths[1, 60, 80] = room.depths[0], room.depths[1, 60, 80]
    points = visibility.find_co_visible(
        room.camera, depths[0], room.poses[0], room.camera, depths[0], room.poses[0], SENSOR
    ).points_world
    shares = overlap.compute_pairwise_overlap(points, Ks_of(room), depths, room.poses, SENSOR, min_decided=20)
    assert shares[0] > 0.99
    few = overlap.compute_pairwise_overlap(points[:19], Ks_of(room), depths, room.poses, SENSOR, min_decided=20)
    np.testing.assert_array_equal(few, 0)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("seed", [0, 1])
def test_largest_plane_share_finds_the_plane(share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    count = 3000
    on = int(share * count)
    points = rng.uniform(-2, 2, (count, 3))
    points[:on, 2] = rng.normal(0, 0.005, on)
    moved = points @ Rotation.random(rng=rng).as_matrix().T + rng.uniform(-5, 5, 3)
    # points of the rest fall on the plane by chance with probability 0.04 / 4
    expected = share + (1 - share) * 0.01
    found = overlap.largest_plane_share(moved, rng, 0.02)
    assert found == pytest.approx(expected, abs=0.02)
    per_point = overlap.largest_plane_share(moved, rng, np.full(count, 0.02))
    assert per_point == pytest.approx(expected, abs=0.02)


def test_plane_share_refines_a_tilted_guess() -> None:
    # all else lies on one side, so neither the plane through everything nor few triples of noisy points are enough
    rng = np.random.default_rng(5)
    points = rng.uniform(-1, 1, (1000, 3))
    points[:600, 2] = rng.normal(0, 0.01, 600)
    points[600:, 2] = rng.uniform(0.2, 2, 400)
    shares = [overlap.largest_plane_share(points, rng, 0.03, hypotheses=12) for _ in range(30)]
    assert np.median(shares) > 0.592


def test_plane_share_of_a_room_corner() -> None:
    rng = np.random.default_rng(9)
    points = np.concatenate([rng.uniform(0, 2, (400, 3)) * np.roll([0, 1, 1], i) for i in range(3)])
    assert overlap.largest_plane_share(points, rng, 0.01) == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("points", [np.zeros((0, 3)), np.eye(3), np.outer(np.arange(9.0), [1, 2, 3]), np.ones((8, 3))])
def test_degenerate_points_are_one_plane(points: Any) -> None:
    assert overlap.largest_plane_share(points, np.random.default_rng(0), 0.01) == 1.0
