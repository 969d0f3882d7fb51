"""Finding scenes below a folder without walking through their pictures."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.lines import make_one_line
from vgbench_gen.scenes.files import inside, read_text

MAX_DEPTH = 6
_log = logging.getLogger("vgbench_gen.scenes")
_NOWHERE = "a link that leads to no folder or file. Is its disk connected?"
_LEADS_OUT = (
    "a link that leads out of the folder that was given, which is not followed. Give the folder it leads to as well "
    "(--scenes may be repeated)."
)
_LEADS_UP = "a link to a folder above itself, which is not followed. Put the scan itself there."
_PIPE = "a pipe, socket or device, which is not read. Put the file itself there."
# Folders that hold the files of one scene, never scenes: thousands of entries each.
_LEAVES = {
    *("rgb", "depth", "masks", "color", "colour", "pose", "poses", "intrinsic", "instance", "label", "instances"),
    *("colmap", "confidence", "rgb_masks", "resized_images", "resized_anon_masks", "original_images"),
    *("resized_undistorted_images", "undistorted_images", "anon_masks", "panocam", "__pycache__"),
}
_CA1M_FRAME = re.compile(r"\d+\._?(wide|gt)|world\.gt", re.ASCII)


def walk(root: Path, max_depth: int = MAX_DEPTH) -> Iterator[tuple[Path, list[os.DirEntry[str]]]]:
    """Folders below `root` with their entries, `root` first, each folder before what is in it, sorted by name.

    Hidden folders, frame folders (`rgb`, `depth`, `<timestamp>.wide`, …) and whatever lies more than `max_depth`
    below `root` are not entered. Neither are links that leave `root` or lead to a folder above themselves, pipes,
    devices and folders that cannot be read; each is named once. No folder comes twice. Removing an entry from the list
    keeps the walk out of it.
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
        except OSError as problem:
            if folder.exists():
                tell_once(folder, f"not read: {problem.strerror}. Check its rights and the disk.")
            continue
        for entry in entries:
            if not is_folder(entry) and not is_regular(entry):
                tell_once(Path(entry.path), _NOWHERE if entry.is_symlink() else _PIPE)
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
    with suppress(OSError):
        return entry.is_dir()
    return False


def is_regular(entry: os.DirEntry[str]) -> bool:
    """`entry.is_file()`, False where that cannot be found out."""
    with suppress(OSError):
        return entry.is_file()
    return False


def estimate_bytes(folder: Path) -> int:
    """About how many bytes lie in a folder of like files, to order work by; 0 where there is no such folder."""
    with suppress(OSError), os.scandir(folder) as entries:
        first = next(entries, None)
        return 0 if first is None else first.stat().st_size * (1 + sum(1 for _ in entries))
    return 0


def find_split(name: str, folders: Iterable[Path], pattern: str, known: dict[Path, dict[str, str]]) -> str:
    """Split of a scan by the first of these folders with a list that names it, or "unknown".

    pattern: of the names of lists, whose words between "_" say the split; a scan that any list of a folder holds out
    for testing is a test scan, then one for validation. known: filled with what was read.
    """
    for folder in folders:
        if folder not in known:
            known[folder] = _read_split_lists(folder, pattern)
        if name in known[folder]:
            return known[folder][name]
    return "unknown"


def _read_split_lists(folder: Path, pattern: str) -> dict[str, str]:
    paths = [path for path in sorted(folder.glob(pattern))[:100] if path.is_file()]
    found: dict[str, str] = {}
    for split in ("train", "val", "test"):  # later ones win
        for path in paths:
            if split not in path.stem.split("_") or not path.stat().st_size:
                continue
            try:
                found |= dict.fromkeys(read_text(path, path).split(), split)
            except SceneError as problem:  # the scans are there all the same
                tell_once(path, f"{problem.found}, so the split of its scans is unknown. {problem.remedy}")
    return found


def stays_inside(root: Path, path: Path) -> bool:
    """Whether a link points to something below `root` that does not contain the link itself; else it is named."""
    try:
        real = inside(root, path)
    except SceneError:
        tell_once(path, _LEADS_OUT)
        return False
    if path.parent.resolve().is_relative_to(real):
        tell_once(path, _LEADS_UP)
        return False
    return True


_told: set[Path] = set()


def tell_once(path: Path, what: str) -> None:
    """Say once, in the log, what lies at a path and is not read: scans would vanish without a word."""
    place = path.parent.resolve() / path.name  # some walks begin at a resolved folder
    if place not in _told:
        _told.add(place)
        _log.warning("%s: %s", make_one_line(str(path)), what)
