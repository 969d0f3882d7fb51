"""The six quantities that may be asked of a camera, how far two values are apart, and each by the line segments of an
image and by what the question states, as a careful reader has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.camera_fit import NOISE_PX, Lines, cut_segments, detect_segments, fit_cameras
from vgbench_gen.text.numbers import parse_numbers

ASK_AXIS = {"fx": 0, "fy": 1, "cx": 0, "cy": 1, "hfov": 0, "vfov": 1}
CENTRES, ANGLES = ("cx", "cy"), ("hfov", "vfov")
MARGINS = {  # `docs/constants.md#camera-parameters` gives the reasons
    "zoom_max": 3.0,
    "ratio_min": 1.25,
    "ratio_max": 2.4,
    "fov_gap_min_deg": 7.0,
    "principal_gap_min": 0.12,
    "principal_off_centre_min": 0.13,
    "undecided_max": 0.5,
    "centres_of_frame": 0,
    "wall_m": 2.0,
}


def measure_margins(a: Any, b: Any, ask: str, size: tuple[int, int], gates: Any) -> FloatArray:
    """Differences of values over the margin between options: of logarithms for focal lengths, in degrees for fields of
    view, in shares of the side of an image of `size` (width, height) for principal points."""
    if ask in CENTRES:
        return np.asarray(np.abs(a - b) / (gates.principal_gap_min * size[ASK_AXIS[ask]]))
    if ask in ANGLES:
        return np.asarray(np.abs(a - b) / gates.fov_gap_min_deg)
    positive = np.minimum(a, b) > 0
    logs = [np.log(np.where(positive, x, 1.0)) for x in (a, b)]
    return np.asarray(np.abs(logs[0] - logs[1]) / np.log(gates.ratio_min))


def estimate_parameters(
    lines: Lines, size: tuple[int, int], ask: str, stated: Sequence[float]
) -> tuple[FloatArray, FloatArray]:
    """(B,) the parameter in each image, pixels or degrees, and (B,) its standard deviation by the segments alone.

    Args:
        lines: segments of the images.
        size: (width, height) of each image, pixels.
        ask: which parameter.
        stated: fx, fy, cx, cy as the questions state them, pixels. Used where a coordinate of the principal point is
            asked, without the coordinate itself; otherwise the principal point is stated to be the middle.
    """
    axis, side = ASK_AXIS[ask], max(size)
    known = np.array([np.nan, 0.0, 0.0])
    if ask in CENTRES:
        fx, fy, *centre = stated
        middle = (np.array(size) - 1) / 2
        known = np.array([np.log(np.sqrt(fx * fy) / side), *(np.array(centre) - middle) / side])
        known[1 + axis] = np.nan
    fit = fit_cameras(lines, np.tile(known, (len(lines.halves), 1)))
    if ask in CENTRES:
        values = (size[axis] - 1) / 2 + side * fit.parameters[:, 1 + axis]
        deviations = side * fit.deviations[:, 1 + axis]
    else:
        values = side * np.exp(fit.parameters[:, 0])
        deviations = values * fit.deviations[:, 0]
        if ask in ANGLES:
            deviations = np.degrees(np.sin(2 * np.arctan(size[axis] / 2 / values))) * fit.deviations[:, 0]
            values = 2 * np.degrees(np.arctan(size[axis] / 2 / values))
    return values, deviations


# A true claim is off by up to a quarter of the margin between options, a false one by the whole, the estimate by some.
_CLAIM_OFF = 0.6  # of the margin, from which a claim is called false; a true claim is off by up to a quarter
_SCALE = 0.8  # at which segments are searched; the image is no larger than what it shows
_STATED = re.compile(r"\b(fx|fy|cx|cy) = (\d+)")
_EXTENT = re.compile(r" \([^()]* a wall [^()]*\)")  # says again what stands before it
_TOLERANCE_FIRST = re.compile(r"within \S+ (?:percent|pixels) of \S")


def score_by_lines(seen: VisibleQuestion) -> FloatArray:
    """Minus the difference of each option from the estimate, in margins; of a judgment, whether the claim is near it.

    Raises:
        Unread: the text does not hold the numbers, or the image shows no line.
    """
    size = seen.images[0].size
    found = dict(_STATED.findall(seen.context))
    if seen.ask in CENTRES and len(found) != 3:
        raise Unread(f"states {sorted(found)} of the camera")
    stated = [float(found.get(name, "nan")) for name in ("fx", "fy", "cx", "cy")]
    segments = detect_segments(seen.images[0].gray, _SCALE)
    lines = cut_segments(segments, np.array([[0, 0, *size]]), NOISE_PX)
    if not lines.halves.shape[1]:
        raise Unread("no line in the image")
    estimate = estimate_parameters(lines, size, seen.ask, stated)[0]
    options = [_read_claim(seen.question)] if seen.form == "judgment" else [_read_value(x) for x in seen.options]
    off = measure_margins(estimate, np.array(options), seen.ask, size, SimpleNamespace(**MARGINS))
    return np.array([_CLAIM_OFF, off[0]]) if seen.form == "judgment" else -off


def _read_claim(question: str) -> float:
    numbers = parse_numbers(_EXTENT.sub("", question))
    if numbers.size != 2:
        raise Unread(f"{numbers.size} numbers where a claim and its tolerance are printed")
    return float(numbers[1 if _TOLERANCE_FIRST.search(question) else 0])


def _read_value(option: str) -> float:
    numbers = parse_numbers(_EXTENT.sub("", option))
    if numbers.size != 1:
        raise Unread(f"option {option!r}")
    return float(numbers[0])


SOLVERS = (Solver("vanishing points of line segments", score_by_lines, 75.0),)
