"""Writes that are there whole or not at all, and the leftovers of writers that died.

A temporary name is `.<name>.<pid>-<random>.tmp` beside its target. Readers look for their own suffixes, so such a
name is never read; `clean_temporary` removes those whose process is gone.
"""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from vgbench_gen.core.errors import DatasetError, escape_surrogates
from vgbench_gen.core.json_text import OddNumbers, parse_json
from vgbench_gen.core.paths import open_file
from vgbench_gen.core.stand_ins import word_error

_MAX_NAME_BYTES = 160  # file systems allow 255, and temporary names are longer by 30
_TEMPORARY = re.compile(r"^\.(?P<name>.+)\.(?P<pid>\d+)-[0-9a-f]{12}\.(?P<kind>tmp|old)$")


def dataset_error(where: object, found: str, expected: str, remedy: str) -> DatasetError:
    """A `DatasetError`; see `word_error`."""
    return DatasetError(word_error(where, found, expected, remedy))


def open_data(path: Path, expected: str, remedy: str) -> BinaryIO:
    """A regular file from elsewhere, open for reading.

    Raises:
        DatasetError: it cannot be read; `expected` and `remedy` as of `dataset_error`.
    """
    try:
        return open_file(path)
    except OSError as error:
        is_missing = isinstance(error, FileNotFoundError)
        found = "no file" if is_missing else f"no readable file ({error.strerror or error})"
        raise dataset_error(path, found, expected, remedy) from error


def parse_object(
    line: bytes | str, where: object, expected: str, remedy: str, odd_numbers: OddNumbers = "refuse"
) -> dict[str, Any]:
    """The JSON object that a line of a file holds.

    Raises:
        DatasetError: it holds none; `expected` and `remedy` as of `dataset_error`, `odd_numbers` as of `parse_json`.
    """
    try:
        found = parse_json(line, odd_numbers)
    except ValueError as error:
        raise dataset_error(where, f"no JSON ({str(error)[:100]})", expected, remedy) from None
    if not isinstance(found, dict):
        raise dataset_error(where, f"a {type(found).__name__}", expected, remedy)
    return found


def check_name(folder: Path) -> None:
    """See that parquet files can be written below a folder.

    Raises:
        DatasetError: its name is no UTF-8, which pyarrow refuses.
    """
    if escape_surrogates(name := str(folder.absolute())) != name:
        remedy = "Rename the folder, or give another one (--out)."
        raise dataset_error(folder, "a name that is no UTF-8", "one that parquet files can lie below", remedy)


def make_temporary_name(target: Path, kind: str = "tmp") -> Path:
    """A name beside `target` that no other writer uses and no reader looks at."""
    return target.with_name(f".{target.name}.{os.getpid()}-{secrets.token_hex(6)}.{kind}")


def name_scene_file(scene_id: str) -> str:
    """The name, without suffix, of what is kept about one scene: another for every id.

    "/" becomes "__". Ids in which that could be taken for something else ("a__b", "a_/b", "%") have their "_" and "%"
    escaped, and what is too long for a file system ends in a digest.
    """
    name = scene_id
    if "__" in name or "_/" in name or "/_" in name or "%" in name:
        name = name.replace("%", "%25").replace("_", "%5F")
    name = name.replace("/", "__")
    if len(name.encode()) <= _MAX_NAME_BYTES:
        return name
    digest = hashlib.blake2b(scene_id.encode(), digest_size=12).hexdigest()
    return name.encode()[: _MAX_NAME_BYTES // 2].decode("utf-8", "ignore") + "%." + digest


def name_place(error: BaseException, target: Path) -> None:
    """Note in an error of the disk what was to be written: a failed write names no file, a failed open does."""
    if isinstance(error, OSError) and error.errno is not None and error.filename is None:
        error.filename = str(target)


@contextmanager
def replace_file(target: Path, durable: bool = True) -> Iterator[Path]:
    """Yield a temporary path to write to; when the block ends well, it takes the place of `target` durably.

    The folder of `target` is made if need be. When the block raises, `target` stays as it was. Without `durable` a
    killed process leaves the old or the new file, but a power cut may leave an empty one: `sync_all_to_disk` later.
    What writers of `target` left that were killed is removed, without `durable` only by `clean_temporary`.

    Raises:
        DatasetError: `target` is there and no regular file.
    """
    if target.exists() and not target.is_file():
        # A rename would put the file in the place of a device such as /dev/null.
        raise dataset_error(target, "a folder or device", "a file to write", "Give another path.")
    target.parent.mkdir(parents=True, exist_ok=True)
    if durable:
        clean_temporary(target.parent, target.name)
    temporary = make_temporary_name(target)
    try:
        yield temporary
        if durable:
            sync_to_disk(temporary)
        os.replace(temporary, target)  # noqa: PTH105 (same call, but it says what it does)
    except BaseException as error:
        with suppress(OSError):  # what went wrong first is what to tell
            temporary.unlink(missing_ok=True)
        name_place(error, target)
        raise
    if durable:
        sync_to_disk(target.parent)


def write_bytes(target: Path, data: bytes, durable: bool = True) -> None:
    """Write a small file whole: temporary name, fsync, rename, fsync of the folder."""
    with replace_file(target, durable) as temporary:
        temporary.write_bytes(data)


@contextmanager
def fill_folder(target: Path) -> Iterator[Path]:
    """Yield an empty folder to fill; when the block ends well, it takes the place of `target` (`replace_folder`).

    When the block raises, `target` stays as it was. What writers of `target` left that were killed is removed. Only the
    folder itself is made durable here: `sync_all_to_disk` does it for files that were written without.
    """
    check_name(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    clean_temporary(target.parent, target.name)
    filling = make_temporary_name(target)
    filling.mkdir()
    try:
        yield filling
    except BaseException as error:
        shutil.rmtree(filling, ignore_errors=True)
        name_place(error, target)
        raise
    replace_folder(filling, target)


def replace_folder(filled: Path, target: Path) -> None:
    """Let the folder `filled` take the place of `target`, which may hold files.

    A folder with files cannot be replaced by one rename, so the old one steps aside first. A crash between the two
    renames leaves no `target`; `clean_temporary` then brings the old one back.
    """
    sync_to_disk(filled)
    aside = make_temporary_name(target, "old")
    had_old = target.exists()
    if had_old:
        target.rename(aside)
    filled.rename(target)
    sync_to_disk(target.parent)
    if had_old:
        shutil.rmtree(aside)


def link_files(source: Path, target: Path) -> None:
    """Show every file below `source` below `target` as well: linked, or copied where the disk cannot link.

    For files that are replaced and never changed in place. Files that `target` has besides stay.
    """
    for parent, folders, names in os.walk(source):
        folders[:] = [name for name in folders if not _TEMPORARY.match(name)]
        beside = target / Path(parent).relative_to(source)
        beside.mkdir(parents=True, exist_ok=True)
        have = {entry.name for entry in os.scandir(beside)}
        for name in names:
            if not _TEMPORARY.match(name):
                link_file(Path(parent, name), beside / name, name in have)


def link_file(file: Path, name: Path, there: bool = False) -> None:
    """Show a file under another name as well; see `link_files`. there: something stands under that name already."""
    if there and name.samefile(file):
        return
    try:
        if there:
            name.unlink()
        name.hardlink_to(file)
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.ENOENT):
            raise
        with replace_file(name, durable=False) as temporary:
            shutil.copyfile(file, temporary)


def clean_temporary(folder: Path, name: str = "") -> list[Path]:
    """Remove what dead writers left anywhere under `folder`, and bring back a folder whose swap was cut short.

    name: only what was to become this file or folder, directly in `folder`, which is then not searched.

    Temporary files of processes that still run are left alone. Returns the removed or restored paths, sorted.
    """
    done: list[Path] = []
    for parent, folders, names in os.walk(folder):
        for found in sorted([*folders, *names]):
            match = _TEMPORARY.match(found)
            if match is None or name not in ("", match["name"]) or process_alive(int(match["pid"])):
                continue
            path, target = Path(parent, found), Path(parent, match["name"])
            if match["kind"] == "old" and not target.exists():
                path.rename(target)
            elif path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
            done.append(path)
        folders[:] = [f for f in folders if not name and not _TEMPORARY.match(f)]
    return sorted(done)


def process_alive(pid: int) -> bool:
    """Whether a process of this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def sync_to_disk(path: Path) -> None:
    """Force a file's or folder's content to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_all_to_disk(paths: Sequence[Path]) -> None:
    """Force many files and then their folders to the disk, at once: the disk's journal commits them together."""
    with ThreadPoolExecutor(8) as pool:
        for group in (paths, sorted({path.parent for path in paths})):
            for _ in pool.map(sync_to_disk, group):
                pass
