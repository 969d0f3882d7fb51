"""Databases of RTAB-Map: SQLite with poses, JPEG and PNG.

Source: `introlab/rtabmap`, `resources/DatabaseSchema.sql.in` and
`corelib/src/{CameraModel,Compression,DBDriverSqlite3}.cpp`. Poses are of the robot; the calibration says where its
camera stands in it.
"""

from __future__ import annotations

import itertools
import sqlite3
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import DepthArray, FloatArray
from vgbench_gen.scenes import files
from vgbench_gen.scenes._lazy_frame import check_aspect, make_color_readers
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.poses import complete_matrix
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import list_files

_ROWS = (
    "SELECT Node.id, stamp, map_id, CASE WHEN length(pose) = 48 THEN pose END, "
    "CASE WHEN length(calibration) < 10000 THEN calibration END, length(image) AND length(depth) "
    "FROM Node LEFT JOIN Data ON Node.id = Data.id ORDER BY Node.id"
)
_EXPORT = "Run rtabmap-export --images_id --poses_camera --poses_format 11 on it, and give what it writes."
_MAX_NODES = 200_000  # an hour of mapping has some thousands
_MAX_STEPS = 1000  # of a million instructions: a view or a column that computes may go on for ever
_MAX_UNPACKED = 64_000_000
_POSE_BYTES, _HEAD = 48, struct.Struct("<11i")  # version (3), type, width, height, numbers in K, D, R, P and local
_FLOAT_CHANNELS = 4  # of a PNG whose bytes are floats


def read_recording(path: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a database, or of a folder with one. Raises SceneError."""
    if path.is_dir():
        names = [name for name in list_files(path, path, []) if name.endswith(".db")]
        if len(names) != 1:
            raise SceneError(path, f"{len(names)} files .db", "one")
        path = path / names[0]
    database = open_database(path)
    with close_if_raised(database.close):
        issues: list[Issue] = []
        try:
            rows = [row for row in database.execute(_ROWS).fetchmany(_MAX_NODES) if isinstance(row[0], int)]
        except sqlite3.Error as problem:
            raise SceneError(path, f"a damaged database ({problem})", "a whole one") from problem
        whole = {row[0]: row[2] for row in rows if row[5]}
        if not whole:
            remedy = "Map again with Mem/BinDataKept on, from the recording of the camera."
            raise SceneError(path, f"{len(rows)} poses without pictures of color and depth", "both", remedy)
        optimised = _read_optimised(database, path, issues)
        read = partial(_read_blob, database)
        measure = partial(_measure, read, path)
        color, depth = files.read_first(measure, whole, path, "JPEG of color and PNG of depth", _EXPORT)
        # Each session has a world of its own until they are optimised together.
        best = Counter(whole.values()).most_common(1)[0][0]
        records: list[StoredFrame] = []
        for number, stamp_s, map_id, pose, calibration, has_pictures in rows:
            where = f"{path}: node {number}"
            pose = optimised.get(number) if optimised else pose if map_id == best else None
            if not has_pictures:
                issues.append(Issue(str(number), "incomplete", f"{where} lacks color or depth"))
            elif pose is None:
                issues.append(Issue(str(number), "pose_missing", f"{where} lacks a pose in the world of the others"))
            else:
                try:
                    intrinsics, robot_from_camera = _read_model(calibration, where)
                    records.append(StoredFrame(
                        str(number), stamp_s if isinstance(stamp_s, float) and stamp_s > 0 else None,
                        intrinsics.make_lens(color, layout.first_pixel, where),
                        *make_color_readers(path / f"image {number}", color, read), None, depth,
                        partial(_read_depth, read, path / f"depth {number}", depth, layout),
                        _take_pose(pose, where) @ robot_from_camera,
                    ))  # fmt: skip
                except FormatError as problem:
                    issues.append(Issue(str(number), "unusable_file", str(problem)))
        how = f"{len(records)} poses {'of the optimised graph' if optimised else 'of odometry'}"
        digest = (path.name, path.stat().st_size)
        return StoredRecording(layout, records, len(whole), issues, [digest], how, close=database.close)


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


def _read_optimised(database: sqlite3.Connection, where: Path, issues: list[Issue]) -> dict[int, bytes]:
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


def _take_pose(data: bytes, where: object) -> FloatArray:
    """(4, 4) of 12 float32, row by row. Raises PoseError."""
    return complete_matrix(np.frombuffer(data, "<f4").reshape(3, 4).astype(np.float64), where)


def _read_model(data: object, where: object) -> tuple[StatedIntrinsics, FloatArray]:
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
    from_P = p and (P[0] or not k)
    values = (P[0], P[5], P[2], P[6]) if from_P else (numbers[0], numbers[4], numbers[2], numbers[5])
    size = (width, height) if width > 0 and height > 0 else None
    return StatedIntrinsics(values, () if from_P or not any(D) else D, size), _take_pose(data[-_POSE_BYTES:], where)


def _read_blob(database: sqlite3.Connection, place: Path) -> bytes:
    """The bytes of a picture by its column and node, as in `map.db/image 7`. Raises FrameError."""
    column, number = place.name.split()
    try:
        row = database.execute(f"SELECT {column} FROM Data WHERE id = ?", (int(number),)).fetchone()
    except sqlite3.Error as problem:
        raise FrameError(place, f"unreadable ({problem})", "its bytes") from problem
    if row is None or not isinstance(row[0], bytes):
        raise FrameError(place, "no bytes", "a picture")
    return row[0]


def _measure(read: Callable[[Path], bytes], path: Path, number: int) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of color and of depth of a node. Raises FrameError."""
    color, depth = (
        files.read_picture_header(read(place), place).size
        for place in (path / f"image {number}", path / f"depth {number}")
    )
    check_aspect(depth, color, path, FrameError)
    return color, depth


def _read_depth(read: Callable[[Path], bytes], place: Path, size: tuple[int, int], layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters, 0 where unknown. Raises FrameError."""
    data = read(place)
    if files.read_picture_header(data, place).channels != _FLOAT_CHANNELS:
        return convert_depth(files.decode_depth_u16(data, place, size), layout)
    meters = layout.model_copy(update={"depth_per_meter": 1.0, "depth_unknown": (0.0,)})
    return convert_depth(files.decode_depth_f32(data, place, size), meters)
