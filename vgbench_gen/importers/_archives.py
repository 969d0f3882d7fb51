"""Files inside the archives that a repository of the Hub holds, so that nothing needs to be unpacked."""

from __future__ import annotations

import zipfile
import zlib
from functools import lru_cache
from pathlib import Path, PurePosixPath

from vgbench_gen.core.stand_ins import describe_file
from vgbench_gen.importers._files import Place, RowError

MAX_MEMBER_BYTES = 512 * 2**20
"""The longest videos that are asked about have a third of it."""


def read_member(path: Path, name: str) -> bytes:
    """A file of an archive; `name` may leave out folders before it.

    Raises:
        RowError: it is not there, too large or damaged.
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
    """(file of this name as of `Place.picture`, "") or (archive of that name, anywhere below the folder; `inner`).

    Raises:
        RowError: neither is there, or the archive is damaged.
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
    return next((one for one in found if f"/{one}".endswith(f"/{name}")), "")


@lru_cache(maxsize=64)
def _find_archive_file(place: Place, archive: str) -> Path | None:
    return place.find(f"**/{archive}")[0] if place.has(f"**/{archive}") else None


@lru_cache(maxsize=16)
def _open(path: Path) -> tuple[zipfile.ZipFile, dict[str, list[str]]]:
    """An archive and its files by their last names; it stays open, for its list is long."""
    try:
        archive = zipfile.ZipFile(path)
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        found = describe_file(path) or (f"no archive ({str(error)[:60]})",)
        raise RowError("image", f"{path.name}, which is {'. '.join(found)}", "archive_broken") from error
    members: dict[str, list[str]] = {}
    for name in archive.namelist():
        members.setdefault(PurePosixPath(name).name, []).append(name)
    return archive, members
