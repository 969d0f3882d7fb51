"""The pose of two views on exact points: what a plane, a rotation or the twin motion must not make of it."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from vgbench_gen.agent.two_view import TwoView, estimate_two_view
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg

K = np.array([[600.0, 0, 320], [0, 600.0, 240], [0, 0, 1]])
TURN = Rotation.from_rotvec([0.05, -0.2, 0.03]).as_matrix()
SHIFT = np.array([0.4, 0.05, 0.1])


def scatter(count: int = 200, flat: bool = False) -> FloatArray:
    """(N, 3) points before the first camera: in a room, or on one wall."""
    rng = np.random.default_rng(4)
    points = rng.uniform([-1.2, -0.9, 2.0], [1.2, 0.9, 5.0], (count, 3))
    if flat:
        points[:, 2] = 3.0 + 0.4 * points[:, 0]
    return points


def project(points: FloatArray, camera: FloatArray = K, noise_px: float = 0.2) -> FloatArray:
    seen = points @ camera.T
    return seen[:, :2] / seen[:, 2:] + np.random.default_rng(5).normal(0, noise_px, (len(points), 2))


def see(
    points: FloatArray, R: FloatArray = TURN, t: FloatArray = SHIFT, camera: FloatArray = K, stray: int = 0
) -> TwoView:
    uv1, uv2 = project(points, camera), project(points @ R.T + t, camera, 0.21)
    if stray:
        uv2[:stray] = np.random.default_rng(6).uniform(0, 480, (stray, 2))
    found = estimate_two_view(uv1, uv2, camera, camera)
    assert found is not None
    return found


@pytest.mark.parametrize("t", [SHIFT, -SHIFT, np.array([0.0, 0.0, 0.5]), np.array([0.0, 0.0, -0.5])])
@pytest.mark.parametrize("R", [TURN, TURN.T, np.eye(3)])
def test_pose_of_points_is_found_with_its_sign(R: FloatArray, t: FloatArray) -> None:
    found = see(scatter(), R, t, stray=40)
    assert found.why_no_direction == found.why_no_rotation == ""
    assert rotation_angle_deg(found.rotation @ R.T) < 0.5
    assert angle_between_deg(found.direction, t) < 3
    assert found.inliers >= 155


def test_scaled_image_and_camera_give_the_same_pose() -> None:
    small, large = see(scatter()), see(scatter(), camera=np.diag([2.0, 2.0, 1.0]) @ K)
    assert rotation_angle_deg(small.rotation @ large.rotation.T) < 0.2
    assert angle_between_deg(small.direction, large.direction) < 1.5


def test_exchanged_views_give_the_inverse_pose() -> None:
    points = scatter()
    uv1, uv2 = project(points), project(points @ TURN.T + SHIFT, noise_px=0.21)
    there, back = estimate_two_view(uv1, uv2, K, K), estimate_two_view(uv2, uv1, K, K)
    assert there is not None
    assert back is not None
    assert rotation_angle_deg(there.rotation @ back.rotation) < 0.2
    assert angle_between_deg(back.direction, -back.rotation @ there.direction) < 1


def test_rotation_alone_has_no_direction() -> None:
    found = see(scatter(), t=np.zeros(3))
    assert "baseline too small" in found.why_no_direction
    assert not found.direction.any()
    assert rotation_angle_deg(found.rotation @ TURN.T) < 0.2


def test_plane_is_told_right_or_not_at_all() -> None:
    for seed in range(8):
        rng = np.random.default_rng(seed)
        t = rng.normal(size=3)
        t *= 0.4 / np.linalg.norm(t)
        R = Rotation.from_rotvec(rng.normal(0, 0.15, 3)).as_matrix()
        found = see(scatter(150, flat=True), R, t)
        assert found.why_no_direction or angle_between_deg(found.direction, t) < 10
        assert found.why_no_rotation or found.why_no_direction or rotation_angle_deg(found.rotation @ R.T) < 3


def test_matches_that_agree_on_nothing_have_no_pose() -> None:
    rng = np.random.default_rng(8)
    found = estimate_two_view(rng.uniform(0, 480, (150, 2)), rng.uniform(0, 480, (150, 2)), K, K)
    assert found is None or found.why_no_rotation
