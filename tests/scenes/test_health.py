from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

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
    CONVENTIONS,
    choose_pairs,
    compute_depth_statistics,
    cross_view,
    find_orientation,
    summarise_health,
)

FLIP = np.diag([1.0, -1.0, -1.0, 1.0])


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
    assert (health.up, health.fits, health.variant, health.ok) == ("upright", (), "tar", True)
    assert health.pose_depth_error < 0.005
    assert health.pose_depth_agree > 0.85
    assert health.depth_coverage == 1.0
    assert summarise_health(make(), "tar") == health
    decoded = [frame.decoded for frame in scene.frames]  # type: ignore[attr-defined]
    assert max(decoded) == 1
    assert sum(decoded) <= 8
    assert json.loads(json.dumps(health.to_json()))["verdict"] == "ok"


@pytest.mark.parametrize(
    ("wrong", "fits"),
    [
        (lambda T: np.linalg.inv(T), "inverse pose"),
        (lambda T: T @ FLIP, "OpenGL camera axes"),
        (lambda T: np.linalg.inv(T @ FLIP), "inverse pose with OpenGL camera axes"),
    ],
)
def test_a_wrong_pose_convention_is_named(make: Make, wrong: Callable[[FloatArray], FloatArray], fits: str) -> None:
    health = summarise_health(make(pose=wrong))
    assert health.fits[:1] == (fits,)
    assert not health.ok
    assert fits in health.verdict
    assert health.pose_depth_error > 0.05 or np.isnan(health.pose_depth_error)


def test_the_world_frame_does_not_matter(make: Make) -> None:
    moved = np.eye(4)
    moved[:3, :3] = np.array([[0.6, -0.8, 0], [0.8, 0.6, 0], [0, 0, 1]])
    moved[:3, 3] = 5, -3, 1
    a, b = summarise_health(make()), summarise_health(make(pose=lambda T: moved @ T))
    assert a.pose_depth_error == pytest.approx(b.pose_depth_error, rel=1e-6)
    assert b.verdict == "ok"


def test_unrelated_poses_fit_no_convention(make: Make) -> None:
    rng = np.random.default_rng(0)

    def shaken(T: FloatArray) -> FloatArray:
        T = T.copy()
        T[:3, 3] += rng.normal(0, 0.6, 3)
        return T

    health = summarise_health(make(pose=shaken))
    assert not health.ok
    assert "no known pose convention fits (tried: inverse pose, OpenGL camera axes)" in health.verdict
    assert "check the order of the quaternion and the unit of depth" in health.verdict
    assert health.fits == ()


def test_depth_of_another_scale_than_the_poses_is_noticed(make: Make) -> None:
    """Depth 30 % too long: views disagree, though each alone looks fine."""
    health = summarise_health(make(depth=lambda d: d * np.float32(1.3)))
    assert health.verdict.startswith("warn: only 40% of the points agree")


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
    assert health.pose_depth_error < 0.005
    assert health.verdict.startswith("warn" if turns == 2 else "ok")


def test_up_along_the_view_and_unknown(make: Make) -> None:
    scene = make()
    forward = np.mean([frame.world_from_camera[:3, 2] for frame in scene.frames], axis=0)
    scene.up_world = -forward / np.linalg.norm(forward)
    assert find_orientation(scene) == "along the view"
    scene.up_world = None
    assert find_orientation(scene) == "unknown"
    assert summarise_health(scene).verdict == "ok"


def test_pairs_move_enough_and_not_too_much(make: Make) -> None:
    scene = make()
    pairs = choose_pairs(scene.frames)
    assert 2 <= len(pairs) <= 4
    for a, b in pairs:
        T, S = scene.frames[a].world_from_camera, scene.frames[b].world_from_camera
        turned = np.degrees(np.arccos((np.trace(T[:3, :3].T @ S[:3, :3]) - 1) / 2))
        shifted = np.linalg.norm(T[:3, 3] - S[:3, 3])
        assert turned >= 12 or shifted >= 0.25
        assert turned <= 45
        assert shifted <= 1.5
    assert choose_pairs(scene.frames[:1]) == []
    assert choose_pairs(scene.frames[:2]) == [(0, 1)]
    assert choose_pairs([scene.frames[0]] * 5)


def test_single_frames_and_views_apart_are_said(make: Make) -> None:
    scene = make()
    scene.frames, scene.total_frames = scene.frames[:1], 4
    health = summarise_health(scene)
    assert "one frame only" in health.verdict
    assert "only 1 of 4 frames" in health.verdict
    assert health.to_json()["pose_depth_error"] is None
    scene = make()
    scene.frames[0].world_from_camera = scene.frames[0].world_from_camera.copy()
    scene.frames[0].world_from_camera[:3, 3] += 500
    scene.frames = scene.frames[:2]
    assert "no pair of views overlaps" in summarise_health(scene).verdict


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

    pairs = choose_pairs(scene.frames)
    scene.frames[pairs[0][0]].depth_m = fail  # type: ignore[method-assign]
    health = summarise_health(scene)
    assert health.verdict.startswith("warn: depth of frame 0 is unreadable: x.png: found damage")
    for frame in scene.frames:
        frame.depth_m = fail  # type: ignore[method-assign]
    assert "no depth could be read" in summarise_health(scene).verdict


def test_statistics_and_cross_view_of_known_numbers(make: Make) -> None:
    depth = np.array([[0, 1, 2, 3], [0, 0, 0, 4]], np.float32)
    assert compute_depth_statistics([depth]) == (0.5, 2.5)
    scene = make(pose=lambda T: np.eye(4), depth=lambda d: np.full_like(d, 2.0))
    views = cross_view(scene, [(0, 1)], {0: np.full((60, 80), 2.0, np.float32), 1: np.full((60, 80), 2.1, np.float32)})
    assert views[0].error == pytest.approx(0.1 / 2.1, rel=1e-4)
    assert views[0].agree == 0.0
    assert [view.convention for view in views] == list(CONVENTIONS)


def test_all_real_captures_are_sound(captures: Path) -> None:
    refs = discover(captures)
    assert {ref.dataset for ref in refs} == {"ca1m", "scannet", "scannetpp", "wildrgbd"}
    for ref in refs:
        with loaders[ref.dataset].open(ref) as scene:
            health = summarise_health(scene, ref.variant)
            assert health.verdict == "ok", ref
            assert health.pose_depth_error < 0.02
            assert health.pose_depth_agree > 0.7
            assert health.depth_coverage > 0.5
            assert health.up == ("unknown" if ref.dataset == "wildrgbd" else "upright")
            assert (health.dataset, health.id) == (ref.dataset, ref.scene_id)
            frames = list(scene.frames)
            for frame in frames:
                frame.world_from_camera = invert(frame.world_from_camera)
            wrong = summarise_health(scene)
            assert wrong.fits[:1] == ("inverse pose",), ref
            assert not wrong.ok
