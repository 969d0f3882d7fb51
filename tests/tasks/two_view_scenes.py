"""Views of the rendered room that several test files share; rendering one takes seconds."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Candidate, ColorArray, DepthArray, Fact, FloatArray, Rejected
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.base import Frame
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import Task
from vgbench_gen.tasks.records import make_camera_record

MEDIA_NAME = "{:032x}.png"


def another_world() -> FloatArray:
    a, b = 0.7, -0.4
    turn = np.array([[np.cos(a), -np.sin(a), 0], [np.sin(a), np.cos(a), 0], [0, 0, 1]])
    tilt = np.array([[1, 0, 0], [0, np.cos(b), -np.sin(b)], [0, np.sin(b), np.cos(b)]])
    return make_pose(turn @ tilt, np.array([12.0, -7.0, 3.0]))


class StoredFrame(Frame):
    """Pixels of a rendered frame, kept, under any pose."""

    def __init__(self, frame: Frame, world_from_camera: FloatArray) -> None:
        self.id, self.timestamp_s, self.pose_deviation = frame.id, None, 0.0
        self.camera, self.depth_camera, self.world_from_camera = frame.camera, frame.depth_camera, world_from_camera
        self._color, self._depth_m = frame.color(), frame.depth_m()

    def color(self) -> ColorArray:
        return self._color

    def depth_m(self) -> DepthArray:
        return self._depth_m


@functools.cache
def room() -> RoomScene:
    scene = room_scene(frames=12, width=320, height=240)
    scene.frames = [StoredFrame(frame, frame.world_from_camera) for frame in scene.frames]
    return scene


def posed(poses: Mapping[str, FloatArray], colors: Mapping[str, ColorArray] | None = None) -> SceneView:
    """The room's view with other `world_from_camera`, or other pixels, for some frames."""
    scene = copy.copy(room())
    scene.frames = [StoredFrame(frame, poses.get(frame.id, frame.world_from_camera)) for frame in room().frames]
    for frame in scene.frames:
        if colors and frame.id in colors and isinstance(frame, StoredFrame):
            frame._color = colors[frame.id]
    return SceneView(scene, Gates())


@functools.cache
def room_view(moved: bool = False) -> SceneView:
    return posed({frame.id: another_world() @ frame.world_from_camera for frame in room().frames} if moved else {})


def drawn(task: Task, view: SceneView, seed: int = 1, limit: int = 12) -> tuple[list[Fact], list[Rejected]]:
    out = list(task.drafts(view, rng_for(seed, task.name, view.id), limit))
    return [o for o in out if isinstance(o, Fact)], [o for o in out if isinstance(o, Rejected)]


def with_pictures(fact: Fact, view: SceneView) -> Fact:
    """What the pipeline adds to a draft."""
    names = {frame_id: MEDIA_NAME.format(int(frame_id)) for frame_id in fact.shown_frame_ids}
    cameras = {frame_id: make_camera_record(view.frame(frame_id).camera) for frame_id in fact.shown_frame_ids}
    return replace(fact, pictures=names, cameras=cameras)


def with_truth_value(fact: Fact, value: FloatArray) -> Fact:
    """The fact as if the first route had said `value`."""
    candidates = list(fact.candidates)
    candidates[fact.truth] = replace(fact.truth_candidate, value=value)
    return replace(fact, candidates=tuple(candidates))


def same(a: Sequence[Candidate], b: Sequence[Candidate]) -> bool:
    return [c.key for c in a] == [c.key for c in b] and all(
        np.array_equal(x.value, y.value) for x, y in zip(a, b, strict=True)
    )
