"""`MatchImagesSIFT`: matched features of two images, as the published tool gives them."""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks.solving import Image

SHOWN = 30  # matches that are told; a model reads no thousand


class MatchArguments(Config):
    """Shared with tools that begin with matches."""

    image: ImagePair
    """The images."""
    num_keypoints: int = Field(default=1200, ge=10, le=20_000, description="most keypoints in each image")
    ratio_th: float = Field(default=0.75, gt=0, le=1, description="nearest over second nearest descriptor, at most")


def match_sift(images: tuple[Image, Image], keypoints: int, ratio: float) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) pixels that pass Lowe's ratio test (Lowe 2004), best first."""
    sift = cv2.SIFT.create(nfeatures=keypoints)
    found = [sift.detectAndCompute(image.gray, None) for image in images]
    (points1, one), (points2, two) = found
    if one is None or two is None or len(two) < 2:
        return np.zeros((0, 2)), np.zeros((0, 2))
    pairs = [pair for pair in cv2.BFMatcher().knnMatch(one, two, k=2) if len(pair) == 2]
    kept = sorted((a for a, b in pairs if a.distance < ratio * b.distance), key=lambda match: match.distance)
    uv1 = np.array([points1[match.queryIdx].pt for match in kept], dtype=np.float64).reshape(-1, 2)
    uv2 = np.array([points2[match.trainIdx].pt for match in kept], dtype=np.float64).reshape(-1, 2)
    return images[0].to_delivered(uv1), images[1].to_delivered(uv2)


@tools.register("MatchImagesSIFT")
class MatchImagesSIFT(Tool[MatchArguments]):
    name = "MatchImagesSIFT"
    tier: ClassVar[Tier] = "classical"
    does = "Finds points that two images share, by SIFT features and the ratio test."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "matches": f"[[u, v] in the first image, [u, v] in the second], pixels; the best {SHOWN} at most",
        "num_matches": "how many there are in all",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run(self, given: ToolInput[MatchArguments]) -> ToolOutput:
        arguments = given.arguments
        uv1, uv2 = match_sift((given.images[0], given.images[1]), arguments.num_keypoints, arguments.ratio_th)
        shown = np.stack([uv1, uv2], axis=1)[:SHOWN].round(1).tolist()
        return ToolOutput({"matches": shown, "num_matches": len(uv1)})
