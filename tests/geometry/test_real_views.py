"""Real depth and poses: the conventions close the cycle, the usual mistakes do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from vgbench_gen.core.types import Camera
from vgbench_gen.geometry import cameras, poses, visibility
from vgbench_gen.geometry.visibility import SENSOR


@pytest.fixture(scope="module")
def views(captures: Path) -> tuple[Camera, list[Any], list[Any]]:
    """Camera, depths and poses of one WildRGB-D capture, read without a loader."""
    scene = captures / "wildrgbd" / "box" / "scenes" / "scenes_000"
    meta = json.loads((scene / "metadata").read_text())
    camera = Camera(np.array(meta["K"]).reshape(3, 3).T, meta["w"], meta["h"])
    rows = np.loadtxt(scene / "cam_poses.txt")[:6]
    depths = []
    for row in rows:
        raw = cv2.imread(str(scene / "depth" / f"{int(row[0]):05d}.png"), cv2.IMREAD_UNCHANGED)
        assert raw is not None
        depths.append(raw.astype(np.float32) / 1000)
    return camera, depths, [poses.check_pose(row[1:].reshape(4, 4), "cam_poses.txt")[0] for row in rows]


def cycle(camera: Camera, depths: list[Any], world_from_camera: list[Any], a: int, b: int) -> tuple[float, float]:
    """Median cycle error in pixels at 640 wide and the share of points visible both ways."""
    both = visibility.find_two_way_visible(
        camera, depths[a], world_from_camera[a], camera, depths[b], world_from_camera[b], SENSOR
    )
    error = np.nanmedian(both.cycle_px) * 640 / camera.width
    return float(error), visibility.overlap_fraction(np.where(both.visible, 1, both.forward.state))


@pytest.mark.parametrize(("a", "b"), [(0, 2), (1, 4), (0, 5)])
def test_real_views_close_the_cycle_and_mistakes_do_not(views: Any, a: int, b: int) -> None:
    camera, depths, world_from_camera = views
    error, share = cycle(camera, depths, world_from_camera, a, b)
    assert error < 1.0
    assert share > 0.5
    inverted = [poses.invert(pose) for pose in world_from_camera]
    flipped = [pose @ np.diag([1.0, -1, -1, 1]) for pose in world_from_camera]
    for wrong in (inverted, flipped):
        worse, less = cycle(camera, depths, wrong, a, b)
        assert worse > 3 * error
        assert less < share


def test_turning_real_views_changes_nothing(views: Any) -> None:
    camera, depths, world_from_camera = views
    turned_camera = cameras.rotate_camera_by_quarters(camera, 1)
    turned_depths = [np.rot90(depth) for depth in depths]
    turned_poses = [cameras.rotate_pose_by_quarters(pose, 1) for pose in world_from_camera]
    rng = np.random.default_rng(0)
    uv = rng.integers(0, camera.size, (3000, 2)).astype(np.float64)
    plain = visibility.find_two_way_visible(
        camera, depths[0], world_from_camera[0], camera, depths[3], world_from_camera[3], SENSOR, uv_a=uv
    )
    turned = visibility.find_two_way_visible(
        turned_camera, turned_depths[0], turned_poses[0], turned_camera, turned_depths[3], turned_poses[3], SENSOR,
        uv_a=np.stack([uv[:, 1], camera.width - 1 - uv[:, 0]], axis=-1),
    )  # fmt: skip
    assert (plain.visible == turned.visible).mean() > 0.998
    assert plain.visible.sum() > 500
    np.testing.assert_allclose(turned.forward.points_world, plain.forward.points_world, atol=1e-9)
