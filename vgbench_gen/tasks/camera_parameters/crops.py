"""Crops of one frame, resized to one common size, as if taken by cameras of other focal lengths and centres.

A crop can only raise the focal length over the image width, so wrong values are those of other crops of the same
frame and nobody can tell them apart by knowing the sensor (`docs/validity.md#camera-parameters`). Focal lengths and
fields of view are asked of crops about the principal point, coordinates of the principal point of strips of one size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import Camera, Candidate, FloatArray, IntArray
from vgbench_gen.geometry import cameras
from vgbench_gen.tasks.camera_parameters.estimate import ParameterEstimate, estimate_parameters
from vgbench_gen.tasks.camera_parameters.quantities import (
    ANGLES,
    ASK_AXIS,
    CENTRES,
    CropEvidence,
    compute_parameter,
    measure_margins,
    round_as_printed,
)
from vgbench_gen.tasks.gates import CameraGates
from vgbench_gen.tasks.presentation import Margins
from vgbench_gen.tasks.solving.lines import cut_segments

LONG_SIDE_PX = 640  # of the delivered crop
SIDE_OF_FRAME_MAX = 0.5  # of the frame's side, so that small frames too leave room to zoom before crops are enlarged
STRIP_ZOOM = 1.6  # side of the frame over that of a strip, along the coordinate that is asked
OFF_CENTRE_MAX = 0.40  # further out the principal point would leave the image
LADDERS = 6  # sets of four proposed per frame
COMPLETED = 3  # of which the narrowest crop is determined, whose others are looked at as well
# Whole pixels: a crop reaches a wanted field of view, or logarithm of the zoom, to within this.
FOV_SLACK_DEG, ZOOM_SLACK = 0.1, 0.005
_TRIED = 4096  # sets of strips drawn, of which a few per cent keep the gaps

Rect = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Crop:
    """A crop of a frame whose parameter its own line segments determine."""

    rect: Rect
    """(x0, y0, width, height), pixels of the delivered frame."""
    camera: Camera
    """The camera after cropping and resizing."""
    zoom: float
    """Width of the frame over that of the crop."""
    margins: dict[str, float]
    """Name of a gate -> measured value over its limit."""


def compute_output_size(camera: Camera, ask: str) -> tuple[int, int]:
    """(width, height) in pixels that every crop of a frame is resized to; strips are not enlarged."""
    sides = np.array(camera.size, dtype=np.float64)
    if ask in CENTRES:
        sides[ASK_AXIS[ask]] = round(sides[ASK_AXIS[ask]] / STRIP_ZOOM)
        sides *= min(1.0, LONG_SIDE_PX / sides.max())
    else:
        sides *= min(SIDE_OF_FRAME_MAX, LONG_SIDE_PX / sides.max())
    width, height = np.maximum(1, np.rint(sides)).astype(int).tolist()
    return width, height


def crop_camera(camera: Camera, rect: Rect, size: tuple[int, int]) -> Camera:
    """The camera of a crop resized to `size`."""
    return cameras.resize_camera(cameras.crop_camera(camera, *rect), *size)


def measure_off_centre(camera: Camera, axis: int) -> float:
    """Signed distance of the principal point from the image centre along x (0) or y (1), in image sides."""
    middle = (camera.size[axis] - 1) / 2
    return float(((camera.cx, camera.cy)[axis] - middle) / camera.size[axis])


def propose_rects(camera: Camera, ask: str, gates: CameraGates, rng: np.random.Generator) -> IntArray:
    """(at most LADDERS, 4, 4) sets of four crops x0, y0, width, height that keep the gaps between options.

    Three gaps take most of what one frame offers, so crops drawn one by one would rarely make a set.
    """
    return (_propose_strips if ask in CENTRES else _propose_centred)(camera, ask, gates, rng)


def keep_determined(
    camera: Camera, segments: FloatArray, noise_px: float, sets: IntArray, ask: str, gates: CameraGates
) -> list[Crop]:
    """Of sets of crops (S, 4, 4) the crops, each once, whose own line segments determine the parameter.

    Args:
        camera: of the frame.
        segments: (N, 4) line segments of the frame, its pixels.
        noise_px: standard deviation of their ends, pixels of the frame.
    """
    # The narrowest crop of a set shows least: where it fails, the others need no look.
    narrowest = np.take_along_axis(sets, sets[..., 2].argmin(axis=1)[:, None, None], 1)[:, 0]
    first = _fit_crops(camera, segments, noise_px, narrowest, ask, gates)
    passed = {crop.rect for crop in first}
    hopeful = [four for four in sets if passed & {*map(_as_rect, four)}][:COMPLETED]
    left = [rect for four in hopeful for rect in four if _as_rect(rect) not in passed]
    if not left:
        return first
    return first + _fit_crops(camera, segments, noise_px, np.unique(left, axis=0), ask, gates)


def _fit_crops(
    camera: Camera, segments: FloatArray, noise_px: float, rects: IntArray, ask: str, gates: CameraGates
) -> list[Crop]:
    """Those of crops (B, 4) that are determined."""
    size, axis = compute_output_size(camera, ask), ASK_AXIS[ask]
    shown = [crop_camera(camera, _as_rect(rect), size) for rect in rects]
    stated = [np.nan if ask not in CENTRES else x for x in (shown[0].fx, shown[0].fy, shown[0].cx, shown[0].cy)]
    lines = cut_segments(segments, rects, noise_px)
    if not lines.halves.shape[1]:
        return []  # a plain or tiny picture
    estimates = estimate_parameters(lines, size, ask, stated)
    kept = []
    for rect, cropped, estimate in zip(rects, shown, estimates, strict=True):
        margins = Margins()
        certain = margins.at_most("deviation", _measure_deviation(estimate, size, ask, gates), gates.undecided_max)
        off = measure_margins(estimate.value, compute_parameter(cropped, ask), ask, size, gates)
        if ask in CENTRES:
            margins.at_least("off_centre", abs(measure_off_centre(cropped, axis)), gates.principal_off_centre_min)
        if certain and off <= gates.undecided_max:
            kept.append(Crop(_as_rect(rect), cropped, camera.width / int(rect[2]), margins.ratios))
    return kept


def _measure_deviation(estimate: ParameterEstimate, size: tuple[int, int], ask: str, gates: CameraGates) -> float:
    if not np.isfinite(estimate.deviation):
        return np.inf
    return measure_margins(estimate.value, estimate.value + estimate.deviation, ask, size, gates)


def _propose_centred(camera: Camera, ask: str, gates: CameraGates, rng: np.random.Generator) -> IntArray:
    """Crops about the principal point: log of the zoom or field of view uniform over all sets with the gaps."""
    axis, by_angle = ASK_AXIS[ask], ask in ANGLES
    rects = _list_centred_rects(camera, gates)
    if not len(rects):
        return np.zeros((0, 4, 4), dtype=np.int64)
    if by_angle:
        focal, centre = ((camera.fx, camera.cx), (camera.fy, camera.cy))[axis]
        edges = np.stack([rects[:, axis], rects[:, axis] + rects[:, 2 + axis]]) - 0.5
        reached = np.degrees(np.diff(np.arctan((edges - centre) / focal), axis=0))[0]
        gap, slack = gates.fov_gap_min_deg + 3 * FOV_SLACK_DEG, FOV_SLACK_DEG
    else:
        reached = np.log(camera.size[axis] / rects[:, 2 + axis])
        gap, slack = float(np.log(gates.ratio_min)) + 3 * ZOOM_SLACK, ZOOM_SLACK
    low, room = float(reached.min()), float(np.ptp(reached)) - 3 * gap
    if room <= 0:
        return np.zeros((0, 4, 4), dtype=np.int64)
    # Sorted uniform numbers spread by the gap are uniform over the sets that keep it.
    wanted = low + np.sort(rng.uniform(0, room, (16 * LADDERS, 4)), axis=1) + gap * np.arange(4)
    nearest = np.abs(wanted[..., None] - reached).argmin(axis=-1)
    near_enough = (np.abs(reached[nearest] - wanted) <= slack).all(axis=1)
    found: IntArray = rects[nearest]
    widths = found[..., 2]
    within = widths.max(axis=1) <= gates.ratio_max * widths.min(axis=1)
    kept: IntArray = found[near_enough & within][:LADDERS]
    return kept


def _list_centred_rects(camera: Camera, gates: CameraGates) -> IntArray:
    """(N, 4) all rectangles of the frame's shape, to a pixel, with the principal point in their middle to half a
    pixel, that are neither zoomed nor enlarged too much."""
    enlarged = gates.enlarged_max * camera.width / compute_output_size(camera, "fx")[0]
    widths = np.arange(int(np.ceil(camera.width / min(gates.zoom_max, enlarged))), camera.width + 1)
    sides = np.stack([widths, np.rint(widths * camera.height / camera.width).astype(np.int64)], axis=1)
    corners = np.rint(np.array([camera.cx, camera.cy]) + 0.5 - sides / 2).astype(np.int64)
    inside = (corners >= 0).all(axis=1) & (corners + sides <= camera.size).all(axis=1)
    return np.concatenate([corners, sides], axis=1)[inside]


def _propose_strips(camera: Camera, ask: str, gates: CameraGates, rng: np.random.Generator) -> IntArray:
    """Strips as long as the frame, at places that are uniform over all sets with the gaps."""
    axis = ASK_AXIS[ask]
    side = round(camera.size[axis] / STRIP_ZOOM)
    starts = np.arange(camera.size[axis] - side + 1)
    off = ((camera.cx, camera.cy)[axis] - starts - (side - 1) / 2) / side
    starts = starts[(np.abs(off) >= gates.principal_off_centre_min) & (np.abs(off) <= OFF_CENTRE_MAX)]
    if len(starts) < 4:
        return np.zeros((0, 4, 4), dtype=np.int64)
    sets = np.sort(starts[rng.integers(0, len(starts), (_TRIED, 4))], axis=1)
    # A pixel more than the gap, for the rounding of printed values.
    apart = (np.diff(sets, axis=1) >= gates.principal_gap_min * side + 1).all(axis=1)
    sets = sets[apart][:LADDERS]
    rects = np.zeros((len(sets), 4, 4), dtype=np.int64)
    rects[..., axis] = sets
    rects[..., 2:] = camera.size
    rects[..., 2 + axis] = side
    return rects


def _as_rect(rect: IntArray) -> Rect:
    x0, y0, width, height = rect.tolist()
    return x0, y0, width, height


def make_candidate(crop: Crop, ask: str, size: tuple[int, int]) -> Candidate:
    """What a crop that is resized to `size` (width, height) in pixels says to a kind of question."""
    return Candidate(
        "crop:" + ",".join(map(str, crop.rect)),
        round_as_printed(compute_parameter(crop.camera, ask), ask),
        show={"rect": list(crop.rect), "size": list(size)},
        evidence=CropEvidence(
            zoom=crop.zoom, **{name: compute_parameter(crop.camera, name) for name in ASK_AXIS}
        ).write(),
    )
