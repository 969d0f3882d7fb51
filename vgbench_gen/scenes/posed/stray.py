"""Stray Scanner: a video, a table of poses with a row a frame of it, and pictures of depth and confidence.

Source: `strayrobots/scanner`, the format page of its docs and StrayScanner/Helpers; `strayrobots/StrayVisualizer`,
issue 8. Pixels are the sensor's, so captures held upright lie on their side. The camera matrix is that of the last
frame; since April 2026 each row has its own.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.scenes._lazy_frame import check_aspect
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import read_intrinsics, take_numbers
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import make_depth_reader, read_first_depth_size
from vgbench_gen.scenes.posed.poses import read_poses
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import index_by_number, list_files
from vgbench_gen.scenes.video import SeekableVideo


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `rgb.mp4` and `odometry.csv`. Raises SceneError."""
    issues: list[Issue] = []
    table, matrix = folder / "odometry.csv", folder / "camera_matrix.csv"
    rows, order = read_poses(table, layout.pose_columns, issues)
    sizes = {kind: list_files(folder, folder / kind, issues) for kind in ("depth", "confidence")}
    # Older captures have depth as NumPy arrays.
    depths, sure = (index_by_number(sizes[kind], ".png", ".npy") for kind in ("depth", "confidence"))
    fixed = read_intrinsics(matrix) if matrix.is_file() else None
    depth_size = read_first_depth_size([folder / "depth" / name for name in depths.values()], folder / "depth")
    video = SeekableVideo(folder / "rgb.mp4", f"{folder.name}/rgb.mp4")
    with close_if_raised(video.close):
        size = video.width, video.height
        check_aspect(depth_size, size, folder / "depth")
        # A thinned table keeps the numbers of its frames.
        by_place = rows[-1].place + 1 == video.count
        records = []
        for row in rows:
            number = row.place if row.id is None else row.id
            index = row.place if by_place else number
            name = f"{number:06d}"
            try:
                if number not in depths:
                    issues.append(Issue(name, "incomplete", f"frame {name} has no depth"))
                    continue
                if 0 < video.count <= index:
                    raise FrameError(f"{video.where} frame {index}", f"a video of {video.count} frames", "one a row")
                intrinsics = take_numbers(row.intrinsics, row.where) if row.intrinsics else fixed
                if intrinsics is None:
                    raise SceneError(row.where, "no intrinsics", "columns fx, fy, cx, cy, or camera_matrix.csv")
                unsure = folder / "confidence" / sure[number] if number in sure else None
                records.append(StoredFrame(
                    name, row.time_s, intrinsics.make_lens(size, layout.first_pixel, row.where),
                    partial(video.rgb, index), None, None, depth_size,
                    make_depth_reader(folder / "depth" / depths[number], depth_size, layout, unsure), row.stored,
                ))  # fmt: skip
            except FormatError as problem:
                issues.append(Issue(name, "unusable_file", str(problem)))
        digest: list[tuple[object, ...]] = [(kind, *item) for kind, of in sizes.items() for item in of.items()]
        digest.append(("rgb.mp4", video.path.stat().st_size))
        pairing = f"{len(records)} frames by {'row' if by_place else 'number'}"
        total = max(video.count, len(rows))
        return StoredRecording(layout, records, total, issues, digest, pairing, order, close=video.close)
