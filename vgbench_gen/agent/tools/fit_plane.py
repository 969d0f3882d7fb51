"""`FitPlane`: the plane through pixels whose depths are known."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES, CAMERA, POINTS_MAX, Depths, Pixel, back_project, read_depths
from vgbench_gen.agent.tools._pairs import Intrinsics, round_all
from vgbench_gen.core.config import Config
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import FloatArray

_ROUNDS = 20  # of reweighting
_TRIALS = 200  # planes through three points, of which the best is where reweighting starts
_SIGMA_MAX_DEG = 20.0


class _Arguments(Config):
    pixels: tuple[Pixel, ...] = Field(min_length=3, max_length=POINTS_MAX, description="[[u, v], ...], three or more")
    depths: Depths
    camera: Intrinsics = Field(description=CAMERA)


@tools.register("FitPlane")
class FitPlane(Tool[_Arguments]):
    name = "FitPlane"
    tier: ClassVar[Tier] = "classical"
    does = "Fits a plane to pixels whose depths are known; single wrong depths count little."
    returns: ClassVar = {
        "normal": f"unit vector of the plane that points towards the camera, {AXES}",
        "distance": "of the camera from the plane, in the unit of the depths",
        "angle_to_view_deg": "between the normal and the direction back to the camera's viewer (0, 0, -1), degrees",
        "residual": "median distance of the points from the plane",
        "normal_sigma_deg": "standard deviation of the normal about its least certain axis, degrees",
        "inliers_count": "points within three times the residual's spread",
        "cannot_tell": "why there is no plane",
    }
    example: ClassVar = {
        "pixels": [[100, 100], [400, 120], [240, 380]],
        "depths": [2.5, 2.6, 2.2],
        "camera": {"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5},
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        z = read_depths(arguments.depths, len(arguments.pixels))
        points = back_project(arguments.camera, np.array(arguments.pixels), z)
        extent = float(np.linalg.norm(points - points.mean(axis=0), axis=1).max())
        if extent < 1e-9:
            return ToolOutput({"normal": None, "cannot_tell": "all points are one"})
        weights = _guess_weights(points, extent)
        for _ in range(_ROUNDS):
            middle = np.average(points, axis=0, weights=weights)
            spread, axes = np.linalg.eigh(((points - middle) * weights[:, None]).T @ (points - middle) / weights.sum())
            normal = axes[:, 0]
            off = np.abs((points - middle) @ normal)
            # Never so narrow that a few points hold all the weight.
            reach = max(1.4826 * float(np.median(off)), 1e-3 * extent, 1e-12)
            weights = 1 / (1 + (off / reach) ** 2)
        if spread[1] <= 1e-6 * max(spread[2], 1e-18):
            return ToolOutput({"normal": None, "cannot_tell": "the points lie on one line"})
        if middle @ normal > 0:
            normal = -normal
        within = off <= 3 * reach
        noise = float(np.sqrt((off[within] ** 2).sum() / max(int(within.sum()) - 3, 1)))
        sigma = float(np.degrees(np.arctan2(noise, np.sqrt(spread[1] * max(int(within.sum()), 1)))))
        told: dict[str, Any] = {
            "normal": round_all(normal, 5),
            "distance": round(abs(float(middle @ normal)), 6),
            "angle_to_view_deg": round(float(np.degrees(np.arccos(np.clip(-normal[2], -1, 1)))), 3),
            "residual": round(float(np.median(off)), 6),
            "normal_sigma_deg": round(sigma, 3) if len(points) > 3 else None,
            "inliers_count": int(within.sum()),
        }
        if sigma > _SIGMA_MAX_DEG:
            told |= {"normal": None, "cannot_tell": "the points do not lie on a plane, or too close together"}
        return ToolOutput(told)


def _guess_weights(points: FloatArray, extent: float) -> FloatArray:
    """(N,) weights by the plane through three points that most points are near to (least median)."""
    rng = rng_for(0, "FitPlane")
    least, weights = np.inf, np.ones(len(points))
    for _ in range(_TRIALS):
        a, b, c = points[rng.choice(len(points), 3, replace=False)]
        normal = np.cross(b - a, c - a)
        length = float(np.linalg.norm(normal))
        if length < 1e-3 * extent**2:
            continue
        off = np.abs((points - a) @ normal) / length
        median = float(np.median(off))
        if median < least:
            reach = max(1.4826 * median, 1e-3 * extent)
            least, weights = median, 1 / (1 + (off / reach) ** 2) ** 2
    return np.asarray(weights)
