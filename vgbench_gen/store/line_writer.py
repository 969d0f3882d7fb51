"""Append-only files of lines, which a process that is killed at any moment leaves readable."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from vgbench_gen.core.errors import DatasetError, VGBenchError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.store.files import dataset_error, name_place, open_data, sync_to_disk

MAX_LINE_BYTES = 16 << 20
_SYNC_EVERY_S = 1.0
_REMEDY = "Move the file away."


class LineWriter:
    """Appends lines as they come; one writer per file at a time.

    Each line is handed to the system whole, so a killed process loses none that was written; the disk is made to keep
    them at least once a second, so a power cut loses at most those of the last second.

    Args:
        path: made with its folder where missing; what a killed writer left of a last line is cut off.
        follow: write through a symbolic link.

    Raises:
        DatasetError: another process writes it, it is no regular file, or its last line has no end.
    """

    def __init__(self, path: Path, follow: bool = True) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | (0 if follow else os.O_NOFOLLOW)
        self._handle = os.open(path, flags, 0o644)
        with close_if_raised(partial(os.close, self._handle)):
            self._lock()
            self._mend_tail()
            os.fsync(self._handle)
        sync_to_disk(path.parent)
        self._synced_s = time.monotonic()
        self._dirty = False

    def write(self, line: bytes, durable: bool = False) -> int:
        """Add one line, which ends in a line break; returns the byte at which it begins.

        durable: make it so before returning.

        Raises:
            OSError: the disk is full or gone; the file stays as it was.
        """
        at = os.fstat(self._handle).st_size
        try:
            sent = os.write(self._handle, line)
            while sent < len(line):  # a disk that fills up takes a part and refuses the rest with an error
                sent += os.write(self._handle, line[sent:])
            self._dirty = True
            if durable or time.monotonic() - self._synced_s >= _SYNC_EVERY_S:
                self.flush()
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(self._handle, at)
            name_place(error, self.path)
            raise
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

    def make_busy_error(self) -> VGBenchError:
        """Return what is raised where another process writes the file."""
        return DatasetError(
            f"{self.path}: found another process that writes it; expected one at a time. Wait for it, or end it."
        )

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise self.make_busy_error() from None
        except OSError:
            pass  # a file system without flock

    def _mend_tail(self) -> None:
        """Cut off what a killed writer left of its last line, so that the next one starts afresh."""
        with open_data(self.path, "JSON lines", _REMEDY) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - MAX_LINE_BYTES - 1))
            tail = file.read()
        torn = len(tail) - tail.rfind(b"\n") - 1
        if torn > MAX_LINE_BYTES:
            raise dataset_error(self.path, "a last line without an end", "JSON lines", _REMEDY)
        if torn:
            os.ftruncate(self._handle, size - torn)
