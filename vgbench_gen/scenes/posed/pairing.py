"""Which picture of color, which picture of depth and which pose are one frame."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.poses import StoredPose, to_seconds
from vgbench_gen.scenes.promised import list_files

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def list_matching(folder: Path, pattern: str, suffixes: Sequence[str], issues: list[Issue]) -> list[Path]:
    """Files that a pattern of `FileLayout` names; the first alternative that has any counts.

    suffixes: which endings count, in lower case; all where there are none.

    Raises:
        SceneError: the pattern leaves the folder by more than one level.
    """
    for each in pattern.split("|") if pattern else ():
        below = each.removeprefix("../")
        root = folder if below == each else folder.parent
        place, _, name = below.rpartition("/")
        if ".." in place.split("/") or below.startswith("/"):
            expected = "a place below the folder, or one level above"
            raise SceneError(folder, f"the pattern {each!r}", expected, "Mend it.")
        found = [
            path / entry
            for path in (sorted(filter(Path.is_dir, root.glob(place)))[:100] if place else [root])
            for entry in list_files(root, path, issues)
            if fnmatchcase(entry, name) and (not suffixes or entry.lower().endswith(tuple(suffixes)))
        ]
        if found:
            return found
    return []


def number_files(paths: Iterable[Path]) -> dict[Path, float]:
    """The number in each name by which the files differ, in order of that number; their places where there is none.

    Numbers as large as times in milliseconds to nanoseconds are in seconds here.
    """
    runs = {path: _NUMBER.findall(path.stem) for path in paths}
    for at in range(-1, -1 - max(map(len, runs.values()), default=0), -1):
        keys = {path: to_seconds(float(found[at])) for path, found in runs.items() if len(found) >= -at}
        if len(set(keys.values())) == len(runs):
            return dict(sorted(keys.items(), key=lambda item: item[1]))
    return {path: float(place) for place, path in enumerate(sorted(runs))}


def match_nearest(wanted: FloatArray, keys: FloatArray, gap: float) -> dict[int, int]:
    """For places of `wanted` (n,) the place of the nearest of `keys` (m,), sorted, within the gap; each of them once,
    for the nearest of `wanted`. In order of the places."""
    if not len(keys):
        return {}
    right = np.clip(np.searchsorted(keys, wanted), 0, len(keys) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(keys[left] - wanted) <= np.abs(keys[right] - wanted), left, right)
    gaps = np.abs(keys[nearest] - wanted)
    near = np.argsort(gaps, kind="stable")[: np.count_nonzero(gaps <= gap)]
    once = np.sort(near[np.unique(nearest[near], return_index=True)[1]])
    return dict(zip(once.tolist(), nearest[once].tolist(), strict=True))


def pair_files(first: Mapping[Path, float], second: Mapping[Path, float], gap_s: float) -> dict[Path, Path]:
    """For files of the first kind that of the second with the nearest number or time, each once; both are sorted."""
    paths, others = list(first), list(second)
    keys, other_keys = np.array(list(first.values())), np.array(list(second.values()))
    return {paths[i]: others[j] for i, j in match_nearest(keys, other_keys, gap_s).items()}


def pair_poses(
    colors: Mapping[Path, float], poses: Sequence[StoredPose], gap_s: float, where: object
) -> tuple[dict[Path, StoredPose], str]:
    """For each picture its pose, and how that was found, in words.

    By the name, the time or the number that rows state; where they state none, or none that the pictures have, by the
    order of both, or by the number of the picture as that of the row.

    Raises:
        SceneError: none of these can be.
    """
    names = {name: pose for pose in poses if pose.name for name in _list_names(pose.name)}
    timed = sorted((pose.time_s, pose.place, pose) for pose in poses if pose.time_s is not None)
    keys, times = np.array(list(colors.values())), np.array([time_s for time_s, *_ in timed])
    near = match_nearest(keys, times, gap_s)
    gap_ms = 1000 * max((abs(times[j] - keys[i]) for i, j in near.items()), default=0.0)
    ids = {float(pose.id): pose for pose in poses if pose.id is not None}
    rows = {float(pose.place): pose for pose in poses}  # rows that hold no pose keep theirs
    count = poses[-1].place + 1
    ways: dict[str, dict[Path, StoredPose | None]] = {
        "name": {path: names.get(path.name, names.get(path.stem)) for path in colors},
        f"time, at most {gap_ms:.0f} ms apart": {path: timed[near[i]][2] for i, path in enumerate(colors) if i in near},
        "number": {path: ids.get(key) for path, key in colors.items()},
        "order": {path: rows.get(i) for i, path in enumerate(colors) if count == len(colors)},
        "number of the row": {path: rows.get(key) for path, key in colors.items() if keys.max() < count},
    }
    for how, of in ways.items():
        found = {path: pose for path, pose in of.items() if pose}
        if 2 * len(found) >= min(len(colors), len(poses)):
            return found, f"by {how}"
    told = f"{len(colors)} pictures ({next(iter(colors)).name}, …) and {count} poses"
    expected = "as many poses as pictures, or rows with their names, times or numbers"
    raise SceneError(where, told, expected, "Name the columns in posed.toml, or write one pose a picture.")


def _list_names(name: str) -> tuple[str, str]:
    path = Path(name.replace("\\", "/"))
    return path.stem, path.name
