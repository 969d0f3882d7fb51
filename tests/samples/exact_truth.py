"""Truth of a sample scene from the capture it was written from: the renderer, its poses and its boxes, and numpy.

Nothing here comes from what was written to disk, from a loader, or from the rooms that compute answers; only the
renderer itself (`World.look`, `World.depth`) and plain data types are used. Frames of the world differ between a
capture and its files, so everything is said in camera frames. Pixel (0, 0) is the centre of the top-left pixel.

A picture mirrored left to right shows a mirrored world: what the renderer saw is turned column by column, points change
the sign of their x before anything is computed from them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import cv2
import numpy as np
import scipy.ndimage
from scipy.spatial.transform import Rotation

from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.samples.base import Capture, SampleObject, WorldSurface

LONG_SIDE_PX = 1024  # delivered images are shrunk to it
UPTIME_S = 1000.0  # of the device when a capture starts, in the files that stamp their frames
SHELL = ("wall", "floor", "ceiling", "baseboard")  # nobody frames these; doors and windows are things
MESH_EDGE_M = 0.1
TRIMMED = 0.01
_SIGNS: FloatArray = np.array(list(itertools.product((-0.5, 0.5), repeat=3)))
_MATCH_WIDTH = 256  # pictures are compared with the renderer's at this width


@dataclass(eq=False)
class ExactFrame:
    """One view of a capture. camera: of the delivered picture."""

    capture: Capture
    number: int
    camera: Camera

    @property
    def pose(self) -> FloatArray:
        """(4, 4) world_from_camera of the camera that took the picture."""
        return np.asarray(self.capture.world_from_camera[self.number])

    @cached_property
    def cast(self) -> tuple[DepthArray, np.ndarray]:
        """((H, W) exact z-depth, (H, W) instances) at the delivered pixels."""
        depth, instance, _ = self.capture.world.render_depth(self.camera, self.pose)
        return depth, instance

    def region_m(self, rect: Sequence[int]) -> FloatArray:
        """(N,) exact depths over a rectangle (x1, y1, x2, y2), ends included."""
        x1, y1, x2, y2 = rect
        patch = self.cast[0][y1 : y2 + 1, x1 : x2 + 1].astype(np.float64)
        return patch[patch > 0]

    def rays(self, uv_px: FloatArray) -> FloatArray:
        """(N, 3) of pixels (N, 2), at a depth of 1 m."""
        K = self.camera.K
        return np.column_stack(
            [(uv_px[:, 0] - K[0, 2]) / K[0, 0], (uv_px[:, 1] - K[1, 2]) / K[1, 1], np.ones(len(uv_px))]
        )

    def pixels(self, points_m: FloatArray) -> FloatArray:
        """(N, 2) of points (N, 3) in this camera."""
        K, z = self.camera.K, points_m[:, 2]
        return np.column_stack([K[0, 0] * points_m[:, 0] / z + K[0, 2], K[1, 1] * points_m[:, 1] / z + K[1, 2]])

    def in_camera(self, points_m: FloatArray) -> FloatArray:
        """(N, 3) world points of the capture in this camera."""
        found: FloatArray = (points_m - self.pose[:3, 3]) @ self.pose[:3, :3]
        return found

    def in_world(self, points_m: FloatArray) -> FloatArray:
        """(N, 3) points of this camera in the world of the capture."""
        return np.asarray(points_m @ self.pose[:3, :3].T + self.pose[:3, 3])

    def motion_to(self, other: ExactFrame) -> FloatArray:
        """(3, 4) [R|t] that takes points of this camera to the other's."""
        # Where the camera's centre and the ends of its axes lie in the other camera.
        t, *ends = other.in_camera(self.in_world(np.concatenate([np.zeros((1, 3)), np.eye(3)])))
        return np.column_stack([*(end - t for end in ends), t])

    def boxes(self) -> list[tuple[SampleObject, FloatArray]]:
        """Things in front of the camera, each with the (8, 3) corners of its box in this camera."""
        found = []
        for item in self.capture.world.objects:
            corners = self.in_camera(item.box.center_m + (_SIGNS * item.box.size_m) @ item.box.rotation.T)
            if item.label not in SHELL and (corners[:, 2] > 0.05).all():
                found.append((item, corners))
        return found

    def framed(self, rect: Sequence[int], at_least: float = 0.93) -> tuple[SampleObject, FloatArray]:
        """The thing that a drawn rectangle frames, and the corners of its box in this camera.

        It is the one whose exact box projects onto the rectangle; and a reader must be able to see that it is: its own
        pixels reach over most of the rectangle.
        """
        scores = []
        for item, corners in self.boxes():
            uv = self.pixels(corners)
            low, high = np.maximum(uv.min(axis=0), 1), np.minimum(uv.max(axis=0), np.array(self.camera.size) - 2)
            scores.append((_rect_iou(rect, (*low, *high)), item, corners))
        scores.sort(key=lambda score: -score[0])
        best, item, corners = scores[0]
        assert best > at_least, f"frame {self.number}: {rect} is no thing's rectangle; nearest {item.label}, {best:.2f}"
        assert scores[1][0] < 0.8 * best, f"frame {self.number}: {rect} frames {item.label} and {scores[1][1].label}"
        rows, columns = np.nonzero(self.cast[1] == item.instance_id)
        seen = (columns.min(), rows.min(), columns.max(), rows.max()) if len(rows) else (0, 0, 0, 0)
        # The cube around a ball, seen along its diagonal, has a rectangle of which the ball fills 0.41.
        assert _rect_iou(rect, seen) > 0.4, f"frame {self.number}: little of {item.label} is seen in {rect}"
        return item, corners


@dataclass(eq=False)
class ExactScene:
    """A capture under the names that its frames have in the files and in items.

    photographs: names of the files that the frames were written to, in order, where names do not tell their number.
    """

    capture: Capture
    dataset: str
    photographs: Sequence[str] = ()
    _frames: dict[tuple[str, tuple[int, int]], ExactFrame] = field(default_factory=dict)

    def frame(self, frame_id: str, size: tuple[int, int], camera: Camera | None = None) -> ExactFrame:
        """size: of the picture behind what is shown: crops of homographies are cut from a larger one. camera: of that
        picture where the capture's own, shrunk, is not it (a lens whose distortion the loader takes out with a camera
        of its choice)."""
        if (frame_id, size) not in self._frames:
            own = self.capture.camera
            chosen = camera or (
                delivered(own) if size == delivered(own).size else cropped(own, (0, 0, *own.size), size)
            )
            self._frames[frame_id, size] = ExactFrame(self.capture, self.number(frame_id), chosen)
        return self._frames[frame_id, size]

    @cached_property
    def surface(self) -> WorldSurface:
        """The mesh that datasets annotate."""
        return self.capture.world.make_surface(MESH_EDGE_M)

    def cut_off_m(self, item: SampleObject) -> float:
        """How far, along the worst side of its box, a thing reaches beyond all but `TRIMMED` of its mesh's points at
        both ends together.

        Boxes that a loader fits to scanned points leave out so many at either end, against stray ones.
        """
        surface = self.surface
        points = surface.vertices_m[np.unique(surface.faces[surface.instance == item.instance_id])]
        ends = np.quantile((points - item.box.center_m) @ item.box.rotation, [0, TRIMMED, 1 - TRIMMED, 1], axis=0)
        return float((ends[1] - ends[0] + ends[3] - ends[2]).max())

    def number(self, frame_id: str) -> int:
        """Running number of a frame: CA-1M has its time in nanoseconds for a name, videos count."""
        if self.photographs:
            return self.photographs.index(frame_id)
        if self.dataset == "ca1m":
            stamps = [round((UPTIME_S + float(t)) * 1e9) for t in self.capture.timestamps_s]
            return stamps.index(int(frame_id))
        return int(frame_id.removeprefix("frame_"))


def delivered(camera: Camera) -> Camera:
    """The camera of the whole picture shrunk to the long side of delivered pictures, edges on edges."""
    scale = LONG_SIDE_PX / max(camera.size)
    return camera if scale >= 1 else cropped(camera, (0, 0, *camera.size), _size(camera, scale))


def cropped(camera: Camera, rect: Sequence[int], size: Sequence[int]) -> Camera:
    """The camera of a part (x0, y0, width, height) of the picture, resized to (width, height), edges on edges."""
    sx, sy = size[0] / rect[2], size[1] / rect[3]
    K = camera.K.copy()
    K[0] = K[0, 0] * sx, 0, (K[0, 2] + 0.5 - rect[0]) * sx - 0.5
    K[1] = 0, K[1, 1] * sy, (K[1, 2] + 0.5 - rect[1]) * sy - 0.5
    return Camera(K, size[0], size[1])


def seen_alike(picture: ColorArray, camera: Camera, frame: ExactFrame) -> tuple[float, float]:
    """(correlation, shift in pixels of the picture) between a picture and what the renderer sees with `camera` from
    there; both shrunk, so that noise, codec and interpolation do not matter."""
    scale = min(1.0, _MATCH_WIDTH / camera.width)
    size = _size(camera, scale)
    small = cropped(camera, (0, 0, *camera.size), size)
    looked = frame.capture.world.look(small, frame.pose).color
    a, b = (_plain(cv2.resize(image, size, interpolation=cv2.INTER_AREA)) for image in (picture, looked))
    correlation = float((a * b).mean() / np.sqrt((a * a).mean() * (b * b).mean()))
    (du, dv), _ = cv2.phaseCorrelate(a, b, cv2.createHanningWindow(size, cv2.CV_64F))
    return correlation, float(np.hypot(du, dv)) / scale


def turn_deg(a: FloatArray, b: FloatArray) -> float:
    """Angle between two rotations (3, 3), which may be printed ones."""
    return float(np.degrees(Rotation.from_matrix(a[:, :3] @ b[:, :3].T).magnitude()))


def corners_off_m(a: FloatArray, b: FloatArray) -> float:
    """Largest distance from a corner of one box (8, 3) to the nearest of the other, either way."""
    apart = np.linalg.norm(a[:, None] - b, axis=-1)
    return float(max(apart.min(axis=0).max(), apart.min(axis=1).max()))


def around_its_faces(corners_m: FloatArray) -> bool:
    """Whether corners (8, 3) come as questions list them, one face in order around it, then the opposite one alike; and
    always in the same sense, or the order would give mirrored pictures away."""
    low, high = corners_m[:4], corners_m[4:]
    sides = [high.mean(axis=0) - low.mean(axis=0)]
    for ahead, behind in (([1, 2], [0, 3]), ([2, 3], [0, 1])):
        sides.append((low[ahead] + high[ahead] - low[behind] - high[behind]).mean(axis=0) / 2)
    up, along, across = sides
    cuboid = corners_m.mean(axis=0) + _SIGNS[[0, 4, 6, 2, 1, 5, 7, 3]] @ np.stack([along, across, up])
    return bool(np.abs(cuboid - corners_m).max() < 0.02 and np.dot(np.cross(along, across), up) > 0)


def box_off_m(corners_m: FloatArray, item: SampleObject, exact_m: FloatArray) -> float:
    """Difference in place or in a side, whichever is larger, between a box, its corners (8, 3) in the order of the
    questions, and a thing's own with its corners in the same camera. What is round has no heading to compare."""
    sides = np.linalg.norm(corners_m[[1, 3, 4]] - corners_m[0], axis=1)
    off = np.abs(np.sort(sides) - np.sort(item.box.size_m)).max()
    return float(max(off, np.linalg.norm(corners_m.mean(axis=0) - exact_m.mean(axis=0))))


def box_iou(item: SampleObject, corners_m: FloatArray, frame: ExactFrame) -> float:
    """Overlap of a thing's exact box with the corners (8, 3), in the camera, of another box of the same directions.

    A side lies at the mean of its four corners, each of which was rounded on its own.
    """
    ordered = np.sort((frame.in_world(corners_m) - item.box.center_m) @ item.box.rotation, axis=0)
    low, high = ordered[:4].mean(axis=0), ordered[4:].mean(axis=0)
    off = np.abs(ordered - np.repeat([low, high], 4, axis=0)).max()
    assert off < 0.02, f"the claimed box of {item.label} has other directions: corners {off:.3f} m from a cuboid"
    half = item.box.size_m / 2
    shared = np.clip(np.minimum(high, half) - np.maximum(low, -half), 0, None).prod()
    return float(shared / ((high - low).prod() + item.box.size_m.prod() - shared))


def warp_off(source: ColorArray, H: FloatArray, warped: ColorArray, step: int = 7) -> float:
    """Mean difference, grey levels, between a picture and the source where `x2 ~ H x1` puts it, as far as the source
    reaches: around it the picture shows what the source does not. Infinite where they hardly share anything."""
    height, width = warped.shape[:2]
    v, u = (x.ravel().astype(np.float64) for x in np.mgrid[step // 2 : height : step, step // 2 : width : step])
    x, y, w = np.linalg.inv(H) @ np.stack([u, v, np.ones_like(u)])
    there = np.stack([y / w, x / w])
    last = np.array([[source.shape[0] - 1], [source.shape[1] - 1]])
    inside = ((there >= 1) & (there <= last - 1)).all(axis=0) & (w > 0)
    if inside.mean() < 0.1:
        return float("inf")
    expected = np.stack(
        [scipy.ndimage.map_coordinates(source[..., c].astype(float), there[:, inside], order=1) for c in range(3)], -1
    )
    got = warped[v.astype(int), u.astype(int)].astype(float)[inside]
    return float(np.abs(expected - got).mean())


def _plain(image: np.ndarray) -> FloatArray:
    grey = cv2.cvtColor(np.asarray(image, np.uint8), cv2.COLOR_RGB2GRAY).astype(np.float64)
    return np.asarray(grey - grey.mean())


def _size(camera: Camera, scale: float) -> tuple[int, int]:
    return round(camera.width * scale), round(camera.height * scale)


def _rect_iou(a: Sequence[float], b: Sequence[float]) -> float:
    shared = max(min(a[2], b[2]) - max(a[0], b[0]), 0) * max(min(a[3], b[3]) - max(a[1], b[1]), 0)
    areas = [(r[2] - r[0]) * (r[3] - r[1]) for r in (a, b)]
    return float(shared / max(sum(areas) - shared, 1e-9))
