"""Append-only files of JSON lines, which a process that is killed at any moment leaves readable."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.evaluation.reply_lines import MAX_LINE_BYTES, REMEDY, encode_record
from vgbench_gen.store.files import dataset_error, sync_to_disk

_SYNC_EVERY_S = 1.0


class LineWriter:
    """Appends lines as they come; one writer per file at a time.

    Each line is handed to the system whole, so a killed process loses none that was written; the disk is told to keep
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

    def write(self, record: Mapping[str, Any]) -> int:
        """Add one line; returns the byte at which it begins."""
        at = os.fstat(self._handle).st_size
        data = encode_record(record)
        sent = os.write(self._handle, data)
        while sent < len(data):  # a disk that fills up takes a part and refuses the rest with an error
            sent += os.write(self._handle, data[sent:])
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
