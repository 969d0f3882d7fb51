"""A capture as a `Scene` in memory: what loaders make of a written sample scene, without the writing."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.samples.base import Capture, World
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, Scene, SceneObject

DEPTH_SIZE = {"ca1m": 0.5, "scannet": 0.4938, "scannetpp": 256 / 1920, "wildrgbd": 1.0}
RANGE_M = {"ca1m": 20.0, "scannet": 6.0, "scannetpp": 5.0, "wildrgbd": 5.0}


class TakeFrame(Frame):
    """Rendered when asked; exact depth within the sensor's range."""

    def __init__(
        self, number: int, world: World, camera: Camera, depth_camera: Camera, pose: FloatArray, range_m: float
    ):
        self.id, self.timestamp_s, self.pose_deviation = str(number), None, 0.0
        self.camera, self.depth_camera, self.world_from_camera = camera, depth_camera, pose
        self._world, self._range_m = world, range_m

    def color(self) -> ColorArray:
        return self._world.look(self.camera, self.world_from_camera).color

    def depth_m(self) -> DepthArray:
        depth = self._world.render_depth(self.depth_camera, self.world_from_camera)[0]
        return np.where(depth > self._range_m, np.float32(0), depth)


class CaptureScene(Scene):
    """See the module. `scale`: size of the pictures over the delivered size."""

    def __init__(self, capture: Capture, dataset: str, scale: float = 1.0) -> None:
        camera = capture.camera
        if scale != 1.0:
            camera = resize_camera(camera, round(camera.width * scale), round(camera.height * scale))
        share = DEPTH_SIZE[dataset]
        depth_camera = resize_camera(camera, round(camera.width * share), round(camera.height * share))
        self.dataset, self.id, self.split = dataset, "take", "val"
        self.frames = [
            TakeFrame(k, capture.world, camera, depth_camera, pose, RANGE_M[dataset])
            for k, pose in enumerate(capture.world_from_camera)
            if k not in capture.lost
        ]
        self.objects = [
            SceneObject(str(item.instance_id), item.label, item.box)
            for item in capture.world.objects
            if dataset == "ca1m"
        ]
        self.up_world = None if dataset == "wildrgbd" else np.array([0.0, 0.0, 1.0])
        self.depth_kind: DepthKind = "laser" if dataset == "ca1m" else "sensor"
        self.licence, self.source_digest = "cc0-1.0", "0" * 32
        self.issues: list[Issue] = []
        self.total_frames = len(self.frames)
