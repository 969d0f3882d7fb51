"""`CheckMotion`: how well the matches of two images fit motions of the camera that somebody states."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._geometry import POSE, Pose
from vgbench_gen.agent.tools._pairs import Cameras, find_cameras
from vgbench_gen.core.config import Config
from vgbench_gen.tasks.solving.epipolar import match_rays, measure_support

_MATCHES_MIN, _LEAD_MIN = 15, 0.1


class _Arguments(Config):
    image: ImagePair
    motions: tuple[Pose, ...] = Field(min_length=1, max_length=12, description=f"[{POSE}, ...], camera 1 to camera 2")
    cameras: Cameras = ()


@tools.register("CheckMotion")
class CheckMotion(Tool[_Arguments]):
    name = "CheckMotion"
    tier: ClassVar[Tier] = "classical"
    does = (
        "Measures how well stated camera motions between two images fit what the images show. The length of a "
        "translation cannot be checked, its direction and sign can."
    )
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "shares": "for each motion the share of matches, 0 to 1, that it explains in front of both cameras",
        "best": "place of the best motion, counted from 0; null where it leads too little",
        "total_matches": "all matches",
        "cannot_tell": "why there is no best one",
    }
    example: ClassVar = {
        "image": ["image-0", "image-1"],
        "motions": [{"rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "translation": [0.2, 0, 0]}],
        "cameras": [{"fx": 580.0, "fy": 580.0, "cx": 319.5, "cy": 239.5}],
    }

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        motions = [motion.read()[:3] for motion in arguments.motions]
        (K1, K2), _ = find_cameras(given, arguments.cameras)
        x_1, x_2, tolerance = match_rays(given.images[0], given.images[1], K1, K2)
        shares = np.array([measure_support(motion, x_1, x_2, tolerance) / max(len(x_1), 1) for motion in motions])
        told: dict[str, Any] = {"shares": shares.round(3).tolist(), "total_matches": len(x_1), "best": None}
        order = np.argsort(-shares, kind="stable")
        second = shares[order[1]] if len(order) > 1 else 0.0
        if len(x_1) < _MATCHES_MIN:
            return ToolOutput(told | {"cannot_tell": f"too few matches: {len(x_1)}"})
        if shares[order[0]] - second < _LEAD_MIN * shares[order[0]] or shares[order[0]] < _LEAD_MIN:
            return ToolOutput(told | {"cannot_tell": "no motion fits clearly better than the others"})
        return ToolOutput(told | {"best": int(order[0])})
