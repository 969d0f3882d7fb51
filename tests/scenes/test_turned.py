"""Turned frames: everything turns together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from tests.scenes import scannetpp_writer as writer
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, OrientedBox
from vgbench_gen.geometry.boxes import corners
from vgbench_gen.scenes._turned import TurnedFrame, count_turns_to_upright, turn_upright
from vgbench_gen.scenes.base import Frame, FrameObject

UP = np.array([0.0, 0.0, 1.0])
POSE = writer.look_at((1, 1, 1.5), (3, 3, 0.4), roll_deg=33)
BOX = OrientedBox(
    np.array([0.2, -0.1, 2.0]), np.array([0.3, 0.2, 0.1]), Rotation.from_euler("xyz", [1, 2, 3]).as_matrix()
)


class Plain(Frame):
    """A frame whose colour gives each pixel's own place."""

    def __init__(self) -> None:
        self.id, self.timestamp_s, self.pose_deviation = "f", 1.0, 0.0
        self.camera = Camera(np.array([[70.0, 0, 33.0], [0, 75.0, 21.0], [0, 0, 1]]), 64, 48)
        self.depth_camera = Camera(np.array([[35.0, 0, 16.25], [0, 37.5, 10.25], [0, 0, 1]]), 32, 24)
        self.world_from_camera = POSE

    def color(self) -> ColorArray:
        y, x = np.mgrid[:48, :64]
        return np.stack([x, y, 0 * x], -1).astype(np.uint8)

    def depth_m(self) -> DepthArray:
        y, x = np.mgrid[:24, :32]
        return np.asarray(x + 100 * y, np.float32)

    def encoded_color(self) -> bytes | None:
        return b"jpeg"

    def valid_mask(self) -> BoolArray | None:
        return np.asarray(self.color()[..., 0] > 40)

    def object_mask(self) -> BoolArray | None:
        return np.asarray(self.color()[..., 1] > 40)

    def objects(self) -> Sequence[FrameObject]:
        return (FrameObject("7", "cup", BOX, (10.0, 20.0, 30.0, 25.0), None),)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_a_world_point_keeps_its_pixel_colour_and_depth(k: int) -> None:
    plain, turned = Plain(), TurnedFrame(Plain(), k)
    for camera, other, values in (
        (plain.camera, turned.camera, turned.color()[..., :2] @ [1, 100]),
        (plain.depth_camera, turned.depth_camera, turned.depth_m()),
    ):
        assert values.shape == (other.height, other.width)
        for u, v in [(0, 0), (camera.width - 1, 0), (5, camera.height - 1), (9, 4)]:
            ray = np.array([(u - camera.cx) / camera.fx, (v - camera.cy) / camera.fy, 1]) * 2.5
            world = POSE @ [*ray, 1]
            x, y, z, _ = np.linalg.inv(turned.world_from_camera) @ world
            assert z == pytest.approx(2.5)
            column, row = other.fx * x / z + other.cx, other.fy * y / z + other.cy
            assert values[round(row), round(column)] == u + 100 * v
            np.testing.assert_allclose([column, row], np.rint([column, row]), atol=1e-9)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_masks_boxes_and_rectangles_turn_along(k: int) -> None:
    plain, turned = Plain(), TurnedFrame(Plain(), k)
    color, valid, mask = turned.color(), turned.valid_mask(), turned.object_mask()
    assert valid is not None
    assert mask is not None
    np.testing.assert_array_equal(valid, color[..., 0] > 40)
    np.testing.assert_array_equal(mask, color[..., 1] > 40)
    (item,) = turned.objects()
    before = np.concatenate([corners(BOX), np.ones((8, 1))], 1) @ plain.world_from_camera.T
    after = np.concatenate([corners(item.box), np.ones((8, 1))], 1) @ turned.world_from_camera.T
    np.testing.assert_allclose(before, after, atol=1e-12)
    assert item.rendered_px is not None
    x1, y1, x2, y2 = (int(v) for v in item.rendered_px)
    inside = color[y1 : y2 + 1, x1 : x2 + 1].reshape(-1, 3)
    assert (inside.min(0)[:2].tolist(), inside.max(0)[:2].tolist()) == ([10, 20], [30, 25])
    assert item.projected_px is None
    assert turned.encoded_color() is None
    frame = Plain()
    assert turn_upright(frame, 0) is frame


def test_each_frame_is_judged_by_its_own_roll_and_steep_ones_follow_the_rest() -> None:
    # A camera rolled clockwise by 90 degrees gives a picture turned counter-clockwise, and the other way round.
    poses = [writer.look_at((1, 1, 1.5), (3, 3, 1.0), roll_deg=roll) for roll in (90, 90, 90, 0, 180, 270, 70)]
    steep = writer.look_at((1, 1, 1.5), (1.3, 1.0, 0.0), roll_deg=180)
    turns = count_turns_to_upright([*poses, steep], UP)
    assert turns == [turns[0]] * 3 + [0, 2, (turns[0] + 2) % 4, turns[0], turns[0]]
    for pose, k in zip(poses, turns[:-1], strict=True):
        frame = Plain()
        frame.world_from_camera = pose
        x, y, _ = UP @ turn_upright(frame, k).world_from_camera[:3, :3]
        assert y < -0.5
        assert abs(x) < abs(y)
    assert count_turns_to_upright([steep], UP) == [0]
    assert count_turns_to_upright([], UP) == []
