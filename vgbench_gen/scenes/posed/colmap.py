"""Dense workspaces of COLMAP: a sparse model, pictures, and depth maps of the stereo that a second pass has cleaned.

Source: `colmap/colmap`, `doc/format.rst` and `scripts/python/read_write_dense.py`. A depth map is `w&h&c&` and float32
row by row; 0 is unknown. The model has a scale of its own.
"""

from __future__ import annotations

from pathlib import Path

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.geometry.poses import invert
from vgbench_gen.scenes._colmap_binary import read_binary_model
from vgbench_gen.scenes._lazy_frame import check_aspect
from vgbench_gen.scenes._scannetpp_poses import PoseSource, read_model
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, open_regular
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, make_recording
from vgbench_gen.scenes.posed.pixels import read_depth_size
from vgbench_gen.scenes.posed.records import StoredRecording


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `sparse`, `images` and `stereo`. Raises SceneError."""
    model = _read_sparse(folder)
    issues, entries = model.problems, []
    total = len(model.poses) + len({issue.frame_id for issue in issues} - {""})
    for name, pose in sorted(model.poses.items()):
        try:
            color = inside(folder, f"images/{name}", FrameError)
            depth = inside(folder, f"stereo/depth_maps/{name}.geometric.bin", FrameError)
            lens = model.lenses[pose.camera_id]
            open_regular(color, color, FrameError).close()
            check_aspect(read_depth_size(depth), lens.camera.size, depth, FrameError)
            values, size = (lens.fx, lens.fy, lens.cx, lens.cy), lens.camera.size
            intrinsics = StatedIntrinsics(values, lens.distortion, size, lens.kind == "fisheye")
            stored = invert(pose.world_from_camera)
            entries.append(ListedFrame(name, None, color, depth, None, intrinsics, stored))
        except FormatError as problem:
            issues.append(Issue(name, "incomplete", str(problem)))
    recording = make_recording(folder, layout, entries, total, issues)
    recording.pairing, recording.order = f"{len(model.poses)} poses by name", "wxyz"
    return recording


def _read_sparse(folder: Path) -> PoseSource:
    for place in (inside(folder, folder / "sparse" / name) for name in ("", "0")):
        if (place / "images.bin").is_file():
            return read_binary_model(place)
        if (place / "images.txt").is_file():
            return read_model(place, str(place), str)
    raise SceneError(folder / "sparse", "no images.bin or images.txt", "a sparse model", "Run image_undistorter.")
