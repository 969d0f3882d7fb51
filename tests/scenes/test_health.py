from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.scene_factory import RoomScene, room_scene
from vgbench_gen.core.errors import FrameError
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import rotate_camera_by_quarters, rotate_pose_by_quarters
from vgbench_gen.geometry.poses import invert
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Frame, Issue, loaders
from vgbench_gen.scenes.health import (
    compute_depth_statistics,
    draw_depth_edges,
    estimate_up,
    find_orientation,
    summarise_health,
)
from vgbench_gen.scenes.readings import DIRECTIONS, Reading


class Stored(Frame):
    """A frame whose depth was rendered before its pose was changed; counts what is decoded."""

    decoded: int

    def __init__(self, frame: Frame, depth: DepthArray, pose: FloatArray) -> None:
        self.id, self.timestamp_s, self.pose_deviation = frame.id, None, 0.0
        self.camera, self.depth_camera, self.world_from_camera = frame.camera, frame.depth_camera, pose
        self.stored, self.decoded = depth, 0

    def color(self) -> ColorArray:
        return np.zeros((self.camera.height, self.camera.width, 3), np.uint8)

    def depth_m(self) -> DepthArray:
        self.decoded += 1
        return self.stored


@pytest.fixture(scope="module")
def rendered() -> tuple[RoomScene, list[DepthArray]]:
    scene = room_scene(seed=1, frames=24, width=160, height=120)
    return scene, [frame.depth_m() for frame in scene.frames]


Make = Callable[..., RoomScene]


@pytest.fixture
def make(rendered: tuple[RoomScene, list[DepthArray]]) -> Make:
    """The room with poses and depth changed by functions."""

    def build(
        pose: Callable[[FloatArray], FloatArray] = lambda T: T,
        depth: Callable[[DepthArray], DepthArray] = lambda d: d,
    ) -> RoomScene:
        room, depths = rendered
        scene = RoomScene([], list(room.objects), "laser", "ca1m")
        pairs = zip(room.frames, depths, strict=True)
        scene.frames = [Stored(f, depth(d.copy()), pose(f.world_from_camera)) for f, d in pairs]
        scene.total_frames = len(scene.frames)
        return scene

    return build


def test_a_sound_scene(make: Make) -> None:
    scene = make()
    health = summarise_health(scene, "tar")
    assert health.verdict == "ok"
    assert (health.frames_total, health.frames_usable, health.poses_valid, health.objects) == (24, 24, 24, 7)
    assert (health.up, health.fits, health.variant, health.ok) == ("upright", "", "tar", True)
    assert (health.reading, health.unit) == ("camera to world, OpenCV", "confirmed")
    assert health.agree > 0.85
    assert max(health.agree_next, health.agree_still) < health.agree - 0.2
    assert health.depth_coverage == 1.0
    assert summarise_health(make(), "tar") == health
    decoded = [frame.decoded for frame in scene.frames]  # type: ignore[attr-defined]
    assert max(decoded) == 1
    assert sum(decoded) <= 24
    assert json.loads(json.dumps(health.to_json()))["verdict"] == "ok"


@pytest.mark.parametrize("true", [Reading(DIRECTIONS[1]), Reading(axes="OpenGL"), Reading(DIRECTIONS[1], "mirrored")])
def test_a_wrong_reading_is_named(make: Make, true: Reading) -> None:
    health = summarise_health(make(pose=true.undo))
    assert health.fits == str(true)
    assert not health.ok
    assert f"the poses are {true} (" in health.verdict
    assert "), not camera to world, OpenCV (" in health.verdict


def test_the_world_frame_does_not_matter(make: Make) -> None:
    moved = np.eye(4)
    moved[:3, :3] = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    moved[:3, 3] = 5, -3, 1
    a, b = summarise_health(make()), summarise_health(make(pose=lambda T: moved @ T))
    assert a.agree == pytest.approx(b.agree, abs=1e-3)
    assert b.verdict == "ok"


def test_unrelated_poses_fit_no_convention(make: Make) -> None:
    rng = np.random.default_rng(0)

    def shaken(T: FloatArray) -> FloatArray:
        T = T.copy()
        T[:3, 3] += rng.normal(0, 0.6, 3)
        return T

    health = summarise_health(make(pose=shaken))
    assert not health.ok
    assert "No reading fits (best: " in health.verdict
    assert "poses drift, or belong to other pictures" in health.verdict
    assert health.fits == ""


def test_depth_of_another_scale_than_the_poses_is_noticed(make: Make) -> None:
    """Depth 30 % too long: views disagree, though each alone looks fine."""
    health = summarise_health(make(depth=lambda d: d * np.float32(1.3)))
    assert health.unit == "times 0.763"
    assert health.verdict.startswith("bad: depth is to be multiplied by 0.763 (")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        (lambda d: d * np.float32(1000), "unit"),
        (lambda d: d / np.float32(1000), "unit"),
        (lambda d: np.where(np.arange(d.size).reshape(d.shape) % 40 == 0, d, 0), "covers"),
        (lambda d: d * 0, "covers"),
    ],
)
def test_implausible_depth(make: Make, change: Callable[[DepthArray], DepthArray], word: str) -> None:
    health = summarise_health(make(depth=change))
    assert health.verdict.startswith("bad")
    assert word in health.verdict


@pytest.mark.parametrize(("turns", "up"), [(0, "upright"), (1, "sideways"), (2, "upside down"), (3, "sideways")])
def test_turned_images(make: Make, turns: int, up: str) -> None:
    scene = make(pose=lambda T: rotate_pose_by_quarters(T, turns), depth=lambda d: np.rot90(d, turns).copy())
    for frame in scene.frames:
        frame.camera = rotate_camera_by_quarters(frame.camera, turns)
        frame.depth_camera = rotate_camera_by_quarters(frame.depth_camera, turns)
    health = summarise_health(scene)
    assert health.up == up
    assert health.agree > 0.85
    assert health.verdict.startswith("warn" if turns == 2 else "ok")


def test_up_along_the_view_and_unknown(make: Make) -> None:
    scene = make()
    forward = np.mean([frame.world_from_camera[:3, 2] for frame in scene.frames], axis=0)
    scene.up_world = -forward / np.linalg.norm(forward)
    assert find_orientation(scene) == "along the view"
    scene.up_world = None
    assert find_orientation(scene) == "unknown"
    assert summarise_health(scene).verdict == "ok"


def test_single_frames_and_views_apart_are_said(make: Make) -> None:
    scene = make()
    scene.frames, scene.total_frames = scene.frames[:1], 4
    health = summarise_health(scene)
    assert "No two frames turn by 3 to 30 degrees" in health.verdict
    assert "only 1 of 4 frames" in health.verdict
    assert health.to_json()["agree"] is None
    scene.needs_decision = True
    assert summarise_health(scene).verdict.startswith("bad: No two frames turn")
    scene = make()
    scene.frames[0].world_from_camera = scene.frames[0].world_from_camera.copy()
    scene.frames[0].world_from_camera[:3, 3] += 500
    scene.frames = scene.frames[:2]
    assert summarise_health(scene).agree < 0.1


def test_issues_are_counted(make: Make) -> None:
    scene = make()
    scene.total_frames = 27
    scene.issues += [Issue(str(n), "bad_pose", "") for n in (901, 902)] + [Issue("903", "incomplete", "")]
    scene.issues += [Issue(frame.id, "gravity_disagrees", "") for frame in scene.frames[:13]]
    health = summarise_health(scene)
    assert health.issues == {"bad_pose": 2, "gravity_disagrees": 13, "incomplete": 1}
    assert health.poses_valid == 25
    assert health.verdict.startswith("warn")
    assert "gravity" in health.verdict


def test_unreadable_frames_are_said(make: Make) -> None:
    scene = make()

    def fail() -> DepthArray:
        raise FrameError("x.png", "damage", "a picture", "Copy it again.")

    scene.frames[0].depth_m = fail  # type: ignore[method-assign]
    health = summarise_health(scene)
    assert health.verdict.startswith("warn: depth of frame 0 is unreadable: x.png: found damage")
    for frame in scene.frames:
        frame.depth_m = fail  # type: ignore[method-assign]
    assert "no depth could be read" in summarise_health(scene).verdict


def test_statistics_of_known_numbers() -> None:
    depth = np.array([[0, 1, 2, 3], [0, 0, 0, 4]], np.float32)
    assert compute_depth_statistics([depth]) == (0.5, 2.5)


@pytest.mark.parametrize("turn", [0.0, 0.6])
def test_up_is_estimated_from_level_planes(make: Make, turn: float) -> None:
    """In a world that is turned about x, up is turned as well."""
    c, s = np.cos(turn), np.sin(turn)
    world = np.eye(4)
    world[:3, :3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    scene = make(pose=lambda T: world @ T)
    scene.up_world = None
    estimated = estimate_up(scene, {i: scene.frames[i].depth_m() for i in range(0, 24, 3)})
    assert estimated is not None
    assert np.degrees(np.arccos(estimated[:3] @ world[:3, 2])) < 0.5
    assert estimated[3] < 1
    assert estimate_up(scene, {0: None}) is None
    found = summarise_health(scene).up_from_planes
    assert found is not None
    assert found[:3] == pytest.approx(world[:3, 2], abs=0.02)


def test_edges_of_depth_are_drawn_over_color(make: Make) -> None:
    scene = make()
    picture = cv2.imdecode(np.frombuffer(draw_depth_edges(scene), np.uint8), cv2.IMREAD_COLOR_RGB)
    red = (np.asarray(picture) == (255, 0, 0)).all(axis=2)
    assert 0 < red.mean() < 0.3
    depth = cv2.resize(scene.frames[12].depth_m(), red.shape[::-1], interpolation=cv2.INTER_NEAREST)
    rows, columns = np.nonzero(red)
    steps = cv2.dilate(depth, np.ones((5, 5))) - cv2.erode(depth, np.ones((5, 5)))
    assert (steps[rows, columns] > 0.05).mean() > 0.9


def test_all_real_captures_are_sound(captures: Path) -> None:
    refs = discover(captures)
    assert {ref.dataset for ref in refs} == {"ca1m", "scannet", "scannetpp", "wildrgbd"}
    for ref in refs:
        with loaders[ref.dataset].open(ref) as scene:
            health = summarise_health(scene, ref.variant)
            assert health.verdict == "ok", ref
            assert health.agree > 0.7
            assert health.agree - max(health.agree_next, health.agree_still) > 0.4
            assert health.depth_coverage > 0.5
            assert health.up == ("unknown" if ref.dataset == "wildrgbd" else "upright")
            assert (health.dataset, health.id) == (ref.dataset, ref.scene_id)
            frames = list(scene.frames)
            for frame in frames:
                frame.world_from_camera = invert(frame.world_from_camera)
            wrong = summarise_health(scene)
            assert wrong.fits == "world to camera, OpenCV", ref
            assert not wrong.ok
