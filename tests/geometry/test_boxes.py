"""Boxes against trimesh, OpenCV, half-space intersection and volumes by counting."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
import pytest
import trimesh
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, lsq_linear
from scipy.spatial import ConvexHull, HalfspaceIntersection, QhullError
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Camera, OrientedBox
from vgbench_gen.geometry import boxes, poses

Array = npt.NDArray[np.float64]
SEEDS = st.integers(0, 2**32 - 1)
CAMERA = Camera(np.array([[510.0, 0, 322.7], [0, 490.0, 231.2], [0, 0, 1]]), 640, 480)


def random_box(rng: np.random.Generator, spread: float = 0.6, frame: str = "world") -> OrientedBox:
    """A box of random place, size and orientation."""
    R = Rotation.random(rng=rng).as_matrix()
    return OrientedBox(rng.uniform(-spread, spread, 3), rng.uniform(0.3, 1.5, 3), R, frame)


def as_mesh(box: OrientedBox) -> trimesh.Trimesh:
    """The same box made by trimesh."""
    return trimesh.creation.box(extents=box.size_m, transform=poses.make_pose(box.rotation, box.center_m))


def halfspace_volume(a: OrientedBox, b: OrientedBox) -> float:
    """Shared volume by half-space intersection about the Chebyshev centre."""
    planes = []
    for box in (a, b):
        for sign in (-1.0, 1.0):
            normals = sign * box.rotation.T
            planes.append(np.c_[normals, -(normals @ box.center_m) - box.size_m / 2])
    H = np.concatenate(planes)
    found = linprog(
        [0, 0, 0, -1], A_ub=np.c_[H[:, :3], np.ones(12)], b_ub=-H[:, 3], bounds=[(None, None)] * 3 + [(0, None)]
    )
    if found.x is None or found.x[3] < 1e-7:
        return 0.0
    return float(ConvexHull(HalfspaceIntersection(H, found.x[:3]).intersections).volume)


@given(SEEDS)
def test_corners_are_listed_alike_however_the_axes_of_a_box_are_named(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = random_box(rng, frame="camera")
    box = replace(box, center_m=box.center_m + [0.0, 0.0, 4.0])
    listed = boxes.rename_axes(box, boxes.find_listing(box))
    corners = boxes.corners(listed)
    assert sorted(np.round(corners, 9).tolist()) == sorted(np.round(boxes.corners(box), 9).tolist())
    assert np.linalg.det(listed.rotation) == pytest.approx(1.0)
    assert corners[:4, 1].mean() > corners[4:, 1].mean()  # y points down: the lower face comes first
    assert np.linalg.norm(corners[:4], axis=1).argmin() == 0
    turn = Rotation.create_group("O")[int(rng.integers(24))].as_matrix().round()
    other = boxes.rename_axes(box, turn)
    again = boxes.rename_axes(other, boxes.find_listing(other))
    np.testing.assert_allclose(boxes.corners(again), corners, atol=1e-9)
    upright = int(rng.integers(3))  # where gravity is known, a camera that looks down changes nothing
    renamed = int(np.abs(turn[upright]).argmax())
    known = boxes.rename_axes(box, boxes.find_listing(box, upright))
    np.testing.assert_allclose(
        boxes.corners(boxes.rename_axes(other, boxes.find_listing(other, renamed))), boxes.corners(known), atol=1e-9
    )
    assert abs(known.rotation[:, 2] @ box.rotation[:, upright]) == pytest.approx(1.0)


def test_corners_stand_in_the_defined_order() -> None:
    box = OrientedBox(np.array([10.0, 20, 30]), np.array([2.0, 4, 6]), np.eye(3))
    expected = [
        [9, 18, 27],
        [11, 18, 27],
        [11, 22, 27],
        [9, 22, 27],
        [9, 18, 33],
        [11, 18, 33],
        [11, 22, 33],
        [9, 22, 33],
    ]
    np.testing.assert_array_equal(boxes.corners(box), expected)
    # columns of the rotation are the axes
    turned = OrientedBox(np.zeros(3), np.array([2.0, 4, 6]), np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]))
    np.testing.assert_array_equal(boxes.corners(turned)[1] - boxes.corners(turned)[0], [0, 2, 0])


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_corners_edges_and_contents_agree_with_trimesh(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = random_box(rng)
    mesh, corners = as_mesh(box), boxes.corners(box)
    distance = np.linalg.norm(np.asarray(mesh.vertices)[:, None] - corners, axis=-1)
    assert distance.min(axis=1).max() < 1e-9
    assert sorted(distance.argmin(axis=1)) == list(range(8))
    lengths = np.linalg.norm(np.diff(corners[boxes.EDGES], axis=1)[:, 0], axis=-1)
    np.testing.assert_allclose(np.sort(lengths), np.sort(np.repeat(box.size_m, 4)), atol=1e-12)
    points = rng.uniform(-1.5, 1.5, (300, 3))
    normals, origins = np.asarray(mesh.face_normals), np.asarray(mesh.triangles_center)
    outside_by = ((points[:, None] - origins) * normals).sum(axis=-1).max(axis=1)
    np.testing.assert_array_equal(boxes.contains(box, points), outside_by <= 0)
    np.testing.assert_array_equal(boxes.contains(box, points, 0.1), outside_by <= 0.1)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_from_corners_there_and_back(seed: int) -> None:
    box = random_box(np.random.default_rng(seed))
    again = boxes.fit_to_corners(boxes.corners(box), "camera")
    np.testing.assert_allclose(again.center_m, box.center_m, atol=1e-12)
    np.testing.assert_allclose(again.size_m, box.size_m, atol=1e-12)
    np.testing.assert_allclose(again.rotation, box.rotation, atol=1e-12)
    assert again.frame == "camera"
    assert boxes.cuboid_residual_m(boxes.corners(box)) < 1e-12


def test_corners_in_another_order_are_no_cuboid() -> None:
    corners = boxes.corners(random_box(np.random.default_rng(0)))
    mirrored = corners[[4, 5, 6, 7, 0, 1, 2, 3]]
    message = (
        r"^corners are flat or not in the order \(---\)\(\+--\)\(\+\+-\)\(-\+-\)\(--\+\)\(\+-\+\)\(\+\+\+\)\(-\+\+\)$"
    )
    with pytest.raises(GeometryError, match=message):
        boxes.fit_to_corners(mirrored)
    assert boxes.cuboid_residual_m(mirrored) > 0.1
    assert boxes.cuboid_residual_m(corners[[0, 1, 3, 2, 4, 5, 7, 6]]) > 0.1
    flat = corners.copy()
    flat[4:] = flat[:4]
    with pytest.raises(GeometryError, match=message):
        boxes.fit_to_corners(flat)
    with pytest.raises(GeometryError, match=r"^a box has 8 finite corners, got an array of shape \(7, 3\)$"):
        boxes.fit_to_corners(corners[:7])
    flat[0] = np.nan
    assert boxes.cuboid_residual_m(flat) == np.inf


@pytest.mark.parametrize("shift", [0.005, 0.05, 0.3])
def test_cuboid_residual_measures_a_moved_corner(shift: float) -> None:
    corners = boxes.corners(random_box(np.random.default_rng(1)))
    corners[3] += [shift, 0, 0]
    assert 0.5 * shift < boxes.cuboid_residual_m(corners) < shift
    rounded = boxes.corners(random_box(np.random.default_rng(2))).round(2)
    assert 0 < boxes.cuboid_residual_m(rounded) < 0.01


def test_moved_carries_the_corners() -> None:
    rng = np.random.default_rng(3)
    box = random_box(rng)
    camera_from_world = poses.make_pose(Rotation.random(rng=rng).as_matrix(), [1.0, 2, 3])
    there = boxes.transform_box(box, camera_from_world, "camera")
    np.testing.assert_allclose(boxes.corners(there), poses.transform(camera_from_world, boxes.corners(box)), atol=1e-12)
    assert there.frame == "camera"
    back = boxes.transform_box(there, poses.invert(camera_from_world), "world")
    np.testing.assert_allclose(boxes.corners(back), boxes.corners(box), atol=1e-12)


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_iou_agrees_with_half_space_intersection(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = random_box(rng), random_box(rng)
    shared = halfspace_volume(a, b)
    expected = shared / (a.size_m.prod() + b.size_m.prod() - shared)
    assert boxes.iou_3d(a, b) == pytest.approx(expected, abs=1e-7)
    assert boxes.iou_3d(b, a) == pytest.approx(boxes.iou_3d(a, b), abs=1e-9)
    other = poses.make_pose(Rotation.random(rng=rng).as_matrix(), rng.uniform(-5, 5, 3))
    again = boxes.iou_3d(boxes.transform_box(a, other, "camera"), boxes.transform_box(b, other, "camera"))
    assert again == pytest.approx(boxes.iou_3d(a, b), abs=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_iou_agrees_with_counting(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = random_box(rng, 0.3), random_box(rng, 0.3)
    corners = np.concatenate([boxes.corners(a), boxes.corners(b)])
    points = rng.uniform(corners.min(axis=0), corners.max(axis=0), (100_000, 3))

    def inside(box: OrientedBox) -> Any:
        local = trimesh.transform_points(points, np.linalg.inv(poses.make_pose(box.rotation, box.center_m)))
        return (np.abs(local) < box.size_m / 2).all(axis=1)

    in_a, in_b = inside(a), inside(b)
    counted = (in_a & in_b).sum() / (in_a | in_b).sum()
    error = 4 * np.sqrt(counted * (1 - counted) / (in_a | in_b).sum())
    assert boxes.iou_3d(a, b) == pytest.approx(counted, abs=float(error))


def box_at(x: float, size: tuple[float, float, float] = (1.0, 1.0, 1.0), rotvec: Any = (0.0, 0.0, 0.0)) -> OrientedBox:
    """A box at (x, 0, 0)."""
    return OrientedBox(np.array([x, 0.0, 0.0]), np.array(size), Rotation.from_rotvec(rotvec).as_matrix())


QUARTER = (0.0, 0.0, np.pi / 2)


@pytest.mark.parametrize(
    ("a", "b", "iou"),
    [
        (box_at(0), box_at(0), 1.0),
        (box_at(0), box_at(0.5), 1 / 3),
        (box_at(0), box_at(1.0), 0.0),
        (box_at(0), box_at(1.5), 0.0),
        (box_at(0), box_at(9.0), 0.0),
        (box_at(0, (2, 2, 2)), box_at(0), 1 / 8),
        (box_at(0, (2, 1, 1)), box_at(0, (1, 2, 1), QUARTER), 1.0),
        (box_at(0, (2, 1, 1)), box_at(0, (2, 1, 1), QUARTER), 1 / 3),
        # the octagon of two squares turned by 45 degrees
        (box_at(0), box_at(0, rotvec=(0, 0, np.pi / 4)), (8**0.5 - 2) / (4 - 8**0.5)),
        # turned box touching with an edge
        (box_at(0), box_at(0.5 + 0.5**0.5, rotvec=(0, 0, np.pi / 4)), 0.0),
        # turned box within the other
        (box_at(0, (3, 3, 3)), box_at(0.2, rotvec=(0.3, -0.4, 0.5)), 1 / 27),
        (box_at(0), box_at(0, (1, 1, 0.0)), 0.0),
    ],
)
def test_iou_of_known_pairs(a: OrientedBox, b: OrientedBox, iou: float) -> None:
    turn = poses.make_pose(Rotation.from_rotvec([0.5, 1.0, -0.7]).as_matrix(), [3.0, -2.0, 5.0])
    for first, second in ((a, b), (b, a)):
        assert boxes.iou_3d(first, second) == pytest.approx(iou, abs=1e-9)
        moved = boxes.transform_box(first, turn, "world"), boxes.transform_box(second, turn, "world")
        assert boxes.iou_3d(*moved) == pytest.approx(iou, abs=1e-9)


@pytest.mark.parametrize("tilt", [0.0, 1e-15, 1e-13, 1e-11, 1e-9, 1e-7, 1e-5])
@pytest.mark.parametrize(("x", "iou"), [(0.0, 1.0), (0.5, 1 / 3), (1.0, 0.0)])
def test_iou_is_steady_for_almost_parallel_faces(tilt: float, x: float, iou: float) -> None:
    for axis in np.concatenate([np.eye(3), [[0.5, 0.6, 0.7]]]):
        assert boxes.iou_3d(box_at(0), box_at(x, rotvec=tilt * axis)) == pytest.approx(iou, abs=3 * tilt + 1e-9)


def test_iou_refuses_different_frames() -> None:
    camera_box = OrientedBox(np.zeros(3), np.ones(3), np.eye(3), "camera")
    with pytest.raises(ValueError, match=r"^boxes in different frames: 'world' and 'camera'$"):
        boxes.iou_3d(box_at(0), camera_box)


@given(SEEDS)
@settings(max_examples=25, deadline=None)
def test_project_rect_agrees_with_opencv_and_ignores_ray_scaling(seed: int) -> None:
    rng = np.random.default_rng(seed)
    box = random_box(rng, frame="camera")
    box = OrientedBox(box.center_m + np.array([0.0, 0, 4]), box.size_m, box.rotation, "camera")
    rect = boxes.project_rect(CAMERA, box)
    pixels, _ = cv2.projectPoints(boxes.corners(box), np.zeros(3), np.zeros(3), CAMERA.K, np.zeros(4))
    expected = [*pixels[:, 0].min(axis=0), *pixels[:, 0].max(axis=0)]
    assert rect == pytest.approx(expected, abs=1e-6)
    scaled = boxes.scale_about_camera(box, 1.3)
    np.testing.assert_allclose(boxes.corners(scaled), 1.3 * boxes.corners(box), atol=1e-12)
    assert boxes.project_rect(CAMERA, scaled) == pytest.approx(rect, abs=1e-9)


def test_a_box_partly_behind_the_camera_has_no_rect() -> None:
    for z in (-3.0, 0.0, 0.4, 0.5):
        box = OrientedBox(np.array([0, 0, z]), np.ones(3), np.eye(3), "camera")
        assert boxes.project_rect(CAMERA, box) is None
    assert boxes.project_rect(CAMERA, OrientedBox(np.array([0, 0, 0.6]), np.ones(3), np.eye(3), "camera")) is not None


def test_world_boxes_are_not_projected_or_scaled() -> None:
    with pytest.raises(ValueError, match=r"^needs a box in the camera frame, got 'world'$"):
        boxes.project_rect(CAMERA, box_at(0))
    with pytest.raises(
        ValueError, match=r"^needs a box in the camera frame and a positive scale, got 'world' and 1.3$"
    ):
        boxes.scale_about_camera(box_at(0), 1.3)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_gravity_aligned_box_has_trimeshs_smallest_footprint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(200, 3)) * (1.0, 0.4, 0.7)
    box = boxes.fit_gravity_aligned_box(points, (0, 0, 2.0), trim=0.0)
    _, footprint = trimesh.bounds.oriented_bounds_2D(points[:, :2])
    assert box.size_m[0] * box.size_m[1] == pytest.approx(float(np.prod(footprint)), rel=1e-6)
    assert box.size_m[2] == pytest.approx(float(np.ptp(points[:, 2])))
    assert box.size_m[0] >= box.size_m[1]
    np.testing.assert_allclose(box.rotation[:, 2], [0, 0, 1], atol=1e-12)
    assert np.linalg.det(box.rotation) == pytest.approx(1.0)
    assert boxes.contains(box, points, 1e-9).all()
    # another world, another up vector
    other = poses.make_pose(Rotation.random(rng=rng).as_matrix(), rng.uniform(-5, 5, 3))
    again = boxes.fit_gravity_aligned_box(poses.transform(other, points), other[:3, 2], trim=0.0, frame="camera")
    np.testing.assert_allclose(again.size_m, box.size_m, atol=1e-9)
    np.testing.assert_allclose(again.center_m, poses.transform(other, box.center_m[None])[0], atol=1e-9)
    np.testing.assert_allclose(again.rotation[:, 2], other[:3, 2], atol=1e-12)
    assert again.frame == "camera"


@pytest.mark.parametrize("yaw_deg", [0, 17, 45, 80, 133])
def test_gravity_aligned_box_recovers_a_box_despite_stray_points(yaw_deg: float) -> None:
    R = Rotation.from_euler("z", yaw_deg, degrees=True).as_matrix()
    true = OrientedBox(np.array([1.0, 2.0, 0.5]), np.array([1.6, 0.8, 0.75]), R)
    surface, _ = trimesh.sample.sample_surface(as_mesh(true), 8000, seed=1)
    stray = np.random.default_rng(0).uniform(-3, 5, (40, 3))
    box = boxes.fit_gravity_aligned_box(np.concatenate([surface, stray]), (0, 0, 1))
    np.testing.assert_allclose(box.size_m, true.size_m, atol=0.03)
    np.testing.assert_allclose(box.center_m, true.center_m, atol=0.02)
    assert abs(box.rotation[:, 0] @ R[:, 0]) > np.cos(np.radians(1.5))
    loose = boxes.fit_gravity_aligned_box(np.concatenate([surface, stray]), (0, 0, 1), trim=0.0)
    assert loose.size_m.min() > 4


@pytest.mark.parametrize(
    ("points", "message"),
    [
        (np.zeros((3, 3)), r"^a box needs at least 4 finite points, got shape \(3, 3\)$"),
        (np.full((9, 3), np.nan), r"^a box needs at least 4 finite points, got shape \(9, 3\)$"),
        (np.arange(30.0).reshape(10, 3), "^points lie on one vertical plane or line, so their box has no volume$"),
    ],
)
def test_points_without_a_box(points: Array, message: str) -> None:
    with pytest.raises(GeometryError, match=message):
        boxes.fit_gravity_aligned_box(points, (0, 0, 1))


def test_rectangles() -> None:
    assert boxes.rect_iou((0, 0, 2, 2), (1, 1, 3, 3)) == pytest.approx(1 / 7)
    assert boxes.rect_iou((0, 0, 2, 2), (0, 0, 2, 2)) == 1.0
    assert boxes.rect_iou((0, 0, 2, 2), (2, 0, 4, 2)) == boxes.rect_iou((0, 0, 2, 2), (5, 5, 6, 6)) == 0.0
    assert boxes.rect_iou((0, 0, 0, 0), (0, 0, 0, 0)) == 0.0
    assert boxes.rect_area((3, 0, 1, 5)) == 0.0
    assert boxes.clip_rect((-10, 5, 700, 20), 640, 480) == (-0.5, 5, 639.5, 20)
    assert boxes.clip_rect((3, 4, 5, 490), 640, 480) == (3, 4, 5, 479.5)
    assert boxes.rect_area(boxes.clip_rect((700, 5, 800, 20), 640, 480)) == 0.0


def test_the_oracle_itself_knows_flat_intersections() -> None:
    # qhull refuses flat input, which the code relies on to call it volume 0
    with pytest.raises(QhullError):
        ConvexHull(np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.2, 0]]))


@settings(max_examples=60)
@given(SEEDS)
def test_the_gap_between_boxes_is_the_distance_of_their_nearest_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = random_box(rng), random_box(rng, spread=2.5)
    corners = [boxes.corners(box) for box in (a, b)]
    found = float(boxes.measure_gap_m(*corners))
    (p0, P), (q0, Q) = ((one[0], (one[[1, 3, 4]] - one[0]).T) for one in corners)
    solved = lsq_linear(np.hstack([P, -Q]), q0 - p0, bounds=(0, 1), tol=1e-14)
    assert found == pytest.approx(np.sqrt(2 * solved.cost), abs=2e-5)
    assert found == pytest.approx(float(boxes.measure_gap_m(*corners[::-1])), abs=2e-5)
    turned = poses.make_pose(Rotation.random(rng=rng).as_matrix(), rng.uniform(-3, 3, 3))
    moved = (poses.transform(turned, one) for one in corners)
    assert found == pytest.approx(float(boxes.measure_gap_m(*moved)), abs=1e-6)
    both = boxes.measure_gap_m(np.stack([corners[0]] * 3), np.stack([corners[1]] * 3))
    assert both.shape == (3,)
    assert both == pytest.approx(found)
    assert found <= np.linalg.norm(corners[0][:, None] - corners[1], axis=2).min() + 1e-9


def test_the_gap_between_upright_boxes() -> None:
    a = OrientedBox(np.zeros(3), np.array([2.0, 2.0, 2.0]), np.eye(3), "world")
    for center, gap in (
        ((3.0, 0.5, 0.0), 1.0),
        ((3.0, 3.0, 0.0), np.sqrt(2)),
        ((1.5, 0.0, 0.0), 0.0),
        ((2.0, 0, 0), 0),
    ):
        b = OrientedBox(np.array(center, dtype=np.float64), np.array([2.0, 2.0, 2.0]), np.eye(3), "world")
        assert boxes.measure_gap_m(boxes.corners(a), boxes.corners(b)) == pytest.approx(gap, abs=1e-9)
