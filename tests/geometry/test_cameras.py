"""K, size and pose under resizing, cropping and turning, held against images of pixel numbers."""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera
from vgbench_gen.geometry import cameras, poses, projection

CAMERA = Camera(np.array([[50.0, 0, 17.3], [0, 47.0, 9.1], [0, 0, 1]]), 32, 24)
Array = npt.NDArray[np.float64]


def rotate_pixels(uv: Array, size: tuple[int, int], k: int) -> Array:
    """Where pixels (..., 2) of an image of this size are after `np.rot90(image, k)`."""
    for _ in range(k % 4):
        uv, size = np.stack([uv[..., 1], size[0] - 1 - uv[..., 0]], axis=-1), size[::-1]
    return uv


def pixel_grid(camera: Camera) -> Array:
    """(h, w, 2) pixel coordinates of every pixel."""
    return np.stack(np.meshgrid(np.arange(camera.width), np.arange(camera.height)), axis=-1).astype(np.float64)


def world_rays(camera: Camera, world_from_camera: Array) -> Array:
    """(h, w, 3) world directions of all pixels."""
    rays = projection.back_project(camera, pixel_grid(camera), np.ones((camera.height, camera.width)))
    return rays @ world_from_camera[:3, :3].T


def looking(yaw_deg: float, pitch_deg: float, roll_deg: float = 0.0) -> Array:
    """A camera in a z-up world; at 0, 0, 0 it looks along +y with the image upright. Positive pitch looks up."""
    upright = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
    yaw = Rotation.from_euler("z", yaw_deg, degrees=True).as_matrix()
    pitch = Rotation.from_euler("x", pitch_deg, degrees=True).as_matrix()
    roll = Rotation.from_euler("z", roll_deg, degrees=True).as_matrix()
    return poses.make_pose(yaw @ upright @ pitch @ roll, [1.0, 2.0, 3.0])


@pytest.mark.parametrize("k", [-1, 0, 1, 2, 3, 4, 7])
def test_quarter_turn_agrees_with_rot90_pixel_by_pixel(k: int) -> None:
    pose = looking(30, -10, 5)
    rays = world_rays(CAMERA, pose)
    turned_camera = cameras.rotate_camera_by_quarters(CAMERA, k)
    turned = world_rays(turned_camera, cameras.rotate_pose_by_quarters(pose, k))
    np.testing.assert_allclose(turned, np.rot90(rays, k), atol=1e-12)
    np.testing.assert_array_equal(cameras.rotate_pose_by_quarters(pose, k)[:3, 3], pose[:3, 3])
    # pixels: the image of pixel coordinates, turned, says where each went
    went = rotate_pixels(np.rot90(pixel_grid(CAMERA), k), CAMERA.size, k)
    np.testing.assert_array_equal(went, pixel_grid(turned_camera))
    # points of the camera frame
    point = np.array([0.2, -0.1, 2.0])
    uv, z = projection.project(turned_camera, cameras.quarter_turn_rotation(k) @ point)
    before, z_before = projection.project(CAMERA, point)
    np.testing.assert_allclose(uv, rotate_pixels(before, CAMERA.size, k), atol=1e-12)
    assert z == z_before


@pytest.mark.parametrize("k", [0, 1, 2, 3, 5])
def test_turned_rect_agrees_with_rot90_of_a_mask(k: int) -> None:
    mask = np.zeros((CAMERA.height, CAMERA.width), dtype=bool)
    mask[4:9, 11:23] = True
    rows, columns = np.nonzero(np.rot90(mask, k))
    outer = (columns.min() - 0.5, rows.min() - 0.5, columns.max() + 0.5, rows.max() + 0.5)
    assert cameras.rotate_rect_by_quarters((10.5, 3.5, 22.5, 8.5), CAMERA.width, CAMERA.height, k) == outer


def test_four_quarter_turns_are_the_identity() -> None:
    camera, pose, rect, width, height = CAMERA, looking(70, 20, 40), (1.0, 2.0, 7.5, 9.0), 32, 24
    turned_rect, start = rect, pose
    for _ in range(4):
        camera, pose = cameras.rotate_camera_by_quarters(camera, 1), cameras.rotate_pose_by_quarters(pose, 1)
        turned_rect = cameras.rotate_rect_by_quarters(turned_rect, width, height, 1)
        width, height = height, width
    np.testing.assert_allclose(camera.K, CAMERA.K, atol=1e-12)
    assert camera.size == CAMERA.size
    np.testing.assert_allclose(pose, start, atol=1e-15)
    assert turned_rect == pytest.approx(rect)


@given(st.integers(0, 3), st.floats(-180, 180), st.floats(-75, 75), st.floats(-40, 40))
@settings(max_examples=60, deadline=None)
def test_upright_turns_undo_the_sensors_orientation(k: int, yaw: float, pitch: float, roll: float) -> None:
    held = cameras.rotate_pose_by_quarters(looking(yaw, pitch, roll), k)
    turns = cameras.count_upright_turns(held, (0, 0, 1))
    assert turns == (-k) % 4
    up = cameras.up_in_camera(cameras.rotate_pose_by_quarters(held, turns), (0, 0, 1))
    assert up[1] < 0
    assert abs(up[0]) < abs(up[1])


@given(st.integers(0, 3), st.integers(0, 2**31))
@settings(max_examples=20, deadline=None)
def test_upright_turns_do_not_depend_on_the_world(k: int, seed: int) -> None:
    other = poses.make_pose(Rotation.random(rng=np.random.default_rng(seed)).as_matrix(), [4.0, 5, 6])
    held = other @ cameras.rotate_pose_by_quarters(looking(10, -20, 15), k)
    assert cameras.count_upright_turns(held, other[:3, :3] @ (0, 0, 1)) == (-k) % 4


@pytest.mark.parametrize("pitch", [-90.0, 90.0])
def test_looking_straight_up_or_down_has_no_upright(pitch: float) -> None:
    assert cameras.count_upright_turns(cameras.rotate_pose_by_quarters(looking(20, pitch), 1), (0, 0, 1)) == 0


def test_up_in_a_z_up_world_is_the_third_row_of_the_pose() -> None:
    pose = looking(33, 12, 7)
    np.testing.assert_allclose(cameras.up_in_camera(pose, (0, 0, 1)), pose[2, :3])
    np.testing.assert_allclose(cameras.up_in_camera(looking(50, 0), (0, 0, 1)), [0, -1, 0], atol=1e-15)


@pytest.mark.parametrize("size", [(64, 48), (16, 12), (48, 24), (40, 33)])
def test_resized_agrees_with_opencv_resize(size: tuple[int, int]) -> None:
    resized = cameras.resize_camera(CAMERA, *size)
    coordinates = cv2.resize(pixel_grid(CAMERA), size, interpolation=cv2.INTER_LINEAR)
    inner = (slice(3, -3), slice(3, -3))
    came_from = projection.back_project(CAMERA, coordinates, np.ones(size[::-1]))[inner]
    rays = projection.back_project(resized, pixel_grid(resized), np.ones(size[::-1]))[inner]
    np.testing.assert_allclose(rays, came_from, atol=1e-6)
    assert resized.size == size
    back = cameras.resize_camera(resized, *CAMERA.size)
    np.testing.assert_allclose(back.K, CAMERA.K, atol=1e-12)


def test_cropped_agrees_with_slicing() -> None:
    rays = world_rays(CAMERA, np.eye(4))
    crop = cameras.crop_camera(CAMERA, 5, 3, 20, 11)
    np.testing.assert_allclose(world_rays(crop, np.eye(4)), rays[3:14, 5:25], atol=1e-12)
    assert cameras.crop_camera(CAMERA, 0, 0, 32, 24).size == (32, 24)


@pytest.mark.parametrize("rect", [(-1, 0, 5, 5), (0, -1, 5, 5), (28, 0, 5, 5), (0, 20, 5, 5), (0, 0, 0, 5)])
def test_crop_outside_the_image(rect: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"^crop \d+x\d+\+-?\d+\+-?\d+ is not inside 32x24$"):
        cameras.crop_camera(CAMERA, *rect)


def test_field_of_view_is_the_angle_between_the_edges() -> None:
    camera = Camera(np.array([[50.0, 0, 3.0], [0, 47.0, 20.0], [0, 0, 1]]), 32, 24)
    sides = projection.back_project(camera, [[-0.5, camera.cy], [31.5, camera.cy]], np.ones(2))
    ends = projection.back_project(camera, [[camera.cx, -0.5], [camera.cx, 23.5]], np.ones(2))
    expected = [float(poses.angle_between_deg(*sides)), float(poses.angle_between_deg(*ends))]
    assert cameras.fov_deg(camera) == pytest.approx(expected, rel=1e-12)
    # 90 degrees where the focal length is half the width
    square = Camera(np.array([[16.0, 0, 15.5], [0, 12.0, 11.5], [0, 0, 1]]), 32, 24)
    assert cameras.fov_deg(square) == pytest.approx((90.0, 90.0))


def test_map_pixels_follows_the_corner_centre_rule_of_scannet() -> None:
    color = Camera(np.array([[1169.621, 0, 646.295], [0, 1167.105, 489.927], [0, 0, 1]]), 1296, 968)
    depth = Camera(np.array([[577.591, 0, 318.905], [0, 578.730, 242.684], [0, 0, 1]]), 640, 480)
    uv = np.array([[0.0, 0.0], [639.0, 479.0], [320.0, 100.0]])
    in_color = cameras.map_pixels(color, depth, uv)
    np.testing.assert_allclose(
        projection.back_project(color, in_color, np.ones(3)), projection.back_project(depth, uv, np.ones(3)), atol=1e-12
    )
    np.testing.assert_allclose(in_color, uv * (1295 / 639, 967 / 479), atol=0.55)
    np.testing.assert_allclose(cameras.map_pixels(depth, color, in_color), uv, atol=1e-9)
