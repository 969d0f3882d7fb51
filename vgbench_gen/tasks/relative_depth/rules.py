"""Rules about marked regions that understand nothing (`docs/validity.md#rules-that-look`): they must guess."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.tasks.solving import Image, ImageRule, Score, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_marks


def _score_rects(measure: Callable[[FloatArray, Image], float], sign: float) -> Score:
    def rule(seen: VisibleQuestion) -> FloatArray:
        return sign * np.array([measure(rect, seen.images[0]) for rect in list_marks(seen)])

    return rule


def _measure_top(rect: FloatArray, image: Image) -> float:
    return -float(rect[1] + rect[3])


def _measure_area(rect: FloatArray, image: Image) -> float:
    return float((rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1))


def _measure_off_centre(rect: FloatArray, image: Image) -> float:
    middle = (np.array(image.size) - 1) / 2
    return float(np.linalg.norm((rect[:2] + rect[2:]) / 2 - middle))


def _measure_detail(rect: FloatArray, image: Image) -> float:
    """Mean strength of fine structure: near surfaces show more of it and are blurred less."""
    return float(np.abs(cv2.Laplacian(_cut_inside(rect, image), cv2.CV_64F, ksize=3)).mean())


def _measure_brightness(rect: FloatArray, image: Image) -> float:
    return float(_cut_inside(rect, image).mean())


def _cut_inside(rect: FloatArray, image: Image) -> ColorArray:
    x1, y1, x2, y2 = (int(x) for x in rect)
    patch = image.gray[y1 : y2 + 1, x1 : x2 + 1]
    if patch.size == 0:
        raise Unread(f"region {rect} of an image of {image.size}")
    return patch


def make_depth_rules(far: float) -> tuple[ImageRule, ...]:
    """What goes with far (1) or near (-1) regions: high, small, smooth, dim, central (a photographer looks ahead)."""
    scores: dict[str, Score] = {
        "top-most region" if far > 0 else "lowest region": _score_rects(_measure_top, far),
        "smallest region" if far > 0 else "largest region": _score_rects(_measure_area, -far),
        "least detail" if far > 0 else "most detail": _score_rects(_measure_detail, -far),
        "darkest region" if far > 0 else "brightest region": _score_rects(_measure_brightness, -far),
        "region nearest the centre" if far > 0 else "region farthest from the centre": _score_rects(
            _measure_off_centre, -far
        ),
    }
    return tuple(ImageRule(name, score) for name, score in scores.items())
