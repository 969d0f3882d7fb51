"""Databases of RTAB-Map: SQLite with poses, JPEG and PNG.

Source: `introlab/rtabmap`, `resources/DatabaseSchema.sql.in`. Poses are of the robot; the calibration says where its
camera stands in it.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from functools import partial
from pathlib import Path

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.posed.rtabmap_blobs import Pictures, open_database, read_model, read_optimised, take_pose
from vgbench_gen.scenes.promised import list_files

_ROWS = (
    "SELECT Node.id, stamp, map_id, CASE WHEN length(pose) = 48 THEN pose END, "
    "CASE WHEN length(calibration) < 10000 THEN calibration END, length(image) AND length(depth) "
    "FROM Node LEFT JOIN Data ON Node.id = Data.id ORDER BY Node.id"
)
_MAX_NODES = 200_000  # an hour of mapping has some thousands


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
            rows = database.execute(_ROWS).fetchmany(_MAX_NODES)
        except sqlite3.Error as problem:
            raise SceneError(path, f"a damaged database ({problem})", "a whole one") from problem
        whole = {row[0]: row[2] for row in rows if row[5]}
        if not whole:
            remedy = "Map again with Mem/BinDataKept on, from the recording of the camera."
            raise SceneError(path, f"{len(rows)} poses without pictures of color and depth", "both", remedy)
        optimised = read_optimised(database, path, issues)
        pictures = Pictures(database, path, layout, list(whole))
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
                    intrinsics, robot_from_camera = read_model(calibration, where)
                    records.append(StoredFrame(
                        str(number), stamp_s if isinstance(stamp_s, float) and stamp_s > 0 else None,
                        intrinsics.make_lens(pictures.color_size, layout.first_pixel, where),
                        partial(pictures.read_color, number), partial(pictures.read_encoded, number),
                        None, pictures.depth_size, partial(pictures.read_depth, number),
                        take_pose(pose, where) @ robot_from_camera,
                    ))  # fmt: skip
                except FormatError as problem:
                    issues.append(Issue(str(number), "unusable_file", str(problem)))
        how = f"{len(records)} poses {'of the optimised graph' if optimised else 'of odometry'}"
        digest: list[tuple[object, ...]] = [(path.name, path.stat().st_size)]
        return StoredRecording(layout, records, len(whole), issues, digest, how, close=database.close)
