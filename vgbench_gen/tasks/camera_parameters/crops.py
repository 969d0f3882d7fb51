"""Crops of one frame, resized to one common size, as if taken by cameras of other focal lengths and centres.

A crop can only raise the focal length over the image width, so wrong values are those of other crops of the same
frame and nobody can tell them apart by knowing the sensor (`docs/validity.md#camera-parameters`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import cv2
import numpy as np

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry import cameras
from vgbench_gen.scenes.view import ViewFrame
from vgbench_gen.tasks.camera_parameters.gates import CameraGates
from vgbench_gen.tasks.presentation import Margins

LONG_SIDE_PX = 640  # of the delivered crop: the largest zoom then enlarges a 1024 px frame less than twice
SIDE_OF_FRAME_MAX = 0.75  # of the frame's side, so that small frames too leave room to zoom before crops are blurred
LINE_OF_SIDE_MIN = 0.03  # a shorter segment, in shares of the crop's long side, carries no direction
OFF_CENTRE_MAX = 0.40  # further out the principal point would leave the image
DRAWS = 72  # single crops proposed per frame
LADDERS = 12  # sets of four proposed per frame; three fill a pool
PLACES = 4  # positions tried for one member of a set
# Whole pixels: a crop reaches a wanted field of view, or logarithm of the zoom, to within this.
FOV_SLACK_DEG, ZOOM_SLACK = 0.1, 0.005

Rect = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Crop:
    """A crop of a frame that passed every gate."""

    rect: Rect
    """(x0, y0, width, height), pixels of the delivered frame."""
    camera: Camera
    """The camera after cropping and resizing."""
    zoom: float
    """Width of the frame over that of the crop."""
    margins: dict[str, float]
    """Name of a gate -> measured value over its limit."""


def compute_output_size(camera: Camera) -> tuple[int, int]:
    """(width, height) in pixels that every crop of a frame is resized to."""
    scale = min(SIDE_OF_FRAME_MAX, LONG_SIDE_PX / max(camera.size))
    return max(1, round(camera.width * scale)), max(1, round(camera.height * scale))


def limit_zoom(camera: Camera, gates: CameraGates) -> CameraGates:
    """The gates with the largest zoom at which no crop of the frame is enlarged too much."""
    zoom_max = gates.enlarged_max * camera.width / compute_output_size(camera)[0]
    return gates.model_copy(update={"zoom_max": min(gates.zoom_max, zoom_max)})


def crop_camera(camera: Camera, rect: Rect, size: tuple[int, int]) -> Camera:
    """The camera of a crop resized to `size`."""
    return cameras.resize_camera(cameras.crop_camera(camera, *rect), *size)


def measure_off_centre(camera: Camera, axis: int) -> float:
    """Signed distance of the principal point from the image centre along x (0) or y (1), in image sides."""
    middle = (camera.size[axis] - 1) / 2
    return float(((camera.cx, camera.cy)[axis] - middle) / camera.size[axis])


@dataclass(slots=True)
class Structure:
    """What one frame shows from which its camera can be recovered; it is measured once and asked for every crop."""

    frame: ViewFrame
    """The frame that crops are cut from."""
    _corners: FloatArray | None = field(default=None, repr=False)
    """(N, 2) corners of the grey image, its pixels; None until they are first asked for."""
    _lines: FloatArray | None = field(default=None, repr=False)
    """(N, 4) ends x1, y1, x2, y2 of line segments of the grey image, its pixels; None until they are first asked
    for."""

    def corners(self, rect: Rect) -> int:
        """Number of FAST corners inside a rectangle, counted on the frame's grey image."""
        if self._corners is None:
            found = cv2.FastFeatureDetector.create(threshold=12).detect(self.frame.grey)
            self._corners = np.array([point.pt for point in found], dtype=np.float64).reshape(-1, 2)
        return int(self._inside(self._corners, rect).sum())

    def lines(self, rect: Rect) -> int:
        """Number of line segments (LSD) whose middle lies inside a rectangle and that are long enough for a crop of its
        size."""
        if self._lines is None:
            found = cv2.createLineSegmentDetector().detect(self.frame.grey)[0]
            self._lines = np.zeros((0, 4)) if found is None else np.asarray(found, dtype=np.float64).reshape(-1, 4)
        ends = self._lines.reshape(-1, 2, 2)
        length_px = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=-1) * self._scale
        long_enough = length_px >= LINE_OF_SIDE_MIN * max(rect[2:])
        return int((long_enough & self._inside(ends.mean(axis=1), rect)).sum())

    def depth_spread(self, rect: Rect) -> float:
        """The 95 % over the 5 % quantile of the known depth inside a rectangle; 1 where too little is known."""
        x0, y0, width, height = rect
        depth_m = self.frame.depth_patch((x0, y0, x0 + width - 1, y0 + height - 1))[::3, ::3]
        known = depth_m[depth_m > 0]
        if known.size < 0.5 * depth_m.size or known.size < 20:
            return 1.0
        low, high = np.percentile(known, [5, 95])
        return float(high / low)

    @property
    def _scale(self) -> float:
        return float(self.frame.camera.width / self.frame.grey.shape[1])

    def _inside(self, grey_uv: FloatArray, rect: Rect) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        uv = (grey_uv + 0.5) * self._scale - 0.5
        low, size = np.array(rect[:2]), np.array(rect[2:])
        inside: np.ndarray[tuple[int], np.dtype[np.bool_]] = ((uv >= low) & (uv < low + size)).all(axis=1)
        return inside


def crop_problem(crop: Rect, structure: Structure, gates: CameraGates, margins: Margins) -> str:
    """Which gate a crop fails, "" for none."""
    if not margins.at_least("corners", structure.corners(crop), gates.corners_min):
        return "corners"
    # Either is enough: parallel lines give vanishing points, a deep scene gives perspective.
    deep = structure.depth_spread(crop) / gates.depth_spread_min
    best = deep if deep >= 1 else max(deep, structure.lines(crop) / gates.lines_min)
    return "" if margins.at_least("structure", best, 1.0) else "structure"


def propose_off_centre_crops(
    frame: ViewFrame, count: int, gates: CameraGates, rng: np.random.Generator, axis: int
) -> tuple[list[Crop], dict[str, int]]:
    """Up to `count` gated crops with the principal point off-centre along x (0) or y (1), and what dropped others."""
    size, structure = compute_output_size(frame.camera), Structure(frame)
    gates = limit_zoom(frame.camera, gates)
    kept: list[Crop] = []
    dropped: dict[str, int] = {}
    for rect in _propose_off_centre_rects(frame.camera, gates, rng, axis):
        if len(kept) == count:
            break
        margins = Margins()
        camera = crop_camera(frame.camera, rect, size)
        off = abs(measure_off_centre(camera, axis))
        if not margins.at_least("off_centre", off, gates.principal_off_centre_min) or off > OFF_CENTRE_MAX:
            problem = "off_centre"
        else:
            problem = crop_problem(rect, structure, gates, margins)
        if problem:
            dropped[problem] = dropped.get(problem, 0) + 1
        else:
            kept.append(Crop(rect, camera, frame.camera.width / rect[2], margins.ratios))
    return kept, dropped


def propose_ladder_crops(
    frame: ViewFrame, count: int, gates: CameraGates, rng: np.random.Generator, axis: int, by_angle: bool
) -> tuple[list[Crop], dict[str, int]]:
    """As above, for fields of view or focal lengths along an axis: whole sets of four with the required gaps.

    Three gaps take most of what one frame offers, so crops drawn one by one would rarely make a set.
    """
    size, structure = compute_output_size(frame.camera), Structure(frame)
    gates = limit_zoom(frame.camera, gates)
    kept: list[Crop] = []
    dropped: dict[str, int] = {}
    for ladder in _draw_ladders(frame.camera, gates, rng, axis, by_angle):
        if len(kept) + 4 > count:
            break
        members: list[Crop] = []
        for target in ladder:
            for place in rng.random((PLACES, 2)):
                rect = _find_rect_near(frame.camera, float(target), place, gates, axis, by_angle)
                margins = Margins()
                problem = "out_of_reach" if rect is None else crop_problem(rect, structure, gates, margins)
                if rect is not None and not problem:
                    camera = crop_camera(frame.camera, rect, size)
                    members.append(Crop(rect, camera, frame.camera.width / rect[2], margins.ratios))
                    break
                dropped[problem] = dropped.get(problem, 0) + 1
            else:
                break
        widths = [crop.rect[2] for crop in members]
        if len(members) == 4 and max(widths) <= gates.focal_ratio_max * min(widths):
            kept += members
        else:
            dropped["set"] = dropped.get("set", 0) + 1
    return kept, dropped


def _draw_ladders(
    camera: Camera, gates: CameraGates, rng: np.random.Generator, axis: int, by_angle: bool
) -> FloatArray:
    """(at most LADDERS, 4) in random order, uniform over all sets with the gaps and within the ceiling.

    Fields of view in degrees, or logarithms of the zoom.
    """
    if by_angle:
        high = cameras.fov_deg(camera)[axis]
        low = 2 * float(np.degrees(np.arctan(np.tan(np.radians(high / 2)) / gates.zoom_max)))
        gap = gates.fov_gap_min_deg + 3 * FOV_SLACK_DEG
    else:
        low, high = 0.0, float(np.log(gates.zoom_max))
        gap = float(np.log(gates.focal_ratio_min)) + 3 * ZOOM_SLACK
    if high - low <= 3 * gap:
        return np.zeros((0, 4))
    # Sorted uniform numbers spread by the gap are uniform over the sets that keep it.
    ladders = low + np.sort(rng.uniform(0, high - low - 3 * gap, (32 * LADDERS, 4)), axis=1) + gap * np.arange(4)
    zooms = 1 / np.tan(np.radians(ladders[:, ::-1] / 2)) if by_angle else np.exp(ladders)
    ladders = ladders[zooms[:, 3] <= gates.focal_ratio_max * zooms[:, 0]][:LADDERS]
    return np.asarray(rng.permuted(ladders, axis=1))


def _find_rect_near(
    camera: Camera, target: float, place: FloatArray, gates: CameraGates, axis: int, by_angle: bool
) -> Rect | None:
    """The crop at a relative place that comes nearest to a field of view or log-zoom; None where none comes near."""
    widths = np.arange(int(np.ceil(camera.width / gates.zoom_max)), camera.width + 1)
    heights = np.rint(widths * camera.height / camera.width).astype(int)
    x0 = np.floor(place[0] * (camera.width - widths + 1)).astype(int)
    y0 = np.floor(place[1] * (camera.height - heights + 1)).astype(int)
    start, side = ((x0, widths), (y0, heights))[axis]
    if by_angle:
        focal, centre = ((camera.fx, camera.cx), (camera.fy, camera.cy))[axis]
        tangents = (np.stack([start, start + side]) - 0.5 - centre) / focal
        reached = np.degrees(np.diff(np.arctan(tangents), axis=0))[0]
    else:
        reached = np.log(camera.size[axis] / side)
    best = int(np.argmin(np.abs(reached - target)))
    if abs(reached[best] - target) > (FOV_SLACK_DEG if by_angle else ZOOM_SLACK):
        return None
    return int(x0[best]), int(y0[best]), int(widths[best]), int(heights[best])


def _propose_off_centre_rects(
    camera: Camera, gates: CameraGates, rng: np.random.Generator, axis: int
) -> Iterator[Rect]:
    """Rectangles of the frame's shape: zoom log-uniform, place by the wanted offset along `axis`, else uniform."""
    # Nearer than this to the whole frame the principal point cannot be off-centre enough.
    zoom_min = 1 + 2 * gates.principal_off_centre_min
    full, principal = np.array(camera.size), (camera.cx, camera.cy)[axis]
    for _ in range(DRAWS):
        zoom = float(np.exp(rng.uniform(np.log(zoom_min), np.log(gates.zoom_max))))
        width = round(camera.width / zoom)
        side = np.array([width, round(width * camera.height / camera.width)])
        corner = np.floor(rng.random(2) * (full - side + 1))
        target = rng.uniform(gates.principal_off_centre_min, OFF_CENTRE_MAX) * (1 if rng.random() < 0.5 else -1)
        wanted = round(principal + 0.5 - (0.5 + target) * side[axis])
        # Where the frame ends first: another draw, not a shifted one, which would pile up at the border.
        if 0 <= wanted <= full[axis] - side[axis]:
            corner[axis] = wanted
            yield int(corner[0]), int(corner[1]), int(side[0]), int(side[1])
