"""What a reader of a layout gives: records of frames, and what holds for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes._lazy_frame import Mask
from vgbench_gen.scenes._lens import Lens
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.posed.layout import FileLayout


@dataclass(frozen=True, slots=True)
class StoredFrame:
    """One frame as it is stored; nothing is decoded."""

    id: str
    time_s: float | None
    """The time of capture in seconds, or None."""
    lens: Lens
    """The camera of `color` as stored, with its distortion."""
    color: Callable[[], ColorArray]
    """Gives (H, W, 3) uint8 RGB of the size of `lens`."""
    encoded: Callable[[], bytes | None] | None
    """Gives the bytes of the picture where viewers show them as `color` does, else None."""
    depth_camera: Camera | None
    """The camera of depth where it is not that of color at the size of depth, else None."""
    depth_size: tuple[int, int]
    """Width and height of depth."""
    depth: Callable[[], DepthArray]
    """Gives (h, w) float32 meters as stored, along the axis or the ray as the layout says, 0 where unknown."""
    stored: FloatArray
    """The transform (4, 4) as the file states it, in the unit of the file."""
    hide: Callable[[ColorArray], Mask] | None = None
    """Gives the mask of a picture as stored, 0 where it shows nothing; None where all of it may be used."""


@dataclass(slots=True)
class StoredRecording:
    """One recording as it is stored."""

    layout: FileLayout
    records: Sequence[StoredFrame]
    """The frames that have color, depth and pose, in order of capture."""
    total: int
    """How many pictures there are."""
    issues: list[Issue]
    digest: list[tuple[object, ...]]
    """Names and sizes of the files of its pictures; what was read of poses and cameras counts by itself."""
    pairing: str = ""
    """How color, depth and poses were put together, in words."""
    order: str = ""
    """The order of quaternions, "xyzw" or "wxyz", "" where poses are matrices."""
    objects: Sequence[SceneObject] = ()
    close: Callable[[], None] = field(default=lambda: None)


Reader = Callable[[Path, FileLayout], StoredRecording]
"""Reads the recording at a path. Raises SceneError where nothing of it can be used."""
