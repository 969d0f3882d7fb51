"""Warps of one image from which options are chosen: all of one kind, three values of each of its two parts.

All nine combinations pass the gates (`docs/validity.md#homographies`), so that any two values of one part with any two
of the other stand together. What the parts do not say, a shift at least, is the same in all nine.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import BoolArray, Candidate, FloatArray
from vgbench_gen.geometry import homography
from vgbench_gen.tasks._homographies.evidence import (
    PART_FIELDS,
    PARTS,
    Components,
    Kind,
    Part,
    WarpedImageEvidence,
    WarpEvidence,
)
from vgbench_gen.tasks.gates import HomographyGates
from vgbench_gen.tasks.presentation import Margins
from vgbench_gen.text import numbers

DRAWS = 64  # of all values at once; of a crop of the largest size one in six passes
VALUES = 3  # of a part
ROOM_PX = 1.0  # within the frame's outermost pixel centres, so that no colour is made up at its border

# Ranges of the components. Wider ones mostly draw on what lies outside the frame, or fail the ceiling.
ANGLE_MAX_DEG = 20.0
SCALE_MIN, SCALE_MAX = 0.85, 1.35
STRETCH_MAX = 1.65
SHEAR_MAX = 0.24  # times the diagonal over the height
TILT_MAX = 0.2
SHIFT_MAX_D = 0.08
COMMON_SHARE = 0.5  # of its range, of a component that is no part: the rest of the room is for the parts
SPACING = 1.17  # of the values of a part, over what moves corners by the margin at scale 1

FloatFields = dict[str, FloatArray]


def round_as_printed(H: FloatArray) -> FloatArray:
    """H (3, 3) as a reader of its four significant digits gets it back."""
    return np.array([[float(numbers.format_significant(x)) for x in row] for row in H.tolist()])


def get_range(part: Part) -> tuple[float, float]:
    """From where to where a part moves the corners of an image, as a share of half its diagonal."""
    ends: dict[Part, tuple[float, float]] = {
        "rotation": (-np.radians(ANGLE_MAX_DEG), np.radians(ANGLE_MAX_DEG)),
        "scale": (np.log(SCALE_MIN), np.log(SCALE_MAX)),
        "stretch": (-np.log(STRETCH_MAX) / 2, np.log(STRETCH_MAX) / 2),
        "shear": (-SHEAR_MAX, SHEAR_MAX),
    }
    return ends.get(part, (-TILT_MAX, TILT_MAX))


def make_values(part: Part, amount: FloatArray, size: tuple[int, int]) -> FloatArray:
    """Values of a part, as `Components` holds them, for shares (...) of half the diagonal by which corners move."""
    if part == "rotation":
        return np.degrees(amount)
    if part == "shear":
        return amount * float(np.hypot(*size)) / size[1]
    return np.exp(amount) if part == "scale" else np.exp(2 * amount) if part == "stretch" else amount


def draw_components(
    kind: Kind, size: tuple[int, int], count: int, gates: HomographyGates, rng: np.random.Generator
) -> FloatFields:
    """Field of `Components` -> (count, VALUES ** 2) values, those of the first part changing slowest."""
    first, second = PARTS[kind]
    gap = 2 * SPACING * gates.gap_min_d / 100
    shape = {first: (count, VALUES, 1), second: (count, 1, VALUES)}
    fields: FloatFields = {}
    parts: tuple[Part, ...] = tuple(dict.fromkeys(("rotation", "scale", first, second)))
    for part in parts:
        low, high = get_range(part)
        if part in shape:
            # Sorted uniform numbers spread by the gap are uniform over the sets that keep it.
            free = max(high - low - (VALUES - 1) * gap, 0.0)
            spread = low + np.sort(rng.uniform(0, free, (count, VALUES)), axis=1) + gap * np.arange(VALUES)
            amount = rng.permuted(spread, axis=1).reshape(shape[part])
        else:
            amount = COMMON_SHARE * rng.uniform(low, high, (count, 1, 1))
        fields[PART_FIELDS[part]] = make_values(part, amount, size)
    direction, shift = rng.uniform(0, [[[2 * np.pi]], [[SHIFT_MAX_D]]], (count, 2, 1, 1)).swapaxes(0, 1)
    shift_px = shift * float(np.hypot(*size))
    fields |= {"tx_px": shift_px * np.cos(direction), "ty_px": shift_px * np.sin(direction)}
    whole = (count, VALUES, VALUES)
    return {name: np.broadcast_to(x, whole).reshape(count, -1) for name, x in fields.items()}


def measure_warps(image: WarpedImageEvidence, Hs: FloatArray) -> FloatFields:
    """What the gates judge warps (..., 3, 3) by, (...) each."""
    width, height = image.size
    corners = np.concatenate([homography.image_corners(width, height), np.ones((4, 1))], axis=1)
    denominators = corners @ Hs[..., 2, :, None]
    denominators /= denominators.mean(axis=-2, keepdims=True)  # that of the centre
    sources = homography.find_sources(Hs, width, height)
    return {
        "denominator_low": denominators.min(axis=(-2, -1)),
        "denominator_high": denominators.max(axis=(-2, -1)),
        "moved_d": 100 * homography.corner_moves_px(Hs, width, height) / float(np.hypot(width, height)),
        "room_px": image.measure_room_px(Hs),
        "enlarged": homography.measure_enlargements(Hs[..., None, :, :], sources).max(axis=-1),
    }


def find_problems(measured: Mapping[str, FloatArray], gates: HomographyGates) -> dict[str, BoolArray]:
    """Gate -> (...) which of the measured warps fail it."""
    low, high = measured["denominator_low"], measured["denominator_high"]
    return {
        "denominator": ~((low >= gates.denominator_min) & (high <= gates.denominator_max)),
        # Nearer to the identity than two options to each other: the source would pass for its own warp.
        "too_little": ~(measured["moved_d"] >= gates.gap_min_d),
        "too_much": ~(measured["moved_d"] <= gates.gap_max_d),
        "border": ~(measured["room_px"] >= ROOM_PX),
        "blurred": ~(measured["enlarged"] <= gates.enlarged_max),
    }


def find_warp_problem(
    H: FloatArray, image: WarpedImageEvidence, gates: HomographyGates
) -> tuple[str, Mapping[str, float]]:
    """(which gate a warp (3, 3) fails, "" for none; value over limit of those looked at)."""
    margins = Margins()
    if H.shape != (3, 3) or not np.isfinite(H).all() or H[2, 2] != 1:
        return "singular", margins.ratios
    try:
        homography.normalise_homography(H)
    except GeometryError:
        return "singular", margins.ratios
    measured = measure_warps(image, H)
    for problem, fails in find_problems(measured, gates).items():
        if fails:
            return problem, margins.ratios
    margins.at_least("denominator_low", float(measured["denominator_low"]), gates.denominator_min)
    margins.at_most("denominator_high", float(measured["denominator_high"]), gates.denominator_max)
    margins.at_least("moved", float(measured["moved_d"]), gates.gap_min_d)
    margins.at_most("enlarged", float(measured["enlarged"]), gates.enlarged_max)
    ways = (H, homography.normalise_homography(np.linalg.inv(H)))
    kept = min(homography.source_kept_fraction(way, *image.size) for way in ways)
    return "" if margins.at_least("kept", kept, gates.kept_min) else "kept", margins.ratios


def sample_pool(
    image: WarpedImageEvidence, gates: HomographyGates, rng: np.random.Generator
) -> tuple[list[Candidate], Counter[str]]:
    """The nine warps of the first draw that passes, none where there is none; and how many draws failed which gate."""
    width, height = image.size
    fields = draw_components(image.kind, image.size, DRAWS, gates, rng)
    Hs = homography.make_about_centre(width, height, **fields)
    single = find_problems(measure_warps(image, Hs), gates)
    problems = {name: np.asarray(fails.any(axis=1)) for name, fails in single.items()}
    problems |= _find_pair_problems(image, Hs, gates)
    dropped: Counter[str] = Counter()
    for draw in range(DRAWS):
        problem = next((name for name, fails in problems.items() if fails[draw]), "")
        if not problem:
            components = [
                Components(**{name: float(values[draw, k]) for name, values in fields.items()})
                for k in range(VALUES**2)
            ]
            pool, problem = _make_pool(image, components, Hs[draw], gates)
            if not problem:
                return pool, dropped
        dropped[problem] += 1
    return [], dropped


def _find_pair_problems(image: WarpedImageEvidence, Hs: FloatArray, gates: HomographyGates) -> dict[str, BoolArray]:
    """Gate -> (n,) which sets of warps (n, m, 3, 3) hold two that are too alike, or too far apart."""
    moved = homography.move_corners(Hs, *image.size)
    i, j = np.triu_indices(Hs.shape[1], 1)
    gaps_d = 100 * homography.measure_gaps_px(moved[:, i], moved[:, j]) / float(np.hypot(*image.size))
    return {
        "alike": np.asarray(~(gaps_d >= gates.gap_min_d).all(axis=1)),
        "far_apart": np.asarray(~(gaps_d <= gates.gap_max_d).all(axis=1)),
    }


def _make_pool(
    image: WarpedImageEvidence, components: list[Components], Hs: FloatArray, gates: HomographyGates
) -> tuple[list[Candidate], str]:
    """Candidates of warps (m, 3, 3) as printed, and why they may not be asked, "" where they may."""
    printed = np.stack([round_as_printed(H) for H in Hs])
    for name, fails in _find_pair_problems(image, printed[None], gates).items():
        if fails.any():
            return [], name
    pool = []
    for parts, H in zip(components, printed, strict=True):
        problem, ratios = find_warp_problem(H, image, gates)
        if problem:
            return [], problem
        evidence = WarpEvidence(
            components=parts,
            corners_px=homography.apply(H, homography.image_corners(*image.size)),
            margins=dict(ratios),
        )
        key = f"warp:{hash_stably(numbers.format_matrix_line(H, numbers.format_significant), size=4)}"
        pool.append(Candidate(key, H, show={"H": H.ravel().tolist()}, evidence=evidence.write()))
    return pool, ""
