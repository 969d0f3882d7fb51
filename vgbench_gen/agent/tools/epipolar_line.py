"""`EpipolarLine`: the line of one image on which a pixel of the other one must lie."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._fundamental import Epipolar, fit_fundamental, make_fundamental
from vgbench_gen.agent.tools._geometry import POSE, Pixel, Pose
from vgbench_gen.agent.tools._pairs import Intrinsics, find_cameras, round_all
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray


class _Arguments(Config):
    image: ImagePair
    point: Pixel = Field(description="[u, v] in the first image, pixels")
    candidates: tuple[Pixel, ...] = Field(
        default=(), max_length=32, description="[[u, v], ...] in the second image whose distance from the line is asked"
    )
    pose: Pose | None = Field(default=None, description=f"{POSE}; from the matches where it is left out")
    cameras: tuple[Intrinsics, ...] = Field(
        default=(), max_length=2, description='[{"fx", "fy", "cx", "cy"}, ...] in pixels; only used with a pose'
    )


@tools.register("EpipolarLine")
class EpipolarLine(Tool[_Arguments]):
    name = "EpipolarLine"
    tier: ClassVar[Tier] = "classical"
    does = "Gives the line in the second image on which a point of the first image must lie, if it is at rest."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "line": "[a, b, c] of a u + b v + c = 0 in pixels of the second image, a^2 + b^2 = 1",
        "segment": "both ends [u, v] of its part in the second image; null where it misses the image",
        "distances_px": "of each candidate from the line, pixels",
        "sigma_px": "how far the point may lie from the line, pixels",
        "inliers_count": "matches that agree; 0 where a pose was given",
        "total_matches": "all matches; 0 where a pose was given",
        "cannot_tell": "why there is no line",
    }
    example: ClassVar = {"image": ["image-0", "image-1"], "point": [320, 240]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        found: Epipolar | str
        if arguments.pose is not None:
            pose = arguments.pose.read()
            (K1, K2), _ = find_cameras(given, arguments.cameras)
            if np.linalg.norm(pose[:3, 3]) < 1e-9:
                found = "the cameras stand in one place: a point has a pixel there, not a line"
            else:
                t = pose[:3, 3] / np.linalg.norm(pose[:3, 3])
                found = Epipolar(make_fundamental(K1, K2, pose[:3, :3], t), 0, 0, 0.0)
        else:
            found = fit_fundamental(given)
        if isinstance(found, str):
            return ToolOutput({"line": None, "cannot_tell": found})
        line = found.F @ np.array([*arguments.point, 1.0])
        slope = float(np.hypot(line[0], line[1]))
        if slope <= 1e-9 * max(abs(float(line[2])), 1e-12):
            return ToolOutput({"line": None, "cannot_tell": "the point lies where the second camera stands"})
        line /= slope
        told: dict[str, Any] = {
            "line": [float(f"{x:.7g}") for x in line],
            "segment": _cut_line(line, given.images[1].size),
            "sigma_px": round(max(1.5 * found.residual_px, 0.5), 2),
            "inliers_count": found.inliers,
            "total_matches": found.matches,
        }
        if arguments.candidates:
            uv = np.array(arguments.candidates)
            told["distances_px"] = round_all(np.abs(uv @ line[:2] + line[2]), 2)
        return ToolOutput(told)


def _cut_line(line: FloatArray, size: tuple[int, int]) -> list[list[float]] | None:
    """Where a line enters and leaves an image."""
    a, b, c = line
    width, height = size[0] - 1, size[1] - 1
    ends = []
    if abs(b) > 1e-9:
        ends += [(u, -(a * u + c) / b) for u in (0.0, width)]
    if abs(a) > 1e-9:
        ends += [(-(b * v + c) / a, v) for v in (0.0, height)]
    inside = [(u, v) for u, v in ends if -1e-6 <= u <= width + 1e-6 and -1e-6 <= v <= height + 1e-6]
    if len(inside) < 2:
        return None
    first, last = min(inside), max(inside)
    return [[round(float(x), 2) + 0.0 for x in first], [round(float(x), 2) + 0.0 for x in last]]
