"""`TrackPoint`: finds a pixel of one image in others.

An affine map of the matches around the pixel gives the approximate place, and the correlation of the warped patch the
exact one. Three checks accept or reject it: tracking back, the correlation, and the epipolar line. Rings drawn around
points are masked out of the patch, because optical flow would follow the ring.
"""

from __future__ import annotations

from typing import Annotated, Any

import cv2
import numpy as np
from pydantic import Field

from vgbench_gen.agent.tool import ToolError, Values, tool
from vgbench_gen.agent.tools._arguments import SIDE_PX, Pixel, round_all
from vgbench_gen.agent.tools.views import Epipolar, fit_fundamental, measure_from_lines
from vgbench_gen.core.types import FloatArray
from vgbench_gen.store.drawing import StrokeSizes
from vgbench_gen.tasks.solving import Image
from vgbench_gen.tasks.solving.transfer import fit_local_map, score_places

_PATCH_RADIUS = 30  # pixels at 640, wide enough to reach beyond a drawn ring
_SEARCH_MAX = 40
_SAMPLES_MIN = 200
_MATCHES_MIN = 12
_BACK_MAX_PX, _LINE_MAX_PX, _ALIKE_MIN = 4.0, 6.0, 0.6  # pixels at 640
_AWAY_MAX = 3.0  # the largest distance from the affine prediction, in standard deviations of that
_LEAD_MIN = 1.0  # the least difference between the two best scores of candidates


@tool(
    "TrackPoint",
    tier="classical",
    returns={
        "tracks": "for each further image {point: [u, v] in its pixels, or null; sigma_px: standard deviation; "
        "back_px: how far off its start it ends when tracked back; likeness: correlation of both patches, -1 to 1; "
        "from_line_px: distance from its epipolar line, null where none is known; cannot_tell: why there is no point}",
        "candidate_scores": "how plausible each candidate is, higher is better",
        "best_candidate": "its place, counted from 0; null where it leads too little",
    },
    example={"image": ["image-0", "image-1"], "point": [320, 240]},
)
def track_point(
    image: Annotated[
        tuple[Image, ...],
        Field(min_length=2, max_length=8, description="the image that has the point, then those to look in"),
    ],
    point: Annotated[Pixel, "[u, v] in the first image, pixels"],
    candidates: Annotated[
        tuple[Pixel, ...],
        Field(max_length=26),
        "[[u, v], ...] places in the second image of which one is right, if known",
    ] = (),
) -> Values:
    """Finds where a point of one image lies in other images of the same scene, or which of several places it is."""
    first, query = image[0], np.array(point)
    if (query < -0.5).any() or (query > np.array(first.size) - 0.5).any():
        raise ToolError(f"point: found {list(point)}; expected a pixel of an image of {first.size} pixels")
    values: dict[str, Any] = {"tracks": [track(first, other, query) for other in image[1:]]}
    if candidates:
        scores = score_places(first, image[1], query, [np.array(each) for each in candidates])
        order = np.argsort(-scores, kind="stable")
        leads = len(scores) == 1 or scores[order[0]] - scores[order[1]] >= _LEAD_MIN
        values["candidate_scores"] = round_all(scores, 2)
        values["best_candidate"] = int(order[0]) if leads and scores.any() else None
    return values


def track(first: Image, other: Image, query: FloatArray) -> dict[str, Any]:
    """The tool's result for one other image and a pixel (2,) of the first image."""
    uv1, uv2 = first.match_pixels(other, SIDE_PX)
    unit = max(*first.size, *other.size) / 640
    if len(uv1) < _MATCHES_MIN:
        return {"point": None, "cannot_tell": f"too few matches: {len(uv1)}"}
    geometry = fit_fundamental((first, other))
    if isinstance(geometry, Epipolar):
        inliers = measure_from_lines(geometry.F, uv1, uv2) <= 3 * unit
        uv1, uv2 = uv1[inliers], uv2[inliers]
    affine, spread_px = fit_local_map(uv1, uv2, query, unit)
    start = affine @ np.array([*query, 1.0])
    found, likeness = _follow(first, other, query, start, affine, 2 * spread_px, unit)
    linear = affine[:, :2]
    back_px = 1e3
    if likeness > 0:
        inverse = np.linalg.inv(linear)
        back, _ = _follow(
            other, first, found, query, np.column_stack([inverse, query - inverse @ found]), 2 * spread_px, unit
        )
        back_px = float(np.linalg.norm(back - query))
    values: dict[str, Any] = {
        "point": round_all(found, 2),
        "sigma_px": round(max(back_px, 0.5 * unit, (1 - likeness) * 4 * unit), 2),
        "back_px": round(back_px, 2),
        "likeness": round(likeness, 3),
        "from_line_px": None,
    }
    reasons = []
    if isinstance(geometry, Epipolar):
        from_line = float(measure_from_lines(geometry.F, query[None], found[None])[0])
        values["from_line_px"] = round(from_line, 2)
        if from_line > _LINE_MAX_PX * unit:
            reasons.append("it lies off its epipolar line")
    width, height = other.size
    if not ((found >= -0.5) & (found <= (width - 0.5, height - 0.5))).all():
        reasons.append("it lies outside the image")
    if back_px > _BACK_MAX_PX * unit:
        reasons.append("tracked back it ends elsewhere")
    if likeness < _ALIKE_MIN:
        reasons.append("the patches do not look alike: hidden, or seen too differently")
    if np.linalg.norm(found - start) > _AWAY_MAX * spread_px:
        reasons.append("the matches around it say otherwise")
    return values | ({"point": None, "cannot_tell": "; ".join(reasons)} if reasons else {})


def _follow(
    first: Image, other: Image, query: FloatArray, start: FloatArray, affine: FloatArray, reach_px: float, unit: float
) -> tuple[FloatArray, float]:
    """((2,) best pixel of the other image within a reach of the start, correlation there).

    The patch of the first image is warped by the affine map, so that rotated and closer views match; both images are
    sampled at 640 pixels.
    """
    linear = affine[:, :2]
    if not 0.05 < abs(float(np.linalg.det(linear))) < 20 or not (np.abs(start) < 1e5).all():
        return start, 0.0
    reach = int(np.clip(np.ceil(reach_px / unit), 4, _SEARCH_MAX))
    radius, style = _PATCH_RADIUS, StrokeSizes.of(*first.size)
    patch = _cut(first, np.column_stack([linear / unit, radius - linear @ query / unit]), 2 * radius + 1)
    area = _cut(other, np.column_stack([np.eye(2) / unit, radius + reach - start / unit]), 2 * (radius + reach) + 1)
    grid = np.arange(-radius, radius + 1) * unit
    away = np.linalg.norm(np.stack(np.meshgrid(grid, grid), axis=-1) @ np.linalg.inv(linear).T, axis=-1)
    clear = (away <= style.open_centre) | (away > style.reach)
    weights = clear.astype(np.float32)
    if clear.sum() < _SAMPLES_MIN or float(patch[clear].std()) < 2.0:
        return start, 0.0
    raw = cv2.matchTemplate(area, patch, cv2.TM_CCOEFF_NORMED, mask=weights)
    correlations: FloatArray = np.asarray(np.nan_to_num(raw, nan=-1.0, posinf=-1.0, neginf=-1.0), dtype=np.float64)
    row, column = np.unravel_index(int(correlations.argmax()), correlations.shape)
    peak = [_find_peak(correlations[row, :], int(column)), _find_peak(correlations[:, column], int(row))]
    return start + (np.array(peak) - reach) * unit, float(correlations[row, column])


def _cut(image: Image, patch_from_image: FloatArray, side: int) -> FloatArray:
    """(side, side) grey patch of an image."""
    M = patch_from_image @ image.delivered_from_held
    patch = cv2.warpAffine(image.gray, M, (side, side), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(patch, dtype=np.float32)


def _find_peak(values: FloatArray, place: int) -> float:
    """The vertex of the parabola through three neighbours."""
    if not 0 < place < len(values) - 1:
        return float(place)
    before, at, after = values[place - 1 : place + 2]
    bend = before - 2 * at + after
    return place + float(np.clip(0.5 * (before - after) / bend, -0.5, 0.5)) if bend < -1e-9 else float(place)
