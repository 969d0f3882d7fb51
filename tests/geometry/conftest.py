"""A small room with an occluder, its depth and visibility from Open3D's ray caster."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from vgbench_gen.core.types import Camera

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Room:
    """A 4 x 3 x 5 m room, a pillar in the middle, several views, true depth."""

    caster: Any
    camera: Camera
    poses: Array
    depths: npt.NDArray[np.float32]

    def seen(self, points: Array, center: Array) -> npt.NDArray[np.bool_]:
        """Whether nothing stands between (N, 3) surface points and a camera centre; no camera, no depth image."""
        o3d = importlib.import_module("open3d")
        rays = np.concatenate([np.broadcast_to(center, points.shape), points - center], axis=1)
        hit = self.caster.cast_rays(o3d.core.Tensor(rays.astype(np.float32)))["t_hit"].numpy()
        return np.asarray(hit > 1 - 1e-3)


def look_at(eye: Array, target: Array) -> Array:
    """World pose of a camera at `eye` towards `target`, z up in the world."""
    forward = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(forward, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    pose = np.eye(4)
    pose[:3, :4] = np.stack([right, np.cross(forward, right), forward, eye], axis=1)
    return pose


@pytest.fixture(scope="session")
def room() -> Room:
    """Six views of the room; the last looks the other way."""
    o3d = importlib.import_module("open3d")
    mesh = o3d.geometry.TriangleMesh.create_box(4, 5, 3)
    pillar = o3d.geometry.TriangleMesh.create_box(0.5, 0.5, 2.0).translate((1.7, 2.6, 0.0))
    caster = o3d.t.geometry.RaycastingScene(nthreads=1)
    for part in (mesh, pillar):
        caster.add_triangles(o3d.t.geometry.TriangleMesh.from_legacy(part))
    camera = Camera(np.array([[150.0, 0, 81.0], [0, 148.0, 58.5], [0, 0, 1]]), 160, 120)
    eyes = np.array(
        [[0.8, 0.6, 1.5], [1.4, 0.5, 1.3], [2.2, 0.5, 1.7], [3.2, 0.9, 1.5], [1.0, 0.9, 1.1], [2.0, 1.0, 1.5]]
    )
    targets = np.array([[2.0, 3.2, 1.0]] * 5 + [[2.0, 0.0, 1.4]])
    world_from_camera = np.stack([look_at(eye, target) for eye, target in zip(eyes, targets, strict=True)])
    u, v = np.meshgrid(np.arange(160.0), np.arange(120.0))
    rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones_like(u)], axis=-1)
    depths = []
    for pose in world_from_camera:
        # directions of camera depth 1, so that the hit parameter is z
        world = rays @ pose[:3, :3].T
        packed = np.concatenate([np.broadcast_to(pose[:3, 3], world.shape), world], axis=-1).astype(np.float32)
        depths.append(caster.cast_rays(o3d.core.Tensor(packed))["t_hit"].numpy())
    return Room(caster, camera, world_from_camera, np.stack(depths))
