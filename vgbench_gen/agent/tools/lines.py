"""Estimates vanishing points, pitch and roll, and the camera from the line segments of one image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np

from vgbench_gen.agent.tool import OneImage, Values, tool
from vgbench_gen.agent.tools._arguments import CAMERA, Coordinate, Intrinsics, Positive, round_all
from vgbench_gen.core.types import FloatArray, IntArray
from vgbench_gen.tasks.solving import Image
from vgbench_gen.tasks.solving.camera_fit import NOISE_PX, cut_segments, detect_segments, fit_cameras

_SCALE = 0.8  # images are scaled by this before segments are detected
_ON_DEG = 1.5  # the largest angle between a segment and the direction to its vanishing point
SEGMENTS_MIN = 12
SIDE_MIN_PX = 64
SUPPORT_MIN = 4  # the least number of segments that show a direction
_UPRIGHT_MAX_DEG = 50.0  # with a larger tilt of the camera, it is unclear which direction is vertical
# The largest standard deviations: relative to the focal length, and of the principal point over the long side.
_FOCAL_SIGMA_MAX, _CENTRE_SIGMA_MAX = 0.12, 0.08


@dataclass(frozen=True, slots=True, eq=False)
class LineCamera:
    """A camera that is estimated from line segments."""

    focal_px: float
    focal_sigma_px: float
    """Standard deviation of the focal length; 0 if it was known."""
    centre: FloatArray
    """(2,) principal point, pixels."""
    centre_sigma_px: FloatArray
    """(2,) standard deviations of the principal point; 0 if it was known."""
    directions: FloatArray
    """(3, 3), rows are orthogonal unit vectors in camera axes (x right, y down, z forward)."""
    counts: IntArray
    """(3,) number of segments that point to the vanishing point of each direction."""
    segments: int

    def find_vanishing_point(self, direction: FloatArray) -> FloatArray | None:
        """(2,) pixel of a direction; None if it is too far away."""
        if abs(direction[2]) < 1e-3:
            return None
        return np.asarray(self.centre + self.focal_px * direction[:2] / direction[2])


def fit_line_camera(image: Image, stated: FloatArray) -> LineCamera | str:
    """The camera, or why it cannot be estimated.

    Args:
        image: any.
        stated: (3,) focal length and principal point u, v in pixels; NaN for unknown ones.
    """
    size = np.array(image.size)
    side = float(max(image.size))
    if min(image.size) < SIDE_MIN_PX:
        return f"the image has {image.size[0]} x {image.size[1]} pixels; too small for lines"
    segments = image.to_delivered(detect_segments(image.gray, _SCALE).reshape(-1, 2)).reshape(-1, 4)
    lines = cut_segments(segments, np.array([[0, 0, *image.size]]), NOISE_PX * float(image.scale.max()))
    real = lines.halves[0] > 0
    if real.sum() < SEGMENTS_MIN:
        return f"only {int(real.sum())} line segments are long enough"
    middle = (size - 1) / 2
    fit = fit_cameras(lines, np.array([[np.log(stated[0] / side), *((stated[1:] - middle) / side)]]))
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


@tool(
    "EstimateVanishingPoints",
    tier="classical",
    returns={
        "directions": "[{direction: unit vector in camera axes (x right, y down, z forward), vanishing_point: [u, v] "
        "in pixels or null where it is too far away, lines_count}, ...]",
        "pitch_deg": "by how much the camera looks up, degrees; negative: down; null where no lines show the vertical",
        "roll_deg": "by how much it is turned clockwise about its view direction as it sees, degrees; null likewise",
        "lines_count": "all line segments",
        "focal_px": "focal length that was used or found, pixels",
        "cannot_tell": "why something is null",
    },
    example={"image": "image-0"},
)
def estimate_vanishing_points(
    image: OneImage, camera: Annotated[Intrinsics | None, f"{CAMERA}; estimated where it is left out"] = None
) -> Values:
    """Finds three directions at right angles in the lines of an image (walls, floor, furniture), their vanishing
    points, and by how much the camera looks up and is turned, taking one of them for the vertical.
    """
    width, height = image.size
    stated = np.array([np.nan, (width - 1) / 2, (height - 1) / 2])
    if camera is not None:
        stated = np.array([np.sqrt(camera.fx * camera.fy), camera.cx, camera.cy])
    found = fit_line_camera(image, stated)
    if isinstance(found, str):
        return {"directions": None, "pitch_deg": None, "roll_deg": None, "cannot_tell": found}
    directions = []
    for direction, count in zip(found.directions, found.counts, strict=True):
        if count >= SUPPORT_MIN:
            point = found.find_vanishing_point(direction)
            directions.append(
                {
                    "direction": round_all(direction, 4),
                    "vanishing_point": None if point is None else round_all(point, 1),
                    "lines_count": int(count),
                }
            )
    values: dict[str, Any] = {
        "directions": directions,
        "lines_count": found.segments,
        "focal_px": round(found.focal_px, 1),
        "pitch_deg": None,
        "roll_deg": None,
    }
    upright = int(np.abs(found.directions[:, 1]).argmax())
    down = found.directions[upright] * np.sign(found.directions[upright, 1])
    if found.counts[upright] < SUPPORT_MIN or np.degrees(np.arccos(min(down[1], 1.0))) > _UPRIGHT_MAX_DEG:
        return values | {"cannot_tell": "no lines show the vertical"}
    values["pitch_deg"] = round(float(np.degrees(np.arcsin(np.clip(-down[2], -1, 1)))), 2) + 0.0
    values["roll_deg"] = round(float(np.degrees(np.arctan2(down[0], down[1]))), 2) + 0.0
    return values


@tool(
    "EstimateCameraFromVanishingPoints",
    tier="classical",
    aliases=("EstimateCameraParameters",),
    returns={
        "focal_px": "focal length along u and v, pixels; null where it cannot be told",
        "focal_sigma_px": "its standard deviation; 0 where it was given",
        "hfov_deg": "field of view from the left to the right edge, degrees, for a principal point in the middle",
        "vfov_deg": "the same from top to bottom",
        "principal_point": "[cx, cy] in pixels, (0, 0) the centre of the top-left pixel; null where it cannot be told",
        "principal_point_sigma_px": "standard deviations of both; 0 where given or taken for the middle",
        "lines_count": "line segments",
        "cannot_tell": "why something is null",
    },
    example={"image": "image-0"},
)
def estimate_camera_from_vanishing_points(
    image: OneImage,
    focal_px: Annotated[Positive | None, "focal length in pixels where it is known"] = None,
    cx: Annotated[Coordinate | None, "u of the principal point in pixels where it is known"] = None,
    cy: Annotated[Coordinate | None, "v of the principal point in pixels where it is known"] = None,
    centre_is_middle: Annotated[
        bool, "whether an unknown principal point is the middle of the image; else it is estimated"
    ] = True,
) -> Values:
    """Estimates focal length, fields of view and principal point from line segments at right angles in space."""
    width, height = image.size
    middle = ((width - 1) / 2, (height - 1) / 2)
    centre = [
        value if value is not None else (at if centre_is_middle else np.nan)
        for value, at in zip((cx, cy), middle, strict=True)
    ]
    stated = np.array([np.nan if focal_px is None else focal_px, *centre])
    found = fit_line_camera(image, stated)
    if isinstance(found, str):
        return {"focal_px": None, "principal_point": None, "cannot_tell": found}
    values: dict[str, Any] = {"lines_count": found.segments, "focal_px": None, "principal_point": None}
    values |= {"focal_sigma_px": None, "principal_point_sigma_px": None}
    reasons = []
    if np.isfinite(found.focal_sigma_px) and found.focal_sigma_px <= _FOCAL_SIGMA_MAX * found.focal_px:
        values |= {
            "focal_px": round(found.focal_px, 1),
            "focal_sigma_px": round(found.focal_sigma_px, 1),
            "hfov_deg": round(2 * float(np.degrees(np.arctan(width / 2 / found.focal_px))), 2),
            "vfov_deg": round(2 * float(np.degrees(np.arctan(height / 2 / found.focal_px))), 2),
        }
    else:
        reasons.append("the lines leave the focal length open")
    off = found.centre_sigma_px
    if np.isfinite(off).all() and off.max() <= _CENTRE_SIGMA_MAX * max(image.size):
        values |= {"principal_point": round_all(found.centre, 1), "principal_point_sigma_px": round_all(off, 1)}
    else:
        reasons.append("the lines leave the principal point open")
    return values | ({"cannot_tell": "; ".join(reasons)} if reasons else {})
