"""The analytic room at 320x240, every frame ray-cast once per test run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import cv2
import numpy as np

from tests.scene_factory import RenderedFrame, RoomScene, room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.view import SceneView


class StoredFrame(RenderedFrame):
    """A frame whose pixels were rendered before, and may have been tampered with."""

    stored_color: ColorArray
    stored_depth_m: DepthArray
    jpeg: bytes | None = None

    def color(self) -> ColorArray:
        return self.stored_color

    def depth_m(self) -> DepthArray:
        return self.stored_depth_m

    def encoded_color(self) -> bytes | None:
        return self.jpeg


@cache
def _pixels(
    width: int, frames: int, noise_m: float, depth_scale: float, grid: bool
) -> list[tuple[ColorArray, DepthArray]]:
    height = width * 3 // 4
    scene = room_scene(width=width, height=height, frames=frames, noise_m=noise_m, depth_scale=depth_scale, grid=grid)
    return [(frame.color(), frame.depth_m()) for frame in scene.frames]


def small_room(
    world_from_room: FloatArray | None = None,
    frames: int = 9,
    noise_m: float = 0.0,
    depth_scale: float = 0.5,
    grid: bool = False,
) -> RoomScene:
    """A fresh scene object over shared pixels; pixels do not depend on the world frame."""
    scene = room_scene(
        width=320,
        height=240,
        frames=frames,
        noise_m=noise_m,
        depth_scale=depth_scale,
        world_from_room=world_from_room,
        grid=grid,
    )
    for frame, (color, depth_m) in zip(scene.frames, _pixels(320, frames, noise_m, depth_scale, grid), strict=True):
        frame.__class__ = StoredFrame
        assert isinstance(frame, StoredFrame)
        frame.stored_color, frame.stored_depth_m = color, depth_m
    return scene


def stored(scene: RoomScene) -> Sequence[StoredFrame]:
    return [frame for frame in scene.frames if isinstance(frame, StoredFrame)]


def as_jpeg(scene: RoomScene) -> RoomScene:
    """The same scene as a dataset of JPEG files: colour is what the files decode to."""
    for frame in stored(scene):
        data = cv2.imencode(".jpg", frame.stored_color[..., ::-1])[1]
        frame.jpeg = data.tobytes()
        frame.stored_color = np.asarray(cv2.imdecode(data, cv2.IMREAD_COLOR_RGB), dtype=np.uint8)
    return scene


@cache
def small_view(grid: bool = False) -> SceneView:
    """The room as tasks see it; shared, never to be changed."""
    return SceneView(small_room(grid=grid), Gates())


def other_world(seed: int = 3) -> FloatArray:
    """(4, 4) a world frame turned and shifted in every way."""
    rng = np.random.default_rng(seed)
    q, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    return make_pose(q * np.sign(np.linalg.det(q)), rng.uniform(-5, 5, 3))
