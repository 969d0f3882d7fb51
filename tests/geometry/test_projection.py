"""Projection against OpenCV, back-projection against Open3D."""

from __future__ import annotations

import importlib
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera
from vgbench_gen.geometry import cameras, poses, projection

CAMERA = Camera(np.array([[510.0, 0, 322.7], [0, 490.0, 231.2], [0, 0, 1]]), 640, 480)
SEEDS = st.integers(0, 2**32 - 1)


def view(seed: int) -> tuple[np.random.Generator, Any, Any]:
    """A pose and (50, 3) world points in front of it."""
    rng = np.random.default_rng(seed)
    pose = poses.make_pose(Rotation.random(rng=rng).as_matrix(), rng.uniform(-5, 5, 3))
    points = rng.uniform([-2, -2, 0.3], [2, 2, 6], (50, 3))
    return rng, pose, poses.transform(pose, points)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_projection_agrees_with_opencv(seed: int) -> None:
    _, pose, points = view(seed)
    uv, z = projection.project_world(CAMERA, pose, points)
    camera_from_world = np.linalg.inv(pose)
    rvec = Rotation.from_matrix(camera_from_world[:3, :3]).as_rotvec()
    expected, _ = cv2.projectPoints(points, rvec, camera_from_world[:3, 3], CAMERA.K, np.zeros(4))
    np.testing.assert_allclose(uv, expected[:, 0], atol=1e-6)
    np.testing.assert_allclose(z, (points - pose[:3, 3]) @ pose[:3, 2], atol=1e-9)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_another_world_changes_nothing(seed: int) -> None:
    rng, pose, points = view(seed)
    other = poses.make_pose(Rotation.random(rng=rng).as_matrix(), rng.uniform(-20, 20, 3))
    uv, z = projection.project_world(CAMERA, pose, points)
    uv_other, z_other = projection.project_world(CAMERA, other @ pose, poses.transform(other, points))
    np.testing.assert_allclose(uv_other, uv, atol=1e-6)
    np.testing.assert_allclose(z_other, z, atol=1e-9)


@given(SEEDS, st.integers(100, 2000), st.integers(100, 2000))
@settings(max_examples=25, deadline=None)
def test_there_and_back_and_rescaled(seed: int, width: int, height: int) -> None:
    _, pose, points = view(seed)
    uv, z = projection.project_world(CAMERA, pose, points)
    np.testing.assert_allclose(poses.transform(pose, projection.back_project(CAMERA, uv, z)), points, atol=1e-9)
    resized = cameras.resize_camera(CAMERA, width, height)
    uv_resized, _ = projection.project_world(resized, pose, points)
    np.testing.assert_allclose(uv_resized, (uv + 0.5) * (width / 640, height / 480) - 0.5, rtol=1e-9, atol=1e-6)


def test_points_behind_the_camera_have_no_pixel() -> None:
    points = np.array([[0.1, 0.1, 2.0], [0.1, 0.1, -2.0], [0.1, 0.1, 0.0], [0, 0, 0], [np.nan, 0, 1]])
    uv, z = projection.project(CAMERA, points)
    np.testing.assert_array_equal(np.isnan(uv).any(axis=-1), [False, True, True, True, True])
    np.testing.assert_array_equal(z, [2, -2, 0, 0, 1])
    np.testing.assert_array_equal(projection.is_in_image(CAMERA, uv), [True, False, False, False, False])
    # the mirrored pixel that a plain division would give lies well inside the image
    wrapped, _ = cv2.projectPoints(points[1:2], np.zeros(3), np.zeros(3), CAMERA.K, np.zeros(4))
    assert projection.is_in_image(CAMERA, wrapped[0, 0])


def test_depth_points_agree_with_open3d() -> None:
    o3d: Any = importlib.import_module("open3d")
    rng = np.random.default_rng(4)
    depth = rng.uniform(0.4, 6.0, (48, 64)).astype(np.float32)
    depth[rng.random(depth.shape) < 0.3] = 0.0
    camera = Camera(np.array([[51.0, 0, 30.7], [0, 49.0, 23.2], [0, 0, 1]]), 64, 48)
    intrinsic = o3d.camera.PinholeCameraIntrinsic(64, 48, camera.K)
    cloud = o3d.geometry.PointCloud.create_from_depth_image(
        o3d.geometry.Image(depth), intrinsic, depth_scale=1.0, depth_trunc=100.0
    )
    points, uv = projection.back_project_depth(camera, depth)
    np.testing.assert_allclose(points, np.asarray(cloud.points), atol=1e-6)
    assert len(points) == int((depth > 0).sum())
    np.testing.assert_allclose(projection.project(camera, points)[0], uv, atol=1e-9)


def test_depth_is_along_the_axis_not_the_ray() -> None:
    point = projection.back_project(CAMERA, [0.0, 0.0], 2.0)
    assert point[2] == 2.0
    assert np.linalg.norm(point) > 2.2


def test_depth_points_with_stride_and_unknown() -> None:
    depth = np.arange(1, 64 * 48 + 1, dtype=np.float32).reshape(48, 64)
    depth[2, 2] = 0
    depth[2, 7] = np.nan
    depth[7, 2] = np.inf
    depth[7, 7] = -1
    camera = Camera(CAMERA.K, 64, 48)
    points, uv = projection.back_project_depth(camera, depth, stride=5)
    np.testing.assert_array_equal(uv[:2], [[12, 2], [17, 2]])
    np.testing.assert_array_equal(points[:, 2], depth[uv[:, 1].astype(int), uv[:, 0].astype(int)])
    assert len(uv) == 10 * 13 - 4


def test_depth_of_another_size_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^image is 32x24, its camera 640x480$"):
        projection.back_project_depth(CAMERA, np.ones((24, 32), dtype=np.float32))


def test_in_image_counts_whole_pixels() -> None:
    uv = np.array([[-0.5, -0.5], [-0.51, 0], [639.49, 479.49], [639.5, 0], [0, 479.5], [np.nan, 3]])
    np.testing.assert_array_equal(projection.is_in_image(CAMERA, uv), [True, False, True, False, False, False])
    near = np.array([[9.4, 200], [9.5, 200], [629.4, 200], [629.6, 200], [50, 470]])
    border = projection.is_in_image(CAMERA, near, border_px=10)
    np.testing.assert_array_equal(border, [False, True, True, False, False])


def test_sample_nearest_agrees_with_a_loop() -> None:
    rng = np.random.default_rng(0)
    image = rng.random((7, 9, 2)).astype(np.float32)
    uv = rng.uniform(-3, 12, (400, 2))
    uv[:4] = [[-0.5, -0.5], [8.5, 0], [np.nan, 1], [np.nextafter(8.5, 0), np.nextafter(6.5, 0)]]
    values = projection.sample_nearest(image, uv, outside=-1)
    for (u, v), value in zip(uv, values, strict=True):
        hit = [(r, c) for r in range(7) for c in range(9) if -0.5 <= u - c < 0.5 and -0.5 <= v - r < 0.5]
        np.testing.assert_array_equal(value, image[hit[0]] if hit else [-1, -1])
    assert projection.sample_nearest(image[..., 0], uv.reshape(20, 20, 2)).shape == (20, 20)


def test_sample_depth_is_exact_on_planes_and_never_mixes_steps() -> None:
    camera = Camera(np.array([[60.0, 0, 31.0], [0, 60.0, 22.0], [0, 0, 1]]), 64, 48)
    normal, offset = np.array([0.4, -0.5, 1.0]), 2.0

    def plane(uv: Any) -> Any:
        return offset / (projection.back_project(camera, uv, np.ones(np.shape(uv)[:-1])) @ normal)

    grid = np.stack(np.meshgrid(np.arange(64), np.arange(48)), axis=-1)
    depth = plane(grid).astype(np.float32)
    uv = np.random.default_rng(0).uniform((0, 0), (63, 47), (500, 2))
    np.testing.assert_allclose(projection.sample_depth(depth, uv), plane(uv), rtol=1e-6)
    np.testing.assert_array_equal(projection.sample_depth(depth, grid), depth)
    step = np.full((48, 64), 2.0, dtype=np.float32)
    step[:, 30:] = 2.11
    step[5, 5] = 0
    step[9, 9] = np.nan
    at = [[29.4, 8], [29.6, 8], [5.2, 5.2], [5.6, 5.2], [9.1, 9.4], [-0.4, 3], [63.4, 3], [-0.6, 3], [np.nan, 3]]
    expected = np.array([2, 2.11, 0, 2, 0, 2, 2.11, 0, 0], dtype=np.float32)
    np.testing.assert_array_equal(projection.sample_depth(step, at), expected)
    assert projection.sample_depth(step, [29.5, 8], absolute_m=0.12) == pytest.approx(2 / (1 / 2 + 1 / 2.11))
