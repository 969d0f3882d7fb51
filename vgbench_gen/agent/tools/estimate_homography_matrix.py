"""`EstimateHomographyMatrix`: the homography between two images of a plane, or from one place."""

from __future__ import annotations

from typing import ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools.match_images_sift import MatchArguments, match_sift
from vgbench_gen.geometry.homography import apply

INLIERS_MIN = 12
SPREAD_MIN = 0.05  # of the first image's area that the inliers' hull must cover


class _Arguments(MatchArguments):
    ransac_reproj_threshold: float = Field(
        default=5.0, gt=0, le=100, description="largest distance of a match from where the matrix takes it, pixels"
    )


@tools.register("EstimateHomographyMatrix")
class EstimateHomographyMatrix(Tool[_Arguments]):
    name = "EstimateHomographyMatrix"
    tier: ClassVar[Tier] = "classical"
    does = "Estimates the 3x3 homography that takes pixels of the first image to the second (SIFT, MAGSAC)."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "homography_matrix": "3x3, takes (u, v, 1) of the first image to the second, lower right number 1; "
        "(0, 0) is the centre of the top-left pixel",
        "inliers_count": "matches that agree with it",
        "total_matches": "all matches",
        "status": "success, or why there is no matrix",
        "residual_px": "median distance of the agreeing matches, pixels of the second image",
    }
    example: ClassVar = {"image": ["image-0", "image-1"]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        uv1, uv2 = match_sift((given.images[0], given.images[1]), arguments.num_keypoints, arguments.ratio_th)
        count = {"inliers_count": 0, "total_matches": len(uv1)}
        if len(uv1) < INLIERS_MIN:
            return ToolOutput({"homography_matrix": None, **count, "status": f"too few matches: {len(uv1)}"})
        H, mask = cv2.findHomography(
            uv1, uv2, cv2.USAC_MAGSAC, arguments.ransac_reproj_threshold, maxIters=10_000, confidence=0.9999
        )
        if H is None:
            return ToolOutput({"homography_matrix": None, **count, "status": "no matrix agrees with the matches"})
        within = mask.ravel() > 0
        count["inliers_count"] = int(within.sum())
        width, height = given.images[0].size
        hull = cv2.contourArea(cv2.convexHull(uv1[within].astype(np.float32))) if within.sum() >= 3 else 0.0
        if within.sum() < INLIERS_MIN or hull < SPREAD_MIN * width * height:
            status = f"{int(within.sum())} matches agree, on {hull / (width * height):.0%} of the image: cannot tell"
            return ToolOutput({"homography_matrix": None, **count, "status": status})
        off = np.linalg.norm(apply(H, uv1[within]) - uv2[within], axis=1)
        matrix = [[float(f"{x:.7g}") for x in row] for row in (H / H[2, 2]).tolist()]
        told = {
            "homography_matrix": matrix,
            **count,
            "status": "success",
            "residual_px": round(float(np.median(off)), 2),
        }
        return ToolOutput(told)
