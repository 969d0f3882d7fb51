"""The camera and the three directions at right angles that explain the line segments of an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.tasks.solving import Image
from vgbench_gen.tasks.solving.camera_fit import NOISE_PX, cut_segments, detect_segments, fit_cameras

_SCALE = 0.8  # at which segments are searched
_ON_DEG = 1.5  # of a segment from the line to its vanishing point
SEGMENTS_MIN = 12
SIDE_MIN_PX = 64


@dataclass(frozen=True, slots=True, eq=False)
class LineCamera:
    """What the segments of an image say."""

    focal_px: float
    focal_sigma_px: float
    """Its standard deviation; 0 where it was given."""
    centre: FloatArray
    """(2,) principal point, pixels."""
    centre_sigma_px: FloatArray
    """(2,) its standard deviations; 0 where it was given."""
    directions: FloatArray
    """(3, 3) whose rows are unit vectors of directions at right angles, camera axes (x right, y down, z forward)."""
    counts: IntArray
    """(3,) segments that point to the vanishing point of each direction."""
    segments: int

    def find_vanishing_point(self, direction: FloatArray) -> FloatArray | None:
        """(2,) pixel of a direction; None where it lies too far away to be written down."""
        if abs(direction[2]) < 1e-3:
            return None
        return np.asarray(self.centre + self.focal_px * direction[:2] / direction[2])


def fit_line_camera(image: Image, stated: FloatArray) -> LineCamera | str:
    """The camera, or why there is none.

    Args:
        image: any.
        stated: (3,) focal length and principal point u, v in pixels; NaN where they are asked.
    """
    size = np.array(image.size)
    side = float(max(image.size))
    if min(image.size) < SIDE_MIN_PX:
        return f"the image has {image.size[0]} x {image.size[1]} pixels; too small for lines"
    found = image.to_delivered(detect_segments(image.gray, _SCALE).reshape(-1, 2)).reshape(-1, 4)
    lines = cut_segments(found, np.array([[0, 0, *image.size]]), NOISE_PX * float(image.scale.max()))
    real = lines.halves[0] > 0
    if real.sum() < SEGMENTS_MIN:
        return f"only {int(real.sum())} line segments are long enough"
    middle = (size - 1) / 2
    known = np.array([np.log(stated[0] / side), *((stated[1:] - middle) / side)])
    fit = fit_cameras(lines, known[None])
    focal, centre = float(np.exp(fit.parameters[0, 0])), fit.parameters[0, 1:]
    to = (
        focal * fit.turns[0, :2].T[:, :, None]
        + (centre[:, None] - lines.middles[:, 0])[None] * fit.turns[0, 2][:, None, None]
    )
    along = lines.directions[:, 0]
    sines = np.abs(along[0] * to[:, 1] - along[1] * to[:, 0]) / np.maximum(np.linalg.norm(to, axis=1), 1e-12)
    nearest = sines.argmin(axis=0)
    on = real & (sines.min(axis=0) < np.sin(np.radians(_ON_DEG)))
    return LineCamera(
        side * focal,
        side * focal * float(fit.deviations[0, 0]),
        middle + side * centre,
        side * fit.deviations[0, 1:],
        fit.turns[0].T,
        np.bincount(nearest[on], minlength=3),
        int(real.sum()),
    )
