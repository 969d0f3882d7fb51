"""Which picture of color, which picture of depth and which pose are one frame."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.poses import StoredPose, to_seconds
from vgbench_gen.scenes.promised import list_files

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def list_matching(folder: Path, pattern: str, suffixes: Sequence[str], issues: list[Issue]) -> dict[Path, int]:
    """Files that a pattern of `FileLayout` names, with their sizes in bytes; the first alternative that has any counts.

    suffixes: which endings count, in lower case; all where there are none.

    Raises:
        SceneError: the pattern leaves the folder by more than one level.
    """
    for each in pattern.split("|") if pattern else ():
        root = folder.parent if each.startswith("../") else folder
        place, _, name = each.removeprefix("../").rpartition("/")
        if ".." in each.removeprefix("../").split("/") or each.startswith("/"):
            raise SceneError(
                folder, f"the pattern {each!r}", "a place below the folder, or one level above", "Mend it."
            )
        folders = sorted(path for path in root.glob(place) if path.is_dir()) if place else [root]
        found = {
            path / entry: size
            for path in folders[:100]
            for entry, size in list_files(root, path, issues).items()
            if fnmatchcase(entry, name) and (not suffixes or entry.lower().endswith(tuple(suffixes)))
        }
        if found:
            return found
    return {}


def number_files(paths: Sequence[Path]) -> dict[Path, float]:
    """The number in each name by which the files differ, in order of that number; their places where there is none.

    Numbers as large as times in milliseconds to nanoseconds are in seconds here.
    """
    runs = {path: _NUMBER.findall(path.name.split(".", 1)[0] + _rest(path.name)) for path in paths}
    for at in range(-1, -1 - max(map(len, runs.values()), default=0), -1):
        keys = {path: float(found[at]) for path, found in runs.items() if len(found) >= -at}
        if len(set(keys.values())) == len(paths):
            return {path: to_seconds(key) for path, key in sorted(keys.items(), key=lambda item: item[1])}
    return {path: float(place) for place, path in enumerate(sorted(paths))}


def _rest(name: str) -> str:
    """What follows the first dot of a name, up to its last one: decimals of a time, or a word such as "color"."""
    return "." + name.split(".", 1)[1].rpartition(".")[0] if "." in name else ""


def match_keys(wanted: FloatArray, keys: FloatArray, gap: float) -> dict[int, int]:
    """For places of `wanted` (n,) the place of the nearest of `keys` (m,), sorted, within the gap."""
    if not len(keys):
        return {}
    right = np.clip(np.searchsorted(keys, wanted), 0, len(keys) - 1)
    left = np.maximum(right - 1, 0)
    nearest = np.where(np.abs(keys[left] - wanted) <= np.abs(keys[right] - wanted), left, right)
    near = np.abs(keys[nearest] - wanted) <= gap
    return {int(i): int(nearest[i]) for i in np.flatnonzero(near)}


def match_once(wanted: FloatArray, keys: FloatArray, gap: float) -> dict[int, int]:
    """As `match_keys`, each of `keys` only for the nearest of `wanted`; in order of `wanted`."""
    best: dict[int, int] = {}
    for i, j in match_keys(wanted, keys, gap).items():
        if j not in best or abs(wanted[i] - keys[j]) < abs(wanted[best[j]] - keys[j]):
            best[j] = i
    return {i: j for j, i in sorted(best.items(), key=lambda item: item[1])}


def pair_files(first: dict[Path, float], second: dict[Path, float], gap_s: float) -> dict[Path, Path]:
    """For files of the first kind that of the second: of the same number, else the nearest in time, each once."""
    by_number = {key: path for path, key in second.items()}
    same = {path: by_number[key] for path, key in first.items() if key in by_number}
    if 2 * len(same) >= min(len(first), len(second)):
        return same
    paths, others = list(first), list(second)
    keys, other_keys = np.array(list(first.values())), np.array(list(second.values()))
    return {paths[i]: others[j] for i, j in match_once(keys, other_keys, gap_s).items()}


def pair_poses(
    colors: dict[Path, float], poses: Sequence[StoredPose], gap_s: float, where: object
) -> tuple[dict[Path, StoredPose], str]:
    """For each picture its pose, and how that was found, in words.

    By the name, the time or the number that rows state; where they state none, or none that the pictures have, by the
    order of both, or by the number of the picture as that of the row.

    Raises:
        SceneError: none of these can be.
    """
    keys = np.array(list(colors.values()))
    for how, match in (("name", _match_names), ("time", _match_times), ("number", _match_ids)):
        found = match(colors, keys, poses, gap_s)
        if 2 * len(found) >= min(len(colors), len(poses)):
            gaps = [abs(found[path].time_s - colors[path]) for path in found] if how == "time" else []  # type: ignore[operator]
            return found, f"by {how}" + (f", at most {1000 * max(gaps):.0f} ms apart" if gaps else "")
    by_place = {pose.place: pose for pose in poses}  # rows that hold no pose keep theirs
    count = max(by_place) + 1
    if count == len(colors):
        return {path: by_place[place] for place, path in enumerate(colors) if place in by_place}, "by order"
    if keys.max(initial=0) < count and all(key.is_integer() for key in keys.tolist()):
        return {
            path: by_place[int(key)] for path, key in colors.items() if int(key) in by_place
        }, "by number of the row"
    found_ = f"{len(colors)} pictures ({next(iter(colors)).name}, …) and {count} poses"
    expected = "as many poses as pictures, or rows with their names, times or numbers"
    raise SceneError(where, found_, expected, "Name the columns in posed.toml, or write one pose a picture.")


def _match_names(
    colors: dict[Path, float], keys: FloatArray, poses: Sequence[StoredPose], gap_s: float
) -> dict[Path, StoredPose]:
    by_name = {Path(pose.name.replace("\\", "/")).name: pose for pose in poses if pose.name}
    by_name |= {Path(name).stem: pose for name, pose in by_name.items()}
    return {
        path: by_name.get(path.name) or by_name[path.stem] for path in colors if {path.name, path.stem} & by_name.keys()
    }


def _match_times(
    colors: dict[Path, float], keys: FloatArray, poses: Sequence[StoredPose], gap_s: float
) -> dict[Path, StoredPose]:
    timed = sorted((pose for pose in poses if pose.time_s is not None), key=lambda pose: pose.time_s or 0.0)
    paths = list(colors)
    near = match_keys(keys, np.array([pose.time_s for pose in timed], dtype=np.float64), gap_s)
    return {paths[i]: timed[j] for i, j in near.items()}


def _match_ids(
    colors: dict[Path, float], keys: FloatArray, poses: Sequence[StoredPose], gap_s: float
) -> dict[Path, StoredPose]:
    by_id = {pose.id: pose for pose in poses if pose.id is not None}
    return {path: by_id[int(key)] for path, key in colors.items() if key.is_integer() and int(key) in by_id}
