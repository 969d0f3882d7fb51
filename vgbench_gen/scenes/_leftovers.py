"""What lies among scans and is taken by no loader: names that are nearly right, and layouts that nobody reads."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from fnmatch import filter as match
from itertools import islice
from os import DirEntry
from pathlib import Path

from vgbench_gen.scenes import base
from vgbench_gen.scenes.posed.guess import find_pictures, may_have_poses
from vgbench_gen.scenes.walk import is_folder, is_regular, walk

_PARTIAL = re.compile(
    r"\.(part|partial|crdownload|download|aria2|tmp|incomplete|unfinished|opdownload|filepart|!ut|!qb|!bt|td)\W*\d*\W*$"
    r"|^unconfirmed ",
    re.IGNORECASE,
)
_ARCHIVE = re.compile(r"\.(tar|tgz|tbz2?|txz|tzst|zip|7z|rar|gz|bz2|xz|zst|lz4)(?![a-z])", re.IGNORECASE)
_CA1M_NAME = re.compile(r"(ca1m-(train|val|test)-)?\d{5,}", re.IGNORECASE)
_PICTURES = re.compile(r"\.(png|jpe?g|pgm|exr|tiff?)$", re.IGNORECASE)
_MAX_FOLDERS, _MAX_COUNTED, _MAX_PLACES = 20, 10_000, 3
_NO_POSES = "without poses. Run RTAB-Map, ORB-SLAM3 or COLMAP on it, and save TUM RGB-D."
# Layouts that no loader reads, by names that lie in one folder of each, and what to do; the first that fits counts.
_LAYOUTS = (
    ("looks like ScanNet in a folder not named like scene0000_00. Name it so.", "*.sens"),
    (f"looks like Azure Kinect, a recording {_NO_POSES}", "*.mkv", "calibration.json"),
    ("looks like kapture, which is not read yet.", "sensors", "reconstruction"),
)
_KINECT = b"K4A_"  # in the names of tags, which its recorder writes first
_HEAD_BYTES = 100_000


def describe_near_miss(name: str) -> str:
    """What a file of this name is, that is no scan, and what to do about it; "" where it says nothing."""
    if _PARTIAL.search(name):
        return "an unfinished download. Finish it, or get the file again."
    kinds = {kind.lower() for kind in _ARCHIVE.findall(name)}
    capture = _CA1M_NAME.search(name)
    if kinds == {"tar"} and capture and name != (wanted := f"{capture[0].lower()}.tar"):
        return f"no name of a scan. Rename it to {wanted}, or remove it if that is there already."
    return "an archive, which is not read as it is. Unpack it." if kinds else ""


def find_leftovers(root: Path, taken: Sequence[base.SceneRef]) -> Iterator[tuple[Path, str]]:
    """Places below `root` that look like scans and are none, with what was found there and what to do.

    Args:
        root: the folder. taken: the scans that loaders found; what else lies under their ids was made of them.
    """
    scans, ids = {ref.path.resolve() for ref in taken}, {ref.scene_id for ref in taken}
    above = {parent for path in scans for parent in path.parents}
    for folder, entries in walk(root):
        real = folder.resolve()
        is_scan = real in scans or folder.name in ids  # in which archives may lie that belong to it
        for entry in filter(is_regular, entries):
            stem = real / _ARCHIVE.split(entry.name, maxsplit=1)[0]
            unpacked = {stem, stem.with_name(f"{stem.name}.tar"), real / entry.name} & (scans | above)
            what = describe_near_miss(entry.name)
            if what and not unpacked and (not is_scan or _PARTIAL.search(entry.name)):
                yield folder / entry.name, what
        if is_scan:
            entries.clear()
        elif real not in above and folder != root and _ARCHIVE.search(folder.name):
            yield folder, "a folder by the name of an archive. Put the archive there."
        elif real not in above and (what := _describe_layout(folder, entries)):
            entries.clear()
            yield folder, what


def describe_unplaced(*roots: Path) -> str:
    """Why there is no scan below the folders, in one line: what was looked for and what was found."""
    titles = [loader.info.title for loader in base.loaders.values()]
    named = f"{', '.join(titles[:-1])} or {titles[-1]}" if len(titles) > 1 else "".join(titles)
    places = [f"{path}: {what}" for root in roots for path, what in find_leftovers(root, ())]
    found = places[:_MAX_PLACES] + [f"And {len(places) - _MAX_PLACES} more."] * (len(places) > _MAX_PLACES)
    if not found:
        files = Counter(Path(entry.name).suffix[1:].upper() or "other" for root in roots for _, entries in walk(root)
                        for entry in filter(is_regular, entries))  # fmt: skip
        found = [f"found {_format_counts(files) or 'no file'}."]
    where = f"{', '.join(map(str, roots))}; {' '.join(found)}"
    return f"no scan of {named} below {where} docs/howto/your-scans.md says what is read, and how to lay out others."


def _describe_layout(folder: Path, entries: list[DirEntry[str]]) -> str:
    """What lies in a folder, as far as nothing reads it, and what to do; "" where nothing looks like a recording."""
    names = [entry.name for entry in entries]
    what, *signs = next((row for row in _LAYOUTS if all(match(names, sign) for sign in row[1:])), ("",))
    if not what and (videos := [name for name in match(names, "*.mkv") if _is_of_kinect(folder / name)]):
        what, signs = _LAYOUTS[1][0], videos[:1]
    total, below = Counter[str](), list[str]()
    for entry in islice(filter(is_folder, entries), _MAX_FOLDERS):
        if counts := _count_pictures(Path(entry.path)):
            total += counts
            below.append(entry.name)
    here = Counter(found[1].upper() for found in map(_PICTURES.search, names) if found)
    if not what and len(below) < 2 and sum(here.values()) < 2:
        return ""
    if not what:
        has_both = all(find_pictures(folder))
        if not has_both and len(below) < 2:
            return ""
        lacks = has_both and not may_have_poses(folder)
        what = (
            f"color and depth {_NO_POSES}"
            if lacks
            else "no layout that is known. A posed.toml in it says what is what."
        )
    found = [f"{_format_counts(total)} below {'/ and '.join(below)}/"] if below else []
    found += [name for sign in signs for name in match(names, sign)[:1] if name not in below]
    found = found or [_format_counts(here)]
    return f"found {' and '.join(found)}: {what}"


def _is_of_kinect(path: Path) -> bool:
    with suppress(OSError), path.open("rb") as file:
        return _KINECT in file.read(_HEAD_BYTES)
    return False


def _count_pictures(folder: Path) -> Counter[str]:
    """How many pictures of each format lie in a folder, in its first thousands of entries."""
    with suppress(OSError):
        names = [path.name for path in islice(folder.iterdir(), _MAX_COUNTED)]
        return Counter(found[1].upper() for found in map(_PICTURES.search, names) if found)
    return Counter()


def _format_counts(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in counts.most_common(3))
