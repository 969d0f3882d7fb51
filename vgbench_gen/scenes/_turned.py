"""Frames shown upright: colour, depth, masks, K, pose and boxes turned together by quarter turns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.boxes import transform_box
from vgbench_gen.geometry.cameras import (
    Rect,
    count_upright_turns,
    quarter_turn_rotation,
    rotate_camera_by_quarters,
    rotate_pose_by_quarters,
    rotate_rect_by_quarters,
    up_in_camera,
)
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.base import Frame, FrameObject

# Nearer than 30 degrees to straight up or down, the roll hangs on few degrees of pose and says little.
_MIN_ROLL_SINE = 0.5


def count_turns_to_upright(poses: Sequence[FloatArray], up_world: FloatArray) -> list[int]:
    """Quarter turns (`np.rot90`) for each frame of one scene.

    Each frame is judged by its own pose, because a phone may be turned during a scan. A frame that looks so steeply
    up or down that its own roll says little follows the majority of the scene.

    poses: (4, 4) `world_from_camera` each. up_world: (3,) unit vector.
    """
    own = [count_upright_turns(pose, up_world) for pose in poses]
    sure = [bool(np.hypot(*up_in_camera(pose, up_world)[:2]) > _MIN_ROLL_SINE) for pose in poses]
    votes = Counter(k for k, is_sure in zip(own, sure, strict=True) if is_sure)
    majority = min(votes, key=lambda k: (-votes[k], k)) if votes else 0
    return [k if is_sure else majority for k, is_sure in zip(own, sure, strict=True)]


def turn_upright(frame: Frame, k: int) -> Frame:
    """The frame after `np.rot90(image, k)`; the frame itself where nothing is to be turned."""
    return TurnedFrame(frame, k) if k % 4 else frame


def undo_turn(frame: Frame) -> Frame:
    """The frame as it is stored, whose pose bears no turn."""
    return frame._frame if isinstance(frame, TurnedFrame) else frame


class TurnedFrame(Frame):
    """A frame whose pictures are turned by `np.rot90(picture, k)`, k = 1 to 3, everything else along with them."""

    def __init__(self, frame: Frame, k: int) -> None:
        self._frame, self._k = frame, k % 4
        self.id, self.timestamp_s, self.pose_deviation = frame.id, frame.timestamp_s, frame.pose_deviation
        self.camera = rotate_camera_by_quarters(frame.camera, k)
        self.depth_camera = rotate_camera_by_quarters(frame.depth_camera, k)
        self.world_from_camera = rotate_pose_by_quarters(frame.world_from_camera, k)

    def color(self) -> ColorArray:
        import cv2

        # A fifth of the time of `np.rot90`, which reads a column of the picture for each row that it writes.
        turn = (cv2.ROTATE_90_COUNTERCLOCKWISE, cv2.ROTATE_180, cv2.ROTATE_90_CLOCKWISE)[self._k - 1]
        return np.asarray(cv2.rotate(self._frame.color(), turn), dtype=np.uint8)

    def depth_m(self) -> DepthArray:
        turned: DepthArray = self._turned(self._frame.depth_m())
        return turned

    def valid_mask(self) -> BoolArray | None:
        mask = self._frame.valid_mask()
        return None if mask is None else self._turned(mask)

    def object_mask(self) -> BoolArray | None:
        mask = self._frame.object_mask()
        return None if mask is None else self._turned(mask)

    def objects(self) -> Sequence[FrameObject]:
        turned_from_camera = make_pose(quarter_turn_rotation(self._k), np.zeros(3))
        width, height = self._frame.camera.size

        def turn(rect: Rect | None) -> Rect | None:
            return None if rect is None else rotate_rect_by_quarters(rect, width, height, self._k)

        return tuple(
            replace(
                item,
                box=transform_box(item.box, turned_from_camera, item.box.frame),
                rendered_px=turn(item.rendered_px),
                projected_px=turn(item.projected_px),
            )
            for item in self._frame.objects()
        )

    def _turned(self, picture: npt.NDArray[Any]) -> npt.NDArray[Any]:
        return np.ascontiguousarray(np.rot90(picture, self._k))
