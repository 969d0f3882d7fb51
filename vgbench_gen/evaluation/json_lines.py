"""Append-only files of JSON lines, which a process that is killed at any moment leaves readable."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.store.files import dataset_error, open_data, sync_to_disk

SCHEMA = 2
MAX_LINE_BYTES = 16 << 20
REMEDY = "Move the file away to ask anew."
_MARK = b'{"schema":%d,' % SCHEMA
_SYNC_EVERY_S = 1.0


def encode_line(record: BaseModel | Mapping[str, Any]) -> bytes:
    """One line of a file."""
    if isinstance(record, BaseModel):
        record = record.model_dump(mode="json")
    text = json.dumps({"schema": SCHEMA, **record}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Half of a surrogate pair, which a reply may hold and UTF-8 cannot, becomes "?".
    return text.encode("utf-8", "replace") + b"\n"


def read_lines(path: Path, skip_damaged: bool = False) -> Iterator[tuple[int, int, bytes]]:
    """Read a log line by line; a last line without its end is as if never written.

    Args:
        path: of the log.
        skip_damaged: pass over lines of another schema; a line that is too long ends what can be read.

    Yields:
        The number of a line from 1, the byte at which it begins, and the JSON object without its schema.

    Raises:
        DatasetError: no readable file, one whose name cannot be printed, or a line that is too long or of another
            schema.
    """
    if not path.name.isprintable():  # it becomes the name of scores and traces, which tables and verbs show in a line
        raise dataset_error(path, "a name that cannot be printed", "<model>.jsonl", "Rename the file.")
    with open_data(path, "replies", "Run `vgbench eval`.") as file:
        number = at = 0
        while raw := file.readline(MAX_LINE_BYTES + 2):
            number += 1
            if not raw.endswith(b"\n"):
                if len(raw) <= MAX_LINE_BYTES or skip_damaged:
                    return  # torn: its writer died
                raise dataset_error(f"{path}, line {number}", f"more than {MAX_LINE_BYTES} bytes", "less", REMEDY)
            if raw.startswith(_MARK):
                yield number, at, drop_schema(raw)
            elif not skip_damaged:
                found = f"no object of schema {SCHEMA}"
                raise dataset_error(f"{path}, line {number}", found, "a line that `vgbench eval` wrote", REMEDY)
            at += len(raw)


def read_line_at(path: Path, at: int) -> bytes:
    """The JSON object, without its schema, whose line begins at this byte; whatever stands there where none does."""
    with path.open("rb") as file:
        file.seek(at)
        return drop_schema(file.readline(MAX_LINE_BYTES + 2))


def drop_schema(line: bytes) -> bytes:
    """A line of a file without its schema."""
    return b"{" + line[len(_MARK) :] if line.startswith(_MARK) else line


class LineWriter:
    """Appends lines as they come; one writer per file at a time.

    Each line is handed to the system whole, so a killed process loses none that was written; the disk is made to keep
    them at least once a second, so a power cut loses at most those of the last second.

    Args:
        path: made with its folder where missing; what a killed writer left of a last line is cut off.

    Raises:
        DatasetError: another process writes it, or its last line has no end.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._handle = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        with close_if_raised(partial(os.close, self._handle)):
            self._lock()
            self._mend_tail()
            os.fsync(self._handle)
        sync_to_disk(path.parent)
        self._synced_s = time.monotonic()
        self._dirty = False

    def write(self, line: bytes) -> int:
        """Add one line as `encode_line` gives it; returns the byte at which it begins."""
        at = os.fstat(self._handle).st_size
        sent = os.write(self._handle, line)
        while sent < len(line):  # a disk that fills up takes a part and refuses the rest with an error
            sent += os.write(self._handle, line[sent:])
        self._dirty = True
        if time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
            self.flush()
        return at

    def flush(self) -> None:
        """Make all of them durable."""
        if self._dirty:
            os.fsync(self._handle)
        self._dirty, self._synced_s = False, time.monotonic()

    def close(self) -> None:
        """Flush and let go of the file."""
        if self._handle >= 0:
            self.flush()
            os.close(self._handle)
            self._handle = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DatasetError(
                f"{self.path}: found another process that writes it; expected one at a time. Wait for it, or end it."
            ) from None

    def _mend_tail(self) -> None:
        """Cut off what a killed writer left of its last line, so that the next one starts afresh."""
        size = os.fstat(self._handle).st_size
        tail = os.pread(self._handle, min(size, MAX_LINE_BYTES + 1), max(0, size - MAX_LINE_BYTES - 1))
        torn = len(tail) - tail.rfind(b"\n") - 1
        if torn > MAX_LINE_BYTES:
            raise dataset_error(self.path, "a last line without an end", "JSON lines", REMEDY)
        if torn:
            os.ftruncate(self._handle, size - torn)
