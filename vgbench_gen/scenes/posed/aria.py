"""Aria Digital Twin: the color camera of the glasses, with depth and poses of the twin.

Source: `facebookresearch/projectaria_tools`, the page "ADT data format", and `core/calibration`. `aria_trajectory.csv`
has `world_from_device`; where the camera sits on the device, and its fisheye lens, stand in video.vrs. Depth is z in
millimeters on the grid of the fisheye picture. Pictures and depth become those of a pinhole camera.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, parse_matrix
from vgbench_gen.scenes.posed.aria_objects import read_objects
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pairing import match_keys
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.poses import read_columns
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.posed.vrs import Fisheye, VrsStream
from vgbench_gen.scenes.promised import try_to_read

_COLOR, _DEPTH = "214-1", "345-1"  # ids of streams; depth says in its description whose it is
_ROW = ("tracking_timestamp_us", *(f"t{axis}_world_device" for axis in "xyz"), *(f"q{c}_world_device" for c in "xyzw"))
_FILES = ("video.vrs", "depth_images.vrs", "aria_trajectory.csv")


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with video.vrs. Raises SceneError."""
    issues: list[Issue] = []
    video, twin, table = (inside(folder, folder / name) for name in _FILES)
    times_s, world_from_device = _read_trajectory(table)
    color, depth = VrsStream(video, [_COLOR]), VrsStream(twin, [_COLOR, _DEPTH])
    if depth.size != color.size:
        raise SceneError(twin, f"depth of {depth.size} pixels", f"{color.size}, those of color")
    fisheye = Fisheye(color.read_calibration("camera-rgb"), video)
    with_pose = match_keys(color.times_s, times_s, layout.max_gap_s)
    with_depth = match_keys(color.times_s, depth.times_s, layout.max_gap_s)
    records = []
    for i, time_s in enumerate(color.times_s.tolist()):
        name = str(round(time_s * 1e9))
        if i not in with_pose or i not in with_depth:
            reason = "incomplete" if i in with_pose else "pose_missing"
            issues.append(Issue(name, reason, f"picture {i} has no pose or no depth within {layout.max_gap_s:g} s"))
            continue
        see, read = partial(_read_color, color, i, fisheye), partial(_read_depth, depth, with_depth[i], fisheye, layout)
        stored = world_from_device[with_pose[i]] @ fisheye.device_from_camera
        records.append(StoredFrame(name, time_s, fisheye.lens, see, None, None, color.size, read, stored))
    up = np.array(layout.up or (0.0, 1.0, 0.0))
    objects = try_to_read(issues, partial(read_objects, folder, up, issues), "no boxes") or ()
    digest: list[tuple[object, ...]] = [(path.name, path.stat().st_size) for path in (video, twin, table)]
    done = ExitStack()
    done.callback(color.close)
    done.callback(depth.close)
    how = f"{len(records)} poses by time"
    return StoredRecording(layout, records, len(color.times_s), issues, digest, how, "", objects, done.close)


def _read_trajectory(path: Path) -> tuple[FloatArray, FloatArray]:
    words = read_columns(path, _ROW)
    rows = np.array([parse_matrix(" ".join(row), path, [(8,)], SceneError) for row in words]).reshape(-1, 8)
    sound = np.isfinite(rows).all(axis=1) & (abs(np.linalg.norm(rows[:, 4:], axis=1) - 1) < 0.02)
    rows = rows[sound][np.argsort(rows[sound, 0])]
    return rows[:, 0] / 1e6, make_pose(Rotation.from_quat(rows[:, 4:]).as_matrix(), rows[:, 1:4])


def _read_color(stream: VrsStream, i: int, fisheye: Fisheye) -> ColorArray:
    return np.asarray(fisheye.undistort(stream.read(i, 3)), np.uint8)


def _read_depth(stream: VrsStream, i: int, fisheye: Fisheye, layout: FileLayout) -> DepthArray:
    return convert_depth(fisheye.undistort(stream.read(i, 1)), layout)
