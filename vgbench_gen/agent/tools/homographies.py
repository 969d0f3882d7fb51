"""Fits, checks and applies homographies between two images."""

from __future__ import annotations

from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Matrix3, ToolError, ToolOutput, Values, tool
from vgbench_gen.agent.tools._arguments import match_pair
from vgbench_gen.agent.tools.matches import Keypoints, Ratio, Threshold, match_sift
from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import BoolArray, ColorArray, FloatArray
from vgbench_gen.geometry.homography import apply, image_corners, normalise_homography
from vgbench_gen.store.pictures import encode_jpeg
from vgbench_gen.tasks.solving import Image

INLIERS_MIN = 12
SPREAD_MIN = 0.05  # the smallest area of the inliers' convex hull, as a share of the first image
_BLUR_PX = 1.5  # blur before images are compared at 256 pixels; it tolerates the rounding of printed matrices
_COMPARED_SIDE_PX = 256
_COVERED_MIN = 100  # the least number of compared pixels
_CHECK_INLIERS_MIN = 10
_CHECK_REACH_PX = 4.0  # the largest error of an inlier, pixels at 640
_ALIKE_MIN = 0.3  # the least correlation at which a matrix may count as the best without matches


@tool(
    "EstimateHomographyMatrix",
    tier="classical",
    returns={
        "homography_matrix": "3x3, takes (u, v, 1) of the first image to the second, lower right number 1; "
        "(0, 0) is the centre of the top-left pixel",
        "inliers_count": "matches that agree with it",
        "total_matches": "all matches",
        "status": "success, or why there is no matrix",
        "residual_px": "median distance of the agreeing matches, pixels of the second image",
    },
    example={"image": ["image-0", "image-1"]},
)
def estimate_homography_matrix(
    image: ImagePair,
    num_keypoints: Keypoints = 1200,
    ratio_th: Ratio = 0.75,
    ransac_reproj_threshold: Threshold = 5.0,
) -> Values:
    """Estimates the 3x3 homography that takes pixels of the first image to the second (SIFT, MAGSAC)."""
    uv1, uv2 = match_sift(image, num_keypoints, ratio_th)
    count = {"inliers_count": 0, "total_matches": len(uv1)}
    if len(uv1) < INLIERS_MIN:
        return {"homography_matrix": None, **count, "status": f"too few matches: {len(uv1)}"}
    H, mask = cv2.findHomography(uv1, uv2, cv2.USAC_MAGSAC, ransac_reproj_threshold, maxIters=10_000, confidence=0.9999)
    if H is None:
        return {"homography_matrix": None, **count, "status": "no matrix agrees with the matches"}
    within = mask.ravel() > 0
    count["inliers_count"] = int(within.sum())
    width, height = image[0].size
    hull = cv2.contourArea(cv2.convexHull(uv1[within].astype(np.float32))) if within.sum() >= 3 else 0.0
    if within.sum() < INLIERS_MIN or hull < SPREAD_MIN * width * height:
        status = f"{int(within.sum())} matches agree, on {hull / (width * height):.0%} of the image: cannot tell"
        return {"homography_matrix": None, **count, "status": status}
    off = np.linalg.norm(apply(H, uv1[within]) - uv2[within], axis=1)
    matrix = [[float(f"{x:.7g}") for x in row] for row in (H / H[2, 2]).tolist()]
    return {"homography_matrix": matrix, **count, "status": "success", "residual_px": round(float(np.median(off)), 2)}


def read_matrix(matrix: Matrix3) -> FloatArray:
    """(3, 3) with lower right number 1.

    Raises:
        ToolError: the matrix cannot be inverted, or takes (0, 0) to infinity.
    """
    try:
        H = normalise_homography(np.array(matrix, dtype=np.float64))
    except GeometryError as error:
        raise ToolError(f"matrix: {error}") from None
    if abs(np.linalg.det(H)) < 1e-12 or not np.isfinite(np.linalg.inv(H)).all():
        raise ToolError("matrix: found one that cannot be inverted; expected a homography")
    return H


def warp(image: ColorArray, H: FloatArray, size: tuple[int, int]) -> tuple[ColorArray, BoolArray]:
    """(the warped image in a size (width, height), mask of the pixels that it covers); black elsewhere."""
    warped = cv2.warpPerspective(image, H, size, flags=cv2.INTER_LINEAR)
    covered = cv2.warpPerspective(np.full(image.shape[:2], 255, np.uint8), H, size, flags=cv2.INTER_LINEAR)
    return np.asarray(warped, dtype=np.uint8), np.asarray(covered > 250)


def compare(source: Image, target: Image, H: FloatArray) -> tuple[float | None, float | None]:
    """(correlation -1 to 1, mean grey difference 0 to 255) of an image warped onto another; None if unknown."""
    first, second = source.gray, target.gray
    H = np.linalg.inv(target.delivered_from_held) @ H @ source.delivered_from_held
    wide, high = second.shape[1], second.shape[0]
    scale = min(1.0, _COMPARED_SIDE_PX / max(wide, high))
    size = (max(1, round(wide * scale)), max(1, round(high * scale)))
    sx, sy = size[0] / wide, size[1] / high
    shrink = np.array([[sx, 0, sx / 2 - 0.5], [0, sy, sy / 2 - 0.5], [0, 0, 1]])
    grow = max(1.0, max(first.shape) / _COMPARED_SIDE_PX)
    # Blurring before shrinking keeps fine texture from turning into noise.
    blurred = cv2.GaussianBlur(first, (0, 0), _BLUR_PX * grow)
    warped, covered = warp(np.asarray(blurred, dtype=np.uint8), shrink @ H, size)
    shrunk = cv2.resize(cv2.GaussianBlur(second, (0, 0), _BLUR_PX / scale), size, interpolation=cv2.INTER_AREA)
    covered = np.asarray(cv2.erode(covered.astype(np.uint8), np.ones((5, 5), np.uint8)) > 0)
    if covered.sum() < _COVERED_MIN:
        return None, None
    x, y = warped[covered].astype(np.float64), np.asarray(shrunk)[covered].astype(np.float64)
    difference = float(np.abs(x - y).mean())
    x, y = x - x.mean(), y - y.mean()
    spread = float(np.sqrt((x @ x) * (y @ y)))
    return (float(x @ y) / spread if spread > 1e-6 else None), difference


@tool(
    "CheckHomography",
    tier="classical",
    returns={
        "corner_errors_px": "for each matrix the mean distance of the image's corners from where the fitted homography "
        "takes them, pixels; null where no homography could be fitted",
        "correlations": "for each matrix the likeness of the warped first image and the second one, -1 to 1",
        "best": "place of the best matrix, counted from 0; null where none fits",
        "inliers_count": "matches that agree on the fitted homography",
        "cannot_tell": "why there is no best one",
    },
    example={"image": ["image-0", "image-1"], "matrices": [[[1, 0, 20], [0, 1, 0], [0, 0, 1]]]},
)
def check_homography(
    image: ImagePair,
    matrices: Annotated[
        tuple[Matrix3, ...],
        Field(min_length=1, max_length=12),
        "[3x3, ...], each takes (u, v, 1) of the first image to the second",
    ],
) -> Values:
    """Measures how well stated homographies take the first image to the second, by matches and by warping."""
    stated = [read_matrix(matrix) for matrix in matrices]
    first, second = image
    fitted, inliers = _fit(image)
    corners = image_corners(*first.size)
    with np.errstate(all="ignore"):
        errors = [
            None if fitted is None else float(np.linalg.norm(apply(H, corners) - apply(fitted, corners), axis=1).mean())
            for H in stated
        ]
    errors = [error if error is not None and error < 1e6 else None for error in errors]
    correlations = [compare(first, second, H)[0] for H in stated]
    values: dict[str, Any] = {
        "corner_errors_px": [None if error is None else round(error, 2) for error in errors],
        "correlations": [None if value is None else round(value, 3) for value in correlations],
        "inliers_count": inliers,
        "best": None,
    }
    if any(error is not None for error in errors):
        values["best"] = int(np.argmin([np.inf if error is None else error for error in errors]))
    elif max((value or -1.0) for value in correlations) >= _ALIKE_MIN:
        values["best"] = int(np.argmax([-1.0 if value is None else value for value in correlations]))
    else:
        values["cannot_tell"] = "too few matches agree, and no matrix makes the images look alike"
    return values


def _fit(images: ImagePair) -> tuple[FloatArray | None, int]:
    uv1, uv2 = match_pair(images)
    if len(uv1) < _CHECK_INLIERS_MIN:
        return None, 0
    reach = _CHECK_REACH_PX * max(1.0, max(images[1].size) / 640)
    H, mask = cv2.findHomography(uv1, uv2, cv2.USAC_MAGSAC, reach, maxIters=10_000, confidence=0.9999)
    count = 0 if mask is None else int(mask.sum())
    return (None, count) if H is None or count < _CHECK_INLIERS_MIN else (np.asarray(H, dtype=np.float64), count)


@tool(
    "WarpImage",
    tier="classical",
    argument_aliases={"homography_matrix": "matrix"},
    returns={
        "image": "name of the new image",
        "covered": "share of the new image that shows something, 0 to 1",
        "correlation": "of the warped image with the second one where both show something, -1 to 1; 1: the same",
        "mean_difference": "of their grey levels there, 0 to 255",
        "cannot_tell": "why they cannot be compared",
    },
    example={"image": ["image-0", "image-1"], "matrix": [[1, 0, 20], [0, 1, 0], [0, 0, 1]]},
)
def warp_image(
    image: Annotated[
        tuple[Image, ...],
        Field(min_length=1, max_length=2, description="the image to warp, and where wanted one to compare it with"),
    ],
    matrix: Annotated[
        Matrix3, "3x3, takes (u, v, 1) of the given image to the new one; (0, 0) is the centre of the top-left pixel"
    ],
) -> ToolOutput:
    """Warps an image by a homography into a new image of its size, black where nothing is known."""
    H = read_matrix(matrix)
    source, target = image[0], image[-1]
    warped, covered = warp(source.read_whole(), H, target.size)
    values: dict[str, Any] = {"covered": round(float(covered.mean()), 3)}
    if len(image) == 2:
        correlation, difference = compare(source, target, H)
        if correlation is None or difference is None:
            values["cannot_tell"] = "too little of the warped image is shown, or it has no texture"
        else:
            values |= {"correlation": round(correlation, 3), "mean_difference": round(difference, 2)}
    return ToolOutput(values, (encode_jpeg(warped),))
