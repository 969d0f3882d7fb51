"""ScanNet `.sens` streams, versions 3 and 4 (`sensorData.h` of the ScanNet repository), read in place.

Opening walks the 96-byte record heads once and keeps an offset table; a frame then costs two reads and its codecs.
Nothing is unpacked to disk. A stream that ends early keeps its complete frames. Little-endian throughout.
"""

from __future__ import annotations

import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes.files import (
    MAX_PIXELS,
    decode_image_rgb,
    keep_plain,
    open_regular,
    read_part,
    read_picture_header,
)

_inflater: ModuleType = zlib
try:
    from isal import isal_zlib

    _inflater = isal_zlib  # the same interface and result, about 2.5 times faster on depth
except ImportError:  # pragma: no cover - the optional extra is not installed
    pass

# Almost two hours at 30 Hz; the longest scan of the release has several thousand frames.
MAX_FRAMES = 200_000
MAX_DEPTH_SHIFT = 1e6  # depth units per meter: micrometres; fewer than one makes 16 bits kilometers
_MAX_NAME_BYTES = 4096
_RECORD = struct.Struct("<64sQQQQ")
_COLOR_KINDS = {0: "raw", 1: "png", 2: "jpeg"}
_DEPTH_KINDS = {0: "raw", 1: "zlib"}


@dataclass(frozen=True, slots=True, eq=False)
class SensHeader:
    """What stands before the first record of a `.sens` file: matrices (4, 4) float64, sizes (width, height) in pixels.

    Extrinsics are colour-from-depth by the source's semantics, and the identity in calibrated scans.
    """

    color_K: FloatArray
    color_extrinsic: FloatArray
    depth_K: FloatArray
    depth_extrinsic: FloatArray
    color_kind: str
    depth_kind: str
    color_size: tuple[int, int]
    depth_size: tuple[int, int]
    depth_shift: float
    """Units of the stored depth per meter."""
    frame_count: int
    raw: bytes


class SensFile:
    """Random access to the frames of one `.sens` file. Safe to use from several threads.

    header: see `SensHeader`. poses: (F, 4, 4) float64 world_from_camera, meters, as in the file (lost frames are
    not finite). times_us: (F,) uint64 colour time, microseconds of device uptime, often bogus.
    color_size: (width, height) of the pictures, the header's unless the loader found them to differ.
    shortfall: why there are fewer frames than promised, "" where there are not.

    Raises:
        SceneError: no `.sens` of version 3 or 4, sizes that cannot be, an unsupported codec, or no complete frame.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.shortfall = ""
        self._file = open_regular(path, path)
        with close_if_raised(self.close):
            self.size_bytes = os.fstat(self._file.fileno()).st_size
            self.header = _read_header(self._file.fileno(), path)
            self.color_size = self.header.color_size
            self._walk()

    def __len__(self) -> int:
        return len(self.poses)

    def close(self) -> None:
        """Release the file; frames cannot be read afterwards."""
        self._file.close()

    def _walk(self) -> None:
        header, at = self.header, len(self.header.raw)
        # A picture that takes more than this did not come from a camera of that size.
        most_color = header.color_size[0] * header.color_size[1] * 4 + (1 << 20)
        most_depth = header.depth_size[0] * header.depth_size[1] * 2 * 101 // 100 + (1 << 16)
        heads: list[bytes] = []
        table: list[tuple[int, int, int]] = []
        times: list[int] = []
        for number in range(header.frame_count):
            head = os.pread(self._file.fileno(), _RECORD.size, at)
            if len(head) < _RECORD.size:
                break
            pose, color_time, _, color_bytes, depth_bytes = _RECORD.unpack(head)
            if color_bytes > most_color or depth_bytes > most_depth:
                found = f"{color_bytes} colour and {depth_bytes} depth bytes"
                expected = f"at most {most_color} and {most_depth} for these picture sizes"
                raise SceneError(f"{self.path}, frame {number}", found, expected)
            at += _RECORD.size
            if at + color_bytes + depth_bytes > self.size_bytes:
                break
            heads.append(pose)
            times.append(color_time)
            table.append((at, color_bytes, depth_bytes))
            at += color_bytes + depth_bytes
        if not table:
            found = f"no complete frame ({header.frame_count} promised, {self.size_bytes} bytes)"
            raise SceneError(self.path, found, "at least one")
        if len(table) < header.frame_count:
            self.shortfall = f"{self.path} ends after {len(table)} of {header.frame_count} frames; download it again"
        self.poses: FloatArray = np.frombuffer(b"".join(heads), "<f4").reshape(-1, 4, 4).astype(np.float64)
        self.times_us: npt.NDArray[np.uint64] = np.array(times, np.uint64)
        self._table: npt.NDArray[np.int64] = np.array(table, np.int64)

    def is_empty(self, index: int) -> bool:
        """Whether frame `index` was written without colour or without depth."""
        return not self._table[index, 1:].all()

    def _read(self, index: int, part: int) -> bytes:
        at, color_bytes, depth_bytes = (int(v) for v in self._table[index])
        start, count = (at, color_bytes) if part == 0 else (at + color_bytes, depth_bytes)
        return read_part(self._file, self.where(index), start, count)

    def where(self, index: int) -> str:
        """Name of frame `index` for messages."""
        return f"{self.path}, frame {index}"

    def picture_size(self, index: int) -> tuple[int, int]:
        """(width, height) that the picture itself states; no pixel is decoded. Raises FrameError if damaged."""
        if self.header.color_kind == "raw":
            return self.header.color_size
        return read_picture_header(self._read(index, 0), self.where(index)).size

    def encoded_color(self, index: int) -> bytes | None:
        """JPEG or PNG bytes as recorded, if every viewer shows them as `color` does, else None. Raises FrameError."""
        if self.header.color_kind == "raw":
            return None
        return keep_plain(self._read(index, 0), self.where(index), self.color_size)

    def color(self, index: int) -> ColorArray:
        """(H, W, 3) uint8 RGB of size `color_size`. Raises FrameError if damaged or of another size."""
        data = self._read(index, 0)
        if self.header.color_kind != "raw":
            return decode_image_rgb(data, self.where(index), self.color_size)
        width, height = self.color_size
        if len(data) != width * height * 3:
            expected = f"{width * height * 3} for {width}x{height} RGB"
            raise FrameError(self.where(index), f"{len(data)} raw colour bytes", expected)
        return np.frombuffer(data, np.uint8).reshape(height, width, 3).copy()

    def depth_units(self, index: int) -> npt.NDArray[np.uint16]:
        """(h, w) uint16 as recorded, read-only. Raises FrameError if damaged or of another size."""
        data, (width, height) = self._read(index, 1), self.header.depth_size
        if self.header.depth_kind == "zlib":
            data = inflate(data, width * height * 2, self.where(index))
        elif len(data) != width * height * 2:
            expected = f"{width * height * 2} for {width}x{height}"
            raise FrameError(self.where(index), f"{len(data)} raw depth bytes", expected)
        return np.frombuffer(data, "<u2").reshape(height, width)

    def depth_m(self, index: int) -> DepthArray:
        """(h, w) float32 meters, 0 = unknown. Raises FrameError if damaged or of another size."""
        return np.divide(self.depth_units(index), np.float32(self.header.depth_shift), dtype=np.float32)


def inflate(data: bytes, size: int, where: object) -> bytes:
    """Inflate a zlib stream that must give exactly `size` bytes; never takes memory for more. Raises FrameError."""
    stream = _inflater.decompressobj()
    try:
        # One byte more than wanted lets a stream of the right size run to its checksum and exposes a longer one.
        out: bytes = stream.decompress(data, size + 1)
    except (zlib.error, _inflater.error) as problem:
        raise FrameError(where, f"depth that does not inflate ({problem})", "zlib") from problem
    if len(out) != size or not stream.eof:
        found = f"{'more than ' if len(out) > size else ''}{min(len(out), size)} depth bytes"
        raise FrameError(where, found if len(out) != size else "a torn zlib stream", f"{size} bytes")
    return out


def _read_header(handle: int, path: Path) -> SensHeader:
    start = os.pread(handle, 12, 0)
    if len(start) < 12:
        raise SceneError(path, f"{len(start)} bytes", "a .sens header")
    version, name_bytes = struct.unpack("<IQ", start)
    if version not in (3, 4):
        raise SceneError(path, f"version {version}", "version 3 or 4 of the .sens format", "Download the v2 release.")
    if name_bytes > _MAX_NAME_BYTES:
        raise SceneError(path, f"a sensor name of {name_bytes} bytes", f"at most {_MAX_NAME_BYTES}")
    length = 12 + name_bytes + 4 * 64 + 36
    raw = os.pread(handle, length, 0)
    if len(raw) < length:
        raise SceneError(path, f"{len(raw)} bytes", f"a header of {length}")
    matrices = np.frombuffer(raw, "<f4", 64, 12 + name_bytes).reshape(4, 4, 4).astype(np.float64)
    color_code, depth_code, *sizes, shift, count = struct.unpack_from("<iiIIIIfQ", raw, 12 + name_bytes + 256)
    color_size, depth_size = (sizes[0], sizes[1]), (sizes[2], sizes[3])
    for what, (width, height) in (("colour", color_size), ("depth", depth_size)):
        if width < 1 or height < 1 or width * height > MAX_PIXELS:
            raise SceneError(path, f"a {what} size of {width}x{height}", f"1 to {MAX_PIXELS} pixels")
    if color_code not in _COLOR_KINDS:
        raise SceneError(path, f"colour compression {color_code}", "0 raw, 1 PNG or 2 JPEG")
    if depth_code == 2:
        remedy = "Export the scan with the official C++ tool and use the exported folder."
        raise SceneError(path, "OCCI depth, which needs a proprietary decoder", "raw or zlib depth", remedy)
    if depth_code not in _DEPTH_KINDS:
        raise SceneError(path, f"depth compression {depth_code}", "0 raw or 1 zlib")
    if not 1 <= shift <= MAX_DEPTH_SHIFT:
        raise SceneError(path, f"depthShift {shift:g}", f"1 to {MAX_DEPTH_SHIFT:g} (1000 for millimeters)")
    if count > MAX_FRAMES:
        raise SceneError(path, f"{count} frames", f"at most {MAX_FRAMES}")
    kinds = _COLOR_KINDS[color_code], _DEPTH_KINDS[depth_code]
    cameras = matrices[0], matrices[1], matrices[2], matrices[3]
    return SensHeader(*cameras, *kinds, color_size, depth_size, float(shift), count, raw)
