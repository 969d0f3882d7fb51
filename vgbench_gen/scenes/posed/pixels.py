"""Depth in any of the formats that recordings have, by its own header before memory is taken."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes.files import (
    MAX_PIXELS,
    decode_depth_u16,
    decode_mask_u8,
    open_regular,
    read_file_header,
    read_picture,
)
from vgbench_gen.scenes.posed.layout import FileLayout

DEPTH_SUFFIXES = (".png", ".pgm", ".tif", ".tiff", ".exr", ".npy")
COLOR_SUFFIXES = (".jpg", ".jpeg", ".png")
_MAX_CHANNELS = 4
_COLMAP_HEAD, _HEAD_BYTES = re.compile(rb"(\d{1,6})&(\d{1,6})&1&"), 32
_WANTED = "depth as 16-bit PNG or PGM, TIFF, OpenEXR or NumPy array"
Values = npt.NDArray[Any]


def read_depth_size(path: Path) -> tuple[int, int]:
    """(width, height) of a picture of depth, from its header. Raises FrameError."""
    return _open(path)[0]


def holds_floats(path: Path) -> bool:
    """Whether a picture of depth holds floats, as meters are stored, and no whole steps. Raises FrameError."""
    with _refuse(path):
        return bool(_open(path)[1]().dtype.kind == "f")


def make_depth_reader(
    path: Path, size: tuple[int, int], layout: FileLayout, sure: Path | None
) -> Callable[[], DepthArray]:
    """What gives (h, w) float32 meters of a picture of depth, 0 where unknown.

    size: (width, height) that it must have. sure: the picture of its confidence.
    """

    def read() -> DepthArray:
        actual, decode = _open(path)
        if actual != size:
            raise FrameError(path, f"{actual[0]}x{actual[1]} pixels", f"{size[0]}x{size[1]}")
        with _refuse(path):
            depth_m = convert_depth(decode(), layout)
        if sure is not None:
            depth_m[decode_mask_u8(read_picture(sure), sure, size) < layout.confidence_min] = 0
        return depth_m

    return read


def convert_depth(values: Values, layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters of stored values, 0 where unknown."""
    unknown = np.isin(values, layout.depth_unknown) | ~np.isfinite(values) | (values < 0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(unknown, 0, values / layout.depth_per_meter).astype(np.float32)


def _open(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    """(width, height) of a picture of depth, and what decodes it. Raises FrameError."""
    openers = {".tif": _open_tiff, ".tiff": _open_tiff, ".exr": _open_exr, ".npy": _open_npy, ".bin": _open_colmap}
    open_regular(path, path, FrameError).close()
    with _refuse(path):
        size, decode = openers.get(path.suffix.lower(), _open_steps)(path)
    if not 0 < size[0] * size[1] <= MAX_PIXELS:
        raise FrameError(path, f"{size[0]}x{size[1]} pixels", f"1 to {MAX_PIXELS} pixels")
    return size, decode


@contextmanager
def _refuse(path: Path) -> Iterator[None]:
    """Raise FrameError for whatever a package meets in bytes that are no picture of depth."""
    try:
        yield
    except (FormatError, MemoryError):
        raise
    except Exception as problem:
        raise FrameError(path, f"{type(problem).__name__}: {str(problem)[:80]}", _WANTED) from problem


def _open_steps(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    size = read_file_header(path).size
    return size, lambda: decode_depth_u16(read_picture(path), path, size)


def _open_tiff(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    from PIL import Image

    image = Image.open(io.BytesIO(read_picture(path)), formats=["TIFF"])
    if image.mode not in ("I", "I;16", "I;16B", "F"):
        raise FrameError(path, f"a TIFF of mode {image.mode}", "one channel of 16 bits or of floats")
    return image.size, lambda: np.asarray(image)


def _open_npy(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    array = np.lib.format.open_memmap(path, mode="r")
    if array.ndim != 2 or array.dtype.kind not in "uf":
        raise FrameError(path, f"an array {array.shape} of {array.dtype}", "rows of unsigned integers or floats")
    return array.shape[::-1], lambda: np.array(array)


def _open_colmap(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    with path.open("rb") as file:
        head = _COLMAP_HEAD.match(file.read(_HEAD_BYTES))
    size, (width, height) = path.stat().st_size, map(int, head.groups()) if head else (0, 0)
    if not head or size != head.end() + 4 * width * height:
        raise FrameError(path, f"{size} bytes that begin {head[0] if head else b''!r}", "`w&h&1&` and w*h floats")
    return (width, height), lambda: np.fromfile(path, "<f4", offset=head.end()).reshape(height, width)


def _open_exr(path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    from vgbench_gen.scenes.posed.extras import need

    exr = need("OpenEXR", "recordings")
    file = exr.File(str(path), header_only=True)
    (left, top), (right, bottom) = file.header()["dataWindow"]
    if len(file.parts) > 1 or len(file.header()["channels"]) > _MAX_CHANNELS:  # all of them would be decoded
        raise FrameError(path, "several parts, or many channels", _WANTED)

    def decode() -> Values:
        channels = exr.File(str(path), separate_channels=True).channels()
        name = next((name for name in ("R", "Z", "Y", "depth") if name in channels), None)
        if name is None:
            raise FrameError(path, f"channels {', '.join(channels)[:80]}", "a channel R, Z, Y or depth")
        return np.asarray(channels[name].pixels, dtype=np.float32)

    return (int(right - left) + 1, int(bottom - top) + 1), decode
