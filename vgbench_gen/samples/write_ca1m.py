"""Samples as CA-1M captures: one tar with fourteen members per frame (`docs/formats.md#ca-1m`)."""

from __future__ import annotations

import tarfile
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.ndimage import find_objects

from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import BoolArray, Camera, DepthArray, FloatArray, OrientedBox
from vgbench_gen.geometry.boxes import corners, project_rect, transform_box
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import invert, make_pose, transform
from vgbench_gen.geometry.projection import back_project
from vgbench_gen.samples.base import Capture, SampleObject, SampleSpec
from vgbench_gen.samples.encode import add_tar_member, convert_to_millimetres, encode_json, encode_png, encode_tiff
from vgbench_gen.samples.layout import FIRST_UPTIME_S, Layout, encode_lines, expose_frame, make_file_frame, make_rng
from vgbench_gen.samples.sensors import simulate_laser, simulate_lidar

GLASS = frozenset(["window", "window pane", "mirror", "glass door"])
"""The laser goes through these, or off to somewhere else."""
_MIN_VISIBLE_PX = 40
_UNSCANNED = 4
_UNSCANNED_RADIUS_M = (0.04, 0.12)


class CA1MLayout(Layout):
    """`ca1m-<split>-<video id>.tar`, and lists of them in `data/`."""

    def path(self, spec: SampleSpec) -> Path:
        return Path(f"ca1m-{spec.split}-{spec.scene_id}.tar")

    def write(self, capture: Capture, spec: SampleSpec, path: Path) -> None:
        file_from_world = _draw_placement(spec)
        path.parent.mkdir(parents=True, exist_ok=True)
        unscanned = _UnscannedPlaces(capture, spec)
        objects = {item.instance_id: item for item in capture.world.objects}
        with tarfile.open(path, "w:", format=tarfile.USTAR_FORMAT) as archive:
            for number, pose in enumerate(capture.world_from_camera):
                if number in capture.lost:
                    continue  # a frame that could not be registered to the scan is not delivered
                time_ns = round((FIRST_UPTIME_S + float(capture.timestamps_s[number])) * 1e9)
                for name, data in self._make_members(
                    capture, spec, number, pose, file_from_world, objects, unscanned
                ).items():
                    add_tar_member(archive, f"{spec.scene_id}/{time_ns}.{name}", data)
            world = [
                _format_entry(spec, item, transform_box(item.box, file_from_world, "world"))
                for item in capture.world.objects
            ]
            add_tar_member(archive, f"{spec.scene_id}/world.gt/instances.json", encode_json(world))

    def _make_members(
        self,
        capture: Capture,
        spec: SampleSpec,
        number: int,
        pose: FloatArray,
        file_from_world: FloatArray,
        objects: dict[int, SampleObject],
        unscanned: _UnscannedPlaces,
    ) -> dict[str, bytes]:
        camera = capture.camera
        laser_camera = resize_camera(camera, camera.width // 2, camera.height // 2)
        sensor_camera = resize_camera(camera, camera.width // 4, camera.height // 4)
        look = capture.world.look(camera, pose)
        exact, instance, _ = capture.world.render_depth(laser_camera, pose, look)
        scanned = simulate_laser(
            exact, unscanned.find_hidden(laser_camera, pose, exact, instance), make_rng(spec, "laser", number)
        )
        exact, _, cosine = capture.world.render_depth(sensor_camera, pose, look)
        sensor, confidence = simulate_lidar(exact, cosine, make_rng(spec, "depth", number))
        file_from_camera = file_from_world @ pose
        return {
            "wide/image.png": encode_png(expose_frame(look.color, camera, capture, spec, number)),
            "wide/image/K.json": encode_json(camera.K),
            "_wide/image/size": encode_json(camera.size),
            "wide/depth.png": encode_png(convert_to_millimetres(sensor)),
            "wide/depth/K.json": encode_json(sensor_camera.K),
            "_wide/depth/size": encode_json(sensor_camera.size),
            "wide/depth/confidence.tiff": encode_tiff(confidence),
            "wide/T_gravity.json": encode_json(compute_camera_from_level(pose)),
            "wide/instances.json": encode_json(_list_visible(spec, camera, pose, look.instance, objects)),
            "gt/RT.json": encode_json(file_from_camera),
            "gt/depth.png": encode_png(convert_to_millimetres(scanned)),
            "gt/depth/K.json": encode_json(laser_camera.K),
            "_gt/depth/size": encode_json(laser_camera.size),
            "gt/image/K.json": encode_json(camera.K),
        }

    def make_lists(self, specs: Sequence[SampleSpec]) -> dict[str, bytes]:
        """`data/train.txt` and `data/val.txt`: here the archives beside the folder, there their addresses."""
        return {
            f"data/{split}.txt": encode_lines(sorted(str(self.path(s)) for s in specs if s.split == split))
            for split in ("train", "val")
        }


class _UnscannedPlaces:
    """Where the laser saw nothing: glass, and a few round places in the room that no station of it reached."""

    def __init__(self, capture: Capture, spec: SampleSpec) -> None:
        rng = make_rng(spec, "unscanned")
        self._glass = [item.instance_id for item in capture.world.objects if item.label in GLASS]
        centers, camera = [], resize_camera(capture.camera, capture.camera.width // 8, capture.camera.height // 8)
        for number in rng.integers(len(capture.world_from_camera), size=_UNSCANNED).tolist():
            pose = capture.world_from_camera[number]
            depth = capture.world.render_depth(camera, pose)[0]
            v, u = (int(x) for x in rng.integers(depth.shape))
            if depth[v, u] > 0:
                centers.append(transform(pose, back_project(camera, [[u, v]], [depth[v, u]]))[0])
        self._centers = np.array(centers).reshape(-1, 3)
        self._radii = rng.uniform(*_UNSCANNED_RADIUS_M, len(centers))

    def find_hidden(self, camera: Camera, pose: FloatArray, depth_m: DepthArray, instance: np.ndarray) -> BoolArray:
        """(h, w) True where there is no return, the same places of the room in every view."""
        x = ((np.arange(camera.width) - camera.cx) / camera.fx)[None]
        y = ((np.arange(camera.height) - camera.cy) / camera.fy)[:, None]
        square = depth_m**2 * (x**2 + y**2 + 1)
        hidden = np.isin(instance, self._glass)
        for (a, b, c), radius in zip(transform(invert(pose), self._centers), self._radii, strict=True):
            # |z (x, y, 1) - centre|^2
            hidden |= square - 2 * depth_m * (a * x + b * y + c) < radius**2 - (a * a + b * b + c * c)
        return np.asarray(hidden)


def _draw_placement(spec: SampleSpec) -> FloatArray:
    """(4, 4) `file_from_world`: the scanner's own frame, z up, turned and placed anyhow."""
    rng = make_rng(spec, "placement")
    return make_file_frame(rng.uniform(-180, 180), rng.uniform((-4, -4, -1.5), (4, 4, 0.5)))


def compute_camera_from_level(pose: FloatArray) -> FloatArray:
    """T_gravity (3, 3): the camera from its levelled self, of the same heading, whose y points along gravity."""
    down = pose[:3, :3].T @ np.array([0.0, 0.0, -1.0])
    forward = np.array([0.0, 0.0, 1.0]) - down[2] * down
    forward /= np.linalg.norm(forward)
    return make_pose(np.stack([np.cross(down, forward), down, forward], axis=1), np.zeros(3))[:3, :3]


def _list_visible(
    spec: SampleSpec, camera: Camera, pose: FloatArray, instance: npt.NDArray[Any], objects: dict[int, SampleObject]
) -> list[dict[str, Any]]:
    """The frame's own list: what can be seen, boxes in the camera frame, second extent vertical."""
    camera_from_world = invert(pose)
    entries = []
    counts = np.bincount(instance.ravel())
    for number, places in enumerate(find_objects(instance), 1):
        if places is None or counts[number] < _MIN_VISIBLE_PX or number not in objects:
            continue
        rows, columns = places
        box = transform_box(objects[number].box, camera_from_world, "camera")
        rotation = np.stack([box.rotation[:, 0], -box.rotation[:, 2], box.rotation[:, 1]], axis=1)
        turned = OrientedBox(box.center_m, box.size_m[[0, 2, 1]], rotation, "camera")
        # Outer edges of the pixels, in the count of K: the centre of the first pixel is 0.
        rendered = [columns.start - 0.5, rows.start - 0.5, columns.stop - 0.5, rows.stop - 0.5]
        projected = project_rect(camera, box)
        rects = {"box_2d_rend": rendered, "box_2d_proj": list(rendered if projected is None else projected)}
        entries.append(_format_entry(spec, objects[number], turned) | rects)
    return entries


def _format_entry(spec: SampleSpec, item: SampleObject, box: OrientedBox) -> dict[str, Any]:
    name = uuid.UUID(hash_stably("samples", spec.scene_id, str(item.instance_id), size=16))
    return {
        "id": str(name),
        # Structural things carry an underscore in this dataset.
        "category": item.label.replace(" ", "_") if item.structural else item.label,
        "position": box.center_m,
        "scale": box.size_m,
        "R": box.rotation,
        "corners": corners(box),
    }
