"""Depth in any of the formats that recordings have, by its own header before memory is taken."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes.files import MAX_PIXELS, decode_depth_u16, decode_mask_u8, read_file_header, read_picture
from vgbench_gen.scenes.posed.layout import FileLayout

DEPTH_SUFFIXES = (".png", ".pgm", ".tif", ".tiff", ".exr", ".npy")
COLOR_SUFFIXES = (".jpg", ".jpeg", ".png")
_MAX_CHANNELS = 4
_WANTED = "depth as 16-bit PNG or PGM, TIFF, OpenEXR or NumPy array"
Values = npt.NDArray[Any]


def read_depth_size(path: Path) -> tuple[int, int]:
    """(width, height) of a picture of depth, from its header. Raises FrameError."""
    if path.suffix.lower() in (".png", ".pgm"):
        return read_file_header(path).size
    return _open(read_picture(path), path)[0]


def read_first_depth_size(paths: Sequence[Path], where: object) -> tuple[int, int]:
    """(width, height) of the first sound picture of depth among a few. Raises SceneError where there is none."""
    problem = FrameError(where, "no picture of depth", _WANTED)
    for path in paths[:20]:
        try:
            return read_depth_size(path)
        except FrameError as error:
            problem = error
    raise SceneError(problem.where, problem.found, problem.expected, problem.remedy) from problem


def make_depth_reader(
    path: Path, size: tuple[int, int], layout: FileLayout, sure: Path | None
) -> Callable[[], DepthArray]:
    """What gives (h, w) float32 meters of a picture of depth, 0 where unknown.

    size: (width, height) that it must have. sure: the picture of its confidence.
    """

    def read() -> DepthArray:
        data = read_picture(path)
        if path.suffix.lower() in (".png", ".pgm"):
            values: Values = decode_depth_u16(data, path, size)
        else:
            actual, decode = _open(data, path)
            if actual != size:
                raise FrameError(path, f"{actual[0]}x{actual[1]} pixels", f"{size[0]}x{size[1]}")
            values = decode()
        depth_m = convert_depth(values, layout)
        if sure is not None:
            depth_m[decode_mask_u8(read_picture(sure), sure, size) < layout.confidence_min] = 0
        return depth_m

    return read


def convert_depth(values: Values, layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters of stored values, 0 where unknown."""
    unknown = np.isin(values, layout.depth_unknown) | ~np.isfinite(values) | (values < 0)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.where(unknown, 0, values / layout.depth_per_meter).astype(np.float32)


def _open(data: bytes, path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    """Size of a TIFF, EXR or NumPy picture of one channel, and what decodes it. Raises FrameError."""
    openers = {".tif": _open_tiff, ".tiff": _open_tiff, ".exr": _open_exr, ".npy": _open_npy}
    opener = openers.get(path.suffix.lower())
    if opener is None:
        raise FrameError(path, f"a file {path.suffix or 'without suffix'}", _WANTED)
    size, decode = opener(data, path)
    if not 0 < size[0] * size[1] <= MAX_PIXELS:
        raise FrameError(path, f"{size[0]}x{size[1]} pixels", f"1 to {MAX_PIXELS} pixels")
    return size, decode


def _open_tiff(data: bytes, path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    from PIL import Image

    try:
        image = Image.open(io.BytesIO(data), formats=["TIFF"])
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as problem:
        raise FrameError(path, f"no readable TIFF ({str(problem)[:80]})", _WANTED) from problem
    if image.mode not in ("I", "I;16", "I;16B", "F"):
        raise FrameError(path, f"a TIFF of mode {image.mode}", "one channel of 16 bits or of floats")

    def decode() -> Values:
        try:
            return np.asarray(image, dtype=np.float32)
        except (OSError, ValueError, SyntaxError) as problem:
            raise FrameError(path, f"pixels that do not decode ({str(problem)[:80]})", "a whole TIFF") from problem

    return image.size, decode


def _open_npy(data: bytes, path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except ValueError as problem:
        raise FrameError(path, f"no NumPy array ({str(problem)[:80]})", _WANTED) from problem
    at, count = file.tell(), int(np.prod(shape[:2]))
    if len(shape) != 2 or dtype.kind not in "uf" or fortran or len(data) - at != count * dtype.itemsize:
        raise FrameError(path, f"an array {shape} of {dtype}", "whole rows of unsigned integers or floats")
    return (shape[1], shape[0]), lambda: np.frombuffer(data, dtype, count, at).reshape(shape)


def _open_exr(data: bytes, path: Path) -> tuple[tuple[int, int], Callable[[], Values]]:
    from vgbench_gen.scenes.posed.extras import need

    exr = need("OpenEXR", "recordings")
    try:
        file = exr.File(str(path), header_only=True)
        (left, top), (right, bottom) = file.header()["dataWindow"]
        many = len(file.parts) > 1 or len(file.header()["channels"]) > _MAX_CHANNELS
    except (RuntimeError, OSError, KeyError, TypeError, ValueError) as problem:
        raise FrameError(path, f"no readable OpenEXR ({str(problem)[:80]})", _WANTED) from problem

    if many:  # all of them would be decoded
        raise FrameError(path, "several parts, or many channels", _WANTED)

    def decode() -> Values:
        try:
            channels = exr.File(str(path), separate_channels=True).channels()
        except (RuntimeError, OSError, ValueError) as problem:
            raise FrameError(path, f"pixels that do not decode ({str(problem)[:80]})", "a whole picture") from problem
        name = next((name for name in ("R", "Z", "Y", "depth") if name in channels), None)
        if name is None:
            raise FrameError(path, f"channels {', '.join(channels)[:80]}", "a channel R, Z, Y or depth")
        return np.asarray(channels[name].pixels, dtype=np.float32)

    return (int(right - left) + 1, int(bottom - top) + 1), decode
