"""Dense workspaces of COLMAP: a sparse model, pictures, and depth maps of the stereo that a second pass has cleaned.

Source: `colmap/colmap`, `doc/format.rst` and `scripts/python/read_write_dense.py`. A depth map is `w&h&c&` and float32
row by row; 0 is unknown. The model has a scale of its own.
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.geometry.poses import invert
from vgbench_gen.scenes._colmap_binary import read_binary_model
from vgbench_gen.scenes._lazy_frame import check_aspect, make_color_readers
from vgbench_gen.scenes._scannetpp_poses import PoseSource, read_model
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import MAX_PIXELS, inside, open_regular, read_bytes, read_file_header
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording

_HEAD, _HEAD_BYTES = re.compile(rb"(\d{1,6})&(\d{1,6})&1&"), 32


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `sparse`, `images` and `stereo`. Raises SceneError."""
    model = _read_sparse(folder)
    total = len(model.poses) + len({issue.frame_id for issue in model.problems} - {""})
    sizes: dict[int | None, tuple[int, int]] = {}
    issues, records = model.problems, []
    digest: list[tuple[object, ...]] = []
    for name, pose in sorted(model.poses.items()):
        try:
            color = inside(folder, f"images/{name}", FrameError)
            depth = inside(folder, f"stereo/depth_maps/{name}.geometric.bin", FrameError)
            lens = model.lenses[pose.camera_id]
            if pose.camera_id not in sizes:  # pictures may be smaller than those that the model was made of
                sizes[pose.camera_id] = read_file_header(color).size
            size, depth_size = sizes[pose.camera_id], read_map_size(depth)
            check_aspect(size, (lens.width, lens.height), color, FrameError)
            check_aspect(depth_size, (lens.width, lens.height), depth, FrameError)
            readers, read = make_color_readers(color, size), partial(_read_map, depth, depth_size)
            stored = invert(pose.world_from_camera)
            digest.append((name, color.stat().st_size, depth.stat().st_size))
            records.append(StoredFrame(name, None, lens.resized(*size), *readers, None, depth_size, read, stored))
        except (FormatError, OSError) as problem:
            issues.append(Issue(name, "incomplete", str(problem)))
    return StoredRecording(layout, records, total, issues, digest, f"{len(model.poses)} poses by name", "wxyz")


def _read_sparse(folder: Path) -> PoseSource:
    for place in (inside(folder, folder / "sparse" / name) for name in ("", "0")):
        if (place / "images.bin").is_file():
            return read_binary_model(place)
        if (place / "images.txt").is_file():
            return read_model(place, str(place), str)
    raise SceneError(folder / "sparse", "no images.bin or images.txt", "a sparse model", "Run image_undistorter.")


def read_map_size(path: Path) -> tuple[int, int]:
    """(width, height) of a depth map, from its header and the size of the file. Raises FrameError."""
    with open_regular(path, path, FrameError) as file:
        found = _HEAD.match(file.read(_HEAD_BYTES))
        size = file.seek(0, 2)
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    if not found or not 0 < width * height <= MAX_PIXELS or size != found.end() + 4 * width * height:
        raise FrameError(path, f"{size} bytes that begin {found[0] if found else b''!r}", "`w&h&1&` and w*h floats")
    return width, height


def _read_map(path: Path, size: tuple[int, int]) -> DepthArray:
    if read_map_size(path) != size:
        raise FrameError(path, "another size than when it was opened", f"{size[0]}x{size[1]}", "Open the scene again.")
    count, data = size[0] * size[1], read_bytes(path, path, _HEAD_BYTES + 4 * MAX_PIXELS, FrameError)
    values = np.frombuffer(data[-4 * count :], "<f4").reshape(size[::-1])
    return np.where(np.isfinite(values) & (values > 0), values, 0).astype(np.float32)
