"""Reviewers' files: append-only JSON lines that survive a kill at any moment."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.quality.review.lines import ReviewError, ReviewLine, normalise_name
from vgbench_gen.store.files import dataset_error, open_data
from vgbench_gen.store.line_writer import LineWriter

FOLDER = "review"  # beside items/, in the folder of the dataset
_SUFFIX = ".jsonl"


class VerdictLog(LineWriter):
    """The file of one reviewer, held open by one process.

    Args:
        folder: `DATASET/review`; made if need be.
        reviewer: name; see `normalise_name`.

    Raises:
        ReviewError: the name is not allowed, or another process has this reviewer's file open.
        DatasetError: a line in the file was not written by this program.
    """

    def __init__(self, folder: Path, reviewer: str) -> None:
        self.reviewer = normalise_name(reviewer)
        # The folder may have been unpacked from somewhere, and this file is written to.
        super().__init__(folder / f"{self.reviewer}{_SUFFIX}", follow=False)
        with close_if_raised(self.close):
            self.lines = _parse(_read(self.path), self.path)

    def append(self, line: ReviewLine) -> None:
        """Write one line durably; where that fails, the file stays as it was.

        Raises:
            OSError: the disk is full or gone.
        """
        self.write(line.to_bytes(), durable=True)
        self.lines.append(line)

    def make_busy_error(self) -> ReviewError:
        """As `LineWriter.make_busy_error`, with another name as a way out."""
        return ReviewError(
            f"{self.path}: another `vgbench review` has it open. Use that one, stop it, or take another name."
        )


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
