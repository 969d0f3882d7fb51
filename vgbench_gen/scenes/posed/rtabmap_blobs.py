"""What the binary columns of a database of RTAB-Map hold.

Source: `introlab/rtabmap`, `corelib/src/{CameraModel,Compression,DBDriverSqlite3}.cpp`.
"""

from __future__ import annotations

import itertools
import sqlite3
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes import files
from vgbench_gen.scenes._lazy_frame import check_aspect
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.poses import complete_matrix

_FLOAT_CHANNELS = 4  # of a PNG whose bytes are floats
_EXPORT = "Run rtabmap-export --images_id --poses_camera --poses_format 11 on it, and give what it writes."
_POSE_BYTES, _HEAD = 48, struct.Struct("<11i")  # version (3), type, width, height, numbers in K, D, R, P and local
_MAX_UNPACKED = 64_000_000
_TRIED = 20
_MAX_STEPS = 1000  # of a million instructions: a view or a column that computes may go on for ever


def open_database(path: Path) -> sqlite3.Connection:
    """A database, open for reading, of which no value is longer than 200 MB; nothing is written beside it.

    Statements raise an error of sqlite3 where it is damaged, or where they go on for too long. Raises SceneError.
    """
    files.open_regular(path, path).close()
    address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
    database = sqlite3.connect(address, uri=True, check_same_thread=False)
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, files.MAX_PICTURE_BYTES)
    steps = itertools.count()
    database.set_progress_handler(lambda: next(steps) > _MAX_STEPS, 1_000_000)
    return database


def take_pose(data: object, where: object) -> FloatArray:
    """(4, 4) of 12 float32, row by row. Raises FrameError."""
    if not isinstance(data, bytes) or len(data) != _POSE_BYTES:
        raise FrameError(where, "no pose of 48 bytes", "12 float32")
    return complete_matrix(np.frombuffer(data, "<f4").reshape(3, 4).astype(np.float64), where)


def read_model(data: object, where: object) -> tuple[StatedIntrinsics, FloatArray]:
    """The camera of a node, and robot_from_camera (4, 4).

    Pictures are rectified for RTAB-Map, so P is their camera; where there is none, K is, with its distortion.

    Raises:
        FrameError: no calibration of one camera with its place on the robot.
    """
    if not isinstance(data, bytes) or len(data) < _HEAD.size:
        raise FrameError(where, "no calibration", "that of one camera", "Map again with a recent version of RTAB-Map.")
    *_, kind, width, height, k, d, r, p, local = _HEAD.unpack_from(data)
    whole = _HEAD.size + 8 * (k + d + r + p) + 4 * local
    known = k in (0, 9) and d in (0, 4, 5, 8) and r in (0, 9) and p in (0, 12) and local == 12
    if kind != 0 or not known or not (k or p) or len(data) != whole:
        found = f"a calibration of {len(data)} bytes, type {kind}, {k}, {d}, {r}, {p} and {local} numbers"
        raise FrameError(where, found, "that of one camera with depth", "Stereo, fisheye and several are not read.")
    numbers = tuple(np.frombuffer(data, "<f8", k + d + r + p, _HEAD.size).tolist())
    P, D = numbers[k + d + r :], numbers[k : k + d]
    if p and P[0]:
        values, D = (P[0], P[5], P[2], P[6]), ()
    else:
        values = (numbers[0], numbers[4], numbers[2], numbers[5]) if k else (0.0, 0.0, 0.0, 0.0)
    size = (width, height) if width > 0 and height > 0 else None
    return StatedIntrinsics(values, D if any(D) else (), size), take_pose(data[-_POSE_BYTES:], where)


def read_optimised(database: sqlite3.Connection, where: Path, issues: list[Issue]) -> dict[int, bytes]:
    """The poses of nodes after the graph was optimised, 48 bytes each; none where there are none that are whole."""
    try:
        row = database.execute("SELECT opt_ids, opt_poses FROM Admin").fetchone() or (None, None)
        if not all(row):
            return {}
        ids, poses = np.frombuffer(_unpack(row[0], where), "<i4"), _unpack(row[1], where)
        if len(poses) != _POSE_BYTES * len(ids):
            raise FrameError(where, f"{len(poses)} bytes of optimised poses for {len(ids)} nodes", "48 bytes each")
    except sqlite3.Error:  # of an old version
        return {}
    except FrameError as problem:
        issues.append(Issue("", "bad_pose", f"{problem} Poses of odometry are used."))
        return {}
    return {int(node): poses[_POSE_BYTES * i : _POSE_BYTES * (i + 1)] for i, node in enumerate(ids)}


def _unpack(data: object, where: object) -> bytes:
    """The bytes of a matrix that is packed by zlib and followed by its rows, columns and type. Raises FrameError."""
    try:
        rows, columns, _ = struct.unpack("<3i", data[-12:])  # type: ignore[index]
        whole = min(4 * rows * columns, _MAX_UNPACKED)
        unpacked = zlib.decompressobj().decompress(data[:-12], max(whole, 0) + 1)  # type: ignore[index]
    except (TypeError, struct.error, zlib.error) as problem:
        raise FrameError(where, f"no packed matrix ({problem})", "zlib and three int32") from problem
    if len(unpacked) != 4 * rows * columns:
        raise FrameError(where, f"{len(unpacked)} bytes or more", f"a matrix of {rows}x{columns}, as it states")
    return unpacked


class Pictures:
    """Color and depth of the nodes of a database, of the sizes of the first sound ones among `numbers`.

    Raises:
        SceneError: none is sound, or depth is in a form that is not read.
    """

    def __init__(self, database: sqlite3.Connection, path: Path, layout: FileLayout, numbers: Sequence[int]) -> None:
        self._database, self._path, self._layout = database, path, layout
        problems: list[FrameError] = []
        for number in numbers[:_TRIED]:
            try:
                color = files.read_picture_header(*self._read("image", number))
                data, where = self._read("depth", number)
                if data.startswith(b"DEPTHRVL"):
                    raise SceneError(path, "depth packed as RVL", "PNG", _EXPORT)
                depth = files.read_picture_header(data, where)
                check_aspect(depth.size, color.size, where, FrameError)
                self.color_size, self.depth_size = color.size, depth.size
                return
            except FrameError as problem:
                problems.append(problem)
        raise SceneError(path, f"no sound pictures ({problems[0]})", "JPEG of color and PNG of depth")

    def read_color(self, number: int) -> ColorArray:
        """(H, W, 3) uint8 RGB. Raises FrameError."""
        return files.decode_image_rgb(*self._read("image", number), self.color_size)

    def read_encoded(self, number: int) -> bytes | None:
        """The picture of color as stored where viewers show it so, else None. Raises FrameError."""
        return files.keep_plain(*self._read("image", number), self.color_size)

    def read_depth(self, number: int) -> DepthArray:
        """(h, w) float32 meters, 0 where unknown. Raises FrameError."""
        data, where = self._read("depth", number)
        if files.read_picture_header(data, where).channels != _FLOAT_CHANNELS:
            return convert_depth(files.decode_depth_u16(data, where, self.depth_size), self._layout)
        meters = self._layout.model_copy(update={"depth_per_meter": 1.0, "depth_unknown": (0.0,)})
        return convert_depth(files.decode_depth_f32(data, where, self.depth_size), meters)

    def _read(self, column: Literal["image", "depth"], number: int) -> tuple[bytes, str]:
        """The bytes of a picture, and where they stand. Raises FrameError."""
        where = f"{self._path}: {column} {number}"
        try:
            row = self._database.execute(f"SELECT {column} FROM Data WHERE id = ?", (number,)).fetchone()
        except sqlite3.Error as problem:
            raise FrameError(where, f"unreadable ({problem})", "its bytes") from problem
        if row is None or not isinstance(row[0], bytes):
            raise FrameError(where, "no bytes", "a picture")
        return row[0], where
