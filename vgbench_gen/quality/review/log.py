"""Reviewers' files: append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from functools import partial
from pathlib import Path

from pydantic import ValidationError

from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.quality.review.lines import ReviewError, ReviewLine, normalise_name
from vgbench_gen.store.files import dataset_error, name_place, open_data, sync_to_disk

FOLDER = "review"  # beside items/, in the folder of the dataset
_SUFFIX = ".jsonl"


class VerdictLog:
    """The file of one reviewer, held open by one process.

    Opening cuts a torn last line, so that the next one starts on a line of its own. `append` returns when the line is
    on the disk. `close` gives the file free for another process.

    Args:
        folder: `DATASET/review`; made if need be.
        reviewer: name; see `normalise_name`.

    Raises:
        ReviewError: the name is not allowed, or another process has this reviewer's file open.
        DatasetError: a line in the file was not written by this program.
    """

    def __init__(self, folder: Path, reviewer: str) -> None:
        self.reviewer = normalise_name(reviewer)
        self.path = folder / f"{self.reviewer}{_SUFFIX}"
        folder.mkdir(parents=True, exist_ok=True)
        # No symbolic link: the folder may have been unpacked from somewhere, and this file is written to.
        self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        with close_if_raised(partial(os.close, self._handle)):
            self._lock()
            data = _read(self.path)
            self._size = data.rfind(b"\n") + 1
            self.lines = _parse(data[: self._size], self.path)
            if self._size < len(data):
                os.ftruncate(self._handle, self._size)
                os.fsync(self._handle)
            sync_to_disk(folder)

    def append(self, line: ReviewLine) -> None:
        """Write one line durably; where that fails, the file stays as it was.

        Raises:
            OSError: the disk is full or gone.
        """
        data = line.to_bytes()
        try:
            written = 0
            while written < len(data):
                written += os.write(self._handle, data[written:])
            os.fsync(self._handle)
        except BaseException as error:
            with suppress(OSError):
                os.ftruncate(self._handle, self._size)
            name_place(error, self.path)
            raise
        self._size += len(data)
        self.lines.append(line)

    def close(self) -> None:
        """Close the file and with it the lock."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ReviewError(
                f"{self.path}: another `vgbench review` has it open. Use that one, stop it, or take another name."
            ) from None
        except OSError:
            pass  # a file system without flock


def read_logs(folder: Path) -> dict[str, list[ReviewLine]]:
    """All reviewers' whole lines, by name in order; a torn last line is left out, and nothing is written.

    Raises:
        DatasetError: a file's name is no reviewer's, or a line was not written by this program.
    """
    found: dict[str, list[ReviewLine]] = {}
    for path in sorted(folder.glob(f"[!.]*{_SUFFIX}")):
        try:
            name = normalise_name(path.stem)
        except ReviewError as error:
            raise dataset_error(path, "a file", "<reviewer>.jsonl", "Rename it or move it away.") from error
        data = _read(path)
        found[name] = _parse(data[: data.rfind(b"\n") + 1], path)
        for number, line in enumerate(found[name], 1):
            if line.reviewer != name:
                remedy = "Give the file the reviewer's name."
                raise dataset_error(f"{path}, line {number}", f"reviewer {line.reviewer!r}", repr(name), remedy)
    return found


def _read(path: Path) -> bytes:
    with open_data(path, "reviews", "Remove it, or bring the file back from a copy.") as file:
        return file.read()


def _parse(data: bytes, path: Path) -> list[ReviewLine]:
    lines = []
    for number, raw in enumerate(data.split(b"\n")[:-1], 1):
        try:
            lines.append(ReviewLine.model_validate_json(raw))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"]) or "line"
            raise dataset_error(
                f"{path}, line {number}",
                f"no record ({where}: {first['msg'][:120]})",
                "a line that `vgbench review` wrote",
                "Delete that line, or bring the file back from a copy.",
            ) from error
    return lines


__all__ = ["FOLDER", "VerdictLog", "read_logs"]
