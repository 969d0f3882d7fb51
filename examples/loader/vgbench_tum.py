"""TUM RGB-D: sequences of a hand-held Kinect whose poses were measured by motion capture.

Only sequences of the third camera ("freiburg3") are read, because their images are published without distortion.
Depth is registered to colour, so both share one camera. Which way is up is not documented.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FrameError, GeometryError, PoseError, SceneError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.poses import check_pose, make_pose, quaternion_to_matrix
from vgbench_gen.scenes.base import DatasetInfo, Frame, Issue, Loader, Scene, SceneRef, loaders
from vgbench_gen.scenes.files import (
    MAX_PICTURE_BYTES,
    compute_source_digest,
    decode_depth_u16,
    decode_image_rgb,
    inside,
    read_bytes,
)
from vgbench_gen.scenes.walk import walk

CAMERA = Camera(np.array([[535.4, 0.0, 320.1], [0.0, 539.2, 247.6], [0.0, 0.0, 1.0]]), 640, 480)
UNITS_PER_METRE = 5000.0
MAX_GAP_S = 0.02  # images come every 0.033 s, poses every 0.01 s; a larger gap means that one was lost
COLUMNS = {"rgb.txt": 2, "depth.txt": 2, "groundtruth.txt": 8}
MAX_TABLE_BYTES = 50_000_000  # two hours of poses; `read_text` stops at 1 MB
UNPACK_AGAIN = "Download and unpack the sequence again."


class TumFrame(Frame):
    """One colour image with its depth image and the pose that was measured nearest in time."""

    def __init__(self, color: Path, depth: Path, timestamp_s: float, world_from_camera: FloatArray) -> None:
        self.id, self.timestamp_s = color.stem, timestamp_s
        self.camera = self.depth_camera = CAMERA
        self.world_from_camera, self.pose_deviation = check_pose(world_from_camera, color)
        self._color, self._depth = color, depth

    def color(self) -> ColorArray:
        """See `Frame.color`."""
        data = read_bytes(self._color, self._color, MAX_PICTURE_BYTES, FrameError)
        return decode_image_rgb(data, self._color, self.camera.size)

    def depth_m(self) -> DepthArray:
        """See `Frame.depth_m`."""
        data = read_bytes(self._depth, self._depth, MAX_PICTURE_BYTES, FrameError)
        stored = decode_depth_u16(data, self._depth, self.depth_camera.size)
        return stored.astype(np.float32) / np.float32(UNITS_PER_METRE)


class TumScene(Scene):
    """One sequence. It has no annotated objects, so tasks about objects take nothing from it."""

    def __init__(self, ref: SceneRef) -> None:
        self.dataset, self.id, self.split = ref.dataset, ref.scene_id, ref.split
        self.objects, self.up_world, self.depth_kind = (), None, "sensor"
        self.licence = "cc-by-4.0"
        paths = {name: inside(ref.path, ref.path / name) for name in COLUMNS}
        tables = {name: read_bytes(path, path, MAX_TABLE_BYTES) for name, path in paths.items()}
        images, depths, poses = (parse_table(paths[name], data, COLUMNS[name]) for name, data in tables.items())
        self.issues, self.total_frames = [], len(images[0])
        frames, sizes = [], []
        for time_s, [color] in zip(images[0].tolist(), images[1], strict=True):
            depth, pose = (find_nearest(table, time_s) for table in (depths, poses))
            if depth is None or pose is None:
                reason = "depth_missing" if depth is None else "pose_missing"
                self.issues.append(Issue(Path(color).stem, reason, f"none within {MAX_GAP_S} s"))
                continue
            files = [inside(ref.path, ref.path / name) for name in (color, *depth)]  # refuses ../../somewhere
            try:
                tx, ty, tz, qx, qy, qz, qw = map(float, pose)
                frame = TumFrame(*files, time_s, make_pose(quaternion_to_matrix([qw, qx, qy, qz]), [tx, ty, tz]))
                sizes += [(path.relative_to(paths["rgb.txt"].parent), path.stat().st_size) for path in files]
                frames.append(frame)
            except (ValueError, GeometryError, PoseError) as error:
                self.issues.append(Issue(Path(color).stem, "pose_invalid", str(error)))
            except OSError as error:
                self.issues.append(Issue(Path(color).stem, "file_missing", str(error)))
        if not frames:
            found = f"{len(images[0])} images, none with depth and a pose"
            raise SceneError(ref.path, found, "at least one", UNPACK_AGAIN)
        self.frames = tuple(frames)
        self.source_digest = compute_source_digest([*tables.items(), *sizes])


@loaders.register("tum_rgbd")
class TumRgbd(Loader):
    """Folders that hold `rgb/` and `groundtruth.txt`; the name of the folder is the scene's id."""

    dataset = "tum_rgbd"
    info = DatasetInfo(
        title="TUM RGB-D",
        licence="CC-BY-4.0",
        terms="Creative Commons Attribution 4.0",
        url="https://cvg.cit.tum.de/data/datasets/rgbd-dataset",
        may_publish_pixels=True,
        reason="its page places the data under this licence",
        notice="TUM RGB-D, Computer Vision Group, Technical University of Munich, CC BY 4.0",
        # Structured light as ScanNet's; motion capture knows poses to a centimeter and half a degree.
        noise=SensorNoise(depth_m=0.001, depth_per_m=0.0016, turn_deg=0.5, shift_m=0.01, focal=0.005, box_m=0.03),
    )

    def discover(self, root: Path) -> Iterator[SceneRef]:
        """See `Loader.discover`."""
        found = {}
        for folder, entries in walk(root):
            if {"rgb", "groundtruth.txt"} <= {entry.name for entry in entries}:
                entries.clear()  # no scene lies inside another one
                found.setdefault(folder.name, SceneRef(self.dataset, folder.name, folder))
        yield from (found[name] for name in sorted(found))

    def open(self, ref: SceneRef) -> Scene:
        """See `Loader.open`."""
        if "freiburg3" not in ref.scene_id:
            remedy = "Remove the distortion of other cameras' images and write a loader that knows their intrinsics."
            raise SceneError(ref.path, f"the sequence {ref.scene_id}", "one of the camera freiburg3", remedy)
        return TumScene(ref)


def parse_table(path: Path, data: bytes, columns: int) -> tuple[FloatArray, list[list[str]]]:
    """The times in seconds and the other words of every line that is neither empty nor a remark.

    Raises:
        SceneError: there is no such line, one has another number of words, or a time is no number.
    """
    lines = data.decode("utf-8", "replace").splitlines()
    rows = [line.split() for line in lines if line.strip() and line[0] != "#"]
    wrong = next((row for row in rows if len(row) != columns), None)
    if wrong is not None or not rows:
        found = "no row" if wrong is None else f"a row of {len(wrong)} words"
        raise SceneError(path, found, f"rows of {columns} words", UNPACK_AGAIN)
    try:
        times_s = np.array([row[0] for row in rows], dtype=np.float64)
    except ValueError as error:
        raise SceneError(path, str(error), "a time in seconds in every row", UNPACK_AGAIN) from error
    if not np.isfinite(times_s).all():
        raise SceneError(path, "a time that is not finite", "a time in seconds in every row", UNPACK_AGAIN)
    return times_s, [row[1:] for row in rows]


def find_nearest(table: tuple[FloatArray, list[list[str]]], time_s: float) -> list[str] | None:
    """The words of the row that is nearest in time, None where none is near enough."""
    times_s, words = table
    nearest = int(np.abs(times_s - time_s).argmin())
    return words[nearest] if abs(times_s[nearest] - time_s) <= MAX_GAP_S else None
