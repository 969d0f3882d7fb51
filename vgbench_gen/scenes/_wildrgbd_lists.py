"""The files of WildRGB-D that speak about scenes: types and splits of a category, poses of a scene.

Forms: `wildrgbd/wildrgbd: README.md, wildrgbd_generate_point_cloud.py`; how scenes are keyed is not documented, so
every form in use is understood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import FormatError, FrameError, PoseError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import check_pose
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, parse_matrix, read_bytes, read_json
from vgbench_gen.scenes.promised import try_to_read

OBJECT_TYPES = ("single", "multi", "hand")
UNKNOWN = "unknown"
_LISTS = ("nvs_list.json", "camera_eval_list.json")
_SPLITS = ("test", "val", "train")  # held out wins: a scene that any list holds out must not be trained on
_MAX_LIST_BYTES = 4_000_000
_MAX_POSE_BYTES = 16_000_000
_NUMBERS = 17


class CategoryLists:
    """`types.json`, `nvs_list.json` and `camera_eval_list.json` of one category folder; each may be absent.

    issues: files that are there but unusable.
    """

    def __init__(self, category: Path) -> None:
        self.issues: list[Issue] = []
        self._types = _read_types(self._read(category, "types.json"))
        self._lists = [_read_memberships(self._read(category, name)) for name in _LISTS]

    def object_type(self, scene_dir: str) -> str:
        """ "single", "multi", "hand", or "unknown". Keys may be the folder's name, a path to it, or its number."""
        by_name = {_get_base_name(key): kind for key, kind in self._types}
        found = by_name.get(scene_dir) or by_name.get(_strip_suffix(scene_dir))
        if found is None:
            number = _number(scene_dir)
            kinds = {kind for key, kind in self._types if number is not None and _number(_get_base_name(key)) == number}
            found = kinds.pop() if len(kinds) == 1 else UNKNOWN
        return found

    def split(self, scene_dir: str) -> str:
        """ "train", "val" or "test", or "unknown" where no list names the scene."""
        named = {split for members in self._lists for split, names in members.items() if scene_dir in names}
        return next((split for split in _SPLITS if split in named), UNKNOWN)

    def _read(self, category: Path, name: str) -> Any:
        path = category / name
        if not path.exists():
            return None
        without = "what it says of the scenes is unknown"
        return try_to_read(self.issues, lambda: read_json(inside(category, path), path, _MAX_LIST_BYTES), without)


def _read_types(value: Any) -> list[tuple[str, str]]:
    if not isinstance(value, dict):
        return []
    pairs: list[tuple[str, str]] = []
    for key, entry in value.items():
        if isinstance(entry, str) and entry.strip().lower() in OBJECT_TYPES:
            pairs.append((key, entry.strip().lower()))
        elif isinstance(entry, list) and key.strip().lower() in OBJECT_TYPES:
            pairs += [(name, key.strip().lower()) for name in entry if isinstance(name, str)]
    return pairs


def _read_memberships(value: Any) -> dict[str, set[str]]:
    if not isinstance(value, dict):
        return {}
    lists = {split: value.get(split) for split in _SPLITS}
    return {
        split: {_get_base_name(name) for name in names if isinstance(name, str)}
        for split, names in lists.items()
        if isinstance(names, list)
    }


def _get_base_name(key: str) -> str:
    return key.replace("\\", "/").strip().rstrip("/").rpartition("/")[2]


def _strip_suffix(name: str) -> str:
    return re.sub(r"^[A-Za-z]+_", "", name)


def _number(name: str) -> int | None:
    found = re.fullmatch(r"(?:scenes?_)?(\d{1,18})", name, re.ASCII)
    return int(found[1]) if found else None


def read_poses(path: Path) -> tuple[dict[int, tuple[FloatArray, float]], set[int], list[Issue]]:
    """Poses of `cam_poses.txt`: a frame number and 16 row-major numbers per line (or any whole number of such runs).

    Returns:
        Frame number -> (world_from_camera (4, 4), deviation before repair); all numbers that occur; what was left out.

    Raises:
        SceneError: the file is missing, unreadable or larger than 16 MB.
    """
    text = read_bytes(path, path, _MAX_POSE_BYTES).decode("utf-8-sig", "replace")
    poses: dict[int, tuple[FloatArray, float]] = {}
    seen: set[int] = set()
    issues: list[Issue] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) % _NUMBERS:
            detail = f"{where}: found {len(words)} words; expected a frame number and 16 numbers"
            issues.append(Issue("", "pose_line_unusable", detail))
            continue
        for start in range(0, len(words), _NUMBERS):
            _parse_pose(words[start : start + _NUMBERS], where, poses, seen, issues)
    return poses, seen, issues


def _parse_pose(
    words: list[str],
    where: str,
    poses: dict[int, tuple[FloatArray, float]],
    seen: set[int],
    issues: list[Issue],
) -> None:
    frame = ""
    try:
        stated = float(words[0])
        if not stated.is_integer() or stated < 0:
            raise FrameError(where, words[0], "a whole frame number", "The line is left out.")
        key, frame = int(stated), str(int(stated))
        if key in seen:
            poses.pop(key, None)  # which of the two is right cannot be known
            raise FrameError(where, f"frame {key} again", "one pose per frame", "The frame is left out.")
        seen.add(key)
        poses[key] = check_pose(parse_matrix(" ".join(words[1:]), where, [(4, 4)]), where)
    except PoseError as error:
        issues.append(Issue(frame, "bad_pose", str(error)))
    except (FormatError, ValueError) as error:
        issues.append(Issue(frame, "pose_line_unusable", str(error)))


def index_by_number(names: Iterable[str]) -> dict[int, str]:
    """Frame number -> file name for names like `00012.png`; of two for one number the padded (longer) one counts."""
    found: dict[int, str] = {}
    for name in sorted(names, key=lambda name: (-len(name), name)):
        stem = name.rpartition(".")[0]
        if stem.isascii() and stem.isdecimal() and len(stem) < 19:
            found.setdefault(int(stem), name)
    return found
