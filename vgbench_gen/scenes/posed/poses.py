"""Files of poses: tables with any columns, and one matrix a file."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import MAX_DEVIATION, make_pose, measure_orthonormality_deviation
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import parse_matrix, read_bytes

MAX_POSE_BYTES = 64_000_000
_NAMES = {  # of columns, as files write them, without units
    "time": "time timestamp timestamps t stamp timestamp_s time_s timestamp_ns timestamp_us timestamp_ms sec",
    "id": "id frame index idx frame_id frame_number image_id frameid",
    "name": "name image file filename image_name file_name path",
    **{
        axis: f"{axis} t{axis} t_{axis} pos_{axis} p{axis} p_{axis} position_{axis} translation_{axis}"
        for axis in "xyz"
    },
    **{name: name for name in ("fx", "fy", "cx", "cy")},
    **{f"q{c}": f"q{c} q_{c} quat_{c} rot_{c} rotation_{c} orientation_{c}" for c in "xyzw"},
}
_COLUMN = {word: name for name, words in _NAMES.items() for word in words.split()}
_BY_COUNT = {
    7: "x y z qx qy qz qw",
    8: "time x y z qx qy qz qw",
    12: "matrix",
    13: "id matrix",
    16: "matrix",
    17: "id matrix",
    19: "id _ _ matrix",
}
_QUATERNION, _TURN, _SHIFT = ("qx", "qy", "qz", "qw"), ("rx", "ry", "rz"), ("x", "y", "z")
_MAX_NORM_ERROR = 0.02  # of a quaternion; files that print three digits stay below
_LENS = ("fx", "fy", "cx", "cy")
_TEXT = ("name",)
# Seconds of a time by its size: since 1970 in nanoseconds, microseconds, milliseconds, seconds.
_CLOCKS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))


@dataclass(frozen=True, slots=True)
class StoredPose:
    """One row of a file of poses."""

    where: str
    stored: FloatArray
    """(4, 4), as the file states it."""
    time_s: float | None = None
    id: int | None = None
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
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    named = next((found for _, line in lines[:20] if (found := _read_header(line))), "")
    rows = [(number, _split(line)) for number, line in lines if line[0] not in "#%/" and not _read_header(line)]
    spec = (columns or named or _BY_COUNT.get(len(rows[0][1]) if rows else 0, "")).split()
    if not rows or not spec:
        found = f"{len(rows)} rows, the first of {len(rows[0][1]) if rows else 0} numbers"
        raise SceneError(path, found, "columns with names, or 7, 8, 12, 13, 16 or 17 numbers", "Name `pose_columns`.")
    spec, rows = _fit(spec, rows)
    while spec[-1:] == ["_"]:  # rows may end before columns that are passed over
        spec.pop()
    known = {*_QUATERNION, *_TURN, *_SHIFT, *_LENS, "time", "id", "name", "matrix", "_"}
    if unknown := set(spec) - known:
        raise SceneError(path, f"columns {', '.join(sorted(unknown))}", f"of {', '.join(sorted(known))}")
    needs = "matrix" in spec or (
        set(_SHIFT) <= set(spec) and (set(_QUATERNION) <= set(spec) or set(_TURN) <= set(spec))
    )
    if not needs:
        raise SceneError(path, f"columns {' '.join(spec)}", "a position and a rotation, or a matrix")
    poses = []
    for place, (number, words) in enumerate(rows):
        try:
            poses.append(_parse_row(f"{path}:{number}", place, spec, words))
        except FormatError as problem:
            issues.append(
                Issue("", "bad_pose" if isinstance(problem, PoseError) else "pose_line_unusable", str(problem))
            )
    if not poses:
        raise SceneError(
            path, f"{len(rows)} rows without a pose ({issues[-1].detail})", "poses", "Name `pose_columns`."
        )
    order = ("wxyz" if spec.index("qw") < spec.index("qx") else "xyzw") if "qw" in spec else ""
    return poses, order


def read_columns(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The words of some columns of a CSV file whose first row names them; rows that are too short are left out.

    Raises:
        SceneError: unreadable, larger than 64 MB, or without such columns.
    """
    text = read_bytes(path, path, MAX_POSE_BYTES).decode("utf-8-sig", "replace")
    try:
        rows = csv.reader(io.StringIO(text, newline=""))
        heads = [word.strip() for word in next(rows, [])]
        if missing := [name for name in columns if name not in heads]:
            raise SceneError(path, f"no column {missing[0]}", f"columns {', '.join(columns)[:200]}")
        places = [heads.index(name) for name in columns]
        return [tuple(row[place].strip() for place in places) for row in rows if len(row) > max(places)]
    except csv.Error as problem:
        raise SceneError(path, f"no readable table ({problem})", "values between commas") from problem


def read_pose_file(path: Path) -> FloatArray:
    """The one matrix (4, 4) of a file with 12 or 16 numbers. Raises FrameError."""
    text = read_bytes(path, path, 100_000, FrameError).decode("utf-8-sig", "replace")
    return complete_matrix(parse_matrix(text, path, [(4, 4), (3, 4)]), path)


def complete_matrix(matrix: FloatArray, where: object) -> FloatArray:
    """(4, 4) of a matrix (3, 4) or (4, 4), which is turned over where it stands column by column. Raises PoseError."""
    last = np.array([0.0, 0.0, 0.0, 1.0])
    if matrix.shape == (3, 4):
        by_columns = matrix.reshape(4, 3).T
        if _is_rigid(by_columns) and not _is_rigid(matrix):
            matrix = by_columns
        matrix = np.vstack([matrix, last])
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


def _is_rigid(matrix: FloatArray) -> bool:
    return bool(measure_orthonormality_deviation(matrix[:, :3]) < MAX_DEVIATION)


def _split(line: str) -> list[str]:
    return re.split(r"\s*[,;]\s*" if "," in line or ";" in line else r"\s+", line.strip(" ,;"))


def _read_header(line: str) -> str:
    """The columns that a line names, "" where it names none."""
    words = [re.sub(r"[\[(].*", "", word.lower()).strip() for word in _split(line.lstrip("#%/ "))]
    found = [_COLUMN.get(word, "_") for word in words]
    return " ".join(found) if {"x", "y", "z"} <= set(found) and "qw" in found else ""


def _fit(spec: list[str], rows: list[tuple[int, list[str]]]) -> tuple[list[str], list[tuple[int, list[str]]]]:
    """Columns with one name a number, and rows of so many words: a pose may stand in several lines."""
    if "matrix" not in spec:
        return spec, rows
    others = len(spec) - 1
    count = len(rows[0][1])
    if count - others in (12, 16):
        size = count - others
    else:  # a block of lines a pose
        words = [(number, word) for number, line in rows for word in line]
        size = 16
        step = others + size
        rows = [(words[i][0], [word for _, word in words[i : i + step]]) for i in range(0, len(words), step)]
    at = spec.index("matrix")
    return spec[:at] + ["matrix"] * size + spec[at + 1 :], rows


def _parse_row(where: str, place: int, spec: Sequence[str], words: Sequence[str]) -> StoredPose:
    if len(words) < len(spec):
        raise FrameError(where, f"{len(words)} values", f"{len(spec)}: {' '.join(dict.fromkeys(spec))}")
    pairs = [pair for pair in zip(spec, words, strict=False) if pair[0] != "_"]
    keys = [key for key, _ in pairs if key not in _TEXT]
    # All at once: a column at a time takes three times as long, seconds for a long capture.
    values = parse_matrix(" ".join(word for key, word in pairs if key not in _TEXT), where, [(len(keys),)])
    numbers = dict(zip(keys, values.tolist(), strict=True))

    def take(*names: str) -> FloatArray:
        return np.array([numbers[name] for name in names])

    if "matrix" in numbers:
        stored = complete_matrix(values[[key == "matrix" for key in keys]].reshape(-1, 4), where)
    elif "qw" in numbers:
        stored = make_quaternion_pose(take(*_QUATERNION), take(*_SHIFT), where)
    else:
        stored = complete_matrix(make_pose(Rotation.from_rotvec(take(*_TURN)).as_matrix(), take(*_SHIFT)), where)
    time = to_seconds(numbers["time"]) if "time" in numbers else None
    number = numbers.get("id")
    if number is not None and not number.is_integer():
        raise FrameError(where, f"id {number:g}", "a whole number")
    name = next((word for key, word in pairs if key == "name"), "")
    lens = tuple(take(*_LENS).tolist()) if set(_LENS) <= numbers.keys() else ()
    return StoredPose(where, stored, time, None if number is None else int(number), name, lens, place)
