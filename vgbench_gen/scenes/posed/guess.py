"""The `posed.toml` that a folder in no known layout would need, as far as its files say it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError
from vgbench_gen.geometry.poses import MAX_DEVIATION, measure_orthonormality_deviation
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.files import read_file_header
from vgbench_gen.scenes.posed.cameras import read_intrinsics
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import COLOR_SUFFIXES, DEPTH_SUFFIXES, make_depth_reader, read_depth_size
from vgbench_gen.scenes.posed.poses import read_pose_file, read_poses
from vgbench_gen.scenes.walk import is_folder, is_regular, walk

_MAX_FILES, _MAX_FOLDERS, _MAX_TEXT = 2000, 30, 64_000_000
_MAX_LOOKED, _MAX_BELOW = 40, 200  # pictures of a folder, and files of any kind
_WORD = re.compile(r"[A-Za-z]+")
_MIN_POSES = 3  # files of one matrix each; two may say where two cameras stand
_POSES = re.compile(r"pose|traj|odom|ground.?truth|extrinsic|camera_to|cam2", re.IGNORECASE)
_END = re.compile(r"[A-Za-z.]*$")
_TEXTS = (".txt", ".csv", ".log", ".freiburg", ".json", ".yaml", ".yml")


def find_candidates(root: Path, taken: Sequence[SceneRef], most: int = 3) -> Iterator[Path]:
    """The first few folders below a place in which color, depth and poses lie, and that no loader takes."""
    scans = {ref.path.resolve() for ref in taken}
    above = {parent for path in scans for parent in path.parents}

    def search() -> Iterator[Path]:
        for folder, entries in walk(root):
            if folder.resolve() in scans:
                entries.clear()
            elif folder.resolve() not in above and (found := describe_recording(folder)).has_both:
                entries.clear()
                if found.has_poses:
                    yield folder

    yield from islice(search(), most) if root.is_dir() else ()


def guess_layout(folder: Path) -> str:
    """The text of a `posed.toml`: what was found, and a comment where something must be filled in."""
    pictures = _find_pictures(folder)
    lines = [f'color = "{pictures["color"]}"', f'depth = "{pictures["depth"]}"']
    lines.append(f"depth_per_meter = {_guess_unit(folder, pictures['depth'])}  # stored steps of depth in a meter")
    poses, camera = _find_tables(folder)
    lines.append(f'poses = "{poses}"' if poses else 'poses = "…"  # no table of poses was found here')
    lines.append('# pose_columns = "time x y z qx qy qz qw"  # where the columns have no names; see the guide')
    lines.append('axes = "find"  # takes direction and axes from the pictures; or state them')
    lines.append(
        f'camera = "{camera}"' if camera else "camera = [0, 0, 0, 0]  # fx, fy, cx, cy in pixels: not found here"
    )
    lines.append("# up = [0, 0, 1]  # against gravity in the world of the poses, where it is known")
    return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class Contents:
    """What a folder holds of a recording."""

    has_both: bool
    """Pictures of color and of depth."""
    has_poses: bool
    """Poses, or a file by whose name there may be some."""


def describe_recording(folder: Path) -> Contents:
    """What a folder and those in it hold of a recording."""
    if not all(_find_pictures(folder).values()):
        return Contents(False, False)
    may_be = any(_POSES.search(path.name) for path in _list_below(folder))
    return Contents(True, may_be or bool(_find_tables(folder)[0]))


def _find_tables(folder: Path) -> tuple[str, str]:
    """The names of a file with poses, or their pattern, and of one with intrinsics; "" where there is none."""
    poses, camera, single = "", "", Counter[str]()
    for path in sorted(path for path in _list_below(folder) if path.suffix.lower() in _TEXTS):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file() or path.stat().st_size > _MAX_TEXT:
            continue
        poses = poses or (name if _has_poses(path) else "")
        if not poses and _has_pose(path):
            single[f"{name.removesuffix(path.name)}*{_END.search(path.name)[0]}"] += 1  # type: ignore[index]
        camera = camera or (name if name != poses and _has_camera(path) else "")
    (pattern, count) = max(single.items(), key=lambda item: item[1], default=("", 0))
    return poses or (pattern if count >= _MIN_POSES else ""), camera


def _find_pictures(folder: Path) -> dict[str, str]:
    """Patterns of the pictures of color and of depth in a folder and those in it, "" where there are none."""
    found = {"color": "", "depth": ""}
    words: dict[str, dict[str, set[str]]] = {}
    try:
        inner = [Path(entry.path) for entry in _list(folder) if is_folder(entry)][:_MAX_FOLDERS]
        for place in (folder, *inner):
            prefix = "" if place == folder else f"{place.name}/"
            for path in (Path(entry.path) for entry in _list(place)[:_MAX_LOOKED] if is_regular(entry)):
                kind = _classify(path)
                if kind and not found[kind]:
                    found[kind] = f"{prefix}*{path.suffix}"
                    words.setdefault(prefix, {})[kind] = set(_WORD.findall(path.stem))
    except OSError:
        return found
    for prefix, of in words.items():
        if len(of) == 2:  # both lie in one folder, and their names must tell them apart
            for kind, other in (("color", "depth"), ("depth", "color")):
                own = sorted(of[kind] - of[other])
                found[kind] = f"{prefix}*{own[0] if own else ''}*{Path(found[kind]).suffix}"
    return found


def _list_below(folder: Path, levels: int = 2) -> Iterator[Path]:
    """Some of what lies in a folder, in those in it, and in theirs: pictures by the thousand hide nothing."""
    try:
        entries = _list(folder)
    except OSError:
        return
    yield from (Path(entry.path) for entry in entries[:_MAX_BELOW])
    for entry in [entry for entry in entries if levels and is_folder(entry) and not entry.is_symlink()][:_MAX_FOLDERS]:
        yield from _list_below(Path(entry.path), levels - 1)


def _list(folder: Path) -> list[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        return sorted(
            islice((entry for entry in entries if not entry.name.startswith(".")), _MAX_FILES), key=lambda e: e.name
        )


def _classify(path: Path) -> str:
    """ "color", "depth", or "" for what is neither."""
    suffix = path.suffix.lower()
    try:
        if suffix in COLOR_SUFFIXES or suffix == ".pgm":
            header = read_file_header(path)
            if (header.channels, header.bits) == (1, 16):
                return "depth"
            return "color" if header.channels in (0, 3, 4) and header.bits == 8 else ""
        if suffix in DEPTH_SUFFIXES:
            read_depth_size(path)
            return "depth"
    except FormatError:
        return ""
    return ""


def _guess_unit(folder: Path, pattern: str) -> int | float:
    """1000 for millimeters or 1 for meters, by the median of a few pictures."""
    paths = sorted(folder.glob(pattern))[:3]
    try:
        values = [
            make_depth_reader(path, read_depth_size(path), FileLayout(depth_per_meter=1), None)() for path in paths
        ]
        known = np.concatenate([each[each > 0] for each in values])
    except (FormatError, ValueError):
        return 1000
    return 1 if len(known) and np.median(known) < 50 else 1000


def _has_poses(path: Path) -> bool:
    try:
        return len(read_poses(path, "", [])[0]) > 1
    except FormatError:
        return False


def _has_pose(path: Path) -> bool:
    try:
        pose = read_pose_file(path)
    except FormatError:
        return False
    return bool(measure_orthonormality_deviation(pose[:3, :3]) < MAX_DEVIATION)


def _has_camera(path: Path) -> bool:
    try:
        return read_intrinsics(path).values[0] > 10
    except FormatError:
        return False
