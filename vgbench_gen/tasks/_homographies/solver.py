"""Both homography tasks, by feature matches and a robust fit, and by warping image 1 with every option.

A task says by `pairs` which matrix is stated beside which second image, option by option.
"""

from __future__ import annotations

from collections.abc import Callable

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.geometry import homography
from vgbench_gen.tasks.solving import Image, ImageRule, Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_candidate_images, read_corner_moves, read_matrices

SIDE = 200  # as good as 320 (99 and 100 of 100 questions), in half the time
_INLIER_PX = 2.0  # at the working size
_MATCHES_MIN = 8  # twice the matches that determine a homography
_WARP_SIDE = 256
_BLUR_PX = 1.5  # forgives the rounding of printed matrices
_PIXELS_MIN = 100
_BLACK = 12  # grey level; JPEG leaves black a little noisy


Pairs = Callable[[VisibleQuestion], list[tuple[FloatArray, Image]]]
"""The stated matrix and the second image of every option. Raises `Unread` where the text does not hold its matrices."""


def pair_matrices(seen: VisibleQuestion) -> list[tuple[FloatArray, Image]]:
    """`Pairs` where the options are matrices and image 2 is one for all."""
    return [(_read_one(option, seen.images[0]), seen.images[1]) for option in seen.options]


def pair_images(seen: VisibleQuestion) -> list[tuple[FloatArray, Image]]:
    """`Pairs` where the question states one matrix and the options are images."""
    H = _read_one(seen.question, seen.images[0])
    return [(H, image) for image in list_candidate_images(seen)]


def make_homography_solvers(pairs: Pairs) -> tuple[Solver, ...]:
    """The solvers of a task whose options stand in `pairs`."""

    def score_by_matches(seen: VisibleQuestion) -> FloatArray:
        """Minus the mean corner error, in image diagonals, of the fitted homography.

        A candidate image that shares too few features with image 1 scores -inf; where no option gets a fit, all tie.
        """
        stated = pairs(seen)
        fits = {id(image): _fit(seen.images[0], image) for _, image in stated}
        source = seen.images[0]
        found = []
        for S, H in ((S, fits[id(image)]) for S, image in stated):
            ends = [homography.move_corners(way, *source.size) for way in (S, H) if way is not None]
            gap_px = homography.measure_gaps_px(ends[0], ends[-1])
            found.append(-np.inf if H is None else -min(float(gap_px) / source.diagonal_px, 1e6))
        return np.array(found)

    def score_by_warping(seen: VisibleQuestion) -> FloatArray:
        """How well image 1, warped by the stated matrix, explains the other image (-1 to 1)."""
        return np.array([_correlate_warped(seen.images[0], H, image) for H, image in pairs(seen)])

    return Solver("features and a robust fit", score_by_matches, 95.0), Solver("warp and compare", score_by_warping)


def make_border_rule(pairs: Pairs) -> ImageRule:
    """Overlap of the stated warp's border with a black border of the image, where it has one; no content is looked
    at. Images that are filled leave nothing to it (`docs/validity.md#homographies`)."""

    def score_by_border(seen: VisibleQuestion) -> FloatArray:
        return np.array([_compare_borders(H, image) for H, image in pairs(seen)])

    return ImageRule("border shape", score_by_border)


def _read_one(text: str, source: Image) -> FloatArray:
    corners_px = homography.image_corners(*source.size)
    found = read_matrices(text)
    found += [homography.fit_to_points(corners_px, corners_px + moves_px) for moves_px in read_corner_moves(text)]
    if len(found) != 1:
        raise Unread(f"{len(found)} homographies where one is printed")
    return found[0]


def _fit(source: Image, target: Image) -> FloatArray | None:
    a, b = source.match_pixels(target, SIDE)
    if len(a) < _MATCHES_MIN:
        return None
    tolerance_px = _INLIER_PX * max(target.size) / SIDE
    H, inliers = cv2.findHomography(a, b, cv2.USAC_MAGSAC, tolerance_px, maxIters=2000, confidence=0.999)
    if H is None or inliers is None or inliers.sum() < _MATCHES_MIN:
        return None
    return np.asarray(H, dtype=np.float64)


def _correlate_warped(source: Image, H: FloatArray, target: Image) -> float:
    """Correlation (-1 to 1) of the warped source with the target, where the source has content."""
    small, shown = source.shrink(_WARP_SIDE), target.shrink(_WARP_SIDE)
    if shown.shape != small.shape:
        return -1.0
    at_size = _rescale_homography(H, source, small.shape)
    covered = _warp_image(np.full(small.shape, 255, np.uint8), at_size)
    valid = cv2.erode(covered, np.ones((5, 5), np.uint8)) > 250
    a, b = (
        cv2.GaussianBlur(image, (0, 0), _BLUR_PX)[valid].astype(np.float64)
        for image in (_warp_image(small, at_size), shown)
    )
    if len(a) < _PIXELS_MIN:
        return -1.0
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / max(np.sqrt((a * a).sum() * (b * b).sum()), 1e-9))


def _compare_borders(H: FloatArray, image: Image) -> float:
    """Overlap (0 to 1) of what the warp covers with what is not black."""
    gray = cv2.cvtColor(image.small, cv2.COLOR_RGB2GRAY)
    covered = _warp_image(np.full(gray.shape, 255, np.uint8), _rescale_homography(H, image, gray.shape)) > 127
    content = cv2.morphologyEx((gray > _BLACK).astype(np.uint8), cv2.MORPH_CLOSE, np.ones((9, 9), np.uint8)) > 0
    return float((covered & content).sum() / max((covered | content).sum(), 1))


def _warp_image(image: ColorArray, H: FloatArray) -> ColorArray:
    warped = cv2.warpPerspective(image, H, image.shape[1::-1], flags=cv2.INTER_LINEAR)
    return np.asarray(warped, dtype=np.uint8)


def _rescale_homography(H: FloatArray, image: Image, shape: tuple[int, ...]) -> FloatArray:
    """The homography between images resized, edge-aligned, to `shape` (rows, columns)."""
    sx, sy = np.array(shape[1::-1]) / np.array(image.size)
    resize = np.array([[sx, 0, sx / 2 - 0.5], [0, sy, sy / 2 - 0.5], [0, 0, 1]])
    return np.asarray(resize @ H @ np.linalg.inv(resize))
