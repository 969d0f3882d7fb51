"""What the items of one scene tell about it: frames that are shown, camera path and objects seen from above."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.report.gallery_told import UNREADABLE
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import WorldBox
from vgbench_gen.tasks.row_evidence import RowEvidence, rebuild_fact

SNAP_DEG = 15.0  # an axis of the world within this of what the cameras say is taken for up
TURNED = 0.2  # views turn enough where the second spread of their x axes (unit vectors) is above this
AGREEING = 0.3  # length of the mean of the cameras' up directions from which it means something
FAR_M = 1e5  # nothing that was scanned lies farther out; NaN fails the comparison too
WIDTH = 640.0
_NUMBER = re.compile(r"([0-9]{1,18})")
_MARGIN = 40.0


@dataclass
class SceneNotes:
    """What the items of one scene tell about it, collected item by item."""

    source: str
    """The scan dataset of the scene."""
    scene_id: str
    """The id of the scene in it."""
    licence: str = ""
    """The licence of the scan, as the first item that names one gives it; empty where none does."""
    items: list[tuple[int, str, str, str]] = field(default_factory=list)
    """Of each item its row in the gallery, its id, its task and its question type."""
    frames: dict[str, tuple[str, str, int]] = field(default_factory=dict)
    """By frame id: the address of the image that shows the frame with the fewest drawings, the id of that image's item,
    and the number of drawings on it."""
    poses: dict[str, FloatArray] = field(default_factory=dict)
    """The pose world_from_camera by frame id, (4, 4)."""
    objects: dict[str, WorldBox] = field(default_factory=dict)
    """The objects by instance id, with their boxes in the world frame."""

    def add(self, row: int, item: Item, addresses: Sequence[str]) -> None:
        """Note what one more item shows; a damaged row adds only itself."""
        self.items.append((row, item.id, item.task, item.question_type))
        self.licence = self.licence or item.licence
        try:
            told = RowEvidence.of(item)
            pictures, fact = told.shown(), rebuild_fact(item)
            for address, picture in zip(addresses, pictures, strict=True):
                drawn = len(picture.ops)
                frame = told.frame_of(picture.base)
                if address and (frame not in self.frames or drawn < self.frames[frame][2]):
                    self.frames[frame] = (address, item.id, drawn)
            if any(op["op"] == "mirror" for picture in pictures for op in picture.ops):
                return  # poses and boxes of a mirrored question are those of a mirrored room
            task = tasks[item.task]
            for frame, pose in task.stored_poses(fact).items():
                if np.abs(pose).max() < FAR_M:
                    self.poses.setdefault(frame, pose)
            for box in task.world_boxes(fact):
                if np.abs(box.corners_m).max() < FAR_M:
                    self.objects.setdefault(box.instance_id, box)
        except UNREADABLE:
            return

    def list_tasks(self) -> list[tuple[str, int]]:
        """The tasks with their numbers of items, the largest first."""
        return sorted(Counter(task for _, _, task, _ in self.items).items(), key=lambda pair: (-pair[1], pair[0]))

    def list_shown_frames(self) -> list[dict[str, str]]:
        """Frames with an image, in the order of their ids."""
        return [
            {"frame": frame, "address": self.frames[frame][0], "item": self.frames[frame][1]}
            for frame in sorted(self.frames, key=make_natural_key)
        ]


def make_natural_key(name: str) -> list[tuple[int, str]]:
    """A sort key by which "frame9" stands before "frame10"."""
    return [(int(part), "") if _NUMBER.fullmatch(part) else (-1, part) for part in _NUMBER.split(name)]


def find_up_direction(poses: Iterable[FloatArray]) -> tuple[FloatArray, str]:
    """((3,) unit vector of the world that points up, how it was found), from (4, 4) world_from_camera poses.

    Scans say which way is up only in their files, which a gallery does not open. Cameras that are not rolled have
    level x axes, so up is the direction that is nearest to square with all of them. Where the views hardly turn, that
    leaves a choice; there the mean of the cameras' own up directions decides. The nearest world axis replaces what is
    within `SNAP_DEG` of it. Where cameras are held in every way, the plane of their centres is all there is.

    Raises:
        ValueError: no poses.
    """
    stack = np.array(list(poses), dtype=np.float64)
    if not len(stack):
        raise ValueError("no poses")
    mean = (-stack[:, :3, 1]).mean(axis=0)
    if float(np.linalg.norm(mean)) < AGREEING:
        centres = stack[:, :3, 3] - stack[:, :3, 3].mean(axis=0)
        normal: FloatArray = np.linalg.svd(centres, full_matrices=True)[2][2]
        return (
            normal,
            "the normal of the plane of the camera centres, its sign unknown: the cameras are held in all ways",
        )
    sideways = stack[:, :3, 0]
    _, spread, axes = np.linalg.svd(sideways, full_matrices=True)
    if len(stack) >= 2 and spread[1] > TURNED * np.sqrt(len(stack)):
        up, how = axes[2] * np.sign(axes[2] @ mean), "the direction square with the cameras' x axes"
    else:
        up, how = mean / np.linalg.norm(mean), "the mean of the cameras' up directions"
    axis = int(np.abs(up).argmax())
    off_deg = float(np.degrees(np.arccos(min(1.0, abs(up[axis])))))
    if off_deg > SNAP_DEG:
        return up, how
    snapped = np.zeros(3)
    snapped[axis] = np.sign(up[axis])
    name = f"{'+' if snapped[axis] > 0 else '-'}{'xyz'[axis]}"
    return snapped, f"{name} of the world frame, {off_deg:.0f}° from {how}"


def draw_from_above(notes: SceneNotes) -> dict[str, Any] | None:
    """The plan of a scene in pixels of a drawing that is `WIDTH` wide, or None where no item stores a pose.

    Keys: width, height, up (how up was found), cameras [{frame, x, y, points}] with a triangle that points where the
    camera looks, path (points of the line through them in the order of frame ids), objects [{label, points, x, y}],
    metre (length of one metre).
    """
    if not notes.poses:
        return None
    up, how = find_up_direction(notes.poses.values())
    right = np.cross(np.eye(3)[int(np.abs(up).argmin())], up)
    right /= np.linalg.norm(right)
    plan = np.stack([right, np.cross(up, right)])  # (2, 3): metres to the right and up on the page
    frames = sorted(notes.poses, key=make_natural_key)
    centres = np.array([plan @ notes.poses[f][:3, 3] for f in frames])
    looks = np.array([plan @ notes.poses[f][:3, 2] for f in frames])
    outlines = [(o.label, _find_outline(o.corners_m @ plan.T)) for _, o in sorted(notes.objects.items())]
    everything = np.concatenate([centres, *(points for _, points in outlines)])
    low, high = everything.min(axis=0), everything.max(axis=0)
    extent = np.maximum(high - low, 0.5)
    middle = (low + high) / 2
    scale = min((WIDTH - 2 * _MARGIN) / extent[0], (WIDTH - 2 * _MARGIN) / extent[1])
    width, height = WIDTH, float(extent[1] * scale + 2 * _MARGIN)

    def place_on_page(points: FloatArray) -> FloatArray:
        moved: FloatArray = (points - middle) * scale * [1.0, -1.0] + [width / 2, height / 2]
        return moved

    cameras = []
    for frame, centre, look in zip(frames, place_on_page(centres), looks * [1.0, -1.0], strict=True):
        length = float(np.linalg.norm(look))
        ahead = look / length if length > 1e-6 else np.array([0.0, 0.0])
        side = np.array([-ahead[1], ahead[0]])
        corners = np.array([centre, centre + 13 * ahead + 6 * side, centre + 13 * ahead - 6 * side])
        cameras.append(
            {"frame": frame, "x": _round(centre[0]), "y": _round(centre[1]), "points": _format_points(corners)}
        )
    drawn = [(label, place_on_page(points)) for label, points in outlines]
    return {
        "width": _round(width),
        "height": _round(height),
        "up": how,
        "cameras": cameras,
        "path": _format_points(place_on_page(centres)),
        "objects": [
            {"label": label, "points": _format_points(p), "x": x, "y": y}
            for (label, p), (x, y) in zip(drawn, _place_labels(drawn), strict=True)
        ],
        "metre": _round(scale),
    }


def _place_labels(drawn: Sequence[tuple[str, FloatArray]]) -> list[tuple[float, float]]:
    """Where names stand: at the middle of their outlines, moved down until they do not cover each other."""
    taken: list[tuple[float, float, float]] = []  # x, y, half width
    for label, points in drawn:
        x, y, half = _round(points[:, 0].mean()), _round(points[:, 1].mean()), 4.0 * len(label)
        while any(abs(x - u) < half + h and abs(y - v) < 13 for u, v, h in taken):
            y = _round(y + 14)
        taken.append((x, y, half))
    return [(x, y) for x, y, _ in taken]


def _find_outline(points: FloatArray) -> FloatArray:
    """Corners of the hull of (8, 2) points, in order."""
    try:
        return np.asarray(points[ConvexHull(points).vertices], dtype=np.float64)
    except (QhullError, ValueError):
        return points


def _format_points(points: FloatArray) -> str:
    return " ".join(f"{_round(x):g},{_round(y):g}" for x, y in points)


def _round(value: float) -> float:
    return round(float(value), 1)
