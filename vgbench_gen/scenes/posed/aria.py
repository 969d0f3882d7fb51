"""Aria Digital Twin: the color camera of the glasses, with depth and poses of the twin, by projectaria-tools.

Source: `facebookresearch/projectaria_tools`, the page "ADT data format", and `core/calibration`. `aria_trajectory.csv`
has `world_from_device`; where the camera sits on the device, and its fisheye lens, stand in video.vrs. Depth is z in
millimeters on the grid of the fisheye picture. Pictures and depth become those of a pinhole camera.

`3d_bounding_box.csv` has the limits of each box in the frame of its object, `scene_objects.csv` has world_from_object
with the quaternion's w first; both once with the time -1 for what does not change, else once a frame.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial.transform import Rotation

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import DepthArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes._lens import Lens
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.files import MAX_PIXELS, inside, open_regular, parse_matrix, read_json
from vgbench_gen.scenes.posed.boxes import MAX_OBJECTS, collect_objects, make_box
from vgbench_gen.scenes.posed.extras import need
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pairing import match_nearest
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.poses import read_columns
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import try_to_read

_COLOR = "214-1"  # the id of the stream, which that of its depth has as description
_ROW = ("tracking_timestamp_us", *(f"t{axis}_world_device" for axis in "xyz"), *(f"q{c}_world_device" for c in "xyzw"))
_FILES = ("video.vrs", "depth_images.vrs", "aria_trajectory.csv")
_LIMITS = ("object_uid", *(f"p_local_obj_{axis}{end}[m]" for axis in "xyz" for end in ("min", "max")))
_OBJECT_POSE = ("object_uid", *(f"t_wo_{axis}[m]" for axis in "xyz"), *(f"q_wo_{part}" for part in "wxyz"))
_SETTLED_M, _SETTLED_RAD = 0.01, float(np.radians(1.0))  # what moves and turns by less lies still
_MAX_NORM_ERROR = 0.02  # of a quaternion
_BUILDING = ("shelter",)  # the shell of the rooms

_Rows = dict[str, list[tuple[str, ...]]]
_Pixels = npt.NDArray[Any]
_Undistort = Callable[[_Pixels], _Pixels]


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with video.vrs. Raises SceneError."""
    issues: list[Issue] = []
    core = need("projectaria_tools.core", "aria")
    video, twin, table = (inside(folder, folder / name) for name in _FILES)
    times_s, world_from_device = _read_trajectory(table)
    color, depth = _Stream(core, video), _Stream(core, twin)
    if depth.size != color.size:
        raise SceneError(twin, f"depth of {depth.size} pixels", f"{color.size}, those of color")
    calibration = color.read_calibration("camera-rgb")
    lens, undistort = _make_pinhole(core, calibration, video)
    device_from_camera = np.array(calibration.get_transform_device_camera().to_matrix(), np.float64)
    with_pose = match_nearest(color.times_s, times_s, layout.max_gap_s)
    with_depth = match_nearest(color.times_s, depth.times_s, layout.max_gap_s)
    records = []
    for i, time_s in enumerate(color.times_s.tolist()):
        name = str(round(time_s * 1e9))
        if i not in with_pose or i not in with_depth:
            reason = "incomplete" if i in with_pose else "pose_missing"
            issues.append(Issue(name, reason, f"picture {i} has no pose or no depth within {layout.max_gap_s:g} s"))
            continue
        see = partial(color.read, i, 3, undistort)
        read = partial(_read_depth, depth, with_depth[i], undistort, layout)
        stored = world_from_device[with_pose[i]] @ device_from_camera
        records.append(StoredFrame(name, time_s, lens, see, None, None, color.size, read, stored))
    up = np.array(layout.up or (0.0, 1.0, 0.0))
    objects = try_to_read(issues, partial(_read_objects, folder, up, issues), "no boxes") or ()
    digest = [(path.name, path.stat().st_size) for path in (video, twin, table)]
    done = ExitStack()
    for stream in (color, depth):
        done.callback(stream.close)
    how = f"{len(records)} poses by time"
    return StoredRecording(layout, records, len(color.times_s), issues, [*digest], how, "", objects, done.close)


def _read_trajectory(path: Path) -> tuple[FloatArray, FloatArray]:
    words = read_columns(path, _ROW)
    rows = np.array([parse_matrix(" ".join(row), path, [(8,)], SceneError) for row in words]).reshape(-1, 8)
    sound = np.isfinite(rows).all(axis=1) & (abs(np.linalg.norm(rows[:, 4:], axis=1) - 1) < _MAX_NORM_ERROR)
    rows = rows[sound][np.argsort(rows[sound, 0])]
    return rows[:, 0] / 1e6, make_pose(Rotation.from_quat(rows[:, 4:]).as_matrix(), rows[:, 1:4])


class _Stream:
    """The pictures of the color camera, or of its depth, in a VRS file.

    size: width and height in pixels. times_s: (n,) seconds of the device's clock, rising.

    Raises:
        SceneError: no readable file, or no such stream.
    """

    def __init__(self, core: Any, path: Path) -> None:
        open_regular(path, path).close()
        self.path, self._lock = path, Lock()
        try:
            with _silence():
                found = self._provider = core.data_provider.create_vrs_data_provider(str(path))  # None for other files
                kind, clock = core.sensor_data.SensorDataType.IMAGE, core.sensor_data.TimeDomain.DEVICE_TIME
                ids = [each for each in found.get_all_streams() if found.get_sensor_data_type(each) == kind]
                known = ((each, found.get_image_configuration(each)) for each in ids)
                self._id, config = next(pair for pair in known if _COLOR in (str(pair[0]), pair[1].description))
                self.times_s: FloatArray = np.array(found.get_timestamps_ns(self._id, clock), dtype=np.float64) / 1e9
        except (RuntimeError, ValueError, StopIteration, AttributeError) as problem:
            why = f"no readable stream {_COLOR} ({str(problem)[:80] or 'only others'})"
            raise SceneError(path, why, "a VRS file of Aria with it", "Download it again.") from problem
        self.size = int(config.image_width), int(config.image_height)
        if not 0 < self.size[0] * self.size[1] <= MAX_PIXELS:
            raise SceneError(path, f"{self.size[0]}x{self.size[1]} pixels", f"1 to {MAX_PIXELS} pixels")

    def read(self, i: int, channels: int, undistort: _Undistort) -> _Pixels:
        """Picture i: (H, W, 3) uint8 RGB, or (h, w) uint16 where there is one channel. Raises FrameError."""
        where = f"{self.path}, picture {i}"
        with self._lock:
            try:
                data, _ = self._provider.get_image_data_by_index(self._id, i)
                pixels = np.array(data.to_numpy_array()) if data.is_valid() else np.zeros(0)
            except (RuntimeError, ValueError, AttributeError) as problem:  # the last where the file is closed
                raise FrameError(where, f"pixels that do not decode ({str(problem)[:80]})", "a picture") from problem
        shape = self.size[::-1] if channels == 1 else (*self.size[::-1], channels)
        if pixels.shape != shape or pixels.dtype != (np.uint16 if channels == 1 else np.uint8):
            raise FrameError(where, f"pixels {pixels.shape} of {pixels.dtype}", f"{shape}")
        return undistort(pixels)

    def read_calibration(self, label: str) -> Any:
        """The calibration of a camera in the file. Raises SceneError."""
        device = self._provider.get_device_calibration()
        found = device.get_camera_calib(label) if device is not None else None
        if found is None or tuple(int(side) for side in found.get_image_size()) != self.size:
            raise SceneError(self.path, f"no calibration of {label} for its pictures", "one", "Download it again.")
        return found

    def close(self) -> None:
        """Release the file."""
        with self._lock:
            self._provider = None


def _make_pinhole(core: Any, calibration: Any, where: object) -> tuple[Lens, _Undistort]:
    """The pinhole camera of a fisheye lens, and what gives its pictures; of depth, which has one channel, the nearest.

    It is of the size of the picture, with the smallest focal length, from the lens's own on, for which the corners lie
    inside the old picture.

    Raises:
        SceneError: there is none.
    """
    width, height = (int(side) for side in calibration.get_image_size())
    cx, cy = (width - 1) / 2, (height - 1) / 2
    corners = [np.array([x * cx, y * cy, 1.0]) for x in (-1, 1) for y in (-1, 1)]
    focals = calibration.get_focal_lengths()[0] * np.linspace(1.0, 3.0, 201)
    seen = (all(calibration.project(each / (focal, focal, 1.0)) is not None for each in corners) for focal in focals)
    focal = next((float(focal) for focal, fits in zip(focals, seen, strict=True) if fits), None)
    if focal is None:
        raise SceneError(where, "a lens that no pinhole picture can be cut from", "that of a camera of Aria")
    made = core.calibration.get_linear_camera_calibration(width, height, focal)
    methods, distort = core.image.InterpolationMethod, core.calibration.distort_by_calibration
    kinds = {2: methods.NEAREST_NEIGHBOR, 3: methods.BILINEAR}
    lens = Lens("pinhole", width, height, focal, focal, cx, cy)
    return lens, lambda picture: np.asarray(distort(picture, made, calibration, kinds[picture.ndim]))


def _read_depth(stream: _Stream, i: int, undistort: _Undistort, layout: FileLayout) -> DepthArray:
    return convert_depth(stream.read(i, 1, undistort), layout)


@contextmanager
def _silence() -> Iterator[None]:
    """Nothing that is printed in the block is seen: libraries of C++ print into what is meant for other programs."""
    sys.stdout.flush()
    kept = [os.dup(1), os.dup(2)]
    with Path(os.devnull).open("wb") as nowhere:
        try:
            for number in (1, 2):
                os.dup2(nowhere.fileno(), number)
            yield
        finally:
            for number, copy in enumerate(kept, 1):
                os.dup2(copy, number)
                os.close(copy)


def _read_objects(folder: Path, up: FloatArray, issues: list[Issue]) -> list[SceneObject]:
    """Objects that lie still and have an upright box, in the world; the others are noted.

    Raises:
        SceneError: a file is missing or not what it should be.
    """
    limits, poses = (
        _group_rows(read_columns(inside(folder, folder / name), columns))
        for name, columns in (("3d_bounding_box.csv", _LIMITS), ("scene_objects.csv", _OBJECT_POSE))
    )
    path = inside(folder, folder / "instances.json")
    about = read_json(path, path)
    if not isinstance(about, dict) or len(poses) > MAX_OBJECTS:
        raise SceneError(path, f"a {type(about).__name__} for {len(poses)} objects", f"at most {MAX_OBJECTS} by uid")
    makers = ((uid, partial(_make_object, uid, limits, poses, about, up)) for uid in poses)
    return [each for each in collect_objects(makers, issues) if each.label not in _BUILDING]


def _group_rows(rows: list[tuple[str, ...]]) -> _Rows:
    found: _Rows = {}
    for uid, *values in rows:
        found.setdefault(uid, []).append(tuple(values))
    return found


def _make_object(uid: str, limits: _Rows, poses: _Rows, about: dict[str, Any], up: FloatArray) -> SceneObject:
    entry = about.get(uid)
    label = entry.get("category") if isinstance(entry, dict) else None
    if not isinstance(label, str) or len(limits.get(uid, ())) != 1:
        raise FrameError("its rows", "no category, or not one box", "both", "It is left out.")
    (low, high), each = _parse_rows(limits[uid], 6)[0].reshape(3, 2).T, _parse_rows(poses[uid], 7)
    if not (np.abs(np.linalg.norm(each[:, 3:], axis=1) - 1) <= _MAX_NORM_ERROR).all():
        raise FrameError("its pose", "a quaternion of another length than 1", "a rotation", "It is left out.")
    t, turns = each[:, :3], Rotation.from_quat(each[:, 3:], scalar_first=True)
    if np.ptp(t, axis=0).max() > _SETTLED_M or (turns[0].inv() * turns).magnitude().max() > _SETTLED_RAD:
        raise FrameError("its pose", "an object that moves", "one that lies still", "It is left out.")
    R = turns[0].as_matrix()
    return SceneObject(uid, label.strip().lower(), make_box(t[0] + R @ (low + high) / 2, high - low, R, up))


def _parse_rows(rows: list[tuple[str, ...]], count: int) -> FloatArray:
    return np.stack([parse_matrix(" ".join(row), "its row", [(count,)]) for row in rows])
