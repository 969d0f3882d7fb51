"""A scan whose poses and depth contradict each other is dropped with the measured number."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.scene_factory import RoomScene, room_scene
from tests.scenes.posed_writer import make_room, write_own
from vgbench_gen.core.gates import Gates
from vgbench_gen.pipeline.measure import MeasureJob, find_misreading, find_scene_problem, measure_scene
from vgbench_gen.pipeline.recipe import load_recipe
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.readings import Reading
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


def test_poses_that_are_read_wrongly_cost_the_scene(tmp_path: Path) -> None:
    write_own(tmp_path / "mine", make_room(), Reading(axes="OpenGL"))
    (ref,) = discover(tmp_path)
    report = measure_scene(MeasureJob(ref, load_recipe("default"), tmp_path / "out"))
    assert report.error.startswith("misread: the poses are camera to world, OpenGL (")
    assert not report.facts


def test_frames_between_keyframes_decide_where_keyframes_do_not() -> None:
    """A view that kept one frame says nothing of readings; the scene's other frames do."""
    scene = make_room()
    scene.needs_decision = True
    view = SceneView(scene, Gates())
    view.frames = view.frames[:1]
    assert find_misreading(scene, view) is None
    scene.frames = scene.frames[:1]
    problem = find_misreading(scene, view)
    assert problem is not None
    assert (problem.reason, problem.detail[:12]) == ("undecided_reading", "No two frame")


def test_kinds_that_need_meters_are_not_asked_of_a_scan_without(tmp_path: Path) -> None:
    write_own(tmp_path / "mine", make_room(), metric="false")
    (ref,) = discover(tmp_path)
    recipe = load_recipe({"extends": "default", "tasks": ["metric_depth", "relative_depth"]})
    report = measure_scene(MeasureJob(ref, recipe, tmp_path / "out"))
    assert report.rejects["metric_depth/no_meters"] == 1
    assert set(report.facts) == {"relative_depth"}
