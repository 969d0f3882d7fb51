"""Where a pixel of one image lies in another by the matches around it, and whether the patches look alike."""

from __future__ import annotations

import cv2
import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.store.drawing import StrokeSizes
from vgbench_gen.tasks.solving.images import Image

SIDE = 400
_MATCHES_MIN = 12  # with fewer matches the solver guesses
_LINE_PX = 6.0  # residuals at which a cue has lost most of its weight, at the working size
_NEIGHBOURS = 10
_PATCH_RADIUS = 24  # samples; wide enough for a ring around the drawn mark
_SAMPLES_MIN = 40
_PATCH_WEIGHT = 4.0


def score_places(first: Image, second: Image, query: FloatArray, marks: list[FloatArray]) -> FloatArray:
    """(M,) how plausible it is that a pixel (2,) of the first image lies at each of some places (2,) of the second.

    Both images may have marks drawn around these pixels. All places tie where too few matches agree.
    """
    a, b = clean_matches(first, second, query, marks)
    unit_px = max(*first.size, *second.size) / SIDE
    scores = np.zeros(len(marks))
    if len(a) < _MATCHES_MIN:
        return scores
    F, mask = cv2.findFundamentalMat(a, b, cv2.USAC_MAGSAC, 1.5 * unit_px, 0.999, 5000)
    if F is None or F.shape != (3, 3) or mask is None or mask.sum() < _MATCHES_MIN:
        return scores
    keep = mask.ravel() > 0
    a, b = a[keep], b[keep]
    line = F @ np.array([*query, 1.0])
    affine, spread_px = fit_local_map(a, b, query, unit_px)
    for k, mark in enumerate(marks):
        off_line = abs(line @ np.array([*mark, 1.0])) / max(np.hypot(*line[:2]), 1e-12) / unit_px
        off_place = float(np.linalg.norm(affine @ np.array([*query, 1.0]) - mark)) / spread_px
        scores[k] = -_weigh_robustly(off_line / _LINE_PX) - _weigh_robustly(off_place)
        scores[k] += _PATCH_WEIGHT * correlate_patches(first, second, query, mark, affine, unit_px)
    return scores


def _weigh_robustly(x: float) -> float:
    return float(4 * np.log1p(x * x / 4))  # Cauchy: one broken cue must not outvote the others


def clean_matches(
    first: Image, second: Image, query: FloatArray, marks: list[FloatArray]
) -> tuple[FloatArray, FloatArray]:
    """((M, 2), (M, 2)) matches away from the drawn marks, which look alike wherever they are."""
    a, b = first.match_pixels(second, SIDE)
    reach_1, reach_2 = StrokeSizes.of(*first.size).reach, StrokeSizes.of(*second.size).reach
    away = np.linalg.norm(a - query, axis=1) > reach_1
    for mark in marks:
        away &= np.linalg.norm(b - mark, axis=1) > reach_2
    return a[away], b[away]


def fit_local_map(a: FloatArray, b: FloatArray, query: FloatArray, unit_px: float) -> tuple[FloatArray, float]:
    """((2, 3) affine map from the first to the second image around the query, pixels it may be off there)."""
    distance = np.linalg.norm(a - query, axis=1)
    near = np.argsort(distance, kind="stable")[:_NEIGHBOURS]
    sigma = max(float(distance[near[-1]]) / 2, 1.0)
    weight = np.exp(-((distance[near] / sigma) ** 2))
    # A weak pull towards pure translation keeps the map sane where neighbours lie on one line.
    middle_a, middle_b = (np.average(x[near], axis=0, weights=weight) for x in (a, b))
    da, db = a[near] - middle_a, b[near] - middle_b
    ridge = 0.1 * weight.sum() * (20 * unit_px) ** 2 * np.eye(2)
    linear = np.linalg.solve((da * weight[:, None]).T @ da + ridge, (da * weight[:, None]).T @ db + ridge).T
    affine = np.concatenate([linear, (middle_b - linear @ middle_a)[:, None]], axis=1)
    residual = np.sqrt(np.average(((da @ linear.T - db) ** 2).sum(axis=1), weights=weight))
    return affine, float(residual + 6 * unit_px + 0.25 * distance[near[0]])


def correlate_patches(
    first: Image, second: Image, query: FloatArray, mark: FloatArray, affine: FloatArray, unit_px: float
) -> float:
    """Correlation (-1 to 1) of the query's surroundings, bent by a map, with the mark's; drawn marks are left out.

    affine: (2, 3) from the first to the second image; only its linear part is used. unit_px: step between samples.
    """
    grid = np.arange(-_PATCH_RADIUS, _PATCH_RADIUS + 1, dtype=np.float64) * unit_px
    offsets = np.stack(np.meshgrid(grid, grid), axis=-1)
    back = np.linalg.pinv(affine[:, :2])
    here, there = query + offsets @ back.T, mark + offsets
    style_1, style_2 = StrokeSizes.of(*first.size), StrokeSizes.of(*second.size)
    clear = _clear(np.linalg.norm(here - query, axis=-1), style_1) & _clear(np.linalg.norm(offsets, axis=-1), style_2)
    p, inside_1 = _sample_image(first, here)
    q, inside_2 = _sample_image(second, there)
    clear &= inside_1 & inside_2
    if clear.sum() < _SAMPLES_MIN:
        return 0.0
    x, y = p[clear] - p[clear].mean(), q[clear] - q[clear].mean()
    return float(x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-6))


def _clear(distance_px: FloatArray, style: StrokeSizes) -> BoolArray:
    """Pixels on which a marker paints nothing."""
    return np.asarray((distance_px <= style.open_centre) | (distance_px > style.reach))


def _sample_image(image: Image, uv: FloatArray) -> tuple[FloatArray, BoolArray]:
    width, height = image.size
    inside = (uv[..., 0] >= 0) & (uv[..., 0] <= width - 1) & (uv[..., 1] >= 0) & (uv[..., 1] <= height - 1)
    uv = image.to_held(uv)
    u, v = (np.clip(uv[..., k], -1e4, 1e4).astype(np.float32) for k in (0, 1))
    values = cv2.remap(image.gray, u, v, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return values.astype(np.float64), np.asarray(inside)
