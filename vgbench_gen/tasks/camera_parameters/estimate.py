"""The asked parameter of an image by its line segments and by what the question states, as a careful reader has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vgbench_gen.tasks.camera_parameters.quantities import ANGLES, ASK_AXIS, CENTRES
from vgbench_gen.tasks.solving.camera_fit import fit_cameras
from vgbench_gen.tasks.solving.lines import Lines


@dataclass(frozen=True, slots=True)
class ParameterEstimate:
    """A parameter, pixels or degrees."""

    value: float
    """The parameter."""
    deviation: float
    """Its standard deviation by the segments alone."""


def estimate_parameters(
    lines: Lines, size: tuple[int, int], ask: str, stated: Sequence[float]
) -> list[ParameterEstimate]:
    """One estimate per image.

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
    return [
        ParameterEstimate(float(value), float(deviation)) for value, deviation in zip(values, deviations, strict=True)
    ]
