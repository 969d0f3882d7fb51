"""A room of a few boxes with exact truth, cheap to look at, in place of the procedural rooms."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import trimesh

from tests.scene_factory import looking_at
from vgbench_gen.core.types import Camera, DepthArray, FloatArray, OrientedBox
from vgbench_gen.samples.base import Capture, RenderedView, SampleObject, SampleSpec, WorldSurface

# (label, centre, sides, yaw); the room's own walls look inwards.
ROOM = ("wall", (3.0, 2.5, 1.3), (6.0, 5.0, 2.6), 0.0)
THINGS = [
    ("table", (3.0, 3.0, 0.36), (1.4, 0.8, 0.72), 0.15),
    ("box", (3.2, 2.9, 0.83), (0.3, 0.22, 0.22), 0.4),
    ("cabinet", (4.6, 4.5, 0.6), (0.8, 0.5, 1.2), 0.0),
    ("stool", (1.75, 2.6, 0.24), (0.4, 0.4, 0.48), 0.5),
    ("window", (3.0, 4.98, 1.6), (1.0, 0.04, 0.8), 0.0),
]


def yaw_rotation(yaw: float) -> FloatArray:
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


class BoxWorld:
    """See `vgbench_gen.samples.base.World`."""

    def __init__(self) -> None:
        solids = [ROOM, *THINGS]
        boxes = [OrientedBox(np.array(c), np.array(s), yaw_rotation(yaw)) for _, c, s, yaw in solids]
        self.objects: tuple[SampleObject, ...] = tuple(
            SampleObject(i, label, box, structural=label == "wall")
            for i, ((label, *_), box) in enumerate(zip(solids, boxes, strict=True), 1)
        )

    def look(self, camera: Camera, world_from_camera: FloatArray) -> RenderedView:
        depth, instance, cosine, points = self._cast(camera, world_from_camera)
        waves = np.sin(points @ np.array([[9.0, 1.0, 5.0], [2.0, 11.0, 3.0], [4.0, 6.0, 13.0]]))
        # Fine in brightness, coarse in colour, like most things, so that compression keeps it and motion blur does not.
        fine = np.sin(points @ np.array([[31.0], [37.0], [43.0]]))
        color = 130 + 15 * waves + 35 * fine + 15 * np.array([[1, -1, 0.5]]) * (instance[..., None] % 3)
        color = np.where(depth[..., None] > 0, color * (0.6 + 0.4 * cosine[..., None]), 0)
        return RenderedView(np.clip(color, 0, 255).astype(np.uint8), depth, instance)

    def render_depth(
        self, camera: Camera, world_from_camera: FloatArray, view: RenderedView | None = None
    ) -> tuple[DepthArray, np.ndarray, FloatArray]:
        return self._cast(camera, world_from_camera)[:3]

    def make_surface(self, edge_m: float = 0.05) -> WorldSurface:
        parts = []
        for item in self.objects:
            pose = np.eye(4)
            pose[:3, :3], pose[:3, 3] = item.box.rotation, item.box.center_m
            part = trimesh.creation.box(extents=item.box.size_m, transform=pose)
            if edge_m < 1:
                part = part.subdivide_to_size(max(edge_m, 0.15))
            parts.append((np.asarray(part.vertices), np.asarray(part.faces)))
        starts = np.cumsum([0, *(len(v) for v, _ in parts)])
        faces = np.concatenate([f + start for (_, f), start in zip(parts, starts, strict=False)])
        vertices = np.concatenate([v for v, _ in parts])
        owners = np.concatenate([np.full(len(f), i) for i, (_, f) in enumerate(parts, 1)])
        color = (vertices * 40 % 255).astype(np.uint8)
        return WorldSurface(vertices, faces.astype(np.int64), color, owners.astype(np.int64))

    @cached_property
    def _scene(self) -> tuple[Any, WorldSurface]:
        import open3d

        o3d: Any = open3d
        surface = self.make_surface(1e3)
        scene = o3d.t.geometry.RaycastingScene(nthreads=1)
        vertices = o3d.core.Tensor(surface.vertices_m.astype(np.float32))
        scene.add_triangles(vertices, o3d.core.Tensor(surface.faces.astype(np.uint32)))
        return scene, surface

    def _cast(self, camera: Camera, pose: FloatArray) -> tuple[DepthArray, np.ndarray, FloatArray, FloatArray]:
        import open3d

        o3d: Any = open3d
        scene, surface = self._scene
        u, v = np.meshgrid(np.arange(camera.width), np.arange(camera.height))
        rays = np.stack([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, np.ones(u.shape)], -1)
        directions = rays @ pose[:3, :3].T
        origins = np.broadcast_to(pose[:3, 3], directions.shape)
        answer = scene.cast_rays(o3d.core.Tensor(np.concatenate([origins, directions], -1).astype(np.float32)))
        distance = answer["t_hit"].numpy()
        hit = np.isfinite(distance)
        depth = np.where(hit, distance, 0).astype(np.float32)
        face = np.where(hit, answer["primitive_ids"].numpy().astype(np.int64), 0)
        instance = np.where(hit, surface.instance[face], 0).astype(np.int32)
        normal = answer["primitive_normals"].numpy()
        cosine = np.abs((normal * directions).sum(-1)) / np.linalg.norm(directions, axis=-1)
        points: FloatArray = origins + directions * depth[..., None]
        return depth, instance, np.where(hit, cosine, 0.0).astype(np.float64), points


def box_take(spec: SampleSpec) -> Capture:
    """A walk along an arc; one lost and one blurred frame; every second scene is portrait where that can be."""
    width, height = {
        "ca1m": (256, 192),
        "scannet": (324, 242),
        "scannetpp": (300, 200) if spec.camera_kind == "dslr" else (320, 240),
    }.get(spec.dataset, (160, 120))
    if spec.number % 2 and spec.dataset in ("ca1m", "wildrgbd", "scannetpp") and spec.camera_kind != "dslr":
        width, height = height, width
    K = np.array([[0.85 * max(width, height), 0, width / 2 + 1.3], [0, 0.86 * max(width, height), height / 2 - 2.1]])
    camera = Camera(np.vstack([K, [0, 0, 1]]), width, height)
    poses = []
    for angle in np.linspace(-0.6, 0.6, spec.frames):
        eye = np.array([3.0 + 2.2 * np.sin(angle), 2.9 - 2.2 * np.cos(angle), 1.4 + 0.1 * angle])
        poses.append(looking_at(eye, np.array([3.0 + 0.3 * angle, 3.0, 0.8])))
    world = BoxWorld()
    lost = frozenset({spec.frames - 1}) if spec.dataset != "wildrgbd" else frozenset()
    focus = next(o.instance_id for o in world.objects if o.label == "box") if spec.dataset == "wildrgbd" else 0
    times = np.arange(spec.frames) / 3.0
    return Capture(world, camera, np.array(poses), times, lost, frozenset({1}), focus, "room")
