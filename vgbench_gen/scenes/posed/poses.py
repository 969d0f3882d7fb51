"""Files of poses: tables with any columns, and one matrix a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import parse_matrix, read_bytes

MAX_POSE_BYTES = 64_000_000  # an hour of poses at 60 Hz has a quarter of this
_NAMES = {  # of columns, as files write them, without units
    "time": "time timestamp timestamps t stamp timestamp_s time_s timestamp_ns timestamp_us timestamp_ms sec",
    "id": "id frame index idx frame_id frame_number image_id frameid",
    "name": "name image file filename image_name file_name path",
    **{c: f"{c} t{c} t_{c} pos_{c} p{c} p_{c} position_{c} translation_{c}" for c in "xyz"},
    **{f"q{c}": f"q{c} q_{c} quat_{c} rot_{c} rotation_{c} orientation_{c}" for c in "xyzw"},
    **{c: c for c in ("fx", "fy", "cx", "cy")},
}
_COLUMN = {word: name for name, words in _NAMES.items() for word in words.split()}
_WITH_QUATERNION = "x y z qx qy qz qw"
_BY_COUNT = {7: _WITH_QUATERNION, 8: f"time {_WITH_QUATERNION}"}
_BY_COUNT |= {12: "matrix", 13: "id matrix", 16: "matrix", 17: "id matrix"}
_QUATERNION, _TURN, _SHIFT = ("qx", "qy", "qz", "qw"), ("rx", "ry", "rz"), ("x", "y", "z")
_LENS = ("fx", "fy", "cx", "cy")
_KNOWN = {*_QUATERNION, *_TURN, *_SHIFT, *_LENS, "time", "id", "name", "matrix", "_"}
_MAX_NORM_ERROR = 0.02  # of a quaternion; files that print three digits stay below
# Seconds of a time by its size: since 1970 in nanoseconds, microseconds, milliseconds, seconds.
_CLOCKS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))


@dataclass(frozen=True, slots=True)
class StoredPose:
    """One row of a file of poses."""

    where: str
    stored: FloatArray
    """(4, 4), as the file states it."""
    time_s: float | None = None
    id: float | None = None
    name: str = ""
    intrinsics: tuple[float, ...] = ()
    """fx, fy, cx, cy, pixels, where the row states them."""
    place: int = 0
    """Of the row among all rows, those without a pose included."""


def to_seconds(time: float) -> float:
    """A time in seconds: numbers as large as nanoseconds, microseconds or milliseconds since 1970 are taken as such."""
    return next((time * unit for least, unit in _CLOCKS if abs(time) >= least), time)


def read_poses(path: Path, columns: str, issues: list[Issue]) -> tuple[list[StoredPose], str]:
    """The rows of a file of poses, and the order of its quaternions ("xyzw", "wxyz", or "" for matrices).

    columns: as `FileLayout.pose_columns`. Rows that hold no rigid transform are noted.

    Raises:
        SceneError: unreadable, larger than 64 MB, or of unknown columns.
    """
    text = read_bytes(path, path, MAX_POSE_BYTES).decode("utf-8-sig", "replace")
    lines = [(number, line) for number, each in enumerate(text.splitlines(), 1) if (line := each.strip())]
    head, named = next(((number, found) for number, line in lines[:20] if (found := _read_header(line))), (0, ""))
    rows = [(number, _split(line)) for number, line in lines if line[0] not in "#%/" and number != head]
    count = len(rows[0][1]) if rows else 0
    spec = (columns or named or _BY_COUNT.get(count, "")).split()
    if not rows or not spec:
        found = f"{len(rows)} rows, the first of {count} numbers"
        raise SceneError(path, found, "columns with names, or 7, 8, 12, 13, 16 or 17 numbers", "Name `pose_columns`.")
    if "matrix" in spec:
        size = count - len(spec) + 1
        if size not in (12, 16):  # a block of lines a pose
            size, step, tokens = 16, len(spec) + 15, [(number, word) for number, words in rows for word in words]
            rows = [(tokens[i][0], [word for _, word in tokens[i : i + step]]) for i in range(0, len(tokens), step)]
        at = spec.index("matrix")
        spec[at : at + 1] = ["matrix"] * size
    places = {name: [i for i, each in enumerate(spec) if each == name] for name in spec}
    has_pose = any(places.keys() >= set(names) for names in (("matrix",), _SHIFT + _QUATERNION, _SHIFT + _TURN))
    if not has_pose or not places.keys() <= _KNOWN:
        expected = f"a position and a rotation, or a matrix, of {', '.join(sorted(_KNOWN))}"
        raise SceneError(path, f"columns {' '.join(places)}", expected)
    places.pop("_", None)
    poses = []
    for place, (number, words) in enumerate(rows):
        try:
            poses.append(_parse_row(f"{path}:{number}", place, places, words))
        except FormatError as problem:
            reason = "bad_pose" if isinstance(problem, PoseError) else "pose_line_unusable"
            issues.append(Issue("", reason, str(problem)))
    if not poses:
        found = f"{len(rows)} rows without a pose ({issues[-1].detail})"
        raise SceneError(path, found, "poses", "Name `pose_columns`.")
    order = ("wxyz" if places["qw"] < places["qx"] else "xyzw") if "qw" in places else ""
    return poses, order


def read_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of some columns of a CSV file whose first row names them; rows that are too short are left out.

    Raises:
        SceneError: unreadable, larger than 64 MB, or without such columns.
    """
    text = read_bytes(path, path, MAX_POSE_BYTES).decode("utf-8-sig", "replace")
    try:
        table = csv.DictReader(io.StringIO(text, newline=""), skipinitialspace=True)
        rows: list[tuple[Any, ...]] = [tuple(row.get(name) for name in columns) for row in table]
    except csv.Error as problem:
        raise SceneError(path, f"no readable table ({problem})", "values between commas") from problem
    if missing := [name for name in columns if name not in (table.fieldnames or ())]:
        raise SceneError(path, f"no column {missing[0]}", f"columns {', '.join(columns)[:200]}")
    return [row for row in rows if None not in row]


def read_pose_file(path: Path) -> FloatArray:
    """The one matrix (4, 4) of a file with 12 or 16 numbers. Raises FrameError and PoseError."""
    text = read_bytes(path, path, 100_000, FrameError).decode("utf-8-sig", "replace")
    return parse_pose(text, path)


def parse_pose(value: Any, where: object) -> FloatArray:
    """(4, 4) of 12 or 16 numbers, as `parse_matrix` takes them. Raises FrameError and PoseError."""
    return complete_matrix(parse_matrix(value, where, [(4, 4), (3, 4)]), where)


def complete_matrix(matrix: FloatArray, where: object) -> FloatArray:
    """(4, 4) of a matrix (3, 4) or (4, 4); the latter may stand column by column. Raises PoseError."""
    last = np.array([0.0, 0.0, 0.0, 1.0])
    matrix = np.vstack([matrix, last]) if len(matrix) == 3 else matrix
    if not np.allclose(matrix[3], last, atol=1e-3) and np.allclose(matrix[:, 3], last, atol=1e-3):
        matrix = matrix.T
    if not np.isfinite(matrix).all():
        raise PoseError(where, "a pose that is not finite", "a rigid transform")
    return matrix


def make_quaternion_pose(xyzw: FloatArray, t: FloatArray, where: object) -> FloatArray:
    """(4, 4) of a quaternion (4,) and a translation (3,). Raises PoseError."""
    if not abs(np.linalg.norm(xyzw) - 1) <= _MAX_NORM_ERROR:
        raise PoseError(where, f"a quaternion of length {np.linalg.norm(xyzw):.3g}", "length 1")
    return complete_matrix(make_pose(Rotation.from_quat(xyzw).as_matrix(), t), where)


def _split(line: str) -> list[str]:
    return re.split(r"\s*[,;]\s*" if "," in line or ";" in line else r"\s+", line.strip(" ,;"))


def _read_header(line: str) -> str:
    """The columns that a line names, "" where it names none."""
    words = [re.sub(r"[\[(].*", "", word.lower()).strip() for word in _split(line.lstrip("#%/ "))]
    found = [_COLUMN.get(word, "_") for word in words]
    return " ".join(found) if {"x", "y", "z"} <= set(found) and "qw" in found else ""


def _parse_row(where: str, place: int, places: Mapping[str, Sequence[int]], words: Sequence[str]) -> StoredPose:
    """The pose of a row. places: the columns of each name."""
    used = [i for name, of in places.items() if name != "name" for i in of]
    if len(words) <= max(used):
        raise FrameError(where, f"{len(words)} values", f"{max(used) + 1}, with {' '.join(places)}")
    # All at once: a column at a time takes three times as long, seconds for a long capture.
    numbers = parse_matrix(" ".join(words[i] for i in used), where, [(len(used),)])
    if not np.isfinite(numbers).all():
        raise PoseError(where, "a value that is not finite", "numbers")
    values = dict(zip(used, numbers.tolist(), strict=True))

    def take(*names: str) -> FloatArray:
        return np.array([values[i] for name in names for i in places[name]])

    if "matrix" in places:
        stored = complete_matrix(take("matrix").reshape(-1, 4), where)
    elif "qw" in places:
        stored = make_quaternion_pose(take(*_QUATERNION), take(*_SHIFT), where)
    else:
        stored = complete_matrix(make_pose(Rotation.from_rotvec(take(*_TURN)).as_matrix(), take(*_SHIFT)), where)
    time, number = (float(take(name)[0]) if name in places else None for name in ("time", "id"))
    name = words[places["name"][0]] if "name" in places else ""
    lens = tuple(take(*_LENS).tolist()) if places.keys() >= set(_LENS) else ()
    return StoredPose(where, stored, None if time is None else to_seconds(time), number, name, lens, place)
