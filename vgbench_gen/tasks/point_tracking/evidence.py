"""What is kept of a tracked point, of the wrong options beside it, and of their two images."""

from __future__ import annotations

from typing import Annotated

from pydantic import Strict

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks._pairs import TwoViewEvidence
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, StoredCamera

PixelArray = Annotated[FloatArray, ArrayShape(2)]
Point = Annotated[FloatArray, ArrayShape(3)]


class ImagesEvidence(FactEvidence):
    """What is kept of the two images; image 1 shows the query."""

    diagonal_px: float
    """Length of the diagonal of image 2."""
    camera_1: StoredCamera
    """Of image 1."""
    camera_2: StoredCamera
    """Of image 2."""
    pair: TwoViewEvidence
    """What was measured between both frames."""
    second_back_px: PixelArray | None = None
    """Pixel of image 1 to which the second route leads from the answer; None where it does not lead back."""


class PlaceEvidence(Evidence):
    """What is kept of a place of image 2 that is an option."""

    point_2_m: Point
    """The point there, in the frame of camera 2, metres."""
    look: Annotated[FloatArray, ArrayShape(2)] | None = None
    """How unlike the query the place looks, without understanding: difference of the mean colours inside a marker (of
    255), and one minus the correlation of the surroundings; None for the question back."""
    uv_1_px: Annotated[tuple[int, int], Strict(False)] | None = None
    """Of a wrong option: its pixel in image 1, where the question back shows it; None where it has none."""
    point_1_m: Point | None = None
    """Of a wrong option: the point there, in the frame of camera 1, metres."""
    z_1_m: float | None = None
    """Of a tracked point, like all that follow: its depth in image 1, metres."""
    uv_2_px: PixelArray | None = None
    """Its exact pixel in image 2."""
    cycle_px_at_640: float | None = None
    """How far from its start it ends when both depth images lead it there and back, pixels at 640 wide."""
    motion_d: float | None = None
    """How far it moves in the image, D%."""


class TrackedEvidence(PlaceEvidence):
    """What is kept of a tracked point, which could be asked about. The fields are those of `PlaceEvidence`, and none of
    these is missing."""

    z_1_m: float
    """Depth of the point in image 1, metres."""
    uv_2_px: PixelArray
    """(2,) exact pixel of the point in image 2."""
    cycle_px_at_640: float
    """Distance from its start at which the point ends when both depth images lead it there and back, pixels of an image
    640 wide."""
    motion_d: float
    """Distance by which the point moves in the image, D% (per cent of the image diagonal)."""
