"""Matches points of two images (SIFT, or SuperPoint with LightGlue), and finds a crop in a larger image."""

from __future__ import annotations

from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ImagePair, Values, tool
from vgbench_gen.agent.weights import MatcherOptions, load_part, weights_tool
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.tasks.solving import Image

SHOWN = 30  # the most matches in a result
_SEARCH_SIDE_PX = 480  # the long side of the image that is searched
_SEARCH_SIZES = np.geomspace(0.1, 1.0, 28)  # tried sizes of the crop, relative to the largest that fits the image
_ALIKE_MIN, _LEAD_MIN = 0.6, 0.05  # the least correlation of the best place, and its lead over the next one
Keypoints = Annotated[int, Field(ge=10, le=20_000), "most keypoints in each image"]
Ratio = Annotated[float, Field(gt=0, le=1), "nearest over second nearest descriptor, at most"]
Threshold = Annotated[float, Field(gt=0, le=100), "largest distance of a match from where the matrix takes it, pixels"]
_MATCHES = f"[[u, v] in the first image, [u, v] in the second], pixels; the best {SHOWN} at most"


def match_sift(images: tuple[Image, Image], keypoints: int, ratio: float) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) pixels that pass Lowe's ratio test (Lowe 2004), best first."""
    sift = cv2.SIFT.create(nfeatures=keypoints)
    (points1, descriptors1), (points2, descriptors2) = (sift.detectAndCompute(image.gray, None) for image in images)
    if descriptors1 is None or descriptors2 is None or len(descriptors2) < 2:
        return np.zeros((0, 2)), np.zeros((0, 2))
    pairs = [pair for pair in cv2.BFMatcher().knnMatch(descriptors1, descriptors2, k=2) if len(pair) == 2]
    matches = sorted((a for a, b in pairs if a.distance < ratio * b.distance), key=lambda match: match.distance)
    uv1 = np.array([points1[match.queryIdx].pt for match in matches], dtype=np.float64).reshape(-1, 2)
    uv2 = np.array([points2[match.trainIdx].pt for match in matches], dtype=np.float64).reshape(-1, 2)
    return images[0].to_delivered(uv1), images[1].to_delivered(uv2)


def _list_matches(uv1: FloatArray, uv2: FloatArray) -> Values:
    """The best matches and the number of all, as the tools report them."""
    return {"matches": np.stack([uv1, uv2], axis=1)[:SHOWN].round(1).tolist(), "num_matches": len(uv1)}


@tool(
    "MatchImagesSIFT",
    tier="classical",
    returns={"matches": _MATCHES, "num_matches": "how many there are in all"},
    example={"image": ["image-0", "image-1"]},
)
def match_images_sift(image: ImagePair, num_keypoints: Keypoints = 1200, ratio_th: Ratio = 0.75) -> Values:
    """Finds points that two images share, by SIFT features and the ratio test."""
    return _list_matches(*match_sift(image, num_keypoints, ratio_th))


@weights_tool(
    "MatchImages",
    key="MatchImagesWeights",
    returns={
        "matches": _MATCHES,
        "scores": "of each of these matches from 0 to 1, the model's own",
        "num_matches": "how many there are in all",
    },
    example={"image": ["image-0", "image-1"]},
)
def match_images(image: ImagePair, options: MatcherOptions) -> Values:
    """Finds points that two images share, by learned features; sees more in views that differ much than SIFT does."""
    found = load_part(options, "matcher").match_pair(image[0].color, image[1].color)
    values = _list_matches(image[0].to_delivered(found.uv1), image[1].to_delivered(found.uv2))
    scores = found.scores[:SHOWN].round(3).tolist()
    return {"matches": values["matches"], "scores": scores, "num_matches": values["num_matches"]}


@tool(
    "FindCrop",
    tier="classical",
    aliases=("MatchTemplate",),
    returns={
        "bbox": "[left, top, right, bottom] in the first image, pixels; null where it is not found",
        "likeness": "correlation at the best place, -1 to 1",
        "second_likeness": "at the best place elsewhere",
        "sigma_px": "how far the edges may be off, pixels",
        "cannot_tell": "why there is no place",
    },
    example={"image": ["image-0", "image-1"]},
)
def find_crop(
    image: Annotated[tuple[Image, Image], "two image names: the whole, and the part to look for in it"],
) -> Values:
    """Finds where the second image appears in the first one, upright and at any size (template matching)."""
    whole, part = image
    small = whole.shrink(_SEARCH_SIDE_PX)
    scale = whole.size[0] / small.shape[1]
    fit = min(small.shape[1] / part.size[0], small.shape[0] / part.size[1])
    found: list[tuple[float, int, int, int, int]] = []
    last, runner_up = None, -1.0
    for share in _SEARCH_SIZES:
        wide, high = (max(1, int(side * fit * share + 1e-6)) for side in part.size)
        if min(wide, high) < 8 or (wide, high) == last:
            continue
        last = (wide, high)
        template = cv2.resize(part.gray, (wide, high), interpolation=cv2.INTER_AREA)
        found += _search(small, np.asarray(template))
    if not found:
        return {"bbox": None, "cannot_tell": "the image is too small, or has no texture"}
    found.sort(reverse=True)
    likeness, x, y, wide, high = found[0]
    for other in found[1:]:
        apart = max(abs(other[1] + other[3] / 2 - x - wide / 2), abs(other[2] + other[4] / 2 - y - high / 2))
        if apart > 0.25 * max(wide, high):
            runner_up = other[0]
            break
    values: dict[str, Any] = {"likeness": round(likeness, 3), "second_likeness": round(runner_up, 3)}
    if likeness < _ALIKE_MIN or likeness - runner_up < _LEAD_MIN:
        return values | {"bbox": None, "cannot_tell": "no place looks clearly like it"}
    edges = [x * scale, y * scale, (x + wide) * scale - 1, (y + high) * scale - 1]
    values |= {"bbox": [round(edge, 1) for edge in edges], "sigma_px": round((0.05 * max(wide, high) + 1) * scale, 1)}
    return values


def _search(image: ColorArray, template: ColorArray) -> list[tuple[float, int, int, int, int]]:
    """The best places of a template, not next to each other: (correlation, x, y, width, height)."""
    if float(template.std()) < 2.0:
        return []
    high, wide = template.shape
    raw = cv2.matchTemplate(image, template, cv2.TM_CCOEFF_NORMED)
    correlations = np.nan_to_num(raw, nan=-1.0, posinf=-1.0, neginf=-1.0)
    found = []
    for _ in range(3):
        y, x = np.unravel_index(int(correlations.argmax()), correlations.shape)
        found.append((float(correlations[y, x]), int(x), int(y), wide, high))
        correlations[max(0, y - high // 4) : y + high // 4 + 1, max(0, x - wide // 4) : x + wide // 4 + 1] = -1.0
    return found
