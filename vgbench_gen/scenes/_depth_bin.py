"""`iphone/depth.bin` of ScanNet++ (`docs/formats.md#depth-stream`): 256 x 192 depth records, one per video frame.

Three variants exist, recognized by their content, never by their name:

A  repeated (uint32 size, LZ4 block)          -> uint16 millimeters
B  repeated (uint32 size, raw deflate block)  -> float32 meters (or uint16 millimeters)
C  one raw deflate stream over the whole file -> float32 meters

A record counts only if it unpacks to exactly the bytes of one frame; LZ4 in particular can make something of
garbage. A and B are read at random through a table of offsets; C is inflated frame by frame with saved states, so
2 GB of frames are never in memory and going back costs at most `_CHECKPOINT_FRAMES` frames.
"""

from __future__ import annotations

import abc
import mmap
import struct
import zlib
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes.files import open_regular

WIDTH, HEIGHT = 256, 192
_U16_BYTES = WIDTH * HEIGHT * 2
_F32_BYTES = WIDTH * HEIGHT * 4
# A block that does not shrink is a little larger than its contents (196 608 bytes); larger sizes are no sizes.
_MAX_BLOCK_BYTES = 300_000
_MAX_RECORDS = 2_000_000
# A saved inflate state takes about 50 KB: 10 000 frames need 8 MB.
_CHECKPOINT_FRAMES = 64
_CHUNK_BYTES = 1 << 18
# Damaged first records must not hide the variant of the others.
_PROBES = 8


def _convert_to_metres(data: bytes) -> DepthArray:
    """(192, 256) float32 meters from one unpacked record; what is not a finite positive number becomes 0."""
    if len(data) == _U16_BYTES:
        depth: DepthArray = np.frombuffer(data, "<u2").reshape(HEIGHT, WIDTH) * np.float32(0.001)
        return depth
    depth = np.frombuffer(data, "<f4").reshape(HEIGHT, WIDTH).astype(np.float32)
    with np.errstate(invalid="ignore"):
        depth[~(np.isfinite(depth) & (depth > 0))] = 0
    return depth


def _is_depth(depth: npt.NDArray[np.float32]) -> bool:
    """Whether meters read from bytes can be a room: random bits as floats are mostly tiny or astronomic."""
    known = depth[depth > 0]
    return known.size == 0 or bool(np.mean((known > 1e-3) & (known < 1e3)) > 0.99)


def _unpack_deflate(block: bytes) -> bytes | None:
    inflater = zlib.decompressobj(-15)
    try:
        data = inflater.decompress(block, _F32_BYTES + 1)
    except zlib.error:
        return None
    return data if inflater.eof and len(data) in (_F32_BYTES, _U16_BYTES) else None


def _unpack_lz4(block: bytes) -> bytes | None:
    """Raises ImportError where lz4 is not installed."""
    import lz4.block

    try:
        data: bytes = lz4.block.decompress(block, uncompressed_size=_U16_BYTES)
    except (lz4.block.LZ4BlockError, ValueError, OverflowError):
        return None
    return data if len(data) == _U16_BYTES else None


class DepthBin(abc.ABC):
    """Depth records of one file, open for reading."""

    variant: str
    """Which packing the file has: "A", "B" or "C"."""
    count: int | None
    """The number of records; None while it is unknown, which only variant C is before its end is met."""
    note: str = ""
    """What is odd about the file, for a warning; empty where nothing is."""

    def __init__(self, view: mmap.mmap, where: str) -> None:
        self._view, self._where = view, where

    @abc.abstractmethod
    def read(self, index: int) -> DepthArray:
        """The depth of video frame `index`, (192, 256) float32 meters; 0 where it is unknown. Raises FrameError."""

    def close(self) -> None:
        """Release the file."""
        self._view.close()


def open_depth_bin(path: Path, where: str) -> DepthBin:
    """Open `path` and find out its variant.

    Raises:
        SceneError: none of the three variants, or variant A without the package lz4.
    """
    with open_regular(path, where) as file:
        view = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    offsets, note = _record_table(view)
    variant, no_lz4 = _probe(view, offsets)
    if variant:
        return _Framed(view, offsets, variant, note, where)
    stream = _Stream(view, where)
    try:
        if _is_depth(stream.read(0)):
            return stream
    except FormatError:
        pass
    head = bytes(view[:8]).hex()
    view.close()
    if no_lz4:
        found = "records that are no deflate blocks, and no package lz4 to try them as LZ4"
        raise SceneError(where, found, "the Python package lz4 to be installed", "Install it (pip install lz4).")
    found, packings = f"no 256x192 depth (it begins {head})", "LZ4 records, deflate records or one deflate stream"
    raise SceneError(where, found, packings)


def _record_table(view: mmap.mmap) -> tuple[npt.NDArray[np.int64], str]:
    """(N, 2) start and length of each whole record, as the size words say, and what ended the table early."""
    rows: list[tuple[int, int]] = []
    at, end = 0, len(view)
    while at + 4 <= end and len(rows) < _MAX_RECORDS:
        (length,) = struct.unpack_from("<I", view, at)
        if length >= _MAX_BLOCK_BYTES or at + 4 + length > end:
            break
        rows.append((at + 4, length))
        at += 4 + length
    note = "" if at == end else f"{end - at} bytes after record {len(rows)} are no whole record"
    return np.array(rows, np.int64).reshape(-1, 2), note


def _probe(view: mmap.mmap, offsets: npt.NDArray[np.int64]) -> tuple[str, bool]:
    """Variant of the framed file ("" when it is none) and whether only the missing lz4 left that open."""
    no_lz4 = False
    for start, length in offsets[:_PROBES].tolist():
        if length == 0:
            continue
        block = view[start : start + length]
        try:
            if _unpack_lz4(block) is not None:
                return "A", False
        except ImportError:
            no_lz4 = True
        inflated = _unpack_deflate(block)
        if inflated is not None and _is_depth(_convert_to_metres(inflated)):
            return "B", False
    return "", no_lz4


class _Framed(DepthBin):
    """Variants A and B."""

    def __init__(self, view: mmap.mmap, offsets: npt.NDArray[np.int64], variant: str, note: str, where: str) -> None:
        super().__init__(view, where)
        self._offsets = offsets
        self.variant, self.count, self.note = variant, len(offsets), note

    def read(self, index: int) -> DepthArray:
        where = f"{self._where} record {index}"
        if not 0 <= index < len(self._offsets):
            raise FrameError(where, f"{len(self._offsets)} records", "one record per video frame")
        start, length = (int(v) for v in self._offsets[index])
        block = self._view[start : start + length]
        data = _unpack_lz4(block) if self.variant == "A" else _unpack_deflate(block)
        if data is None:
            kind = "LZ4" if self.variant == "A" else "deflate"
            raise FrameError(where, f"{length} bytes that do not unpack", f"one {kind} block of a 256x192 frame")
        return _convert_to_metres(data)


class _Stream(DepthBin):
    """Variant C. The cursor stands between two frames; states are saved on the way and never thrown away."""

    def __init__(self, view: mmap.mmap, where: str) -> None:
        super().__init__(view, where)
        self.variant, self.count = "C", None
        self._inflater, self._at, self._next = zlib.decompressobj(-15), 0, 0
        self._saved = [(self._inflater.copy(), 0)]
        self._broken: FrameError | None = None

    def read(self, index: int) -> DepthArray:
        if index < 0 or (self.count is not None and index >= self.count):
            raise self._broken or self._ended(index, self.count or 0)
        block = min(index // _CHECKPOINT_FRAMES, len(self._saved) - 1)
        if index < self._next or block * _CHECKPOINT_FRAMES > self._next:
            inflater, self._at = self._saved[block]
            self._inflater, self._next = inflater.copy(), block * _CHECKPOINT_FRAMES
        while self._next < index:
            self._inflate_frame()
        return _convert_to_metres(self._inflate_frame())

    def _ended(self, index: int, count: int) -> FrameError:
        return FrameError(f"{self._where} frame {index}", f"{count} frames", "one frame per video frame")

    def _inflate_frame(self) -> bytes:
        """The next frame's bytes; the input position counts only what the inflater has taken in."""
        parts, missing = [], _F32_BYTES
        try:
            while missing and not self._inflater.eof:
                chunk = self._view[self._at : self._at + _CHUNK_BYTES]
                data = self._inflater.decompress(chunk, missing)
                self._at += len(chunk) - len(self._inflater.unconsumed_tail)
                missing -= len(data)
                parts.append(data)
                if not data and not chunk:
                    break
        except zlib.error as problem:
            self.count = self._next
            where = f"{self._where} frame {self._next}"
            self._broken = FrameError(where, f"damaged packing ({problem})", "a deflate stream")
            raise self._broken from problem
        if missing:
            self.count = self._next
            self._broken = self._ended(self._next, self._next)
            if missing < _F32_BYTES:
                self.note = f"{_F32_BYTES - missing} bytes after frame {self._next} are no whole frame"
            raise self._broken
        self._next += 1
        if self._next == len(self._saved) * _CHECKPOINT_FRAMES:
            self._saved.append((self._inflater.copy(), self._at))
        return b"".join(parts)
