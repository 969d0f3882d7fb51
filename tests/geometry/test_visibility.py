"""Visibility against Open3D's ray caster, and the three-way rule by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import ndimage
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera
from vgbench_gen.geometry import poses, visibility
from vgbench_gen.geometry.projection import is_in_image, project_world, sample_depth, sample_nearest
from vgbench_gen.geometry.visibility import LASER, OCCLUDED, OUTSIDE, SENSOR, UNDECIDED, VISIBLE

FLAT = Camera(np.array([[30.0, 0, 15.0], [0, 30.0, 10.0], [0, 0, 1]]), 32, 24)


@pytest.mark.parametrize(
    ("z", "measured", "state"),
    [
        (2.00, 2.0, VISIBLE),
        (2.049, 2.0, VISIBLE),
        (2.051, 2.0, UNDECIDED),
        (2.099, 2.0, UNDECIDED),
        (2.101, 2.0, OCCLUDED),
        (1.951, 2.0, VISIBLE),
        (1.949, 2.0, UNDECIDED),
        (0.5, 2.0, UNDECIDED),
        (4.079, 4.0, VISIBLE),  # 2 % of z governs beyond 2.5 m
        (4.09, 4.0, UNDECIDED),
        (4.17, 4.0, OCCLUDED),
        (2.0, 0.0, UNDECIDED),
        (2.0, np.nan, UNDECIDED),
        (2.0, np.inf, UNDECIDED),
        (-2.0, 2.0, OUTSIDE),
    ],
)
def test_states_of_the_three_way_rule(z: float, measured: float, state: int) -> None:
    depth = np.full((24, 32), measured, dtype=np.float32)
    assert int(visibility.classify(FLAT, depth, [4.2, 7.7], z, SENSOR)) == state


def test_outside_wins_and_nearest_pixel_counts() -> None:
    depth = np.full((24, 32), 2.0, dtype=np.float32)
    depth[5, 6] = 1.0
    uv = [[-0.6, 5], [31.6, 5], [5, 23.6], [np.nan, np.nan], [6.4, 5.4], [6.6, 5.4], [-0.5, -0.5]]
    states = visibility.classify(FLAT, depth, uv, np.full(7, 2.0), LASER)
    np.testing.assert_array_equal(states, [OUTSIDE, OUTSIDE, OUTSIDE, OUTSIDE, OCCLUDED, VISIBLE, VISIBLE])
    assert states.dtype == np.int8


def test_tolerances_are_those_of_the_specification() -> None:
    np.testing.assert_allclose(SENSOR.of([1.0, 2.5, 5.0]), [0.05, 0.05, 0.1])
    np.testing.assert_allclose(LASER.of([1.0, 3.0, 8.0]), [0.03, 0.03, 0.08])


@pytest.mark.parametrize(("a", "b"), [(0, 2), (1, 3), (3, 0), (4, 2)])
def test_co_visible_agrees_with_ray_casting(room: Any, a: int, b: int) -> None:
    camera, depths, pose = room.camera, room.depths, room.poses
    pair = visibility.find_co_visible(camera, depths[a], pose[a], camera, depths[b], pose[b], LASER, stride=3)
    assert len(pair.state) > 1500
    # nearest-pixel depth says nothing exact beside a silhouette
    edge = sample_nearest(visibility.find_depth_edges(depths[b], 2), pair.uv_b, outside=1)
    edge |= sample_nearest(visibility.find_depth_edges(depths[a], 0), pair.uv_a)
    inside = is_in_image(camera, pair.uv_b)
    seen = room.seen(pair.points_world, pose[b][:3, 3]) & inside
    clear = ~edge.astype(bool) | ~inside
    np.testing.assert_array_equal(seen[clear & (pair.state == VISIBLE)], True)
    np.testing.assert_array_equal(seen[clear & (pair.state == OCCLUDED)], False)
    np.testing.assert_array_equal(pair.state == OUTSIDE, ~inside)
    assert (pair.state[clear] == UNDECIDED).mean() < 0.03
    assert min((pair.state[clear] == s).sum() for s in (VISIBLE, OCCLUDED, OUTSIDE)) >= 20
    assert visibility.overlap_fraction(pair.state) == pytest.approx(seen.mean(), abs=0.02)
    np.testing.assert_array_equal(pair.visible, pair.state == VISIBLE)


def test_two_way_visible_closes_the_cycle_and_notices_a_wrong_pose(room: Any) -> None:
    camera, depths, pose = room.camera, room.depths, room.poses
    args = (camera, depths[0], pose[0], camera, depths[2])
    both = visibility.find_two_way_visible(*args, pose[2], LASER, stride=3)
    visible = both.visible
    assert visible.sum() > 500
    np.testing.assert_array_equal(both.forward.visible[visible], True)
    clear = ~sample_nearest(visibility.find_depth_edges(depths[2], 2), both.forward.uv_b, outside=1).astype(bool)
    # nearest-pixel depth would leave half a pixel on the floor
    assert np.quantile(both.cycle_px[visible & clear], 0.95) < 0.01
    assert both.cycle_px[visible & clear].max() < 0.5
    # what is occluded in B comes back elsewhere: B's nearer surface, not the point
    hidden = both.forward.state == OCCLUDED
    assert np.median(both.cycle_px[hidden]) > 5
    gap = both.forward.z_b[hidden] - sample_depth(depths[2], both.forward.uv_b[hidden])
    assert (gap > 2 * LASER.of(both.forward.z_b[hidden])).all()
    wrong = pose[2].copy()
    wrong[:3, 3] += wrong[:3, :3] @ (0.0, 0.0, 0.10)
    off = visibility.find_two_way_visible(*args, wrong, LASER, stride=3)
    assert np.nanmedian(off.cycle_px) > 3 * np.nanmedian(both.cycle_px[visible])
    assert off.visible.sum() < 0.2 * visible.sum()


def test_the_way_back_is_needed() -> None:
    # A looks through a gap one pixel wide at a far wall, and its depth there is of the near rim: B's wall is seen
    # by B, but from B's wall the way back meets A's rim.
    depth_a = np.full((24, 32), 1.0, dtype=np.float32)
    depth_b = np.full((24, 32), 1.0, dtype=np.float32)
    shifted = poses.make_pose(np.eye(3), [0.2, 0.0, 0.0])
    uv = np.array([[16.0, 12.0]])
    # at z = 1 the shift of 0.2 m moves the point by 6 px in B
    depth_b[12, 10] = 1.02
    both = visibility.find_two_way_visible(FLAT, depth_a, np.eye(4), FLAT, depth_b, shifted, LASER, uv_a=uv)
    np.testing.assert_allclose(both.forward.uv_b, [[10.0, 12.0]])
    assert both.visible.all()
    # back at 1.02 m: (10 - 15) / 30 * 1.02 + 0.2 = 0.03 m -> 0.03 / 1.02 * 30 + 15 px
    np.testing.assert_allclose(both.uv_back[0, 0], 0.03 / 1.02 * 30 + 15, atol=1e-5)
    np.testing.assert_allclose(both.uv_back[0, 1], 12.0, atol=1e-12)
    np.testing.assert_allclose(both.cycle_px, [16 - (0.03 / 1.02 * 30 + 15)], atol=1e-5)
    depth_a[12, 16] = 1.01
    depth_b[12, 10] = 0.985  # within 3 cm of 1.01, but A's neighbours at the way back are not
    depth_a[:, :16] = 0.9
    depth_a[:, 17:] = 0.9
    both = visibility.find_two_way_visible(FLAT, depth_a, np.eye(4), FLAT, depth_b, shifted, LASER, uv_a=[[16.4, 12.0]])
    assert both.forward.visible.all()
    assert not both.visible.any()


def test_behind_the_other_camera_is_outside(room: Any) -> None:
    camera, depths, pose = room.camera, room.depths, room.poses
    pair = visibility.find_co_visible(camera, depths[1], pose[1], camera, depths[5], pose[5], LASER)
    behind = pair.z_b <= 0
    assert behind.sum() > 100
    np.testing.assert_array_equal(pair.state[behind], OUTSIDE)
    assert np.isnan(pair.uv_b[behind]).all()
    assert visibility.overlap_fraction(pair.state) == 0.0


def test_another_world_changes_nothing(room: Any) -> None:
    camera, depths, pose = room.camera, room.depths, room.poses
    other = poses.make_pose(Rotation.from_rotvec([1.0, -2.0, 0.5]).as_matrix(), [7.0, -3.0, 11.0])
    here = visibility.find_two_way_visible(camera, depths[0], pose[0], camera, depths[3], pose[3], SENSOR)
    there = visibility.find_two_way_visible(
        camera, depths[0], other @ pose[0], camera, depths[3], other @ pose[3], SENSOR
    )
    assert (here.forward.state == there.forward.state).mean() > 0.999
    assert (here.visible == there.visible).mean() > 0.999
    np.testing.assert_allclose(there.forward.uv_b, here.forward.uv_b, atol=1e-6)


def test_unknown_depth_decides_nothing(room: Any) -> None:
    camera, depth, pose = room.camera, room.depths[0], room.poses
    uv = np.array([[10.0, 10.0], [80.0, 60.0], [200.0, 60.0]])
    holes = depth.copy()
    holes[10, 10] = 0.0
    pair = visibility.find_co_visible(camera, holes, pose[0], camera, depth, pose[0], LASER, uv_a=uv)
    np.testing.assert_array_equal(pair.state, [UNDECIDED, VISIBLE, UNDECIDED])
    np.testing.assert_array_equal(np.isnan(pair.points_world).all(axis=1), [True, False, True])
    np.testing.assert_allclose(pair.uv_b[1], uv[1], atol=1e-9)
    blind = visibility.find_co_visible(camera, depth, pose[0], camera, np.zeros_like(depth), pose[0], LASER)
    np.testing.assert_array_equal(blind.state, UNDECIDED)
    assert visibility.overlap_fraction(blind.state) == 0.0


def test_overlap_fraction_counts_only_what_decides() -> None:
    states = np.array([VISIBLE] * 3 + [OCCLUDED] * 2 + [OUTSIDE] + [UNDECIDED] * 10, dtype=np.int8)
    assert visibility.overlap_fraction(states) == 0.5
    assert visibility.overlap_fraction(states, min_decided=6) == 0.5
    assert visibility.overlap_fraction(states, min_decided=7) == 0.0
    assert visibility.overlap_fraction(states[:0]) == 0.0


def test_depth_edge_mask_marks_steps_and_holes_within_the_radius() -> None:
    columns = np.arange(60)
    depth = np.tile(2.0 + 0.03 * columns, (40, 1)).astype(np.float32)  # a slanted wall is no step
    assert not visibility.find_depth_edges(depth, 5).any()
    depth[:, 30:] += 0.5
    depth[35, 5] = 0.0
    mask = visibility.find_depth_edges(depth, 4)
    np.testing.assert_array_equal(np.nonzero(mask[10])[0], np.arange(25, 35))
    rows, cols = np.mgrid[:40, :60]
    np.testing.assert_array_equal(mask[:, :15], (np.hypot(rows - 35, cols - 5) <= 4)[:, :15])
    np.testing.assert_array_equal(np.nonzero(visibility.find_depth_edges(depth, 0)[10])[0], [29, 30])


@pytest.mark.parametrize(
    ("near", "step", "edge"), [(1.0, 0.09, False), (1.0, 0.11, True), (4.0, 0.19, False), (4.0, 0.205, True)]
)
def test_depth_step_limit(near: float, step: float, edge: bool) -> None:
    depth = np.full((9, 9), near, dtype=np.float32)
    depth[:, 5:] += step
    assert visibility.find_depth_edges(depth, 1).any() == edge


def test_parallax() -> None:
    points = np.array([[0.0, 0, 1], [0, 0, 0], [0, 0, 1e6], [3, 0, 0]])
    angles = visibility.parallax_deg(points, [-1.0, 0, 0], [1.0, 0, 0])
    np.testing.assert_allclose(angles, [90, 180, np.degrees(2e-6), 0], rtol=1e-6, atol=1e-9)


def test_pixels_of_two_resolutions(room: Any) -> None:
    # B's depth at another size with its own K gives the same verdicts away from edges
    camera, depths, pose = room.camera, room.depths, room.poses
    K = camera.K.copy()
    K[:2] /= 2
    half = Camera(K, 80, 60)  # every second pixel: centres at even pixels, so K scales plainly
    full = visibility.find_co_visible(camera, depths[0], pose[0], camera, depths[2], pose[2], SENSOR)
    small = visibility.find_co_visible(camera, depths[0], pose[0], half, depths[2][::2, ::2], pose[2], SENSOR)
    clear = ~sample_nearest(visibility.find_depth_edges(depths[2], 3), full.uv_b, outside=1).astype(bool)
    assert (full.state == small.state)[clear].mean() > 0.98
    np.testing.assert_allclose(small.uv_b, full.uv_b / 2, atol=1e-9)
    np.testing.assert_allclose(project_world(half, pose[2], small.points_world)[1], small.z_b)


def test_edge_mask_is_that_of_filters_and_a_distance_transform() -> None:
    rng = np.random.default_rng(1)
    for trial in range(12):
        depth = np.round(rng.uniform(1.9, 2.2, rng.integers(1, 60, 2)), 2).astype(np.float32)
        depth[rng.random(depth.shape) < 0.1 * (trial % 3)] = (0, np.nan, np.inf)[trial % 3]
        good = np.isfinite(depth) & (depth > 0)
        low = ndimage.minimum_filter(np.where(good, depth, np.inf).astype(np.float64), size=3, mode="nearest")
        high = ndimage.maximum_filter(np.where(good, depth, -np.inf).astype(np.float64), size=3, mode="nearest")
        edge = ~good | (high - low > np.maximum(0.28, 0.1 * low))
        for radius in (0.0, 1.0, 1.5, 3.2, 6.4, 90.0):
            grown = ndimage.distance_transform_edt(~edge) <= radius if edge.any() else edge
            mask = visibility.find_depth_edges(depth, radius, absolute_m=0.28, relative=0.1)
            np.testing.assert_array_equal(mask, grown, err_msg=f"{trial} {radius}")
