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


def find_archive(place: Place, archive: str, name: str) -> Path | None:
    """The archive of this name, anywhere below the folder, where it holds a file of this name; None where not."""
    path = _find_archive_file(place, archive)
    return path if path is not None and _find_inner(path, name) else None


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


def find_picture(place: Place, name: str, archive: str, inner: str, *folders: str) -> bytes | Path:
    """The image file of this name, as `Place.picture`, or the file `inner` of the archive of that name.

    Raises:
        RowError: neither is there, or the archive is damaged.
    """
    try:
        return place.picture(name, *folders)
    except RowError:
        path = find_archive(place, archive, inner) if inner else None
        if path is None:
            raise
        return read_member(path, inner)


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
        raise RowError("image", f"{path.name}, which is {'. '.join(found)}", "image_missing") from error
    members: dict[str, list[str]] = {}
    for name in archive.namelist():
        members.setdefault(PurePosixPath(name).name, []).append(name)
    return archive, members
