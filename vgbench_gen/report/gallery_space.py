"""What a question looks like in space: cameras, boxes and points of its row, and clouds of points of its frames.

Everything stands in the world of the scan. Cameras, boxes and points come from the row alone. A cloud needs the scan;
clouds are made for the first questions of each task, at most `FRAMES` of them with at most `POINTS` points each,
so that they take a few megabytes however large the dataset is.
"""

from __future__ import annotations

import base64
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import VGBenchError
from vgbench_gen.core.types import ALPHABET, FloatArray, Item
from vgbench_gen.geometry import projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.report.gallery_scenes import FAR_M, find_up_direction
from vgbench_gen.report.site import Site
from vgbench_gen.scenes import discover
from vgbench_gen.scenes.base import Frame, loaders
from vgbench_gen.scenes.opening import lay_to_scene, open_scene
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact

POINTS = 6000  # of one cloud, 9 bytes each
FRAMES = 60  # with a cloud, of one gallery
_STEPS = 65535  # of a coordinate of a cloud


def describe_space(item: Item) -> dict[str, Any] | None:
    """Cameras, boxes and points of a row; None where there is nothing to see in space.

    Keys: up (3,); cameras [{name, image (place among the images, -1 for none), K (fx, fy, cx, cy), size, pose
    (world_from_camera, 3x4 row by row), right}]; boxes [{label, corners (8, 3), right}]; points [{label, at, right}];
    frames: the frames shown. "right" is null for what is no answer.
    """
    if item.task not in tasks:
        return None
    try:
        told, fact = RowEvidence.of(item), rebuild_fact(item)
        pictures, task = told.shown(), tasks[item.task]
        if any(op["op"] not in ("point", "region") for picture in pictures for op in picture.ops):
            return None
        stored = task.stored_poses(fact)
        frames = [told.frame_of(picture.base) for picture in pictures]
        if not frames or any(frame not in stored for frame in frames):
            return None
        cameras = [
            _describe_camera(f"image {k + 1}", k, told.cameras[frame], stored[frame], _is_right(item, k, len(frames)))
            for k, frame in enumerate(frames)
        ]
        boxes: list[dict[str, Any]] = [
            {"label": box.label, "corners": _round(box.corners_m), "right": True} for box in task.world_boxes(fact)
        ]
        for name, value in _list_wrong_values(item, told):
            if value.shape == (8, 3):
                corners = transform(stored[frames[0]], value)
                boxes.append({"label": name, "corners": _round(corners), "right": False})
            elif value.shape == (3, 4) and len(frames) == 2:
                moved = stored[frames[0]] @ np.linalg.inv(np.vstack([value, [0.0, 0.0, 0.0, 1.0]]))
                cameras.append(_describe_camera(name, -1, told.cameras[frames[1]], moved, False))
        points = [{"label": p.label, "at": _round(p.point_m), "right": p.right} for p in task.world_points(fact)]
        if not (boxes or points or len(cameras) > 1):
            return None
        up = find_up_direction(stored[frame] for frame in frames)
        found = {"up": _round(up), "cameras": cameras, "boxes": boxes, "points": points, "frames": frames}
    except (*UNREADABLE, np.linalg.LinAlgError):
        return None
    everything = [*(c["pose"] for c in cameras), *(b["corners"] for b in boxes), *(p["at"] for p in points)]
    return found if all(np.abs(np.array(one)).max() < FAR_M for one in everything) else None


def _is_right(item: Item, image: int, images: int) -> bool | None:
    """Whether an image is the answer, where the images after the first are the options; else None."""
    choices = images == 1 + len(item.options) and item.answer in ALPHABET
    return ALPHABET.index(item.answer) == image - 1 if choices and image else None


def _list_wrong_values(item: Item, told: RowEvidence) -> list[tuple[str, FloatArray]]:
    """(letter or "claim", value) of what is claimed or offered and not true."""
    found = [
        (letter, option.value)
        for letter, option in zip(ALPHABET, told.options, strict=False)
        if len(told.options) > 1 and letter != item.answer
    ]
    if told.claim is not None and not told.claim.holds:
        found.append(("claim", told.claim.value))
    return found


def _describe_camera(
    name: str, image: int, camera: Mapping[str, Any], pose: FloatArray, right: bool | None
) -> dict[str, Any]:
    K = np.array(camera["K"], dtype=np.float64)
    return {
        "name": name,
        "image": image,
        "K": _round(K[[0, 4, 2, 5]]),
        "size": [int(camera["width"]), int(camera["height"])],
        "pose": _round(pose[:3].ravel()),
        "right": right,
    }


def _round(values: FloatArray) -> Any:
    return np.round(values, 4).tolist()


def make_cloud(frame: Frame, most: int = POINTS) -> dict[str, Any]:
    """The points that a frame sees, thinned evenly over its image.

    Keys: low (3,) and step (3,): of the world coordinates in meters, low + step * k; n: number of points; data: in
    base64, n * 3 coordinates k (uint16, little-endian), then n * 3 bytes of colour.

    Raises:
        FrameError: the frame cannot be read.
    """
    depth_m, color = frame.depth_m(), frame.color()
    stride = max(1, int(np.ceil(np.sqrt(np.count_nonzero(depth_m) / most))))
    points_m, _ = projection.back_project_depth(frame.depth_camera, depth_m, stride)
    uv_px, _ = projection.project(frame.camera, points_m)
    inside = projection.is_in_image(frame.camera, uv_px)
    u, v = np.round(uv_px[inside]).astype(int).T
    world_m = transform(frame.world_from_camera, points_m[inside])
    if not len(world_m):
        return {"low": [0, 0, 0], "step": [1, 1, 1], "n": 0, "data": ""}
    low = world_m.min(axis=0)
    step = np.maximum((world_m.max(axis=0) - low) / _STEPS, 1e-9)
    steps = np.round((world_m - low) / step).astype("<u2")
    data = steps.tobytes() + np.ascontiguousarray(color[v, u], dtype=np.uint8).tobytes()
    return {
        "low": low.tolist(),
        "step": step.tolist(),
        "n": len(world_m),
        "data": base64.b64encode(data).decode("ascii"),
    }


def read_cloud_points(cloud: Mapping[str, Any]) -> FloatArray:
    """The points (N, 3) of a cloud in the world, meters."""
    steps = np.frombuffer(base64.b64decode(cloud["data"]), "<u2", 3 * cloud["n"]).reshape(-1, 3)
    points: FloatArray = np.array(cloud["low"]) + np.array(cloud["step"]) * steps
    return points


@dataclass
class Clouds:
    """Clouds that were written."""

    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """"source/scene" -> frame -> name of the file."""
    points_m: dict[str, list[FloatArray]] = field(default_factory=dict)
    """"source/scene" -> the points (N, 3) of each of its clouds in the world."""

    def add(self, scene: str, frame: str, name: str, cloud: Mapping[str, Any]) -> None:
        """Note one more."""
        self.names.setdefault(scene, {})[frame] = name
        self.points_m.setdefault(scene, []).append(read_cloud_points(cloud))


@dataclass
class CloudPlan:
    """Which frames get a cloud; collected item by item."""

    asked: dict[str, list[list[tuple[str, str, str]]]] = field(default_factory=lambda: defaultdict(list))
    """By task, of each question (the first ones only) the frames as (source, scene, frame)."""

    def add(self, item: Item, space: Mapping[str, Any] | None) -> None:
        """Note what one more item shows."""
        if space is not None and len(self.asked[item.task]) < FRAMES:
            self.asked[item.task].append([(item.source, item.scene_id, frame) for frame in space["frames"]])

    def choose(self) -> list[tuple[str, str, str]]:
        """The frames, at most `FRAMES`: those of the first question of every task, then of the second, and so on."""
        chosen: dict[tuple[str, str, str], None] = {}
        for turn in zip_longest(*(questions for _, questions in sorted(self.asked.items()))):
            for frames in turn:
                if frames is not None and len(chosen | dict.fromkeys(frames)) <= FRAMES:
                    chosen |= dict.fromkeys(frames)
        return list(chosen)


def write_clouds(plan: CloudPlan, roots: Sequence[Path], site: Site) -> Clouds:
    """Write `data/cloud-<k>.js` of the frames chosen.

    Scans that are not there or cannot be read are left out.

    Args:
        plan: what is asked for.
        roots: folders with scans, as `vgbench_gen.scenes.discover` takes them.
        site: where to write.

    Raises:
        SceneError: a root does not exist.
    """
    wanted: dict[tuple[str, str], list[str]] = defaultdict(list)
    for source, scene_id, name in plan.choose():
        wanted[source, scene_id].append(name)
    done, found = 0, Clouds()
    datasets = sorted({source for source, _ in wanted} & set(loaders.names()))
    for ref in discover(*roots, datasets=datasets, on_error=_ignore) if datasets else ():
        frames = set(wanted.get((ref.dataset, ref.scene_id), ()))
        if not frames:
            continue
        try:
            with lay_to_scene(ref), open_scene(ref) as scene:
                for frame in scene.frames:
                    if frame.id in frames:
                        name = f"cloud-{done:05d}"
                        cloud = make_cloud(frame)
                        site.write_data(name, cloud)
                        found.add(f"{ref.dataset}/{ref.scene_id}", frame.id, name, cloud)
                        done += 1
        except VGBenchError:
            continue
    return found


def _ignore(ref: object, error: VGBenchError) -> None:
    """A gallery without a cloud is whole."""
