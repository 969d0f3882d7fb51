"""Where a dataset came from: its manifest, the code that made it, its fingerprint; and one builder at a time."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import socket
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any

import vgbench_gen
from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.json_text import MAX_BYTES, parse_json
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.types import Item
from vgbench_gen.store.columns import ITEM_COLUMNS
from vgbench_gen.store.files import (
    check_name,
    dataset_error,
    open_data,
    parse_object,
    process_alive,
    write_bytes,
)
from vgbench_gen.store.schema import Row, make_item_row

MANIFEST = "manifest.json"
TIMES = "times.json"
LOCK = ".build.lock"
_MAX_LOCK_BYTES = 4096


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> Path:
    """Write `folder/manifest.json` whole: sorted keys, two-space indent, so that two can be compared by eye.

    Raises:
        ValueError: a number is NaN or infinite.
    """
    path = folder / MANIFEST
    text = json.dumps(manifest, sort_keys=True, indent=2, allow_nan=False, ensure_ascii=False) + "\n"
    write_bytes(path, text.encode())
    return path


def write_times(folder: Path, times: Mapping[str, Any]) -> Path:
    """Write `folder/times.json`: how long the work took. Nothing reads or compares it, and it is in no digest."""
    path = folder / TIMES
    write_bytes(path, (json.dumps(times, sort_keys=True, indent=2, allow_nan=False) + "\n").encode())
    return path


def read_manifest(folder: Path, name: str = MANIFEST) -> dict[str, Any]:
    """The manifest of a build folder, or a file of another name there that is made like one.

    Raises:
        DatasetError: missing, or not a JSON object.
    """
    path = folder / name
    remedy = "Name a folder that `vgbench build` made, or build it again."
    with open_data(path, "the manifest of a build", remedy) as file:
        return parse_object(file.read(MAX_BYTES + 1), path, "the manifest of a build", remedy)


def read_recipe(manifest: Mapping[str, Any], folder: Path) -> Mapping[str, Any]:
    """The recipe in the manifest of a folder.

    Raises:
        DatasetError: there is none: the questions were imported, not built.
    """
    recipe = manifest.get("recipe")
    if not isinstance(recipe, dict):
        remedy = "Only what `vgbench build` made can be checked against its scenes or made anew."
        raise dataset_error(folder / MANIFEST, "no recipe", "the manifest of a build", remedy)
    return recipe


@cache
def code_version() -> dict[str, str]:
    """{"version": of the package, "source": digest of its own Python files and templates}."""
    digest = hashlib.blake2b(digest_size=16)
    for name, path in sorted(_list_source_files()):
        data = path.read_bytes()
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return {"version": vgbench_gen.__version__, "source": digest.hexdigest()}


def _list_source_files() -> Iterator[tuple[str, Path]]:
    package = Path(vgbench_gen.__file__).parent
    for path in package.rglob("*.py"):
        yield path.relative_to(package).as_posix(), path
    # In a wheel the templates lie inside the package, in a checkout beside it.
    for templates in (package / "templates", package.parent / "templates"):
        if templates.is_dir():
            for path in templates.rglob("*"):
                # A template is Python here and there, and who imports it leaves compiled files.
                if path.is_file() and path.parent.name != "__pycache__":
                    yield f"templates/{path.relative_to(templates).as_posix()}", path
            return


def row_fingerprint(item: Item) -> str:
    """Digest of everything an item says and shows; images count by their names, which are digests of their bytes."""
    return _digest(make_item_row(item))


def rows_fingerprint(rows: Iterable[Row]) -> str:
    """`dataset_fingerprint` of items by their rows (`make_item_row`)."""
    return _join_digests(map(_digest, rows))


def _digest(item_row: Row) -> str:
    row = {**item_row, "images": [image["path"] for image in item_row["images"]]}
    # Hexadecimal floats: canonical JSON has no NaN.
    for column in ITEM_COLUMNS:
        if column.type == "float64":
            row[column.name] = float(row[column.name]).hex()
        elif column.type == "float64s":
            row[column.name] = [float(v).hex() for v in row[column.name]]
    row["distractors"] = [{**d, "separation": float(d["separation"]).hex()} for d in row["distractors"]]
    return hashlib.blake2b(format_canonical_json(row).encode(), digest_size=16).hexdigest()


def text_fingerprint(items: Iterable[Item]) -> str:
    """Digest of everything the items say, in order: as `dataset_fingerprint`, without the names of their images.

    The same wherever a dataset's images are made again, also by another codec, whose bytes have other names.
    """
    return _join_digests(_digest({**make_item_row(item), "images": []}) for item in items)


def dataset_fingerprint(items: Iterable[Item]) -> str:
    """Digest of all items in order, whatever files, encoding or pyarrow release hold them."""
    return _join_digests(map(row_fingerprint, items))


def _join_digests(digests: Iterable[str]) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for each in digests:
        digest.update(bytes.fromhex(each))
    return digest.hexdigest()


class BuildLocked(VGBenchError):
    """Another process is building in the same folder."""


class BuildLock:
    """One builder per folder; use as a context manager.

    `<folder>/.build.lock` is made exclusively, names process and machine, and is flocked while the build runs: that
    holds between containers, and between machines where a network file system passes flock on. A lock whose process is
    gone is taken over; one that another machine left cannot be checked, so it counts until it is removed by hand.

    Args:
        folder: made where it is missing.
        for_tables: whether parquet files will lie there.

    Raises:
        BuildLocked: on entering, when somebody else holds the lock.
        DatasetError: on entering, as `check_name`.
    """

    def __init__(self, folder: Path, for_tables: bool = True) -> None:
        self.path, self._for_tables, self._handle = folder / LOCK, for_tables, -1

    def __enter__(self) -> BuildLock:
        if self._for_tables:
            check_name(self.path.parent)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with _serialize(self.path.parent):
            holder = self._read_holder() or {}
            if (holder and not _is_gone(holder)) or self._is_flocked():
                raise BuildLocked(
                    f"{self.path.parent}: process {holder.get('pid')} on {holder.get('host')} is building here. Wait "
                    f"for it to end; if it no longer runs, delete {self.path} and try again."
                )
            self.path.unlink(missing_ok=True)
            self._handle = os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
            with close_if_raised(partial(os.close, self._handle)):
                with suppress(OSError):  # a file system without flock
                    fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.write(self._handle, format_canonical_json(_describe_process()).encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with _serialize(self.path.parent):
            if self._read_holder() == _describe_process():
                self.path.unlink(missing_ok=True)
        os.close(self._handle)

    def _is_flocked(self) -> bool:
        """Whether a process holds the file open as a lock, in whatever container it runs."""
        try:
            handle = os.open(self.path, os.O_RDWR)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            os.close(handle)
        return False

    def _read_holder(self) -> dict[str, Any] | None:
        try:
            handle = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                remedy = f"Delete {self.path} and try again."
                raise dataset_error(self.path, "a pipe, folder or device", "a lock that this program wrote", remedy)
            text = file.read(_MAX_LOCK_BYTES)
        try:
            found = parse_json(text)
        except ValueError:
            return None  # a torn lock: its writer died between making and filling it, inside the guarded section
        return found if isinstance(found, dict) else None


@contextmanager
def _serialize(folder: Path) -> Iterator[None]:
    """Keep two processes from both judging a lock stale and removing each other's new one."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems have no flock; the exclusive creation still holds
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _describe_process() -> dict[str, Any]:
    return {"pid": os.getpid(), "host": socket.gethostname(), "started": _read_start_time(os.getpid())}


def _is_gone(holder: Mapping[str, Any]) -> bool:
    if holder.get("host") != socket.gethostname():
        return False
    pid = holder.get("pid")
    if not isinstance(pid, int) or isinstance(pid, bool) or pid <= 0:
        return True
    return not process_alive(pid) or _read_start_time(pid) != holder.get("started")


def _read_start_time(pid: int) -> int:
    """Start time of a process in ticks since boot, 0 where unknown: process numbers are used again, these are not."""
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    except (OSError, ValueError, IndexError):
        return 0
