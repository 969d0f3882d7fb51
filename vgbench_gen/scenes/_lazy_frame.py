"""Frames whose pixels are read by functions that a loader gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes._lens import Undistorter
from vgbench_gen.scenes.base import Frame
from vgbench_gen.scenes.files import decode_image_rgb, keep_plain, read_picture

_MAX_ASPECT_ERROR = 0.02
# Compressed masks have grey edges; 255 is valid, 0 hidden.
_MASK_VALID = 128

Mask = npt.NDArray[np.uint8]
ColorReaders = tuple[Callable[[], ColorArray], Callable[[], bytes | None] | None]


@dataclass(slots=True, eq=False)
class LazyFrame(Frame):
    """One image, undistorted when asked for."""

    id: str
    timestamp_s: float | None
    world_from_camera: FloatArray
    pose_deviation: float
    camera: Camera
    read_color: Callable[[], ColorArray]
    read_encoded: Callable[[], bytes | None] | None
    """Gives the bytes of the stored image, or None where viewers show them otherwise than `read_color`."""
    depth_camera: Camera
    read_depth_m: Callable[[], DepthArray]
    read_mask: Callable[[], Mask] | None = None
    """Gives 0..255 of any size; below 128 a pixel is hidden."""
    read_object_mask: Callable[[], BoolArray] | None = None
    undistorter: Undistorter | None = None
    """None where the stored image is a pinhole image already."""
    depth_is_distorted: bool = False
    """Whether depth lies on the grid of the distorted image, as sensor depth does and rendered depth does not."""

    def color(self) -> ColorArray:
        image = self.read_color()
        return image if self.undistorter is None else self.undistorter.color(image)

    def depth_m(self) -> DepthArray:
        depth = self.read_depth_m()
        if self.undistorter is None or not self.depth_is_distorted:
            return depth
        return np.asarray(self.undistorter.nearest(depth), np.float32)

    def encoded_color(self) -> bytes | None:
        return self.read_encoded() if self.read_encoded is not None and self.undistorter is None else None

    def valid_mask(self) -> BoolArray | None:
        if self.read_mask is None:
            return None
        import cv2

        mask = self.read_mask()
        if (mask >= _MASK_VALID).all():
            return None
        if mask.shape != (self.camera.height, self.camera.width):
            check_aspect((mask.shape[1], mask.shape[0]), self.camera.size, f"mask of {self.id}", FrameError)
            mask = np.asarray(cv2.resize(mask, self.camera.size, interpolation=cv2.INTER_NEAREST), np.uint8)
        if self.undistorter is not None:
            mask = self.undistorter.nearest(mask)
        valid: BoolArray = mask >= _MASK_VALID
        return valid

    def object_mask(self) -> BoolArray | None:
        return None if self.read_object_mask is None else self.read_object_mask()


def make_color_readers(path: Path, size: tuple[int, int], read: Callable[[Path], bytes] = read_picture) -> ColorReaders:
    """`LazyFrame.read_color` and `LazyFrame.read_encoded` of a picture of this (width, height)."""
    return (
        lambda: decode_image_rgb(read(path), path, size),
        lambda: keep_plain(read(path), path, size),
    )


def check_aspect(
    size: tuple[int, int],
    reference: tuple[int, int],
    where: object,
    error: type[FormatError] = SceneError,
    most: float = _MAX_ASPECT_ERROR,
) -> None:
    """Refuse a size of another shape than the reference: it is another crop or orientation, not another scale.

    Raises:
        FormatError: (of type `error`).
    """
    ratio = size[0] * reference[1] / (size[1] * reference[0])
    if not abs(ratio - 1.0) <= most:
        expected = f"the shape of {reference[0]}x{reference[1]}"
        raise error(where, f"{size[0]}x{size[1]} pixels", expected, "Use files of the same export.")
