"""The `posed.toml` that a folder in no known layout would need, as far as its files say it."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

from vgbench_gen.core.errors import FormatError
from vgbench_gen.geometry.poses import MAX_DEVIATION, measure_orthonormality_deviation
from vgbench_gen.scenes.base import SceneRef
from vgbench_gen.scenes.files import read_file_header
from vgbench_gen.scenes.posed.cameras import read_intrinsics
from vgbench_gen.scenes.posed.pixels import COLOR_SUFFIXES, DEPTH_SUFFIXES, holds_floats, read_depth_size
from vgbench_gen.scenes.posed.poses import read_pose_file, read_poses
from vgbench_gen.scenes.walk import is_folder, is_regular, walk

_MAX_FILES, _MAX_FOLDERS = 100_000, 30
_MAX_PICTURES, _MAX_TEXTS = 40, 200  # of a folder that are looked at
_MIN_POSES = 3  # files of one matrix each; two may say where two cameras stand
_POSES = re.compile(r"pose|traj|odom|ground.?truth|extrinsic|camera_to|cam2", re.IGNORECASE)
_WORD, _END = re.compile(r"[A-Za-z]+"), re.compile(r"[A-Za-z.]*$")
_TEXTS = (".txt", ".csv", ".log", ".freiburg", ".json", ".yaml", ".yml")


def find_candidates(root: Path, taken: Sequence[SceneRef], most: int = 3) -> Iterator[Path]:
    """The first few folders below a place in which color, depth and poses lie, and that no loader takes."""
    scans = {ref.path.resolve() for ref in taken}
    above = {parent for path in scans for parent in path.parents}

    def search() -> Iterator[Path]:
        for folder, entries in walk(root):
            if folder.resolve() in scans:
                entries.clear()
            elif folder.resolve() not in above and all(find_pictures(folder)):
                entries.clear()
                if may_have_poses(folder):
                    yield folder

    yield from islice(search(), most) if root.is_dir() else ()


def guess_layout(folder: Path) -> str:
    """The text of a `posed.toml`: what was found, and a comment where something must be filled in."""
    color, depth = find_pictures(folder)
    poses, camera = _find_tables(folder)
    per_meter = 1000
    with suppress(FormatError, StopIteration):
        per_meter = 1 if holds_floats(next(folder.glob(depth or "-"))) else 1000
    return "\n".join([
        f'color = "{color}"',
        f'depth = "{depth}"',
        f"depth_per_meter = {per_meter}  # stored steps of depth in a meter",
        f'poses = "{poses}"' if poses else 'poses = "…"  # no table of poses was found here',
        '# pose_columns = "time x y z qx qy qz qw"  # where the columns have no names; see the guide',
        'axes = "find"  # takes direction and axes from the pictures; or state them',
        f'camera = "{camera}"' if camera else "camera = [0, 0, 0, 0]  # fx, fy, cx, cy in pixels: not found here",
        "# up = [0, 0, 1]  # against gravity in the world of the poses, where it is known",
    ])  # fmt: skip


def find_pictures(folder: Path) -> tuple[str, str]:
    """Patterns of the pictures of color and of depth in a folder and those in it, "" where there are none."""
    found: dict[str, Path] = {}
    for paths in _list_below(folder, 1):
        for path in paths[:: len(paths) // _MAX_PICTURES + 1]:
            found.setdefault(_find_kind(path), path)
    patterns = []
    for kind, other in (("color", "depth"), ("depth", "color")):
        if kind not in found:
            patterns.append("")
            continue
        path, aside, word = found[kind], found.get(other, folder), ""
        if path.parent == aside.parent:  # their names must tell them apart
            word = min(set(_WORD.findall(path.stem)) - set(_WORD.findall(aside.stem)), default="") + "*"
        patterns.append((path.parent / f"*{word}{path.suffix}").relative_to(folder).as_posix())
    return patterns[0], patterns[1]


def may_have_poses(folder: Path) -> bool:
    """Whether poses lie in a folder and those in it, or a file by whose name there may be some."""
    files = (path.relative_to(folder) for paths in _list_below(folder) for path in paths)
    return any(_POSES.search(str(path)) for path in files) or bool(_find_tables(folder)[0])


def _find_tables(folder: Path) -> tuple[str, str]:
    """The names of a file with poses, or their pattern, and of one with intrinsics; "" where there is none."""
    found: dict[str, str] = {}
    single = Counter[str]()
    for paths in _list_below(folder):
        for path in [path for path in paths if path.suffix.lower() in _TEXTS][:_MAX_TEXTS]:
            place, kind = path.relative_to(folder).parent, _find_kind(path)
            found.setdefault(kind, (place / path.name).as_posix())
            single[(place / f"*{_END.findall(path.name)[0]}").as_posix()] += kind == "pose"
    ((pattern, count),) = single.most_common(1) or [("", 0)]
    return found.get("poses", pattern if count >= _MIN_POSES else ""), found.get("camera", "")


_HOLDS: dict[str, tuple[tuple[str, ...], Callable[[Path], bool]]] = {
    "poses": (_TEXTS, lambda path: len(read_poses(path, "", [])[0]) > 1),
    "pose": (_TEXTS, lambda path: bool(measure_orthonormality_deviation(read_pose_file(path)[:3, :3]) < MAX_DEVIATION)),
    "camera": (_TEXTS, lambda path: read_intrinsics(path).values[0] > 10),
    "depth": ((".png", ".pgm"), lambda path: _read_form(path) == (1, 16)),
    "color": (COLOR_SUFFIXES, lambda path: _read_form(path) in ((0, 8), (3, 8), (4, 8))),
    "depth of floats": (DEPTH_SUFFIXES[2:], lambda path: bool(read_depth_size(path))),
}


def _find_kind(path: Path) -> str:
    """The first word of what a file is by `_HOLDS`, "" where it is none of these."""
    for kind, (suffixes, holds) in _HOLDS.items():
        with suppress(FormatError):
            if path.suffix.lower() in suffixes and holds(path):
                return kind.split()[0]
    return ""


def _read_form(path: Path) -> tuple[int, int]:
    header = read_file_header(path)
    return header.channels, header.bits


def _list_below(folder: Path, levels: int = 2) -> Iterator[list[Path]]:
    """The files of a folder, of those in it, and of theirs, sorted, without links."""
    entries: list[os.DirEntry[str]] = []
    with suppress(OSError), os.scandir(folder) as found:
        entries += islice(
            (entry for entry in found if not (entry.name.startswith(".") or entry.is_symlink())), _MAX_FILES
        )
    entries.sort(key=lambda entry: entry.name)
    yield [Path(entry.path) for entry in entries if is_regular(entry)]
    for entry in [entry for entry in entries if levels and is_folder(entry)][:_MAX_FOLDERS]:
        yield from _list_below(Path(entry.path), levels - 1)
