"""`EstimateRotation`: how a camera turned that stayed where it was, or looks at things far away."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import AXES
from vgbench_gen.agent.tools._pairs import Cameras, find_cameras, match_pair, round_all
from vgbench_gen.agent.two_view import compute_rays, fit_rotation
from vgbench_gen.core.config import Config
from vgbench_gen.geometry.poses import rotation_angle_deg

_INLIERS_MIN, _SHARE_MIN = 15, 0.5
_REACH_PX = 4.0  # at 640: what noise, lens and a camera held in the hand leave


class _Arguments(Config):
    image: ImagePair
    cameras: Cameras = ()


@tools.register("EstimateRotation")
class EstimateRotation(Tool[_Arguments]):
    name = "EstimateRotation"
    tier: ClassVar[Tier] = "classical"
    does = "Estimates by how much the camera turned between two images taken from one place. Says where they are not."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "rotation": f"3x3 R that takes directions of the first camera to the second, {AXES}; null where it moved",
        "rotation_deg": "its angle, degrees",
        "yaw_deg": "by how much the camera turned to the right, degrees; negative: to the left",
        "pitch_deg": "by how much it turned up, degrees; negative: down",
        "rotation_sigma_deg": "standard deviation about the least certain axis, degrees",
        "inliers_count": "matches that the rotation explains",
        "total_matches": "all matches",
        "residual_px": "median distance of these matches from where it takes them, pixels",
        "cameras": "given, or assumed: then angles are off by some tenths",
        "cannot_tell": "why there is no rotation",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        (K1, K2), assumed = find_cameras(given, arguments.cameras)
        uv1, uv2 = match_pair(given)
        told: dict[str, Any] = {"cameras": "assumed" if assumed else "given", "total_matches": len(uv1)}
        if len(uv1) < _INLIERS_MIN:
            return ToolOutput(told | {"rotation": None, "cannot_tell": f"too few matches: {len(uv1)}"})
        rays1, rays2 = compute_rays(uv1, K1), compute_rays(uv2, K2)
        R = fit_rotation(rays1, rays2, 1 / K2[0, 0])
        seen = rays1 @ R.T @ K2.T
        off = np.linalg.norm(seen[:, :2] / np.maximum(seen[:, 2:], 1e-6) - uv2, axis=1)
        within = off <= _REACH_PX * max(1.0, max(given.images[1].size) / 640)
        told["inliers_count"] = int(within.sum())
        if within.sum() < _INLIERS_MIN or within.mean() < _SHARE_MIN:
            reason = f"the camera moved: a rotation explains {int(within.sum())} of {len(uv1)} matches"
            return ToolOutput(told | {"rotation": None, "cannot_tell": reason})
        rays = rays2[within] / np.linalg.norm(rays2[within], axis=1, keepdims=True)
        residual = float(np.median(off[within]))
        information = np.eye(3) * len(rays) - rays.T @ rays
        sigma = residual / K2[0, 0] / np.sqrt(max(float(np.linalg.eigvalsh(information)[0]), 1e-9))
        ahead = R[2]
        return ToolOutput(
            told
            | {
                "rotation": round_all(R, 5),
                "rotation_deg": round(float(rotation_angle_deg(R)), 2),
                "yaw_deg": round(float(np.degrees(np.arctan2(ahead[0], ahead[2]))), 2) + 0.0,
                "pitch_deg": round(float(np.degrees(np.arcsin(np.clip(-ahead[1], -1, 1)))), 2) + 0.0,
                "rotation_sigma_deg": round(float(np.degrees(sigma)), 3),
                "residual_px": round(residual, 2),
            }
        )
