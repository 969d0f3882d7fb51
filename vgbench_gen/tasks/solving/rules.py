"""Image rules that several tasks share: which candidate image looks most like the first image."""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.tasks.solving.seen import VisibleQuestion, list_candidate_images
from vgbench_gen.tasks.solving.solver import ImageRule, Score

_THUMBNAIL = (24, 18)
_BINS = 8  # per channel


def _score_most_similar(similarity: Callable[[ColorArray, ColorArray], float]) -> Score:
    def rule(seen: VisibleQuestion) -> FloatArray:
        source = seen.images[0].small
        return np.array([similarity(source, image.small) for image in list_candidate_images(seen)])

    return rule


def _correlate(a: FloatArray, b: FloatArray) -> float:
    x, y = a.ravel() - a.mean(), b.ravel() - b.mean()
    return float(x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-9))


def _make_thumbnail(image: ColorArray) -> FloatArray:
    return np.asarray(cv2.resize(image, _THUMBNAIL, interpolation=cv2.INTER_AREA), dtype=np.float64)


def _compare_thumbnails(a: ColorArray, b: ColorArray) -> float:
    return _correlate(_make_thumbnail(a), _make_thumbnail(b))


def _compare_histograms(a: ColorArray, b: ColorArray) -> float:
    """Common part of both colour histograms."""
    return float(np.minimum(_make_histogram(a), _make_histogram(b)).sum())


def _make_histogram(image: ColorArray) -> FloatArray:
    counts = cv2.calcHist([image], [0, 1, 2], None, [_BINS] * 3, [0, 256] * 3)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _compare_hashes(a: ColorArray, b: ColorArray) -> float:
    """Equal bits of the difference hashes."""
    return float((_compute_difference_hash(a) == _compute_difference_hash(b)).sum())


def _compute_difference_hash(image: ColorArray) -> FloatArray:
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    tiny = np.asarray(cv2.resize(gray, (9, 8), interpolation=cv2.INTER_AREA), dtype=np.float64)
    return np.asarray(tiny[:, 1:] > tiny[:, :-1], dtype=np.float64)


def _compare_structure(a: ColorArray, b: ColorArray) -> float:
    """Mean structural similarity (Wang et al. 2004, Gaussian window of 1.5 px) of the grey images."""
    x = cv2.cvtColor(a, cv2.COLOR_RGB2GRAY).astype(np.float32)
    y = cv2.cvtColor(cv2.resize(b, a.shape[1::-1]), cv2.COLOR_RGB2GRAY).astype(np.float32)

    def mean(image: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        return np.asarray(cv2.GaussianBlur(image, (11, 11), 1.5), dtype=np.float32)

    c_1, c_2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    m_x, m_y = mean(x), mean(y)
    v_x, v_y, v_xy = mean(x * x) - m_x**2, mean(y * y) - m_y**2, mean(x * y) - m_x * m_y
    ssim = (2 * m_x * m_y + c_1) * (2 * v_xy + c_2) / ((m_x**2 + m_y**2 + c_1) * (v_x + v_y + c_2))
    return float(ssim.mean())


MOST_SIMILAR_IMAGE = (
    ImageRule("most similar image, thumbnail", _score_most_similar(_compare_thumbnails)),
    ImageRule("most similar image, colour histogram", _score_most_similar(_compare_histograms)),
    ImageRule("most similar image, difference hash", _score_most_similar(_compare_hashes)),
    ImageRule("most similar image, SSIM", _score_most_similar(_compare_structure)),
)
"""Rules of tasks whose options are images, of which the first image is the source."""
