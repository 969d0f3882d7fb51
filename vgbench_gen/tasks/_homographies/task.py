"""What both homography tasks share: a pool of warps of one frame, as printed, and two ways to each of them.

The printed matrix (four significant digits) *is* the matrix that is applied, so rounding costs nothing. All warps
come from one sampler and pass the same gates (`docs/validity.md#homographies`); which is asked is drawn after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.geometry import homography
from vgbench_gen.scenes.view import Float32Array, SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._homographies.checks import check_warps
from vgbench_gen.tasks._homographies.evidence import Components, WarpedImageEvidence, WarpEvidence
from vgbench_gen.tasks._homographies.gates import HomographyGates
from vgbench_gen.tasks._pair_margins import PairMarginsTask
from vgbench_gen.tasks._proposals import move_numbers
from vgbench_gen.tasks.base import add_margins, reject
from vgbench_gen.tasks.presentation import Margins
from vgbench_gen.text import lint, numbers

PER_FRAME = 2
DRAWS = 60  # three in four draws pass the gates
AGREEMENT_PX = 0.5  # the printed matrix is the applied one: more than half a pixel apart is another convention

# Ranges of the components. Wider ones mostly fail `kept_min` or the ceiling; for the least see
# `measure_component_moves_d`.
ANGLE_MAX_DEG = 30.0
SCALE_MIN, SCALE_MAX = 0.6, 1.35
SHIFT_MAX_D = 0.22
PERSPECTIVE_MAX = 0.2

_GRID = 12  # target pixels per side that the second route reads
_FAR_OUTSIDE = -1e6  # what a coordinate image holds beyond its border; a trace of it shows


def round_as_printed(H: FloatArray) -> FloatArray:
    """H (3, 3) as a reader of its four significant digits gets it back."""
    return np.array([[float(numbers.format_significant(x)) for x in row] for row in H.tolist()])


def sample_components(width: int, height: int, rng: np.random.Generator) -> Components:
    """One draw: at least two of the four components, all such sets equally likely."""
    present = rng.random(4) < 0.5
    while present.sum() < 2:
        present = rng.random(4) < 0.5
    angle, log_scale, direction, shift = rng.uniform(
        [-ANGLE_MAX_DEG, np.log(SCALE_MIN), 0.0, 0.0], [ANGLE_MAX_DEG, np.log(SCALE_MAX), 2 * np.pi, SHIFT_MAX_D]
    )
    shift_px = float(shift * np.hypot(width, height))
    px, py = rng.uniform(-PERSPECTIVE_MAX, PERSPECTIVE_MAX, 2)
    rotation, scale, translation, perspective = (bool(p) for p in present)
    return Components(
        angle_deg=float(angle) if rotation else 0.0,
        scale=float(np.exp(log_scale)) if scale else 1.0,
        tx_px=shift_px * float(np.cos(direction)) if translation else 0.0,
        ty_px=shift_px * float(np.sin(direction)) if translation else 0.0,
        px=float(px) if perspective else 0.0,
        py=float(py) if perspective else 0.0,
    )


def measure_component_moves_d(components: Components, width: int, height: int) -> float:
    """How far the weakest present component alone moves the corners, per cent of the diagonal."""
    alone = np.stack([part.make_matrix(width, height) for part in components.list_parts()])
    return 100 * float(homography.corner_moves_px(alone, width, height).min()) / float(np.hypot(width, height))


def find_warp_problem(
    H: FloatArray, width: int, height: int, gates: HomographyGates
) -> tuple[str, Mapping[str, float]]:
    """(which gate a warp fails, "" for none; value over limit of those looked at).

    Remembered: every pair of a pool asks again whether its members are valid.
    """
    return _find_warp_problem(_make_key(H), width, height, gates)


@lru_cache(maxsize=4096)
def _find_warp_problem(H: bytes, width: int, height: int, gates: HomographyGates) -> tuple[str, Mapping[str, float]]:
    matrix, margins = _read_matrix(H), Margins()
    try:
        denominators = homography.denominators(matrix, width, height)
    except GeometryError:
        return "singular", margins.ratios
    low = margins.at_least("denominator_low", float(denominators.min()), gates.denominator_min)
    if not (margins.at_most("denominator_high", float(denominators.max()), gates.denominator_max) and low):
        return "denominator", margins.ratios
    moved_px = float(homography.corner_moves_px(matrix, width, height))
    moved_d = 100 * moved_px / float(np.hypot(width, height))
    # Nearer to the identity than two options to each other: the source would pass for its own warp.
    if not margins.at_least("moved", moved_d, gates.gap_min_d):
        return "too_little", margins.ratios
    if moved_d > gates.gap_max_d:
        return "too_much", margins.ratios
    kept = homography.source_kept_fraction(matrix, width, height)
    return "" if margins.at_least("kept", kept, gates.kept_min) else "kept", margins.ratios


def sample_pool(
    width: int, height: int, count: int, gates: HomographyGates, rng: np.random.Generator
) -> tuple[list[Candidate], dict[str, int]]:
    """Up to `count` gated warps, and how many draws failed which gate."""
    pool: list[Candidate] = []
    dropped: dict[str, int] = {}
    for _ in range(DRAWS):
        if len(pool) == count:
            break
        components = sample_components(width, height, rng)
        margins = Margins()
        moves_d = measure_component_moves_d(components, width, height)
        if margins.at_least("component", moves_d, gates.component_min_d):
            H = round_as_printed(components.make_matrix(width, height))
            problem, ratios = find_warp_problem(H, width, height, gates)
            margins.ratios.update(ratios)
        else:
            problem = "component"
        if problem:
            dropped[problem] = dropped.get(problem, 0) + 1
            continue
        entries = H.ravel().tolist()
        pool.append(
            Candidate(
                f"warp:{hash_stably(numbers.format_matrix_line(H, numbers.format_significant), size=4)}",
                H,
                show={"H": entries},
                evidence=WarpEvidence(
                    components=components, corners_px=move_corners(H, width, height), margins=margins.ratios
                ).write(),
            )
        )
    return pool, dropped


def move_corners(H: FloatArray, width: int, height: int) -> FloatArray:
    """(4, 2) images of the corner pixels; remembered, since every pair of a pool asks for them."""
    return _move_corners(_make_key(H), width, height)


@lru_cache(maxsize=4096)
def _move_corners(H: bytes, width: int, height: int) -> FloatArray:
    try:
        corners = homography.apply(_read_matrix(H), homography.image_corners(width, height))
    except GeometryError:
        corners = np.full((4, 2), np.nan)
    corners.flags.writeable = False
    return corners


def _make_key(H: FloatArray) -> bytes:
    return np.ascontiguousarray(H, dtype=np.float64).tobytes()


def _read_matrix(key: bytes) -> FloatArray:
    return np.frombuffer(key, dtype=np.float64).reshape(3, 3)


@lru_cache(maxsize=4)
def _make_coordinate_image(width: int, height: int) -> Float32Array:
    """(height, width, 2) float32: each pixel holds its own (u, v)."""
    u, v = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
    image = np.stack([u, v], axis=-1)
    image.flags.writeable = False
    return image


def warp_correspondences(H: FloatArray, width: int, height: int) -> tuple[FloatArray, FloatArray]:
    """(source (N, 2), target (N, 2)) pixels as the warp of `store.pictures` pairs them on a grid of target pixels.

    Coordinates travel through the warp as colours would; no formula for where a pixel goes is used here. Only every
    n-th pixel of the target is drawn.
    """
    step_u, step_v = max(1, (width - 1) // (_GRID - 1)), max(1, (height - 1) // (_GRID - 1))
    columns, rows = min(_GRID, width), min(_GRID, height)
    warped = cv2.warpPerspective(
        _make_coordinate_image(width, height),
        np.diag([1 / step_u, 1 / step_v, 1.0]) @ H,
        (columns, rows),
        flags=cv2.INTER_LINEAR,
        borderMode=cv2.BORDER_CONSTANT,
        borderValue=(_FAR_OUTSIDE, _FAR_OUTSIDE),
    )
    target = np.stack(np.meshgrid(np.arange(columns) * step_u, np.arange(rows) * step_v), axis=-1).reshape(-1, 2)
    source = np.asarray(warped, dtype=np.float64).reshape(-1, 2)
    inside = (source >= 0).all(axis=1)
    return source[inside], target[inside].astype(np.float64)


class HomographyTask(PairMarginsTask):
    """Drafts, second route and answer space of both directions; values are (3, 3) matrices with H33 = 1."""

    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    unit = "px"
    fact_evidence = WarpedImageEvidence
    candidate_evidence = WarpEvidence
    checks = (check_warps,)
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

    @property
    def limits(self) -> HomographyGates:
        """The task's own gates and margins."""
        return self.gates.section(HomographyGates)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Up to two facts per frame, each with a pool of its own."""
        made = 0
        for frame in view.distinct_frames(rng):
            if made >= limit:
                return
            needed = self.limits.keypoints_min
            if frame.corner_count < needed:
                yield reject(self, view, frame.id, "keypoints", frame.corner_count, needed)
                continue
            used: list[Candidate] = []
            for turn in range(min(PER_FRAME, limit - made)):
                draft = self._make_draft(frame, view, f"{frame.id}/{turn}", used, rng)
                if isinstance(draft, Fact):
                    used.append(draft.truth_candidate)
                    made += 1
                yield draft

    def _make_draft(
        self, frame: ViewFrame, view: SceneView, key: str, used: list[Candidate], rng: np.random.Generator
    ) -> Fact | Rejected:
        width, height = size = frame.camera.size
        gates = self.limits
        pool, dropped = sample_pool(width, height, self.pool_size, gates, rng)
        if len(pool) < 4:
            most = max(dropped, key=lambda name: dropped[name])
            return reject(self, view, key, f"warps_{most}", len(pool), 4, str(dropped))
        fact = self.new_fact(view, tuple(pool), frame_ids=(frame.id,), key=key, evidence=WarpedImageEvidence(size=size))
        eligible = np.array([all(self.margin_ratio(c, u, fact) >= 1 for u in used) for c in pool])
        drawn = self.with_drawn_truth(fact, rng, eligible)
        if drawn is None:
            return reject(self, view, key, "no_option_set", len(pool), 4)
        margins = Margins(dict(WarpEvidence.of(drawn.truth_candidate).margins))
        margins.at_least("keypoints", frame.corner_count, gates.keypoints_min)
        return add_margins(drawn, key, margins.ratios)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Least squares (DLT) over what the warp that is shown does to coordinates."""
        width, height = view.frame(fact.frame_ids[0]).camera.size
        shown = np.array(fact.truth_candidate.show["H"], dtype=np.float64).reshape(3, 3)
        source, target = warp_correspondences(shown, width, height)
        return homography.fit_to_points(source, target)

    def recompute(self, fact: Fact) -> FloatArray:
        """The matrix through the four stored corners."""
        corners_px = homography.image_corners(*WarpedImageEvidence.of(fact).size)
        return self.rounded(homography.fit_to_points(corners_px, WarpEvidence.of(fact.truth_candidate).corners_px))

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Corner error of the two routes over half a pixel."""
        return self.metric(fact.truth_candidate.value, second, fact) / AGREEMENT_PX

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Mean distance of the corners under both, pixels."""
        width, height = WarpedImageEvidence.of(fact).size
        apart = move_corners(a, width, height) - move_corners(b, width, height)
        error = float(np.hypot(apart[:, 0], apart[:, 1]).mean())
        return error if np.isfinite(error) else float("inf")

    def rounded(self, value: FloatArray) -> FloatArray:
        """Four significant digits."""
        return round_as_printed(value)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """Mean distance of the corners over the required and over the allowed share of the diagonal."""
        width, height = WarpedImageEvidence.of(fact).size
        corners = np.stack([move_corners(candidate.value, width, height) for candidate in candidates])
        apart = corners[:, None] - corners
        error_d = 100 * np.hypot(apart[..., 0], apart[..., 1]).mean(axis=-1) / float(np.hypot(width, height))
        error_d[~np.isfinite(error_d)] = np.inf
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
        width, height = WarpedImageEvidence.of(fact).size
        corners = np.concatenate([homography.image_corners(width, height), np.ones((4, 1))], axis=1)
        moved = corners @ np.swapaxes(values, 1, 2)
        moved_px = moved[..., :2] / moved[..., 2:]
        told_px = np.stack([move_corners(option.value, width, height) for option in options])
        apart = moved_px - told_px[:, None]
        apart *= apart
        return np.asarray(np.sqrt(apart[..., 0] + apart[..., 1]).mean(axis=2))

    def proposal(self, fact: Fact) -> Proposal:
        """Components: numbers of which most are a fair warp, as those of a matrix are not."""
        width, height = WarpedImageEvidence.of(fact).size
        slots = {
            "width": str(width),
            "height": str(height),
            "high": f"{ANGLE_MAX_DEG:g}",
            "scale_low": f"{SCALE_MIN:g}",
            "scale_high": f"{SCALE_MAX:g}",
            "shift": f"{SHIFT_MAX_D * float(np.hypot(width, height)):.0f}",
            "perspective": f"{PERSPECTIVE_MAX:g}",
        }
        return Proposal("homography", slots, 6, "homography")

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """The warp; a component that is named absent stays absent."""
        values = [x if x in (0.0, 1.0) else near for x, near in zip(numbers, move_numbers(numbers, rng), strict=True)]
        if not np.isfinite(values).all():
            return None
        components = Components(**dict(zip(Components.model_fields, values, strict=True)))
        try:
            H = round_as_printed(components.make_matrix(*WarpedImageEvidence.of(fact).size))
        except GeometryError:
            return None
        return Candidate("", H, show={"H": H.ravel().tolist()})

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """How far the corners move on average, pixels."""
        return float(homography.corner_moves_px(value, *WarpedImageEvidence.of(fact).size))

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """Passes the gates of the sampler."""
        width, height = WarpedImageEvidence.of(fact).size
        H = candidate.value
        if H.shape != (3, 3) or not np.isfinite(H).all() or H[2, 2] != 1:
            return False
        return not find_warp_problem(H, width, height, self.limits)[0]


def warp_picture(base: str, candidate: Candidate, size: tuple[int, int]) -> Picture:
    """The base image warped by a candidate's matrix to its own size."""
    return Picture(base, ({"op": "warp", "H": list(candidate.show["H"]), "size": list(size)},))
