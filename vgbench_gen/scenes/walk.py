"""Finding scenes below a folder without walking through their pictures."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.scenes.files import inside

MAX_DEPTH = 6
_log = logging.getLogger("vgbench_gen.scenes")
_LEADS_OUT = (
    "leads out of the folder that was given, which is not followed. Give the folder it leads to as well "
    "(--scenes may be repeated)."
)
# Folders that hold the files of one scene, never scenes: thousands of entries each.
_LEAVES = {
    *("rgb", "depth", "masks", "color", "colour", "pose", "poses", "intrinsic", "instance", "label", "instances"),
    *("colmap", "confidence", "resized_images", "resized_undistorted_images", "resized_anon_masks"),
    *("original_images", "anon_masks", "__pycache__"),
}
_CA1M_FRAME = re.compile(r"\d+\._?(wide|gt)|world\.gt", re.ASCII)


def walk(root: Path, max_depth: int = MAX_DEPTH) -> Iterator[tuple[Path, list[os.DirEntry[str]]]]:
    """Folders below `root` with their entries, `root` first, each folder before what is in it, sorted by name.

    Hidden folders, frame folders (`rgb`, `depth`, `<timestamp>.wide`, …) and whatever lies more than `max_depth`
    below `root` are not entered, neither are links that leave `root` or lead to a folder above themselves. No folder
    comes twice; those that cannot be read are passed over. Removing an entry from the list keeps the walk out of it.
    """
    stack = [(root, 0)]
    visited: set[tuple[int, int]] = set()
    while stack:
        folder, depth = stack.pop()
        try:
            status = folder.stat()
            if (status.st_dev, status.st_ino) in visited:
                continue
            visited.add((status.st_dev, status.st_ino))
            with os.scandir(folder) as found:
                entries = sorted((entry for entry in found if not entry.name.startswith(".")), key=lambda e: e.name)
        except OSError:
            continue
        for entry in entries:
            if entry.is_symlink() and not is_folder(entry) and not is_regular(entry):
                _tell_of_link(Path(entry.path), "leads to no folder or file. Is its disk connected?")
        yield folder, entries
        if depth < max_depth:
            below = [Path(entry.path) for entry in entries if _is_entered(root, entry)]
            stack.extend((path, depth + 1) for path in reversed(below))


def _is_entered(root: Path, entry: os.DirEntry[str]) -> bool:
    if entry.name in _LEAVES or _CA1M_FRAME.fullmatch(entry.name) or not is_folder(entry):
        return False
    return not entry.is_symlink() or stays_inside(root, Path(entry.path))


def is_folder(entry: os.DirEntry[str]) -> bool:
    """`entry.is_dir()`, False where that cannot be found out: one link that goes round must not end a walk."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def is_regular(entry: os.DirEntry[str]) -> bool:
    """`entry.is_file()`, False where that cannot be found out."""
    try:
        return entry.is_file()
    except OSError:
        return False


def stays_inside(root: Path, path: Path) -> bool:
    """Whether a link points to something below `root` that does not contain the link itself."""
    try:
        real = inside(root, path)
    except SceneError:
        _tell_of_link(path, _LEADS_OUT)
        return False
    return not path.parent.resolve().is_relative_to(real)


_told: set[Path] = set()


def _tell_of_link(path: Path, why: str) -> None:
    """Say once that a link is not followed: scans on another disk would vanish without a word."""
    if path not in _told:
        _told.add(path)
        _log.warning("%s: a link that %s", make_one_line(str(path)), why)
