"""Rendered depth against a plane worked out by hand and against boxes worked out by slabs."""

from __future__ import annotations

import numpy as np

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.types import Camera
from vgbench_gen.scenes._mesh import MeshDepth

CAMERA = Camera(np.array([[90.0, 0, 40.25], [0, 95.0, 28.5], [0, 0, 1]]), 80, 60)


def rays() -> np.ndarray:
    u, v = np.meshgrid(np.arange(80), np.arange(60))
    out = np.stack([(u - CAMERA.cx) / CAMERA.fx, (v - CAMERA.cy) / CAMERA.fy], -1).reshape(-1, 2)
    return np.asarray(out)


def test_a_floor_seen_at_a_slant() -> None:
    vertices = np.array([[-50, -50, 0], [50, -50, 0], [50, 50, 0], [-50, 50, 0]], float)
    mesh = MeshDepth(vertices, np.array([[0, 1, 2], [0, 2, 3]]))
    pose = writer.look_at((1, 2, 1.5), (4, 5, 0))
    world = np.concatenate([rays(), np.ones((4800, 1))], 1) @ pose[:3, :3].T
    # Depth along the optical axis is the ray parameter: 1.5 m of height over the fall of each ray.
    expected = np.where(world[:, 2] < 0, 1.5 / -world[:, 2], np.inf)
    expected[expected > 20] = 0
    got = mesh.render(CAMERA, pose).reshape(-1)
    np.testing.assert_allclose(got, expected, rtol=1e-4)
    assert 0 < (got == 0).sum() < 2400
    np.testing.assert_array_equal(mesh.render(CAMERA, pose).reshape(-1), got)


def test_a_room_against_rays_worked_out_by_slabs() -> None:
    mesh = writer.room()
    pose = writer.look_at((1.5, 0.8, 1.6), (3, 3, 0.3), roll_deg=20)
    got = MeshDepth(mesh.vertices, mesh.faces).render(CAMERA, pose).reshape(-1)
    expected = writer.true_depth(pose, rays())
    # On silhouettes two ray casters may fall on different sides.
    close = np.abs(got - expected) < 1e-4
    assert close.mean() > 0.995
    assert len(np.unique(np.round(expected, 1))) > 10


def test_what_is_too_near_is_passed_and_what_is_too_far_is_unknown() -> None:
    near, wall, far = (np.array([[-30, -30, z], [30, -30, z], [0, 60, z]], float) for z in (0.04, 3.0, 21.0))
    faces = np.arange(6).reshape(2, 3)
    assert MeshDepth(np.concatenate([near, wall]), faces).render(CAMERA, np.eye(4))[30, 40] == np.float32(3.0)
    assert MeshDepth(np.concatenate([near, far]), faces).render(CAMERA, np.eye(4))[30, 40] == 0
    assert MeshDepth(near + np.array([0, 0, 0.02]), faces[:1]).render(CAMERA, np.eye(4))[30, 40] == np.float32(0.06)
