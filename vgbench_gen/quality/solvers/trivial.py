"""Rules that look without understanding (`docs/validity.md#rules-that-look`): they must not answer the questions.

Each rule scores the options of a `VisibleQuestion`, higher for the one it would choose. Rules of a judgment about
marked points score the claimed point and the other one, so that the first place stands for "Yes".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.quality.solvers.homographies import by_border
from vgbench_gen.quality.solvers.pixels import Image
from vgbench_gen.quality.solvers.seen import (
    Unread,
    VisibleQuestion,
    candidates,
    marked,
    number_of,
    numbered_rects,
    point,
)
from vgbench_gen.quality.solvers.tracks import patch_correlation
from vgbench_gen.store.drawing import StrokeSizes

Rule = Callable[[VisibleQuestion], FloatArray]

_THUMBNAIL = (24, 18)
_BINS = 8  # per channel


def rules_of(task: str, ask: str) -> Mapping[str, Rule]:
    """Name -> rule for this kind of question."""
    return _RULES.get((task, ask), _RULES.get((task, ""), {}))


def _most_similar(similarity: Callable[[ColorArray, ColorArray], float]) -> Rule:
    def rule(seen: VisibleQuestion) -> FloatArray:
        source = seen.images[0].small
        return np.array([similarity(source, image.small) for image in candidates(seen)])

    return rule


def _correlation(a: FloatArray, b: FloatArray) -> float:
    x, y = a.ravel() - a.mean(), b.ravel() - b.mean()
    return float(x @ y / max(np.sqrt((x @ x) * (y @ y)), 1e-9))


def _thumbnail(image: ColorArray) -> FloatArray:
    return np.asarray(cv2.resize(image, _THUMBNAIL, interpolation=cv2.INTER_AREA), dtype=np.float64)


def _by_thumbnail(a: ColorArray, b: ColorArray) -> float:
    return _correlation(_thumbnail(a), _thumbnail(b))


def _by_histogram(a: ColorArray, b: ColorArray) -> float:
    """Common part of both colour histograms."""
    return float(np.minimum(_histogram(a), _histogram(b)).sum())


def _histogram(image: ColorArray) -> FloatArray:
    counts = cv2.calcHist([image], [0, 1, 2], None, [_BINS] * 3, [0, 256] * 3)
    return np.asarray(counts / counts.sum(), dtype=np.float64)


def _by_hash(a: ColorArray, b: ColorArray) -> float:
    """Equal bits of the difference hashes."""
    return float((_difference_hash(a) == _difference_hash(b)).sum())


def _difference_hash(image: ColorArray) -> FloatArray:
    gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
    tiny = np.asarray(cv2.resize(gray, (9, 8), interpolation=cv2.INTER_AREA), dtype=np.float64)
    return np.asarray(tiny[:, 1:] > tiny[:, :-1], dtype=np.float64)


def _by_structure(a: ColorArray, b: ColorArray) -> float:
    """Mean structural similarity (Wang et al. 2004, Gaussian window of 1.5 px) of the grey images."""
    x = cv2.cvtColor(a, cv2.COLOR_RGB2GRAY).astype(np.float64)
    y = cv2.cvtColor(cv2.resize(b, a.shape[1::-1]), cv2.COLOR_RGB2GRAY).astype(np.float64)

    def mean(image: FloatArray) -> FloatArray:
        return np.asarray(cv2.GaussianBlur(image, (11, 11), 1.5), dtype=np.float64)

    c_1, c_2 = (0.01 * 255) ** 2, (0.03 * 255) ** 2
    m_x, m_y = mean(x), mean(y)
    v_x, v_y, v_xy = mean(x * x) - m_x**2, mean(y * y) - m_y**2, mean(x * y) - m_x * m_y
    ssim = (2 * m_x * m_y + c_1) * (2 * v_xy + c_2) / ((m_x**2 + m_y**2 + c_1) * (v_x + v_y + c_2))
    return float(ssim.mean())


# --- marked points --------------------------------------------------------------------------------------------------


def _from_query(seen: VisibleQuestion) -> FloatArray:
    distance: FloatArray = np.linalg.norm(np.array(marked(seen)) - point(seen.question), axis=1)
    return distance


def _same_pixel(seen: VisibleQuestion) -> FloatArray:
    return -_from_query(seen)


def _near_not_same(seen: VisibleQuestion) -> FloatArray:
    """Nearest to the query's pixel, leaving out a point that lies right there: cameras move little."""
    distance = _from_query(seen)
    there = distance <= 0.01 * seen.images[0].diagonal_px
    return np.where(there, -np.inf, -distance)


def _central(seen: VisibleQuestion) -> FloatArray:
    middle = (np.array(seen.images[-1].size) - 1) / 2
    distance: FloatArray = np.linalg.norm(np.array(marked(seen)) - middle, axis=1)
    return -distance


def _similar_patch(seen: VisibleQuestion) -> FloatArray:
    """Correlation of the surroundings as they are, neither turned nor scaled."""
    first, second, query = *seen.images, point(seen.question)
    unmoved = np.eye(2, 3)
    unit_px = max(*first.size, *second.size) / 640
    return np.array([patch_correlation(first, second, query, mark, unmoved, unit_px) for mark in marked(seen)])


def _similar_colour(seen: VisibleQuestion) -> FloatArray:
    """Least difference in the mean colour inside the marker."""
    first, second = seen.images
    wanted = _inside_marker(first, point(seen.question))
    return -np.array([np.linalg.norm(_inside_marker(second, mark) - wanted) for mark in marked(seen)])


def _inside_marker(image: Image, uv: FloatArray) -> FloatArray:
    radius = int(StrokeSizes.of(*image.size).open_centre / np.sqrt(2))
    u, v = (int(x) for x in uv)
    patch = image.color[max(v - radius, 0) : v + radius + 1, max(u - radius, 0) : u + radius + 1]
    if patch.size == 0:
        raise Unread(f"pixel ({u}, {v}) of an image of {image.size}")
    return np.asarray(patch.reshape(-1, 3).mean(axis=0), dtype=np.float64)


# --- regions --------------------------------------------------------------------------------------------------------


def _over_rects(measure: Callable[[FloatArray, Image], float], sign: float) -> Rule:
    def rule(seen: VisibleQuestion) -> FloatArray:
        listed = numbered_rects(seen.context)
        wanted = [number_of(option) for option in seen.options]
        if not set(wanted) <= set(listed):
            raise Unread(f"options {wanted} of {sorted(listed)}")
        return sign * np.array([measure(listed[n], seen.images[0]) for n in wanted])

    return rule


def _top(rect: FloatArray, image: Image) -> float:
    return -float(rect[1] + rect[3])


def _area(rect: FloatArray, image: Image) -> float:
    return float((rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1))


def _off_centre(rect: FloatArray, image: Image) -> float:
    middle = (np.array(image.size) - 1) / 2
    return float(np.linalg.norm((rect[:2] + rect[2:]) / 2 - middle))


def _detail(rect: FloatArray, image: Image) -> float:
    """Mean strength of fine structure: near surfaces show more of it and are blurred less."""
    return float(np.abs(cv2.Laplacian(_inside(rect, image), cv2.CV_64F, ksize=3)).mean())


def _brightness(rect: FloatArray, image: Image) -> float:
    return float(_inside(rect, image).mean())


def _inside(rect: FloatArray, image: Image) -> ColorArray:
    x1, y1, x2, y2 = (int(x) for x in rect)
    patch = image.gray[y1 : y2 + 1, x1 : x2 + 1]
    if patch.size == 0:
        raise Unread(f"region {rect} of an image of {image.size}")
    return patch


def _depth_rules(far: float) -> dict[str, Rule]:
    """What goes with far (1) or near (-1) regions: high, small, smooth, dim, central (a photographer looks ahead)."""
    return {
        "top-most region" if far > 0 else "lowest region": _over_rects(_top, far),
        "smallest region" if far > 0 else "largest region": _over_rects(_area, -far),
        "least detail" if far > 0 else "most detail": _over_rects(_detail, -far),
        "darkest region" if far > 0 else "brightest region": _over_rects(_brightness, -far),
        "region nearest the centre" if far > 0 else "region farthest from the centre": _over_rects(_off_centre, -far),
    }


_SIMILAR: dict[str, Rule] = {
    "most similar image, thumbnail": _most_similar(_by_thumbnail),
    "most similar image, colour histogram": _most_similar(_by_histogram),
    "most similar image, difference hash": _most_similar(_by_hash),
    "most similar image, SSIM": _most_similar(_by_structure),
}
BORDER = "border shape"
_RULES: dict[tuple[str, str], Mapping[str, Rule]] = {
    ("homography_to_image", ""): {**_SIMILAR, BORDER: by_border},
    ("homography_to_matrix", ""): {BORDER: by_border},
    ("view_after_motion", ""): _SIMILAR,
    ("point_tracking", ""): {
        "same pixel": _same_pixel,
        "nearest to the pixel, not on it": _near_not_same,
        "nearest the centre": _central,
        "most similar patch": _similar_patch,
        "most similar colour": _similar_colour,
    },
    ("relative_depth", "deepest"): _depth_rules(1.0),
    ("relative_depth", "nearest"): _depth_rules(-1.0),
}


def named_tasks() -> Sequence[str]:
    """Tasks that have such rules."""
    return sorted({task for task, _ in _RULES})
