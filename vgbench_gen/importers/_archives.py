"""Reads images and videos inside a source's zip archives, which need not be unpacked."""

from __future__ import annotations

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path, PurePosixPath

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.stand_ins import describe_file
from vgbench_gen.importers._files import Place, RowError

MAX_MEMBER_BYTES = 512 * 2**20
"""Largest size of a file in an archive, three times that of the longest video in VSI-Bench."""


def read_member(path: Path, name: str) -> bytes:
    """The bytes of a file in an archive; `name` may omit leading folders.

    Raises:
        RowError: the file is missing, too large or damaged.
    """
    inner = _find_inner(path, name)
    if not inner:
        raise RowError("image", f"no {name[:120]!r} in {path.name}", "image_missing")
    archive, _ = _open(path)
    if archive.getinfo(inner).file_size > MAX_MEMBER_BYTES:
        raise RowError("image", f"{inner[:120]!r} of {path.name}, larger than {MAX_MEMBER_BYTES} bytes", "image_large")
    try:
        return archive.read(inner)
    except (OSError, ValueError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise RowError("image", f"{inner[:120]!r} of {path.name} ({str(error)[:60]})", "image_broken") from error


def find_file(place: Place, name: str, archive: str, inner: str, *folders: str) -> tuple[Path, str]:
    """Where a file is: (path, "") as in `Place.picture`, or (path of the archive, name in the archive).

    Raises:
        RowError: the file does not exist, or the archive is damaged.
    """
    try:
        return place.picture(name, *folders), ""
    except RowError:
        path = _find_archive_file(place, archive) if inner else None
        if path is None or not _find_inner(path, inner):
            raise
        return path, inner


def find_picture(place: Place, name: str, archive: str, inner: str, *folders: str) -> bytes | Path:
    """The image that `find_file` finds."""
    path, member = find_file(place, name, archive, inner, *folders)
    return read_member(path, member) if member else path


def _find_inner(path: Path, name: str) -> str:
    _, members = _open(path)
    found = members.get(PurePosixPath(name).name, ())
    return next((member for member in found if f"/{member}".endswith(f"/{name}")), "")


@lru_cache(maxsize=64)
def _find_archive_file(place: Place, archive: str) -> Path | None:
    try:
        return place.find(f"**/{archive}")[0]
    except DatasetError:
        return None


@lru_cache(maxsize=16)
def _open(path: Path) -> tuple[zipfile.ZipFile, dict[str, list[str]]]:
    """(open archive, file name -> paths in the archive); archives stay open, because reading their lists is slow."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        found = describe_file(path) or (f"no archive ({str(error)[:60]})",)
        raise RowError("image", f"{path.name}, which is {'. '.join(found)}", "archive_broken") from error
    members: dict[str, list[str]] = {}
    for name in archive.namelist():
        members.setdefault(PurePosixPath(name).name, []).append(name)
    return archive, members
