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

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes.files import open_regular
from vgbench_gen.scenes.posed.extras import need

_MAX_READ = 32_000_000  # at once: the largest member, and a directory of 300,000 members
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

    sizes: bytes of each member when unpacked, by its path below that of the archive, as its directory says.

    Raises:
        SceneError: no such file, or no zip archive.
    """

    def __init__(self, path: Path) -> None:
        open_regular(path, path).close()
        self.path, self._file = path, _BoundedFile(path)
        self.close = self._file.close
        with close_if_raised(self.close):
            try:
                self._zip = zipfile.ZipFile(self._file)
            except _PROBLEMS as problem:
                remedy = "Export the recording again; do not unpack or pack it."
                raise SceneError(path, f"no archive that opens ({str(problem)[:80]})", "a zip", remedy) from problem
        self.sizes = {Path(f"{path}/{member.filename}"): member.file_size for member in self._zip.infolist()}

    def read(self, path: Path) -> bytes:
        """A member of at most 32 MB, by its path below that of the archive. Raises FrameError."""
        try:
            member = self._zip.getinfo(path.relative_to(self.path).as_posix())
            if member.file_size > _MAX_READ or member.compress_type not in _METHODS:
                found = f"{member.file_size} bytes, packed by method {member.compress_type}"
                raise FrameError(path, found, f"at most {_MAX_READ} bytes, stored or deflated")
            with self._zip.open(member) as file:
                # With the size: without, all that comes is unpacked before it is cut.
                data = file.read(member.file_size)
        except KeyError as problem:
            raise FrameError(path, "no such member", "one of that name") from problem
        except _PROBLEMS as problem:
            raise FrameError(path, f"a damaged member ({str(problem)[:80]})", "a whole one") from problem
        if len(data) != member.file_size:
            raise FrameError(path, f"{len(data)} bytes", f"{member.file_size} as the directory says")
        return data


def measure_lzfse(data: bytes, where: object) -> int:
    """How many bytes the blocks of LZFSE state; nothing is unpacked.

    Source: `lzfse/lzfse`, src/lzfse_internal.h and src/lzfse_decode_base.c. Raises FrameError.
    """
    at, count, blocks = 0, 0, 0
    try:
        while (kind := data[at : at + 4]) != b"bvx$":
            unpacked, packed = struct.unpack_from("<2I", data, at + 4)
            if kind == b"bvx2":
                literals, matches, header = struct.unpack_from("<3Q", data, at + 8)
                at += max(header & 0xFFFFFFFF, 32) + (literals >> 20 & 0xFFFFF) + (matches >> 40 & 0xFFFFF)
                blocks += 1
            elif kind in (b"bvxn", b"bvx-"):
                at += 12 + packed if kind == b"bvxn" else 8 + unpacked
            else:
                raise FrameError(where, f"a block that begins {kind.hex()}", "blocks of LZFSE")
            count += unpacked
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
    try:
        found = measure_lzfse(data, where)
        unpacked: bytes = lzfse.decompress(data) if found == count else b""
    except (lzfse.error, MemoryError) as problem:
        raise FrameError(where, "damaged LZFSE", "whole blocks") from problem
    if len(unpacked) != count:
        raise FrameError(where, f"blocks of {found} bytes", f"{count} of {size[0]}x{size[1]} pixels")
    return np.frombuffer(unpacked, kind).reshape(size[::-1])
