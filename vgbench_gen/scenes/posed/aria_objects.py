"""Objects of an Aria Digital Twin recording: boxes in frames of their own, where those lie in the world, and words.

Source: `facebookresearch/projectaria_tools`, the page "ADT data format" and AriaDigitalTwinDataProvider.cpp.
`3d_bounding_box.csv` has the limits of each box in the frame of its object, `scene_objects.csv` has world_from_object
with the quaternion's w first; both once with the time -1 for what does not change, else once a frame.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.files import inside, parse_matrix, read_json
from vgbench_gen.scenes.posed.boxes import MAX_OBJECTS, collect_objects, make_box
from vgbench_gen.scenes.posed.poses import read_columns

_LIMITS = ("object_uid", *(f"p_local_obj_{axis}{end}[m]" for axis in "xyz" for end in ("min", "max")))
_POSE = ("object_uid", *(f"t_wo_{axis}[m]" for axis in "xyz"), *(f"q_wo_{part}" for part in "wxyz"))
_SETTLED_M, _SETTLED_COSINE = 0.01, float(np.cos(np.radians(0.5)))  # by half the angle: what turns by less lies still
_MAX_NORM_ERROR = 0.02
_BUILDING = ("shelter",)  # the shell of the rooms
_Rows = dict[str, list[tuple[str, ...]]]


def read_objects(folder: Path, up: FloatArray, issues: list[Issue]) -> list[SceneObject]:
    """Objects that lie still and have an upright box, in the world; the others are noted.

    Raises:
        SceneError: a file is missing or not what it should be.
    """
    limits, poses = (
        _group(read_columns(inside(folder, folder / name), columns))
        for name, columns in (("3d_bounding_box.csv", _LIMITS), ("scene_objects.csv", _POSE))
    )
    path = inside(folder, folder / "instances.json")
    about = read_json(path, path)
    if not isinstance(about, dict) or len(poses) > MAX_OBJECTS:
        raise SceneError(path, f"a {type(about).__name__} for {len(poses)} objects", f"at most {MAX_OBJECTS} by uid")
    makers = ((uid, partial(_make, uid, limits, poses, about, up)) for uid in poses)
    return [each for each in collect_objects(makers, issues) if each.label not in _BUILDING]


def _group(rows: list[tuple[str, ...]]) -> _Rows:
    found: _Rows = {}
    for uid, *values in rows:
        found.setdefault(uid, []).append(tuple(values))
    return found


def _make(uid: str, limits: _Rows, poses: _Rows, about: dict[str, Any], up: FloatArray) -> SceneObject:
    entry = about.get(uid)
    label = entry.get("category") if isinstance(entry, dict) else None
    if not isinstance(label, str) or len(limits.get(uid, ())) != 1:
        raise FrameError("its rows", "no category, or not one box", "both", "It is left out.")
    (low, high), each = _parse(limits[uid], 6)[0].reshape(3, 2).T, _parse(poses[uid], 7)
    t, q = each[:, :3], each[:, 3:]
    if not (np.abs(np.linalg.norm(q, axis=1) - 1) <= _MAX_NORM_ERROR).all():
        raise FrameError("its pose", "a quaternion of another length than 1", "a rotation", "It is left out.")
    turned = np.abs(q @ q[0]) / (np.linalg.norm(q, axis=1) * np.linalg.norm(q[0]))
    if np.ptp(t, axis=0).max() > _SETTLED_M or turned.min() < _SETTLED_COSINE:
        raise FrameError("its pose", "an object that moves", "one that lies still", "It is left out.")
    R = Rotation.from_quat(q[0, [1, 2, 3, 0]]).as_matrix()
    return SceneObject(uid, label.strip().lower(), make_box(t[0] + R @ (low + high) / 2, high - low, R, up))


def _parse(rows: list[tuple[str, ...]], count: int) -> FloatArray:
    return np.stack([parse_matrix(" ".join(row), "its row", [(count,)]) for row in rows])
