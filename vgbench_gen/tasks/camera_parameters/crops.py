"""Crops of one frame, resized to one common size, as if taken by cameras of other focal lengths and centres.

A crop can only raise the focal length over the image width, so wrong values are those of other crops of the same
frame and nobody can tell them apart by knowing the sensor (`docs/validity.md#camera-parameters`). Focal lengths and
fields of view are asked of crops about the principal point, coordinates of the principal point of strips of one size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, IntArray
from vgbench_gen.geometry import cameras
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.camera_parameters.estimate import ANGLES, ASK_AXIS, CENTRES, estimate_parameters, measure_margins
from vgbench_gen.tasks.evidence import Evidence, FactEvidence, Size
from vgbench_gen.tasks.presentation import Margins
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.solving.camera_fit import cut_segments
from vgbench_gen.text.numbers import format_fixed

LONG_SIDE_PX = 640  # of the delivered crop
SIDE_OF_FRAME_MAX = 0.4  # of the frame's side, so that small frames too leave room to zoom and no crop is enlarged
STRIP_ZOOM = 1.6  # side of the frame over that of a strip, along the asked coordinate; 1.8 decides no more frames
OFF_CENTRE_MAX = 0.40  # further out the principal point would leave the image
LADDERS = 6  # sets of four proposed per frame; three give a sixth fewer questions
COMPLETED = 3  # of which the narrowest crop is determined, whose others are looked at as well
# Whole pixels: a crop reaches a wanted field of view, or logarithm of the zoom, to within this.
FOV_SLACK_DEG, ZOOM_SLACK = 0.1, 0.005
_TRIED = 4096  # sets of strips drawn, of which a few per cent keep the gaps

STORED = 1e-3  # pixels or degrees between a stored parameter and that of the crop


class SizeEvidence(FactEvidence):
    """What is kept of a fact besides its crops."""

    size: Size
    """Of the image that is shown."""


class CropEvidence(Evidence):
    """What is kept of a crop that may be asked about. A computed option has `fx` alone, or no evidence at all."""

    fx: float
    """Focal length along x, pixels of the shown image."""
    fy: float | None = None
    """Focal length along y, pixels of the shown image; None for a computed option, like all that follow."""
    cx: float | None = None
    """Principal point along x, pixels of the shown image."""
    cy: float | None = None
    """Principal point along y, pixels of the shown image."""
    hfov: float | None = None
    """Field of view from left to right, degrees."""
    vfov: float | None = None
    """Field of view from top to bottom, degrees."""
    zoom: float | None = None
    """Width of the frame over that of the crop."""

    @property
    def parameters(self) -> dict[str, float]:
        """The six quantities by name, without those that are not known."""
        return {name: value for name in ASK_AXIS if (value := getattr(self, name)) is not None}


def compute_parameter(camera: Camera, ask: str) -> float:
    """One of the six, unrounded, pixels or degrees."""
    if ask in ANGLES:
        return cameras.fov_deg(camera)[ASK_AXIS[ask]]
    return {"fx": camera.fx, "fy": camera.fy, "cx": camera.cx, "cy": camera.cy}[ask]


def round_as_printed(value: float, ask: str) -> FloatArray:
    """(1,) as printed for that kind of question; a half stays a half, however it was reached."""
    return np.array([float(format_fixed(round(float(value), 6), get_decimals(ask)))])


def get_decimals(ask: str) -> int:
    """Printed decimals of that kind of question."""
    return 1 if ask in ANGLES else 0


def make_shown_camera(camera: Camera, show: Mapping[str, Any]) -> Camera:
    """The camera of a crop as it is shown: `rect` [x0, y0, width, height] of the frame, resized to `size` [width,
    height], pixels."""
    return cameras.resize_camera(cameras.crop_camera(camera, *show["rect"]), *show["size"])


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


def propose_rects(camera: Camera, ask: str, gates: Any, rng: np.random.Generator) -> IntArray:
    """(at most LADDERS, 4, 4) sets of four crops x0, y0, width, height that keep the gaps between options.

    Three gaps take most of what one frame offers, so crops drawn one by one would rarely make a set.
    """
    return (_propose_strips if ask in CENTRES else _propose_centred)(camera, ask, gates, rng)


def keep_determined(
    camera: Camera, segments: FloatArray, noise_px: float, sets: IntArray, ask: str, gates: Any
) -> list[tuple[Candidate, dict[str, float]]]:
    """Of sets of crops (S, 4, 4) those, each once, whose own line segments determine the parameter, with the margins of
    the gates that they pass.

    Args:
        camera: of the frame.
        segments: (N, 4) line segments of the frame, its pixels.
        noise_px: standard deviation of their ends, pixels of the frame.
    """
    # The narrowest crop of a set shows least: where it fails, the others need no look.
    narrowest = np.take_along_axis(sets, sets[..., 2].argmin(axis=1)[:, None, None], 1)[:, 0]
    first = _fit_crops(camera, segments, noise_px, narrowest, ask, gates)
    passed = [crop.show["rect"] for crop, _ in first]
    hopeful = [four for four in sets.tolist() if any(rect in passed for rect in four)][:COMPLETED]
    left = [rect for four in hopeful for rect in four if rect not in passed]
    if not left:
        return first
    return first + _fit_crops(camera, segments, noise_px, np.unique(left, axis=0), ask, gates)


def _fit_crops(
    camera: Camera, segments: FloatArray, noise_px: float, rects: IntArray, ask: str, gates: Any
) -> list[tuple[Candidate, dict[str, float]]]:
    size, axis = compute_output_size(camera, ask), ASK_AXIS[ask]
    shows = [{"rect": rect, "size": list(size)} for rect in rects.tolist()]
    shown = [make_shown_camera(camera, show) for show in shows]
    stated = [np.nan if ask not in CENTRES else x for x in (shown[0].fx, shown[0].fy, shown[0].cx, shown[0].cy)]
    lines = cut_segments(segments, rects, noise_px)
    if not lines.halves.shape[1]:
        return []  # a plain or tiny picture
    kept = []
    for show, cropped, value, deviation in zip(
        shows, shown, *estimate_parameters(lines, size, ask, stated), strict=True
    ):
        truth, margins = compute_parameter(cropped, ask), Margins()
        spread = measure_margins(value, value + deviation, ask, size, gates) if np.isfinite(deviation) else np.inf
        certain = margins.at_most("deviation", float(spread), gates.undecided_max)
        if ask in CENTRES:
            middle = (size[axis] - 1) / 2
            off = abs(truth - middle) / size[axis]
            margins.at_least("off_centre", off, gates.principal_off_centre_min)
        if certain and measure_margins(value, truth, ask, size, gates) <= gates.undecided_max:
            seen = {name: compute_parameter(cropped, name) for name in ASK_AXIS}
            evidence = CropEvidence(zoom=camera.width / show["rect"][2], **seen).write()
            key = "crop:" + ",".join(map(str, show["rect"]))
            kept.append((Candidate(key, round_as_printed(truth, ask), show=show, evidence=evidence), margins.ratios))
    return kept


def _propose_centred(camera: Camera, ask: str, gates: Any, rng: np.random.Generator) -> IntArray:
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


def _list_centred_rects(camera: Camera, gates: Any) -> IntArray:
    """(N, 4) all rectangles of the frame's shape, to a pixel, with the principal point in their middle to half a
    pixel, that are neither zoomed too much nor enlarged."""
    narrowest = max(int(np.ceil(camera.width / gates.zoom_max)), compute_output_size(camera, "fx")[0])
    widths = np.arange(narrowest, camera.width + 1)
    sides = np.stack([widths, np.rint(widths * camera.height / camera.width).astype(np.int64)], axis=1)
    corners = np.rint(np.array([camera.cx, camera.cy]) + 0.5 - sides / 2).astype(np.int64)
    inside = (corners >= 0).all(axis=1) & (corners + sides <= camera.size).all(axis=1)
    return np.concatenate([corners, sides], axis=1)[inside]


def _propose_strips(camera: Camera, ask: str, gates: Any, rng: np.random.Generator) -> IntArray:
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


def check_crops(fact: Fact, gates: Gates) -> Problems:
    """Each crop has all the parameters stored with it, and the printed one."""
    frame = read_camera_record(fact.cameras[fact.frame_ids[0]])
    found: Problems = []
    for option in fact.candidates:
        if "rect" not in option.show:
            continue  # a computed value, which no crop has
        try:
            shown, stored = make_shown_camera(frame, option.show), CropEvidence.of(option).parameters
        except ValueError as error:
            found.append(("crop", f"{option.key}: {error}"))
            continue
        by_crop = {name: compute_parameter(shown, name) for name in ASK_AXIS}
        found += [
            ("crop", f"{option.key}: {name} {stored[name]:.3f} stored, {value:.3f} by the crop")
            for name, value in by_crop.items()
            if not abs(stored[name] - value) <= STORED
        ]
        printed, digit = float(option.value[0]), 10.0 ** -get_decimals(fact.ask)
        if not abs(printed - by_crop[fact.ask]) <= digit / 2 + STORED:
            found.append(("crop", f"{option.key}: prints {printed:g}, the crop gives {by_crop[fact.ask]:.3f}"))
    return found
