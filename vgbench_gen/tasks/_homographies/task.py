"""What both homography tasks share: a crop of a frame, a pool of warps of it, and two ways to each of them.

The printed matrix (four significant digits) *is* the matrix that is applied, so rounding costs nothing. It is about the
crop's pixels, and the warp draws on the frame around the crop, so that every image is filled. All warps come from one
sampler and pass the same gates (`docs/validity.md#homographies`); which is asked is drawn after.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import FactorPair, Proposal
from vgbench_gen.geometry import homography
from vgbench_gen.scenes.view import Float32Array, SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture, find_warp_matrix
from vgbench_gen.tasks._homographies.evidence import (
    KINDS,
    PART_FIELDS,
    PARTS,
    WarpedImageEvidence,
    WarpEvidence,
    check_crop,
    check_warps,
)
from vgbench_gen.tasks._homographies.sampler import (
    find_warp_problem,
    get_range,
    make_values,
    round_as_printed,
    sample_pool,
)
from vgbench_gen.tasks._proposals import move_numbers
from vgbench_gen.tasks.base import OwnGates, Task, add_margins, reject
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.gates import HomographyGates
from vgbench_gen.tasks.presentation import Margins, say_signed
from vgbench_gen.tasks.revealed import RevealedHomography
from vgbench_gen.text import lint, numbers
from vgbench_gen.text.render import fill_word

PER_FRAME = 2
SHOWN_SHARE = 0.6  # of the crop's side in the frame; at full size sharpness told 36 % of the warped images
PLACES = 4  # of a crop that are tried until one shows enough and leaves room for warps
OFF_CENTRE_MAX = 0.2  # of a crop, over what the frame leaves free; further out the warp finds nothing on one side
MOVE_DECIMALS = 1  # of a corner's move in words; whole pixels could be off by more than the next line allows
AGREEMENT_PX = 0.5  # the printed matrix is the applied one: more than half a pixel apart is another convention

_MOVES = (("move.right", "move.left"), ("move.down", "move.up"))
_GRID = 12  # target pixels per side that the second route reads


@lru_cache(maxsize=1)  # 15 MB at the wide size
def _make_coordinate_image(width: int, height: int) -> Float32Array:
    """(height, width, 2) float32: each pixel holds its own (u, v)."""
    u, v = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    image = np.stack([u, v], axis=-1)
    image.flags.writeable = False
    return image


def warp_correspondences(H: FloatArray, image: WarpedImageEvidence) -> tuple[FloatArray, FloatArray]:
    """(pixels (N, 2) of image 1, pixels (N, 2) of image 2) as `store.pictures` pairs them on a grid of image 2.

    Coordinates travel from the frame through the warp as colours would; no formula for where a pixel goes is used here.
    Only every n-th pixel of the target is drawn.
    """
    width, height = image.size
    step_u, step_v = max(1, (width - 1) // (_GRID - 1)), max(1, (height - 1) // (_GRID - 1))
    columns, rows = min(_GRID, width), min(_GRID, height)
    warped = cv2.warpPerspective(
        _make_coordinate_image(*image.frame_size),
        np.diag([1 / step_u, 1 / step_v, 1.0]) @ find_warp_matrix(image.make_warp_op(H.ravel().tolist())),
        (columns, rows),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(np.nan, np.nan),
    )
    target = np.stack(np.meshgrid(np.arange(columns) * step_u, np.arange(rows) * step_v), axis=-1).reshape(-1, 2)
    source = np.asarray(warped, dtype=np.float64).reshape(-1, 2)
    shown = np.isfinite(source).all(axis=1)
    in_crop = (source[shown] - image.crop[:2] + 0.5) / image.crop[2:]
    return in_crop * image.size - 0.5, target[shown].astype(np.float64)


class HomographyTask(Task):
    """Drafts, second route and answer space of both directions; values are (3, 3) matrices with H33 = 1."""

    version = 2
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    unit = "px"
    limits = OwnGates(HomographyGates)
    fact_evidence = WarpedImageEvidence
    candidate_evidence = WarpEvidence
    checks = (check_crop, check_warps)
    cuts_crops = True
    paper_column = "Homo."
    input_modality = "multi-images"
    category, subcategory = "Camera and Image Transformation", "2D Transformation"
    convention: ClassVar[Mapping[str, str]] = {
        "homography": "x2 ~ H x1",
        "direction": "dst_from_src",
        "normalisation": "H33 = 1",
        "pixel_origin": "centre of the top-left pixel",
        "unit": "px",
    }

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Up to two facts per frame, each with a crop and a pool of its own."""
        made = 0
        for frame in view.distinct_frames(rng):
            for turn in range(min(PER_FRAME, limit - made)):
                draft = self._make_draft(frame, view, f"{frame.id}/{turn}", rng)
                made += isinstance(draft, Fact)
                yield draft

    def _make_draft(self, frame: ViewFrame, view: SceneView, key: str, rng: np.random.Generator) -> Fact | Rejected:
        gates, most, dropped = self.limits, 0, Counter[str]()
        for _ in range(PLACES):
            image = self._draw_image(frame, rng)
            corners = _count_corners(frame, image)
            most = max(most, corners)
            if corners < gates.keypoints_min:
                continue
            pool, failed = sample_pool(image, gates, rng)
            if pool:
                break
            dropped += failed
        else:
            if not dropped:
                return reject(self, view, key, "keypoints", most, gates.keypoints_min)
            reason, count = dropped.most_common(1)[0]
            return reject(self, view, key, f"warps_{reason}", count, 0, str(dict(dropped)))
        fact = self.new_fact(view, tuple(pool), frame_ids=(frame.id,), key=key, evidence=image)
        drawn = self.with_drawn_truth(fact, rng)
        if drawn is None:
            return reject(self, view, key, "no_option_set", len(pool), 4)
        margins = Margins(dict(WarpEvidence.of(drawn.truth_candidate).margins))
        margins.at_least("keypoints", corners, gates.keypoints_min)
        return add_margins(drawn, key, margins.ratios)

    def _draw_image(self, frame: ViewFrame, rng: np.random.Generator) -> WarpedImageEvidence:
        """A crop of the frame's own shape near its centre, and the kind of its warps."""
        share, (width, height) = self.limits.crop_share, frame.wide_camera.size
        w, h = int(np.ceil(share * width)), int(np.ceil(share * height))
        along_x, along_y = 0.5 + rng.uniform(-OFF_CENTRE_MAX, OFF_CENTRE_MAX, 2)
        crop = round(along_x * (width - w)), round(along_y * (height - h)), w, h
        kind = KINDS[int(rng.integers(len(KINDS)))]
        size = round(SHOWN_SHARE * w), round(SHOWN_SHARE * h)
        return WarpedImageEvidence(kind=kind, frame_size=(width, height), crop=crop, size=size)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Least squares (DLT) over what the warp that is shown does to coordinates."""
        shown = np.array(fact.truth_candidate.show["H"], dtype=np.float64).reshape(3, 3)
        return homography.fit_to_points(*warp_correspondences(shown, WarpedImageEvidence.of(fact)))

    def recompute(self, fact: Fact) -> FloatArray:
        """The matrix through the four stored corners."""
        corners_px = homography.image_corners(*WarpedImageEvidence.of(fact).size)
        return self.rounded(homography.fit_to_points(corners_px, WarpEvidence.of(fact.truth_candidate).corners_px))

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Corner error of the two routes over half a pixel."""
        return self.metric(fact.truth_candidate.value, second, fact) / AGREEMENT_PX

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Mean distance of the corners under both, pixels."""
        size = WarpedImageEvidence.of(fact).size
        corners = (homography.move_corners(H, *size) for H in (a, b))
        return float(homography.measure_gaps_px(*corners))

    def rounded(self, value: FloatArray) -> FloatArray:
        """Four significant digits."""
        return round_as_printed(value)

    def printed(self, value: FloatArray) -> str:
        """The matrix, one row per line."""
        return fill_word("option.matrix", matrix=numbers.format_matrix(value, numbers.format_significant))

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """Row by row; none in words."""
        return np.zeros(0) if self.notation == "words" else super().printed_numbers(value)

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The matrix; in words, how far it moves the corners of the first image.

        A value stays the matrix by which an image was warped: its corners as printed give it back to within a tenth of
        a pixel anywhere in the image.
        """
        if self.notation == "matrix":
            return self.printed(option.value)
        size = WarpedImageEvidence.of(fact).size
        moves_px = homography.move_corners(option.value, *size) - homography.image_corners(*size)
        said = [say_signed(x, MOVE_DECIMALS, keys) for pair in moves_px for x, keys in zip(pair, _MOVES, strict=True)]
        return fill_word("option.corners", **dict(zip("abcdefgh", said, strict=True)))

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """Mean distance of the corners over the required and over the allowed share of the diagonal."""
        size = WarpedImageEvidence.of(fact).size
        corners = homography.move_corners(np.stack([candidate.value for candidate in candidates]), *size)
        error_d = 100 * homography.measure_gaps_px(corners[:, None], corners) / float(np.hypot(*size))
        return error_d / self.limits.gap_min_d, error_d / self.limits.gap_max_d

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """The printed matrix is the applied one, so no source has a part in it: each entry is off within its last
        printed digit, as if the image had been warped by a matrix before rounding. A zero is a component that is
        absent, and H33 a convention."""
        H = about.value
        digit = 10.0 ** (np.floor(np.log10(np.where(H == 0, 1.0, np.abs(H)))) - lint.SIGNIFICANT_DIGITS + 1)
        digit[H == 0] = digit[2, 2] = 0.0
        return H + digit * rng.uniform(-0.5, 0.5, (n, 3, 3))

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """See `NoiseTest`; mean distance of the corners, pixels."""
        size = WarpedImageEvidence.of(fact).size
        told = homography.move_corners(np.stack([option.value for option in options]), *size)
        return homography.measure_gaps_px(homography.move_corners(values, *size), told[:, None])

    def proposal(self, fact: Fact) -> Proposal:
        """The two parts in which the warps of the image differ: numbers of which most are a fair warp, as those of a
        matrix are not."""
        image = WarpedImageEvidence.of(fact)
        slots = {"width": str(image.size[0]), "height": str(image.size[1])}
        for part in PARTS[image.kind]:
            low, high = make_values(part, np.array(get_range(part)), image.size).tolist()
            slots |= {f"{part}_low": numbers.format_fixed(low, 2), f"{part}_high": numbers.format_fixed(high, 2)}
        return Proposal(image.kind, slots, 2, image.kind)

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """The warp of these parts, with the truth's own for the rest, which is that of the whole pool."""
        image, truth = WarpedImageEvidence.of(fact), WarpEvidence.given(fact.truth_candidate)
        if truth is None or not np.isfinite(numbers).all():
            return None
        parts = PARTS[image.kind]
        named = {PART_FIELDS[part]: x for part, x in zip(parts, move_numbers(numbers, rng), strict=True)}
        try:
            H = round_as_printed(truth.components.with_fields(**named).make_matrix(*image.size))
        except GeometryError:
            return None
        return Candidate("", H, show={"H": H.ravel().tolist()})

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """How far the corners move on average, pixels."""
        return float(homography.corner_moves_px(value, *WarpedImageEvidence.of(fact).size))

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Passes the gates of the sampler."""
        return not find_warp_problem(candidate.value, WarpedImageEvidence.of(fact), self.limits)[0]

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        """Both parts of another warp of the pool, each combined with the other part of the truth.

        The pool holds all combinations, and each is as likely the truth as any other.
        """
        kind = WarpedImageEvidence.of(fact).kind
        stored = [(candidate, WarpEvidence.given(candidate)) for candidate in fact.candidates]
        pool = {warp.components.read_parts(kind): candidate for candidate, warp in stored if warp is not None}
        truth = WarpEvidence.given(fact.truth_candidate)
        if truth is None:
            return
        first, second = truth.components.read_parts(kind)
        others = [(a, b) for a, b in pool if a != first and b != second and {(first, b), (a, second)} <= pool.keys()]
        for place in rng.permutation(len(others)).tolist():
            a, b = others[place]
            yield FactorPair(PARTS[kind], (pool[first, b], pool[a, second], pool[a, b]))

    def make_crop(self, fact: Fact) -> Picture:
        """Image 1 as it was cut from the frame."""
        return Picture(fact.pictures[fact.frame_ids[0]], (WarpedImageEvidence.of(fact).make_crop_op(),))

    def make_warp(self, fact: Fact, entries: Sequence[float]) -> Picture:
        """What a matrix, its entries row by row, makes of image 1 and of the frame around it."""
        return Picture(fact.pictures[fact.frame_ids[0]], (WarpedImageEvidence.of(fact).make_warp_op(entries),))

    def reveal_warp(self, fact: Fact, H: FloatArray, second: int = 1) -> RevealedHomography:
        """The matrix (3, 3) from the first image to the one at the place `second`."""
        size = WarpedImageEvidence.of(fact).size
        allowed_px = self.limits.gap_min_d / 200 * float(np.hypot(*size))
        return RevealedHomography(first=0, second=second, H=H, size=size, allowed_px=allowed_px)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Where the matrices put a point of the first image, and how they move a corner."""
        (width, height), Hs = WarpedImageEvidence.of(fact).size, [one.value for one in fact.candidates]
        steps = np.arange(1.0, 6.0)
        grid = np.stack(np.meshgrid(steps * width // 6, steps * height // 6), axis=-1).reshape(-1, 2)
        corners = homography.image_corners(width, height)
        point, corner = (_find_telling(places, Hs, fact.truth, (width, height)) for places in (grid, corners))
        ends = [pen.point(pen.move_point(H, grid[point])) for H in Hs]
        moves = [pen.series(("right_px", "down_px"), pen.move_point(H, corners[corner]) - corners[corner]) for H in Hs]
        told = {"point": numbers.format_point(grid[point]), "end": ends[fact.truth], "move": moves[fact.truth]}
        told |= {"corner": pen.word(f"corner.c{corner}"), "case": self.notation}
        for key, said in (("ends", ends), ("moves", moves)):
            told[key] = pen.join(
                [pen.word("list.of", name=pen.name_option(k), value=one) for k, one in enumerate(said)]
            )
        return told

    def make_size_slots(self, fact: Fact) -> dict[str, str]:
        """Slots of the size that all images of a question have."""
        width, height = WarpedImageEvidence.of(fact).size
        return {"width": str(width), "height": str(height)}


def _find_telling(places: FloatArray, Hs: Sequence[FloatArray], truth: int, size: tuple[int, int]) -> int:
    """Which place (P, 2) of an image the others put farthest from where the right matrix does, of those that all leave
    in the image, where there are any."""
    ends = np.stack([homography.apply(H, places) for H in Hs])
    apart = np.delete(np.linalg.norm(ends - ends[truth], axis=-1), truth, axis=0).min(axis=0)
    inside = ((ends >= 0) & (ends <= np.array(size) - 1)).all(axis=(0, 2))
    return int(np.argmax(apart + 1e4 * inside))


def _count_corners(frame: ViewFrame, image: WarpedImageEvidence) -> int:
    """FAST corners of the frame inside the crop."""
    scale = np.array(image.frame_size) / frame.camera.size
    uv = (frame.corners_uv + 0.5) * scale - 0.5 - image.crop[:2]
    return int(np.count_nonzero(((uv >= -0.5) & (uv < np.array(image.crop[2:]) - 0.5)).all(axis=1)))
