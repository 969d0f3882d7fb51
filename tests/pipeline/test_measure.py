"""A scan whose poses and depth contradict each other is dropped with the measured number."""

from __future__ import annotations

import numpy as np
import pytest

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.core.gates import Gates
from vgbench_gen.pipeline.measure import find_scene_problem
from vgbench_gen.scenes.view import SceneView


@pytest.fixture(scope="module")
def room() -> RoomScene:
    return room_scene(frames=7, width=240, height=180)


def test_a_sound_scene_is_kept(room: RoomScene) -> None:
    assert find_scene_problem(SceneView(room, Gates())) is None


def test_poses_that_contradict_the_depth_cost_the_scene(room: RoomScene) -> None:
    view = SceneView(room, Gates())
    rng = np.random.default_rng(0)
    for frame in view.frames:
        frame.world_from_camera = frame.world_from_camera.copy()
        frame.world_from_camera[:3, 3] += rng.normal(0, 0.08, 3)
    problem = find_scene_problem(view)
    assert problem is not None
    assert problem.task == "scene"
    assert problem.reason in {"pose_depth_cycle", "pose_depth_agreement"}
    worse = problem.value > problem.limit if problem.reason == "pose_depth_cycle" else problem.value < problem.limit
    assert worse


def test_a_scene_without_usable_frames_says_so(room: RoomScene) -> None:
    view = SceneView(room, Gates())
    view.frames = []
    problem = find_scene_problem(view)
    assert problem is not None
    assert problem.reason == "no_usable_frames"
