"""Whether a recording that was read is the room that it was written of."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tests.scene_factory import RoomScene
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Frame, Scene, SceneObject
from vgbench_gen.scenes.opening import open_scene


def open_only(root: Path) -> Scene:
    """The one scene below a folder."""
    (ref,) = discover(root)
    return open_scene(ref)


def assert_frames(
    frames: Sequence[Frame], room: RoomScene, which: Sequence[int], depth_step_m: float, scale: float = 1.0
) -> None:
    """Poses, cameras, colors and depth are those of the room's frames at these places, lengths times `scale`."""
    assert len(frames) == len(which)
    for frame, wanted in zip(frames, (room.frames[i] for i in which), strict=True):
        pose = wanted.world_from_camera.copy()
        pose[:3, 3] *= scale
        np.testing.assert_allclose(frame.world_from_camera, pose, atol=1e-6)
        _assert_camera(frame.camera, wanted.camera)
        _assert_camera(frame.depth_camera, wanted.depth_camera)
        np.testing.assert_array_equal(frame.color(), wanted.color())
        np.testing.assert_allclose(frame.depth_m(), wanted.depth_m() * scale, rtol=1e-6, atol=depth_step_m / 2 * 1.01)


def _assert_camera(found: Camera, wanted: Camera) -> None:
    assert found.size == wanted.size
    np.testing.assert_allclose(found.K, wanted.K, atol=1e-6)


def assert_boxes(found: Sequence[SceneObject], wanted: Sequence[SceneObject], up: FloatArray) -> None:
    """The same objects in the same boxes, whose third axis is up."""
    from vgbench_gen.geometry.boxes import corners

    assert [each.label for each in found] == [each.label for each in wanted]
    for one, other in zip(found, wanted, strict=True):
        mine, theirs = corners(one.box), corners(other.box)
        gaps = np.linalg.norm(mine[:, None] - theirs, axis=2).min(axis=1)
        assert gaps.max() < 1e-6, (one.label, gaps)
        np.testing.assert_allclose(one.box.rotation[:, 2], up, atol=1e-12)
        assert np.linalg.det(one.box.rotation) > 0
