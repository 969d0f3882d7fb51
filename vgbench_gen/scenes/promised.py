"""What the layout of a scan promises and the scan lacks: the one place where that becomes an issue of the scene.

A loader says which files its layout promises and what the scene goes without where one is missing, unreadable or a
stand-in. Such an issue has one of the reasons `LOST`, which `vgbench scenes` repeats in the verdict.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TypeVar

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside

LOST = ("file_missing", "file_unusable")
"""Reasons of issues about what a scene as a whole lacks: its file is not there, or holds something else."""
_MAX_ENTRIES = 1_000_000
_T = TypeVar("_T")


def note_missing(issues: list[Issue], paths: Iterable[Path], without: str) -> None:
    """Note the promised files among `paths` that are no files; `without` says what the scene lacks for it."""
    missing = [path for path in paths if not path.is_file()]
    if missing:
        named = ", ".join([str(missing[0]), *(path.name for path in missing[1:])])
        issues.append(Issue("", LOST[0], f"{named}: no such file; {without}"))


def note_without(issues: list[Issue], frame_ids: Iterable[str], what: str) -> None:
    """Note each frame that lacks what other frames of the scan have, such as "a mask in masks/"."""
    issues += [Issue(frame_id, "part_missing", f"frame {frame_id} lacks {what}") for frame_id in frame_ids]


def require_frames(where: object, frames: Collection[object], total: int, issues: Sequence[Issue]) -> None:
    """Refuse a scan of which no frame can be used, and say what was wrong with the first.

    Raises:
        SceneError: there is none among the `total` frames.
    """
    if not frames:
        details = [issue.detail for issue in sorted(issues, key=lambda issue: not issue.frame_id)]
        why = f" ({details[0]})" if details else ""
        remedy = "Download the scan again, or leave it out."
        raise SceneError(where, f"{total} frames, none usable{why}", "one with a picture, depth and a pose", remedy)


def try_to_read(issues: list[Issue], read: Callable[[], _T], without: str) -> _T | None:
    """What `read` gives, or None where it raises an error of a file, which is noted with what the scene lacks then."""
    try:
        return read()
    except FormatError as problem:
        issues.append(Issue("", LOST[1], f"{problem} Until then: {without}."))
        return None


def list_files(root: Path, folder: Path, issues: list[Issue], without: str = "") -> dict[str, int]:
    """Sizes in bytes of the regular files of a folder, by name and sorted; there are none where it is no folder.

    Links that leave `root`, empty files and what cannot be looked at are left out and noted; so is a folder without any
    file where `without` says what the scene lacks then.

    Raises:
        SceneError: the folder lies outside `root` or has over a million entries.
    """
    sizes: dict[str, int] = {}
    with os.scandir(inside(root, folder)) if folder.is_dir() else nullcontext(()) as entries:
        for number, entry in enumerate(entries):
            if number >= _MAX_ENTRIES:
                raise SceneError(folder, f"more than {number} files", "those of one scan", "Check the folder.")
            try:
                if entry.is_symlink():
                    inside(root, folder / entry.name)
                if entry.is_file() and (size := entry.stat().st_size):
                    sizes[entry.name] = size
                elif entry.is_file():
                    issues.append(Issue("", "empty_file", f"{folder / entry.name}: an empty file; get it again"))
            except SceneError as problem:
                issues.append(Issue("", "link_outside", str(problem)))
            except OSError as problem:
                issues.append(Issue("", LOST[1], f"{folder / entry.name}: {problem.strerror}"))
    if without and not sizes:
        issues.append(Issue("", LOST[0], f"{folder}: no file in such a folder; {without}"))
    return dict(sorted(sizes.items()))


def index_by_number(names: Iterable[str], *suffixes: str) -> dict[int, str]:
    """Frame number -> file name for names like `00012.png` that end in one of the suffixes (lower case, with the dot).

    Of two names for one number the padded (longer) one counts.
    """
    found: dict[int, str] = {}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        stem, _, suffix = name.rpartition(".")
        if f".{suffix.lower()}" in suffixes and stem.isascii() and stem.isdecimal() and len(stem) < 19:
            found.setdefault(int(stem), name)
    return found
