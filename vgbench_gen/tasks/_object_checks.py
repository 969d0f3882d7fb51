"""Whether the stored boxes of objects are cuboids that project onto the drawn rectangles."""

from __future__ import annotations

from collections.abc import Sequence

from vgbench_gen.core.types import Camera, Fact, FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.records import read_camera_record

RESIDUAL_M = 1e-3  # of stored corners, before they are rounded
DRAWN_IOU = 0.9


def compare_with_rect(name: str, corners_m: FloatArray, rect: Sequence[int], camera: Camera) -> Problems:
    """What is wrong with stored corners (8, 3), metres, beside the drawn rectangle [x1, y1, x2, y2].

    The rectangle drawn is that of the full projection, cut at the image border, not that of the visible part: it is
    the frame by which a reader relates a whole box to the picture.
    """
    residual_m = boxes.cuboid_residual_m(corners_m)
    if not residual_m <= RESIDUAL_M:
        return [("cuboid", f"{name}: stored corners are {residual_m:.4f} m from a cuboid")]
    projected = boxes.project_rect(camera, boxes.fit_to_corners(corners_m, "camera"))
    x1, y1, x2, y2 = rect
    fit = 0.0
    if projected is not None:
        fit = boxes.rect_iou((x1, y1, x2, y2), boxes.clip_rect(projected, camera.width, camera.height))
    return [] if fit >= DRAWN_IOU else [("drawn_box", f"{name}: projects onto the drawn rectangle by {fit:.2f}")]


def get_camera(fact: Fact) -> Camera:
    """The camera of the frame that the fact is about."""
    return read_camera_record(fact.cameras[fact.frame_ids[0]])
