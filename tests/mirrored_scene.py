"""A scene as if every capture had been mirrored left to right: raw pixels, depth, cameras, poses, objects.

Written with numpy alone, from u' = W - 1 - u and X' = diag(-1, 1, 1) X, so that tests can hold other code to it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, OrientedBox
from vgbench_gen.scenes.base import Frame, Issue, Scene

_M4 = np.diag([-1.0, 1.0, 1.0, 1.0])


class MirroredFrame(Frame):
    """See the module."""

    def __init__(self, frame: Frame) -> None:
        self.id, self.timestamp_s, self.pose_deviation = frame.id, frame.timestamp_s, frame.pose_deviation
        self.camera, self.depth_camera = flipped(frame.camera), flipped(frame.depth_camera)
        self.world_from_camera = _M4 @ frame.world_from_camera @ _M4
        self._frame = frame

    def color(self) -> ColorArray:
        return np.ascontiguousarray(np.fliplr(self._frame.color()))

    def depth_m(self) -> DepthArray:
        return np.ascontiguousarray(np.fliplr(self._frame.depth_m()))

    def valid_mask(self) -> BoolArray | None:
        mask = self._frame.valid_mask()
        return None if mask is None else np.ascontiguousarray(np.fliplr(mask))


class MirroredScene(Scene):
    """See the module; annotated surfaces and lists of single frames are left out."""

    def __init__(self, scene: Scene) -> None:
        self.dataset, self.id, self.split = scene.dataset, scene.id, scene.split
        self.frames = [MirroredFrame(frame) for frame in scene.frames]
        self.objects = [replace(item, box=reflected(item.box), points_m=None) for item in scene.objects]
        self.up_world = None if scene.up_world is None else scene.up_world * [-1.0, 1.0, 1.0]
        self.depth_kind, self.licence, self.source_digest = scene.depth_kind, scene.licence, scene.source_digest
        self.issues: list[Issue] = []
        self.total_frames = scene.total_frames


def flipped(camera: Camera) -> Camera:
    """The camera of the flipped image."""
    K = np.array([[camera.fx, 0.0, camera.width - 1 - camera.cx], [0.0, camera.fy, camera.cy], [0.0, 0.0, 1.0]])
    return Camera(K, camera.width, camera.height)


def reflected(box: OrientedBox) -> OrientedBox:
    """The reflected cuboid; its third axis is turned round to make the axes right-handed again."""
    rotation: FloatArray = (_M4[:3, :3] @ box.rotation) * [1.0, 1.0, -1.0]
    return OrientedBox(box.center_m * [-1.0, 1.0, 1.0], box.size_m, rotation, box.frame)
