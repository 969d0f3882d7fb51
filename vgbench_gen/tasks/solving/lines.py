"""Straight line segments of an image, and the parts of them that crops of it show."""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray, IntArray

LENGTH_MIN = 0.03  # of the image's long side; a shorter segment carries no direction
SEGMENTS_MAX = 80
SCALE = 0.6
NOISE_PX = 0.3  # standard deviation of an end across its segment, pixels of the image that was searched


@dataclass(frozen=True, slots=True, eq=False)
class Lines:
    """Line segments of several images, each image's longest first.

    Coordinates are counted from the middle of the image, in shares of its long side.
    """

    middles: FloatArray
    """(2, B, N) x and y of the middles of the segments."""
    directions: FloatArray
    """(2, B, N) x and y of unit vectors along them."""
    halves: FloatArray
    """(B, N) half their lengths; 0 for the filling of images that show fewer than N."""
    noise: FloatArray
    """(B,) standard deviation of an end across its segment."""


def detect_segments(grey: ColorArray, scale: float = SCALE) -> FloatArray:
    """(N, 4) ends x1, y1, x2, y2 of the line segments (LSD, von Gioi et al. 2010) of a grey image (h, w), pixels."""
    found = cv2.createLineSegmentDetector(cv2.LSD_REFINE_NONE, scale).detect(grey)[0]
    return np.zeros((0, 4)) if found is None else np.asarray(found, dtype=np.float64).reshape(-1, 4)


def cut_segments(segments: FloatArray, rects: IntArray, noise_px: float) -> Lines:
    """What crops show of the segments of an image.

    Args:
        segments: (N, 4) ends x1, y1, x2, y2, pixels of the image.
        rects: (B, 4) crops as x0, y0, width, height, pixels of the image.
        noise_px: standard deviation of an end across its segment, pixels of the image.
    """
    starts, steps = segments[None, :, :2], segments[None, :, 2:] - segments[None, :, :2]
    lengths_px = np.linalg.norm(steps, axis=-1)
    steps = np.where(np.abs(steps) < 1e-9, 1e-9, steps)
    low = rects[:, None, :2] - 0.5
    at_low, at_high = (low - starts) / steps, (low + rects[:, None, 2:] - starts) / steps
    first = np.minimum(at_low, at_high).max(axis=-1).clip(0, 1)
    last = np.maximum(at_low, at_high).min(axis=-1).clip(0, 1)
    sides = rects[:, 2:].max(axis=1).astype(np.float64)
    halves = np.maximum(last - first, 0) * lengths_px / sides[:, None] / 2
    halves[halves < LENGTH_MIN / 2] = 0
    longest = np.argsort(-halves, axis=1, kind="stable")[:, : max(1, min(SEGMENTS_MAX, int((halves > 0).sum(1).max())))]
    halves, along = (np.take_along_axis(x, longest, 1) for x in (halves, (first + last) / 2))
    centres = rects[:, None, :2] + (rects[:, None, 2:] - 1) / 2
    middles = (starts[0][longest] + along[..., None] * steps[0][longest] - centres) / sides[:, None, None]
    directions = steps[0] / np.maximum(lengths_px[0], 1e-9)[:, None]
    middles, directions = (np.ascontiguousarray(np.moveaxis(found, -1, 0)) for found in (middles, directions[longest]))
    return Lines(middles, directions, halves, noise_px / sides)
