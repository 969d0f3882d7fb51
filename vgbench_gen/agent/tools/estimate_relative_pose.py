"""`EstimateRelativePose`: how the second camera stands to the first, up to the scale of its translation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import Cameras, find_cameras, match_pair, round_all
from vgbench_gen.agent.two_view import estimate_two_view
from vgbench_gen.core.config import Config
from vgbench_gen.geometry.poses import rotation_angle_deg


class _Arguments(Config):
    image: ImagePair
    cameras: Cameras = ()


@tools.register("EstimateRelativePose")
class EstimateRelativePose(Tool[_Arguments]):
    name = "EstimateRelativePose"
    tier: ClassVar[Tier] = "classical"
    does = (
        "Estimates rotation and direction of translation between two views of a rigid scene. Camera axes: x right, y "
        "down, z forward. The length of the translation cannot be told from two images."
    )
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "rotation": "3x3 R of X2 = R X1 + t: takes directions of the first camera to the second; null where it cannot "
        "be told",
        "rotation_deg": "its angle, degrees",
        "rotation_sigma_deg": "standard deviation about the least certain axis, degrees",
        "translation_direction": "unit vector along t of X2 = R X1 + t, axes of the second camera; null where it "
        "cannot be told",
        "camera_moved": "unit vector from the first camera to the second, axes of the first camera; null likewise",
        "direction_sigma_deg": "standard deviation of both directions, degrees",
        "scale": "always unknown",
        "cannot_tell": "why there is no direction, or no pose at all",
        "inliers_count": "matches that agree",
        "total_matches": "all matches",
        "parallax_px": "median shift that the rotation does not explain, pixels",
        "cameras": "given, or assumed: then angles are off by some tenths",
    }
    example: ClassVar = {
        "image": ["image-0", "image-1"],
        "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}],
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        (K1, K2), assumed = find_cameras(given, arguments.cameras)
        uv1, uv2 = match_pair(given)
        found = estimate_two_view(uv1, uv2, K1, K2)
        told: dict[str, Any] = {
            "scale": "unknown",
            "cameras": "assumed" if assumed else "given",
            "total_matches": len(uv1),
        }
        if found is None:
            told |= {"rotation": None, "cannot_tell": "too few matches agree on any motion", "inliers_count": 0}
            return ToolOutput(told)
        if found.doubt:
            told |= {"rotation": None, "cannot_tell": found.doubt, "inliers_count": found.inliers}
            return ToolOutput(told)
        told |= {
            "rotation": round_all(found.rotation, 5),
            "rotation_deg": round(float(rotation_angle_deg(found.rotation)), 2),
            "rotation_sigma_deg": round(min(found.rotation_sigma_deg, 180.0), 2),
            "inliers_count": found.inliers,
            "parallax_px": round(found.parallax_px, 1),
            "translation_direction": None,
            "camera_moved": None,
        }
        if found.unclear:
            return ToolOutput(told | {"cannot_tell": found.unclear})
        moved = -found.rotation.T @ found.direction
        told |= {
            "translation_direction": round_all(found.direction, 4),
            "camera_moved": round_all(np.asarray(moved), 4),
            "direction_sigma_deg": round(found.direction_sigma_deg, 2),
        }
        return ToolOutput(told)
