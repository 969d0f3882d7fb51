"""The epipolar geometry of two images, from their cameras and a pose or from their matches."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from vgbench_gen.agent.tool import ToolInput
from vgbench_gen.agent.tools._pairs import match_pair
from vgbench_gen.core.types import FloatArray

INLIERS_MIN, SHARE_MIN = 25, 0.4
_REACH_PX = 1.5  # at 640


@dataclass(frozen=True, slots=True, eq=False)
class Epipolar:
    """What two images say about where a pixel of one may lie in the other."""

    F: FloatArray
    """(3, 3), x2^T F x1 = 0 for homogeneous pixels."""
    inliers: int
    """Matches that agree; 0 where it comes from a pose."""
    matches: int
    """All matches; 0 where it comes from a pose."""
    residual_px: float
    """Median distance of the agreeing matches in the second image from their lines; 0 where it comes from a pose."""


def make_fundamental(K1: FloatArray, K2: FloatArray, R: FloatArray, t: FloatArray) -> FloatArray:
    """(3, 3) F of X2 = R X1 + t."""
    x, y, z = t
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.linalg.inv(K2).T @ cross @ R @ np.linalg.inv(K1))


def fit_fundamental(given: ToolInput) -> Epipolar | str:
    """The geometry that most matches agree on, or why there is none."""
    uv1, uv2 = match_pair(given)
    if len(uv1) < INLIERS_MIN:
        return f"too few matches: {len(uv1)}"
    reach = _REACH_PX * max(1.0, max(given.images[1].size) / 640)
    F, mask = cv2.findFundamentalMat(uv1, uv2, cv2.USAC_MAGSAC, reach, 0.9999, 10_000)
    if F is None or F.shape != (3, 3) or mask is None:
        return "no epipolar geometry agrees with the matches"
    within = mask.ravel() > 0
    if within.sum() < INLIERS_MIN or within.mean() < SHARE_MIN:
        return f"only {int(within.sum())} of {len(uv1)} matches agree on one epipolar geometry"
    off = measure_from_lines(np.asarray(F), uv1[within], uv2[within])
    return Epipolar(np.asarray(F), int(within.sum()), len(uv1), float(np.median(off)))


def measure_from_lines(F: FloatArray, uv1: FloatArray, uv2: FloatArray) -> FloatArray:
    """(N,) distances in pixels of points of the second image from the lines of points of the first one."""
    lines = np.column_stack([uv1, np.ones(len(uv1))]) @ F.T
    over = np.abs((np.column_stack([uv2, np.ones(len(uv2))]) * lines).sum(axis=1))
    return np.asarray(over / np.maximum(np.linalg.norm(lines[:, :2], axis=1), 1e-12))
