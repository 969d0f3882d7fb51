"""Scenes for the object tasks: a ray-cast room, and a board with depth worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray, OrientedBox
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.base import Frame, FrameObject, Scene, SceneObject
from vgbench_gen.scenes.view import SceneView

K = np.array([[300.0, 0, 159.5], [0, 300.0, 119.5], [0, 0, 1]])


@lru_cache(maxsize=2)
def room_view(moved: bool = False) -> SceneView:
    """Four frames of the room; `moved`: in another world frame, all six degrees of freedom."""
    world_from_room = np.eye(4)
    if moved:
        turn = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
        world_from_room = make_pose(turn * np.sign(np.linalg.det(turn)), np.array([4.0, -2.0, 9.0]))
    scene = room_scene(frames=4, width=320, height=240, depth_scale=1.0, world_from_room=world_from_room)
    return SceneView(scene, Gates(), [frame.id for frame in scene.frames])


class BoardFrame(Frame):
    """320 x 240, camera at the world origin looking along z; depth and object list as given."""

    def __init__(self, depth_m: FloatArray, listed: Sequence[FrameObject] = ()) -> None:
        self.id, self.timestamp_s, self.pose_deviation = "0", None, 0.0
        self.camera = self.depth_camera = Camera(K, 320, 240)
        self.world_from_camera = np.eye(4)
        self._depth, self._listed = depth_m.astype(np.float32), listed

    def color(self) -> ColorArray:
        return np.random.default_rng(0).integers(0, 255, (240, 320, 3)).astype(np.uint8)

    def depth_m(self) -> DepthArray:
        return self._depth

    def objects(self) -> Sequence[FrameObject]:
        return self._listed


def board_view(depth_m: FloatArray, objects: Sequence[SceneObject], listed: Sequence[FrameObject] = ()) -> SceneView:
    """A view of one such frame, laser depth."""
    scene: Scene = RoomScene([], list(objects), "laser", "ca1m")
    scene.frames = [BoardFrame(depth_m, listed)]
    scene.up_world = np.array([0.0, -1.0, 0.0])
    return SceneView(scene, Gates(), ["0"])


def cuboid(
    center: Sequence[float] | FloatArray, size: Sequence[float] | FloatArray, frame: str = "world"
) -> OrientedBox:
    """Box along the axes."""
    return OrientedBox(np.array(center, dtype=np.float64), np.array(size, dtype=np.float64), np.eye(3), frame)


def thing(name: str, center: Sequence[float], size: Sequence[float], label: str = "crate") -> SceneObject:
    """An object without surface points."""
    return SceneObject(name, label, cuboid(center, size))


def depth_of(objects: Sequence[SceneObject], background_m: float = 4.0) -> FloatArray:
    """(240, 320) z of the front faces of boxes along the axes, which face this camera."""
    v, u = np.mgrid[:240, :320]
    x, y = (u - K[0, 2]) / K[0, 0], (v - K[1, 2]) / K[1, 1]
    depth = np.full((240, 320), background_m)
    for item in objects:
        (cx, cy, cz), (sx, sy, sz) = item.box.center_m, item.box.size_m
        z = cz - sz / 2
        if z <= 0:  # the camera stands in this box, of which it sees no face
            continue
        face = (np.abs(x * z - cx) <= sx / 2) & (np.abs(y * z - cy) <= sy / 2)
        depth[face] = np.minimum(depth[face], z)
    return depth
