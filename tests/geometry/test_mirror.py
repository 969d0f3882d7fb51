from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt
import pytest
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Camera, FloatArray, OrientedBox
from vgbench_gen.geometry import boxes, mirror

CAMERA = Camera(np.array([[521.0, 0, 301.25], [0, 517.0, 244.0], [0, 0, 1]]), 640, 480)
H = np.array([[0.9, 0.1, 12.0], [-0.08, 1.05, 7.5], [1e-4, -5e-5, 1.0]])


def motion(seed: int) -> FloatArray:
    rng = np.random.default_rng(seed)
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = Rotation.random(random_state=seed).as_matrix(), rng.normal(size=3)
    return pose


def flipped(uv: npt.ArrayLike, width: int) -> FloatArray:
    return np.asarray(np.asarray(uv, dtype=np.float64) * [-1, 1] + [width - 1, 0])


def test_the_mirrored_camera_is_that_of_the_flipped_image() -> None:
    """A spot where a point on the optical axis is seen, found again after the image is flipped."""
    for width, cx in ((7, 0), (7, 3), (8, 5), (8, 7)):
        image = np.zeros((4, width), np.uint8)
        image[2, cx] = 255
        camera = Camera(np.array([[9.0, 0, cx], [0, 9.0, 2], [0, 0, 1]]), width, 4)
        ((row, column),) = np.argwhere(cv2.flip(image, 1))
        assert (mirror.mirror_camera(camera).cx, mirror.mirror_camera(camera).cy) == (column, row)
        assert mirror.mirror_camera(camera).size == camera.size


def test_the_mirrored_camera_sees_the_mirrored_points() -> None:
    points = np.random.default_rng(0).uniform([-1, -1, 1.5], [1, 1, 4], (50, 3))
    there = np.linalg.inv(motion(1))
    before, _ = cv2.projectPoints(points, cv2.Rodrigues(there[:3, :3])[0], there[:3, 3], CAMERA.K, None)
    turned = mirror.mirror_motion(there)
    assert np.linalg.det(turned[:3, :3]) == pytest.approx(1)
    after, _ = cv2.projectPoints(
        mirror.mirror_points(points),
        cv2.Rodrigues(turned[:3, :3])[0],
        turned[:3, 3],
        mirror.mirror_camera(CAMERA).K,
        None,
    )
    np.testing.assert_allclose(after[:, 0], flipped(before[:, 0], CAMERA.width), atol=1e-8)


def test_a_mirrored_chain_of_motions_is_the_chain_of_mirrored_ones() -> None:
    a, b = motion(2), motion(3)
    np.testing.assert_allclose(
        mirror.mirror_motion(a @ b), mirror.mirror_motion(a) @ mirror.mirror_motion(b), atol=1e-12
    )
    np.testing.assert_array_equal(mirror.mirror_motion(a[:3]), mirror.mirror_motion(a)[:3])
    np.testing.assert_array_equal(mirror.mirror_motion(np.stack([a, b]))[1], mirror.mirror_motion(b))
    assert not np.signbit(mirror.mirror_motion(np.eye(4))).any()


def test_a_mirrored_homography_carries_the_mirrored_pixels() -> None:
    uv = np.array([[[10.0, 20.0]], [[500.0, 100.0]], [[333.0, 444.0]]])
    there = cv2.perspectiveTransform(uv, H)
    turned = mirror.mirror_homography(H, 640, 500)
    assert turned[2, 2] == 1
    back = cv2.perspectiveTransform(flipped(uv, 640), turned)
    np.testing.assert_allclose(back, flipped(there, 500), atol=1e-9)
    # The right edge of the source goes to infinity, and with it the mirrored pixel (0, 0).
    with pytest.raises(GeometryError, match="infinity"):
        mirror.mirror_homography(np.array([[1, 0, 0], [0, 1, 0], [-1 / 639, 0, 1]]), 640, 640)


def test_a_mirrored_box_is_a_box_with_corners_in_order() -> None:
    box = OrientedBox(np.array([0.4, -0.2, 2.5]), np.array([0.5, 0.3, 0.9]), motion(4)[:3, :3], "camera")
    corners = mirror.mirror_corners(boxes.corners(box))
    np.testing.assert_allclose(boxes.fit_to_corners(corners).size_m, box.size_m)
    assert np.linalg.det(boxes.fit_to_corners(corners).rotation) == pytest.approx(1)
    assert boxes.cuboid_residual_m(corners) < 1e-9
    # The same eight points, reflected.
    reflected = {tuple(p) for p in np.round(boxes.corners(box) * [-1, 1, 1], 9).tolist()}
    assert {tuple(p) for p in np.round(corners, 9).tolist()} == reflected


def test_mirroring_twice_changes_nothing() -> None:
    box = OrientedBox(np.array([0.4, -0.2, 2.5]), np.array([0.5, 0.3, 0.9]), motion(5)[:3, :3], "camera")
    np.testing.assert_allclose(mirror.mirror_camera(mirror.mirror_camera(CAMERA)).K, CAMERA.K, atol=1e-9)
    np.testing.assert_array_equal(mirror.mirror_motion(mirror.mirror_motion(motion(6))), motion(6))
    np.testing.assert_allclose(mirror.mirror_homography(mirror.mirror_homography(H, 640, 500), 640, 500), H, atol=1e-12)
    np.testing.assert_array_equal(mirror.mirror_corners(mirror.mirror_corners(boxes.corners(box))), boxes.corners(box))
