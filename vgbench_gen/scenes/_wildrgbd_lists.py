"""The files of WildRGB-D that speak about scenes: splits of a category, poses of a scene.

Forms: `wildrgbd/wildrgbd: README.md, wildrgbd_generate_point_cloud.py`; how scenes are keyed is not documented, so
every form in use is understood.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import FormatError, FrameError, PoseError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import check_pose
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, parse_matrix, read_bytes, read_json
from vgbench_gen.scenes.promised import try_to_read

_LISTS = ("nvs_list.json", "camera_eval_list.json")
_SPLITS = ("train", "val", "test")  # the last one wins: a scene that any list holds out must not be trained on
_MAX_LIST_BYTES = 4_000_000
_MAX_POSE_BYTES = 16_000_000
_NUMBERS = 17


def read_splits(category: Path, issues: list[Issue]) -> dict[str, str]:
    """The split of each scene folder that `nvs_list.json` or `camera_eval_list.json` names; each may be absent."""
    splits: dict[str, str] = {}
    lists = [_read_list(category, category / name, issues) for name in _LISTS if (category / name).exists()]
    for split in _SPLITS:
        for names in (found.get(split) for found in lists if isinstance(found, dict)):
            if isinstance(names, list):
                splits.update({_get_base_name(name): split for name in names if isinstance(name, str)})
    return splits


def _read_list(category: Path, path: Path, issues: list[Issue]) -> Any:
    read = partial(read_json, inside(category, path), path, _MAX_LIST_BYTES)
    return try_to_read(issues, read, "the splits that it states are unknown")


def _get_base_name(key: str) -> str:
    return key.replace("\\", "/").strip().rstrip("/").rpartition("/")[2]


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
