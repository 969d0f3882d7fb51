"""Poses against scipy's own transforms, and every way a pose from disk can be wrong."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.transform import RigidTransform, Rotation

from vgbench_gen.core.errors import GeometryError, PoseError
from vgbench_gen.geometry import poses

SEEDS = st.integers(0, 2**32 - 1)
ROTVECS = st.tuples(*[st.floats(-3.0, 3.0)] * 3)


def random_poses(seed: int, count: int) -> npt.NDArray[np.float64]:
    """`count` rigid transforms made by scipy."""
    rng = np.random.default_rng(seed)
    rotation = Rotation.random(count, rng=rng)
    return np.asarray(RigidTransform.from_components(rng.uniform(-9, 9, (count, 3)), rotation).as_matrix())


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_composition_agrees_with_scipy_rigid_transform(seed: int) -> None:
    b_from_a, c_from_b = random_poses(seed, 2)
    points = np.random.default_rng(seed).normal(size=(6, 3))
    oracle_b, oracle_c = RigidTransform.from_matrix(b_from_a), RigidTransform.from_matrix(c_from_b)
    np.testing.assert_allclose(poses.invert(b_from_a), oracle_b.inv().as_matrix(), atol=1e-12)
    np.testing.assert_allclose(poses.transform(b_from_a, points), oracle_b.apply(points), atol=1e-12)
    both = poses.transform(c_from_b, poses.transform(b_from_a, points))
    np.testing.assert_allclose(both, (oracle_c * oracle_b).apply(points), atol=1e-11)
    relative = poses.relative_pose(b_from_a, c_from_b)
    np.testing.assert_allclose(relative, (oracle_c.inv() * oracle_b).as_matrix(), atol=1e-11)


def test_there_and_back_in_bulk() -> None:
    many = random_poses(1, 40)
    points = np.random.default_rng(1).normal(size=(40, 5, 3))
    there = poses.transform(many, points)
    assert there.shape == (40, 5, 3)
    np.testing.assert_allclose(there[7], poses.transform(many[7], points[7]), atol=1e-12)
    np.testing.assert_allclose(poses.transform(poses.invert(many), there), points, atol=1e-11)
    np.testing.assert_array_equal(poses.make_pose(many[:, :3, :3], many[:, :3, 3]), many)


@given(ROTVECS)
@settings(max_examples=50, deadline=None)
def test_rotation_angle_agrees_with_scipy(rotvec: tuple[float, float, float]) -> None:
    rotation = Rotation.from_rotvec(rotvec)
    expected = np.degrees(rotation.magnitude())
    np.testing.assert_allclose(poses.rotation_angle_deg(rotation.as_matrix()), expected, atol=1e-6)


@pytest.mark.parametrize("angle_deg", [0.0, 1e-7, 0.01, 90.0, 179.99, 180.0])
def test_rotation_angle_keeps_its_digits_at_both_ends(angle_deg: float) -> None:
    R = Rotation.from_rotvec(np.array([0.6, 0.0, 0.8]) * angle_deg, degrees=True).as_matrix()
    assert float(poses.rotation_angle_deg(R)) == pytest.approx(angle_deg, rel=1e-6, abs=1e-12)


def test_angle_between() -> None:
    a = np.array([[1.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 0, 0], [1, 0, 0]])
    b = np.array([[0, 5.0, 0], [1, 1, 0], [-1, 0, 0], [1, 0, 0], [1, 1e-9, 0]])
    expected = [90.0, 45.0, 180.0, np.nan, np.degrees(1e-9)]
    np.testing.assert_allclose(poses.angle_between_deg(a, b), expected, rtol=1e-12)


def test_quaternion_is_w_first_and_hamilton() -> None:
    # A quarter turn about z carries x to y.
    R = poses.quaternion_to_matrix([np.sqrt(0.5), 0, 0, np.sqrt(0.5)])
    np.testing.assert_allclose(R, [[0, -1, 0], [1, 0, 0], [0, 0, 1]], atol=1e-15)
    w, x, y, z = q = np.array([0.8, 0.2, -0.4, 0.4])
    written_out = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    np.testing.assert_allclose(poses.quaternion_to_matrix([q, -3 * q]), [written_out] * 2, atol=1e-15)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_quaternion_there_and_back(seed: int) -> None:
    R = random_poses(seed, 4)[:, :3, :3]
    q = Rotation.from_matrix(R).as_quat(scalar_first=True)
    np.testing.assert_allclose(poses.quaternion_to_matrix(q), R, atol=1e-12)


@pytest.mark.parametrize("q", [[0.0, 0, 0, 0], [np.nan, 0, 0, 1], [np.inf, 0, 0, 1]])
def test_no_quaternion(q: list[float]) -> None:
    with pytest.raises(GeometryError, match=r"^a quaternion is not finite or has length 0, so it is no rotation$"):
        poses.quaternion_to_matrix(q)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_nearest_rotation_is_proper_and_beats_others(seed: int) -> None:
    rng = np.random.default_rng(seed)
    M = rng.normal(size=(3, 3))
    R = poses.find_nearest_rotation(M)
    assert float(poses.measure_orthonormality_deviation(R)) < 1e-12
    assert np.linalg.det(R) > 0
    others = Rotation.random(200, rng=rng).as_matrix()
    assert np.linalg.norm(R - M) <= np.linalg.norm(others - M, axis=(1, 2)).min() + 1e-12


def test_check_pose_repairs_what_is_within_tolerance() -> None:
    exact = random_poses(3, 1)[0]
    bent = exact.copy()
    bent[:3, :3] *= 1.001
    bent[3] = (1e-4, 0, 0, 1.0005)
    repaired, deviation = poses.check_pose(bent, "x")
    assert deviation == pytest.approx(1.001**2 - 1, rel=1e-9)
    np.testing.assert_allclose(repaired[:3], exact[:3], atol=1e-12)
    np.testing.assert_array_equal(repaired[3], [0, 0, 0, 1])
    assert repaired.dtype == np.float64
    np.testing.assert_array_equal(poses.check_pose(bent.tolist(), "x")[0], repaired)
    assert bent[3, 0] == 1e-4, "the caller's array must stay as it was"


def bad(change: str) -> npt.NDArray[np.float64]:
    """A good pose, spoilt."""
    pose = np.eye(4)
    pose[:3, 3] = 1, 2, 3
    if change == "lost":
        pose[:] = -np.inf
    elif change == "one nan":
        pose[0, 3] = np.nan
    elif change == "mixed":
        pose[:2] = -np.inf
    elif change == "reflection":
        pose[2, 2] = -1
    elif change == "scaled":
        pose[:3, :3] *= 1.01
    elif change == "sheared":
        pose[0, 1] = 0.006
    elif change == "zero":
        pose[:3, :3] = 0
    elif change == "huge":
        pose[:3, :3] = 1e300
    elif change == "last row":
        pose[3] = 0, 0, 0.5, 1
    elif change == "far":
        pose[1, 3] = -1e30
    elif change == "transposed":
        pose = pose.T
    elif change == "3x4":
        pose = pose[:3]
    return pose


TAIL = " Copy, download or export it again; until then the frame is left out."
RIGID = "; expected a finite rigid 4x4 transform." + TAIL


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("lost", "found a pose of -inf only (lost tracking)" + RIGID),
        ("one nan", "found 1 of 16 numbers not finite" + RIGID),
        ("mixed", "found 8 of 16 numbers not finite" + RIGID),
        ("3x4", "found an array of shape (3, 4)" + RIGID),
        ("reflection", "found det R = -1.000; expected between 0.95 and 1.05." + TAIL),
        ("scaled", "found max |R^T R - I| = 0.0201; expected less than 0.005." + TAIL),
        ("sheared", "found max |R^T R - I| = 0.006; expected less than 0.005." + TAIL),
        ("zero", "found max |R^T R - I| = 1; expected less than 0.005." + TAIL),
        ("huge", "found max |R^T R - I| = inf; expected less than 0.005." + TAIL),
        ("last row", "found last row (0, 0, 0.5, 1); expected last row (0, 0, 0, 1) within 0.001." + TAIL),
        ("far", "found a translation of 1e+30 m; expected at most 10000 m." + TAIL),
        ("transposed", "found last row (1, 2, 3, 1); expected last row (0, 0, 0, 1) within 0.001." + TAIL),
    ],
)
def test_check_pose_says_what_is_wrong(change: str, message: str) -> None:
    with pytest.raises(PoseError) as caught:
        poses.check_pose(bad(change), "pose/7.txt")
    assert str(caught.value) == f"pose/7.txt: {message}"


@pytest.mark.parametrize("junk", ["nonsense", [["a"] * 4] * 4, [[1.0, 2.0], [3.0]], {"pose": 1}])
def test_check_pose_survives_junk(junk: object) -> None:
    with pytest.raises(PoseError) as caught:
        poses.check_pose(junk, "p.json")  # type: ignore[arg-type]
    assert str(caught.value) == "p.json: found something that is not a matrix of numbers" + RIGID
