"""16-bit binary PGM pictures (netpbm P5), as the official C++ exporter of ScanNet writes depth."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError
from vgbench_gen.scenes.files import MAX_PIXELS

_REMEDY = "Export the scan again."


def read_pgm_header(data: bytes, where: object) -> tuple[int, int, int]:
    """(width, height, offset of the samples) of a 16-bit binary PGM (netpbm P5). Raises FrameError."""
    found = re.match(rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s", data[:1024])
    if found is None:
        raise FrameError(where, f"bytes that begin {data[:16]!r}", "a binary PGM", _REMEDY)
    width, height, most = (int(value) for value in found.groups())
    if most < 256 or most > 65535 or not 0 < width * height <= MAX_PIXELS:
        raise FrameError(where, f"PGM {width}x{height} up to {most}", "16-bit samples, at most 64 Mpixel", _REMEDY)
    return width, height, found.end()


def decode_pgm(data: bytes, where: object, size: tuple[int, int] | None) -> npt.NDArray[np.uint16]:
    """(h, w) uint16 samples. Raises FrameError if damaged or not of `size` (width, height)."""
    width, height, start = read_pgm_header(data, where)
    if size is not None and (width, height) != size:
        raise FrameError(where, f"{width}x{height} pixels", f"{size[0]}x{size[1]}", _REMEDY)
    if len(data) - start < width * height * 2:
        raise FrameError(where, f"{len(data) - start} sample bytes", f"{width * height * 2}", _REMEDY)
    # Samples of more than 8 bits are big-endian by the netpbm format.
    samples = np.frombuffer(data, ">u2", width * height, start)
    return samples.reshape(height, width).astype(np.uint16)
