"""How much of an image looks like print: fine strokes in more than one direction, close together.

Letters are dark or light strokes of a few pixels, running across and upright, so where print is, strokes cover much of
a small window and its gradients have no common direction; stripes and grain have one. No text is read. What else
consists of such strokes (patterned cloth, foliage) counts as well. Figures: `docs/validity.md#mirrored-images`.
"""

from __future__ import annotations

import cv2
import numpy as np
import numpy.typing as npt

_STROKE_PX = 9  # a stroke is narrower than this
_STEP_LEVELS = 30  # of grey between a stroke and what is around it
_EDGE_LEVELS = 60.0  # of the Sobel gradient that counts for directions
_WINDOW_PX = (32, 16)  # wider than high, as words are
_COVERED_MIN = 0.35  # of a window by strokes
_ROUND_MIN = 0.15  # smaller over larger eigenvalue of a window's structure tensor


def measure_print_share(grey: npt.NDArray[np.uint8]) -> float:
    """Share of the windows of an (H, W) grey image, at most 640 wide, that look like print."""
    kernel = cv2.getStructuringElement(cv2.MORPH_RECT, (_STROKE_PX, _STROKE_PX))
    light, dark = (cv2.morphologyEx(grey, kind, kernel) for kind in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT))
    covered = _average(np.maximum(light, dark) > _STEP_LEVELS)
    across, down = cv2.Sobel(grey, cv2.CV_32F, 1, 0), cv2.Sobel(grey, cv2.CV_32F, 0, 1)
    edge = np.hypot(across, down) > _EDGE_LEVELS
    xx, xy, yy = (_average(product * edge) for product in (across * across, across * down, down * down))
    middle, apart = (xx + yy) / 2, np.sqrt(((xx - yy) / 2) ** 2 + xy * xy)
    is_round = middle - apart > _ROUND_MIN * (middle + apart)
    return float(((covered > _COVERED_MIN) & is_round).mean())


def _average(values: npt.NDArray[np.generic]) -> npt.NDArray[np.float32]:
    return np.asarray(cv2.boxFilter(values.astype(np.float32), -1, _WINDOW_PX), dtype=np.float32)
