"""`CheckHomography`: which of several stated 3x3 matrices takes one image to the other."""

from __future__ import annotations

from typing import Any, ClassVar

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Matrix3, Tier, Tool, ToolInput, ToolOutput, tools
from vgbench_gen.agent.tools._pairs import match_pair
from vgbench_gen.agent.tools._warping import compare, read_matrix
from vgbench_gen.core.config import Config
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.homography import apply, image_corners

_INLIERS_MIN = 10
_REACH_PX = 4.0  # at 640
_ALIKE_MIN = 0.3


class _Arguments(Config):
    image: ImagePair
    matrices: tuple[Matrix3, ...] = Field(
        min_length=1, max_length=12, description="[3x3, ...], each takes (u, v, 1) of the first image to the second"
    )


@tools.register("CheckHomography")
class CheckHomography(Tool[_Arguments]):
    name = "CheckHomography"
    tier: ClassVar[Tier] = "classical"
    does = "Measures how well stated homographies take the first image to the second, by matches and by warping."
    argument_aliases: ClassVar = {"images": "image"}
    returns: ClassVar = {
        "corner_errors_px": "for each matrix the mean distance of the image's corners from where the fitted homography "
        "takes them, pixels; null where no homography could be fitted",
        "correlations": "for each matrix the likeness of the warped first image and the second one, -1 to 1",
        "best": "place of the best matrix, counted from 0; null where none fits",
        "inliers_count": "matches that agree on the fitted homography",
        "cannot_tell": "why there is no best one",
    }
    example: ClassVar = {"image": ["image-0", "image-1"], "matrices": [[[1, 0, 20], [0, 1, 0], [0, 0, 1]]]}

    def run(self, given: ToolInput[_Arguments]) -> ToolOutput:
        arguments = given.arguments
        stated = [read_matrix(matrix) for matrix in arguments.matrices]
        first, second = given.images
        fitted, inliers = _fit(given)
        corners = image_corners(*first.size)
        with np.errstate(all="ignore"):
            errors = [
                None
                if fitted is None
                else float(np.linalg.norm(apply(H, corners) - apply(fitted, corners), axis=1).mean())
                for H in stated
            ]
        errors = [error if error is not None and error < 1e6 else None for error in errors]
        alike = [compare(first, second, H)[0] for H in stated]
        told: dict[str, Any] = {
            "corner_errors_px": [None if error is None else round(error, 2) for error in errors],
            "correlations": [None if one is None else round(one, 3) for one in alike],
            "inliers_count": inliers,
            "best": None,
        }
        if any(error is not None for error in errors):
            told["best"] = int(np.argmin([np.inf if error is None else error for error in errors]))
        elif max((one or -1.0) for one in alike) >= _ALIKE_MIN:
            told["best"] = int(np.argmax([-1.0 if one is None else one for one in alike]))
        else:
            told["cannot_tell"] = "too few matches agree, and no matrix makes the images look alike"
        return ToolOutput(told)


def _fit(given: ToolInput) -> tuple[FloatArray | None, int]:
    uv1, uv2 = match_pair(given)
    if len(uv1) < _INLIERS_MIN:
        return None, 0
    reach = _REACH_PX * max(1.0, max(given.images[1].size) / 640)
    H, mask = cv2.findHomography(uv1, uv2, cv2.USAC_MAGSAC, reach, maxIters=10_000, confidence=0.9999)
    count = 0 if mask is None else int(mask.sum())
    return (None, count) if H is None or count < _INLIERS_MIN else (np.asarray(H, dtype=np.float64), count)
