"""Members of a zip archive and blocks of LZFSE, whose sizes are checked before memory is taken."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes._lazy_frame import ColorReaders
from vgbench_gen.scenes.files import decode_image_rgb, keep_plain, open_regular
from vgbench_gen.scenes.posed.extras import need

_MAX_READ = 16_000_000  # at once: the largest member, and a directory of 160,000 members
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # the others take memory by what their headers say
_PROBLEMS = (OSError, ValueError, RuntimeError, NotImplementedError, EOFError, zipfile.BadZipFile, zlib.error)
_LEAST_BLOCK = 8192  # bytes a full block of LZFSE stands for; one of 10,000 matches or 40,000 literals stands for more


class _BoundedFile(io.FileIO):
    """`zipfile` takes as much memory as the archive says its directory has."""

    def read(self, size: int | None = -1) -> bytes:
        if size is not None and size > _MAX_READ:
            raise zipfile.BadZipFile(f"a part of {size} bytes")
        return super().read(size)


class Archive:
    """An open zip archive.

    sizes: bytes of each member when unpacked, by name, as its directory says.

    Raises:
        SceneError: no such file, or no zip archive.
    """

    def __init__(self, path: Path) -> None:
        open_regular(path, path).close()
        self.path = path
        self._file = _BoundedFile(path)
        with close_if_raised(self._file.close):
            try:
                self._zip = zipfile.ZipFile(self._file)
            except _PROBLEMS as problem:
                remedy = "Export the recording again; do not unpack or pack it."
                raise SceneError(path, f"no archive that opens ({str(problem)[:80]})", "a zip", remedy) from problem
        self.sizes = {member.filename: member.file_size for member in self._zip.infolist() if not member.is_dir()}

    def read(self, name: str, most: int = _MAX_READ, error: type[FormatError] = FrameError) -> bytes:
        """A member of at most so many bytes. Raises FormatError (of type `error`)."""
        where = f"{self.path}:{name}"
        try:
            member = self._zip.getinfo(name)
            if member.file_size > most or member.compress_type not in _METHODS:
                found = f"{member.file_size} bytes, packed by method {member.compress_type}"
                raise error(where, found, f"at most {most} bytes, stored or deflated")
            with self._zip.open(member) as file:
                # With the size: without, all that comes is unpacked before it is cut.
                data = file.read(member.file_size)
        except KeyError as problem:
            raise error(where, "no such member", "one of that name") from problem
        except _PROBLEMS as problem:
            raise error(where, f"a damaged member ({str(problem)[:80]})", "a whole one") from problem
        if len(data) != member.file_size:
            raise error(where, f"{len(data)} bytes", f"{member.file_size} as the directory says")
        return data

    def make_color_readers(self, name: str, size: tuple[int, int]) -> ColorReaders:
        """`StoredFrame.color` and `StoredFrame.encoded` of a picture of this (width, height)."""
        where = f"{self.path}:{name}"
        return (
            lambda: decode_image_rgb(self.read(name), where, size),
            lambda: keep_plain(self.read(name), where, size),
        )

    def close(self) -> None:
        """Close the file."""
        self._zip.close()
        self._file.close()


def measure_lzfse(data: bytes, where: object) -> int:
    """How many bytes the blocks of LZFSE state; nothing is unpacked.

    Source: `lzfse/lzfse`, src/lzfse_internal.h and src/lzfse_decode_base.c. Raises FrameError.
    """
    at, count, blocks = 0, 0, 0
    try:
        while (kind := data[at : at + 4]) != b"bvx$":
            size = 8 + struct.unpack_from("<I", data, at + 4)[0]
            count += size - 8
            if kind == b"bvxn":
                size = 12 + struct.unpack_from("<I", data, at + 8)[0]
            elif kind == b"bvx2":
                literals, matches, header = struct.unpack_from("<3Q", data, at + 8)
                size = max(header & 0xFFFFFFFF, 32) + (literals >> 20 & 0xFFFFF) + (matches >> 40 & 0xFFFFF)
                blocks += 1
            elif kind != b"bvx-":
                raise FrameError(where, f"a block that begins {kind.hex() or 'nowhere'}", "blocks of LZFSE")
            at += size
    except struct.error as problem:
        raise FrameError(where, "blocks without an end", "whole LZFSE") from problem
    if blocks > 2 + count // _LEAST_BLOCK:  # a block may unpack to 24 MB, whatever it states
        raise FrameError(where, f"{blocks} blocks for {count} bytes", "full blocks")
    return count


def unpack_lzfse(data: bytes, kind: str, size: tuple[int, int], where: object) -> npt.NDArray[Any]:
    """(h, w) values that are packed by LZFSE, row by row.

    kind: of one value, as NumPy writes it. size: (width, height). Raises FrameError.
    """
    lzfse = need("lzfse", "recordings")
    count = size[0] * size[1] * np.dtype(kind).itemsize
    found = measure_lzfse(data, where)
    if found == count:
        try:
            unpacked: bytes = lzfse.decompress(data)
        except (lzfse.error, MemoryError) as problem:
            raise FrameError(where, "damaged LZFSE", "whole blocks") from problem
        found = len(unpacked)
    if found != count:
        raise FrameError(where, f"{found} bytes when unpacked", f"{count} of {size[0]}x{size[1]} pixels")
    return np.frombuffer(unpacked, kind).reshape(size[::-1])
