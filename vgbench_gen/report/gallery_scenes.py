"""What the items of one scene tell about it: frames that are shown, camera path and objects seen from above."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from vgbench_gen.core.types import FloatArray, Item
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.presentation import WorldBox
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence, rebuild_fact

SNAP_DEG = 15.0  # an axis of the world within this of what the cameras say is taken for up
LEANING_DEG = 45.0  # where views hardly turn, an axis so near to their own up that is square with their x axes is up
TURNED = 0.2  # views turn enough where the second spread of their x axes (unit vectors) is above this
AGREEING = 0.3  # length of the mean of the cameras' up directions from which it means something
FAR_M = 1e5  # nothing that was scanned lies farther out; NaN fails the comparison too
WIDTH = 640.0
CELL_M = 0.06  # width of the cells in which points of walls are drawn
MOST_CELLS = 1500  # of a plan, 25 bytes each
_LYING_M = 0.15  # what is nearer to the lowest or the highest points is floor or ceiling
_NUMBER = re.compile(r"([0-9]{1,18})")
_MARGIN = 40.0


@dataclass
class SceneNotes:
    """What the items of one scene tell about it, collected item by item."""

    source: str
    scene_id: str
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

    def add(
        self, row: int, item: Item, addresses: Sequence[str], find_base: Callable[[str], str] = lambda name: ""
    ) -> None:
        """Note what one more item shows; a damaged row adds only itself.

        find_base: name of a base image in the media store -> its address, "" where it is not there.
        """
        self.items.append((row, item.id, item.task, item.question_type))
        self.licence = self.licence or item.licence
        try:
            told = RowEvidence.of(item)
            pictures, fact = told.shown(), rebuild_fact(item)
            for address, picture in zip(addresses, pictures, strict=True):
                drawn = len(picture.ops)
                frame, base = told.frame_of(picture.base), find_base(picture.base)
                if base:
                    self.frames.setdefault(frame, (base, item.id, 0))
                elif address and (frame not in self.frames or drawn < self.frames[frame][2]):
                    self.frames[frame] = (address, item.id, drawn)
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


def find_up_direction(poses: Iterable[FloatArray]) -> FloatArray:
    """The (3,) unit vector of the world that points up, from (4, 4) world_from_camera poses.

    Scans say which way is up only in their files, which a gallery does not open. Cameras that are not rolled have
    level x axes, so up is the direction that is nearest to square with all of them. Where the views hardly turn, that
    leaves a choice; there the mean of the cameras' own up directions decides, which leans as far as they look down. The
    nearest world axis replaces what is within `SNAP_DEG` of it, and a mean within `LEANING_DEG` where it is as square
    with the cameras' x axes. Where cameras are held in every way, the plane of their centers is all there is, with its
    sign unknown.

    Raises:
        ValueError: no poses.
    """
    stack = np.array(list(poses), dtype=np.float64)
    if not len(stack):
        raise ValueError("no poses")
    mean = (-stack[:, :3, 1]).mean(axis=0)
    if float(np.linalg.norm(mean)) < AGREEING:
        centers = stack[:, :3, 3] - stack[:, :3, 3].mean(axis=0)
        normal: FloatArray = np.linalg.svd(centers, full_matrices=True)[2][2]
        return normal
    sideways = stack[:, :3, 0]
    _, spread, axes = np.linalg.svd(sideways, full_matrices=True)
    turned = len(stack) >= 2 and spread[1] > TURNED * np.sqrt(len(stack))
    up: FloatArray = axes[2] * np.sign(axes[2] @ mean) if turned else mean / np.linalg.norm(mean)
    axis = int(np.abs(up).argmax())
    off_deg = float(np.degrees(np.arccos(min(1.0, abs(up[axis])))))
    rolled_deg = float(np.degrees(np.arcsin(min(1.0, np.median(np.abs(sideways[:, axis]))))))
    if off_deg > SNAP_DEG and (turned or off_deg > LEANING_DEG or rolled_deg > SNAP_DEG):
        return up
    snapped = np.zeros(3)
    snapped[axis] = np.sign(up[axis])
    return snapped


def draw_from_above(notes: SceneNotes, points_m: FloatArray | None = None) -> dict[str, Any] | None:
    """The plan of a scene in pixels of a drawing that is `WIDTH` wide, or None where no item stores a pose.

    Keys: width, height, cameras [{frame, x, y, points}] with a triangle that points where the
    camera looks, path (points of the line through them in the order of frame ids), objects [{label, points, x, y}],
    walls (outlines of the cells where `points_m` (N, 3) of the world stand,
    but those of floor and ceiling, as the data of an SVG path; "" without), meter (length of one meter).
    """
    if not notes.poses:
        return None
    up = find_up_direction(notes.poses.values())
    right = np.cross(np.eye(3)[int(np.abs(up).argmin())], up)
    right /= np.linalg.norm(right)
    plan = np.stack([right, np.cross(up, right)])  # (2, 3): meters to the right and up on the page
    frames = sorted(notes.poses, key=make_natural_key)
    centres = np.array([plan @ notes.poses[f][:3, 3] for f in frames])
    looks = np.array([plan @ notes.poses[f][:3, 2] for f in frames])
    outlines = [(o.label, _find_outline(o.corners_m @ plan.T)) for _, o in sorted(notes.objects.items())]
    cells = _find_wall_cells(points_m, plan, up) if points_m is not None and len(points_m) else np.zeros((0, 2))
    everything = np.concatenate([centres, *(points for _, points in outlines), cells])
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
        "cameras": cameras,
        "path": _format_points(place_on_page(centres)),
        "objects": [
            {"label": label, "points": _format_points(p), "x": x, "y": y}
            for (label, p), (x, y) in zip(drawn, _place_labels(drawn), strict=True)
        ],
        "walls": _format_cells(place_on_page(cells), max(1.0, CELL_M * scale)),
        "scale_px": _round(scale),
    }


def _find_wall_cells(points_m: FloatArray, plan: FloatArray, up: FloatArray) -> FloatArray:
    """Corners (M, 2) in meters of the page of the cells, `CELL_M` wide, where the most points stand above each other:
    walls and furniture stand, floors and ceilings lie."""
    height = points_m @ up
    standing = (height > np.percentile(height, 2) + _LYING_M) & (height < np.percentile(height, 98) - _LYING_M)
    if not standing.any():
        return np.zeros((0, 2))
    cells, counts = np.unique(np.floor(points_m[standing] @ plan.T / CELL_M), axis=0, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_CELLS]
    corners: FloatArray = cells[np.sort(order)] * CELL_M
    return corners


def _format_cells(corners: FloatArray, width: float) -> str:
    side = _round(width)
    return "".join(f"M{_round(x):g} {_round(y):g}v{-side:g}h{side:g}v{side:g}z" for x, y in corners)


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
