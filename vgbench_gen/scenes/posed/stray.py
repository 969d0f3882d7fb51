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
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import read_intrinsics, take_numbers
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, make_recording
from vgbench_gen.scenes.posed.poses import read_poses
from vgbench_gen.scenes.posed.records import StoredRecording
from vgbench_gen.scenes.promised import index_by_number, list_files
from vgbench_gen.scenes.video import SeekableVideo


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `rgb.mp4` and `odometry.csv`. Raises SceneError."""
    issues: list[Issue] = []
    matrix = folder / "camera_matrix.csv"
    rows, order = read_poses(folder / "odometry.csv", layout.pose_columns, issues)
    # Older captures have depth as NumPy arrays.
    depths, unsure = (
        {number: folder / kind / name for number, name in index_by_number(names, ".png", ".npy").items()}
        for kind in ("depth", "confidence")
        for names in [list_files(folder, folder / kind, issues)]
    )
    fixed = read_intrinsics(matrix) if matrix.is_file() else None
    video = SeekableVideo(folder / "rgb.mp4", f"{folder.name}/rgb.mp4")
    with close_if_raised(video.close):
        # A thinned table keeps the numbers of its frames.
        by_place = rows[-1].place + 1 == video.count
        entries = []
        for row in rows:
            number = row.place if row.id is None else row.id
            name = f"{number:06.0f}"
            try:
                if number not in depths:
                    issues.append(Issue(name, "incomplete", f"frame {name}: no picture of depth"))
                    continue
                index = row.place if by_place else int(number)
                if 0 < video.count <= index:
                    raise FrameError(f"{video.where} frame {index}", f"a video of {video.count} frames", "one a row")
                intrinsics = take_numbers(row.intrinsics, row.where) if row.intrinsics else fixed
                if intrinsics is None:
                    raise SceneError(row.where, "no intrinsics", "columns fx, fy, cx, cy, or camera_matrix.csv")
                depth, read = depths[int(number)], partial(video.rgb, index)
                sure = unsure.get(int(number))
                entries.append(
                    ListedFrame(name, row.time_s, video.path, depth, sure, intrinsics, row.stored, read=read)
                )
            except FormatError as problem:
                issues.append(Issue(name, "unusable_file", str(problem)))
        total = max(video.count, len(rows))
        recording = make_recording(folder, layout, entries, total, issues, (video.width, video.height))
    recording.pairing = f"{len(recording.records)} frames by {'row' if by_place else 'number'}"
    recording.order, recording.close = order, video.close
    return recording
