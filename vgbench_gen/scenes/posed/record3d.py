"""Record3D: pictures by the number of a frame and a list of poses, as a folder with EXR or as its own archive `.r3d`.

Source: `marek-simonik/record3d`, issues 7, 27, 30, 33, 36, 43, 63, 67, 83 and 108. The list has a row for each number
of a frame; some numbers have no pictures. Depth of an archive is LZFSE of float32 meters, row by row, and older
archives do not say its size; confidence is LZFSE of bytes 0, 1, 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes._lazy_frame import check_aspect, make_color_readers
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import MAX_PIXELS, parse_matrix, read_first, read_json, read_picture, read_picture_header
from vgbench_gen.scenes.posed.archive import Archive, measure_lzfse, unpack_lzfse
from vgbench_gen.scenes.posed.cameras import take_mapping, take_numbers
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth, make_depth_reader, read_depth_size
from vgbench_gen.scenes.posed.poses import make_quaternion_pose
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import index_by_number, list_files

_MAX_TIME_S = 1e12
_LEAST_TURN = 1e-3  # of a quaternion: a tenth of a degree

_Reader = Callable[[Path], bytes]


def read_recording(path: Path, layout: FileLayout) -> StoredRecording:
    """The recording of an archive, or of a folder with `metadata.json`, `rgb` and `depth`. Raises SceneError."""
    if path.is_dir():
        issues: list[Issue] = []
        listed = {path / kind: list_files(path, path / kind, issues) for kind in ("rgb", "depth")}
        sizes = {place / name: size for place, of in listed.items() for name, size in of.items()}
        return _read(path, read_json(path / "metadata.json", path), sizes, read_picture, layout, issues)
    archive = Archive(path)
    with close_if_raised(archive.close):
        stated = read_first(archive.read, [path / "metadata"], path, "the list of poses", "Export it again.")
        recording = _read(path, read_json(stated, path), archive.sizes, archive.read, layout, [])
        recording.close = archive.close
        return recording


def _read(
    path: Path, stated: Any, sizes: Mapping[Path, int], read: _Reader, layout: FileLayout, issues: list[Issue]
) -> StoredRecording:
    """sizes: of the files and members, in bytes. read: gives the bytes of one."""
    stated = stated if isinstance(stated, dict) else {}
    poses, times, coefficients = (
        found if isinstance(found := stated.get(name), list) else []
        for name in ("poses", "frameTimestamps", "perFrameIntrinsicCoeffs")
    )
    if not poses:
        raise SceneError(path, "no list `poses`", "the list that Record3D writes", "Export the recording again.")
    if len(poses) > 1 and all(pose == poses[0] for pose in poses):
        remedy = "The front camera has none: record with LiDAR."
        raise SceneError(path, f"{len(poses)} poses that are all the same", "those of the LiDAR camera", remedy)
    is_archive = read is not read_picture
    colors, depths, sure = (_index(sizes, suffix) for suffix in (".jpg", ".depth" if is_archive else ".exr", ".conf"))
    numbers = sorted(colors.keys() & depths.keys())
    if not numbers:
        found = f"{len(poses)} poses, and {len(colors)} pictures of color and {len(depths)} of depth"
        remedy = "The list of poses alone cannot be used: export the recording again with its pictures."
        raise SceneError(path, found, "pictures of both with the same numbers", remedy)
    for number in sorted(colors.keys() ^ depths.keys()):
        lacks = "color" if number in depths else "depth"
        issues.append(Issue(str(number), "incomplete", f"frame {number} has no {lacks}"))
    measure = partial(_measure, read)
    color, depth = read_first(measure, [(colors[i], depths[i]) for i in numbers], path, "a frame with both")
    fixed = take_mapping({key: stated[key] for key in ("K", "w", "h") if key in stated}, path)
    records: list[StoredFrame] = []
    for number in numbers:
        where = f"{path}: frame {number}"
        try:
            if number >= len(poses):
                raise PoseError(where, f"a list of {len(poses)} poses", "one for each number")
            pose = parse_matrix(poses[number], where, [(7,)], PoseError)  # qx qy qz qw x y z
            intrinsics = fixed
            if number < len(coefficients):
                values = parse_matrix(coefficients[number], where, [(4,)]).tolist()
                intrinsics = take_numbers(values, where, fixed.size)
            lens = intrinsics.make_lens(color, layout.first_pixel, where)
            time = times[number] if number < len(times) else None
            records.append(StoredFrame(
                str(number), float(time) if isinstance(time, int | float) and abs(time) < _MAX_TIME_S else None, lens,
                *make_color_readers(colors[number], color, read), None, depth,
                partial(_read_depth, read, depths[number], sure.get(number), depth, layout) if is_archive
                else make_depth_reader(depths[number], depth, layout, None),
                make_quaternion_pose(pose[:4], pose[4:], where),
            ))  # fmt: skip
        except FormatError as problem:
            reason = "bad_pose" if isinstance(problem, PoseError) else "unusable_file"
            issues.append(Issue(str(number), reason, str(problem)))
    # Where the list begins without any turn, the app set its world to the first camera.
    turn = poses[0][:3] if isinstance(poses[0], list) else []
    if all(isinstance(value, int | float) and abs(value) < _LEAST_TURN for value in turn):
        layout = layout.model_copy(update={"up": None})
    pairing, total = f"{len(records)} of {len(poses)} poses by number", len(colors.keys() | depths.keys())
    digest = [(str(file.relative_to(path)), size) for file, size in sizes.items()]
    return StoredRecording(layout, records, total, issues, [*digest], pairing, "xyzw")


def _index(files: Mapping[Path, int], suffix: str) -> dict[int, Path]:
    named = {file.name: file for file in files if file.name.endswith(suffix)}
    return {number: named[name] for number, name in index_by_number(named, suffix).items()}


def _measure(read: _Reader, pair: tuple[Path, Path]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of a picture of color and of its depth. Raises FrameError."""
    color, depth = pair
    width, height = size = read_picture_header(read(color), color).size
    if depth.suffix == ".exr":
        columns, rows = read_depth_size(depth)
        check_aspect((columns, rows), size, depth, FrameError)
        return size, (columns, rows)
    count = measure_lzfse(read(depth), depth) // 4
    columns = round(math.sqrt(count * width / height))
    rows = count // max(columns, 1)
    if columns * rows != count or not 0 < count <= MAX_PIXELS:
        raise FrameError(depth, f"{count} values", f"the shape of {width}x{height}")
    return size, (columns, rows)


def _read_depth(read: _Reader, path: Path, sure: Path | None, size: tuple[int, int], layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters of an archive, 0 where unknown or unsure. Raises FrameError."""
    depth_m = convert_depth(unpack_lzfse(read(path), "<f4", size, path), layout)
    if sure is not None:
        depth_m[unpack_lzfse(read(sure), "u1", size, sure) < layout.confidence_min] = 0
    return depth_m
