"""Sets of marked regions whose right one stands out by its place no more than any other does.

Where things lie in images goes with how far away they are: farther ones higher and nearer the middle, nearer ones at
the border. A set drawn freely therefore tells its answer. Here every set of every image of a scene has a weight, and
the weights are those nearest to equal ones (exponential tilting, as in Hainmueller's entropy balancing, 2012) under
which, averaged over the images, the right region is like the others in height, left to right, distance from the centre,
size, shape and isolation: as numbers, as ranks, in pairs, and band by band, since equal means and variances leave a
forest enough to learn from. Sets are then drawn by weight, each image on its own, so any part of what is drawn is
balanced in expectation (`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray, IntArray

SETS = 1500  # looked at per image; of most images there are thousands
_RIDGE = 0.002  # keeps weights near equal where only few images speak for a trait
_STEPS = 100
# Of the first `traits`: ranks one by one, products of two ranks. Where an image cannot have all, ranks come first.
_EMPHASIS = np.repeat([2.0, 0.5], [18, 15])
# Bands, as shares of the image (of its diagonal for distances from the centre, of both sides for distances between
# regions): of a quantity by itself, and of its difference from the mean of the set.
_BANDS = {
    "height": (-0.3, -0.2, -0.1, 0.0, 0.1, 0.2, 0.3),
    "across": (-0.3, -0.15, 0.0, 0.15, 0.3),
    "off": (0.1, 0.17, 0.24, 0.31, 0.38),
    "log_aspect": (-0.5, -0.2, 0.2, 0.5),
}
_BANDS_BESIDE = {
    "height": (-0.25, -0.15, -0.07, 0.0, 0.07, 0.15, 0.25),
    "across": (-0.3, -0.15, 0.0, 0.15, 0.3),
    "off": (-0.1, -0.05, 0.0, 0.05, 0.1),
    "nearest": (-0.1, -0.03, 0.03, 0.1),
    "apart": (-0.1, -0.03, 0.03, 0.1),
}
_AREA_UNIT = 0.05  # of the image: brings areas to the size of the other quantities


def drawn_sets(allowed: BoolArray, decoys: int, rng: np.random.Generator) -> IntArray:
    """(S, 1 + decoys) sets, truth first, about `SETS` in all and as many for each truth; fewer where there are fewer.

    Args:
        allowed: (n, n) whether the second may stand beside the first as the truth.
        decoys: how many stand beside a truth.
        rng: source of sets.
    """
    able = np.flatnonzero(allowed.sum(axis=1) >= decoys)
    if not len(able):
        return np.zeros((0, 1 + decoys), dtype=np.int64)
    each = -(-SETS // len(able))
    keys = np.where(allowed[able][:, None], rng.random((len(able), each, allowed.shape[1])), np.inf)
    beside = np.sort(np.argpartition(keys, decoys - 1, axis=2)[..., :decoys], axis=2).reshape(-1, decoys)
    found = np.column_stack([np.repeat(able, each), beside])
    return np.asarray(np.unique(found, axis=0), dtype=np.int64)


def traits(rects: FloatArray, size: tuple[int, int]) -> FloatArray:
    """(S, d) by how much the first region of each set differs from the mean of its set in all that is balanced.

    Args:
        rects: (S, k, 4) x1, y1, x2, y2, pixels.
        size: width, height of the image.
    """
    k = rects.shape[1]
    placed = rects / np.array([*size, *size], dtype=np.float64)
    middle = (placed[..., :2] + placed[..., 2:]) / 2 - 0.5
    sides = placed[..., 2:] - placed[..., :2]
    gaps = np.linalg.norm(placed[:, :, None] - placed[:, None], axis=-1)
    place = {
        "height": middle[..., 1],
        "across": middle[..., 0],
        "off": np.linalg.norm(middle * size, axis=-1) / np.linalg.norm(size),
        "area": sides.prod(axis=-1) / _AREA_UNIT,
        "nearest": np.where(np.eye(k, dtype=bool), np.inf, gaps).min(axis=2),
        "apart": gaps.sum(axis=2) / (k - 1),
    }
    other = {
        "wide": sides[..., 0],
        "tall": sides[..., 1],
        "furthest": gaps.max(axis=2),
        "log_aspect": np.log(sides[..., 0] / sides[..., 1]),
    }
    every = place | other
    quantities = np.stack(list(place.values()), axis=-1)
    beside = quantities - quantities.mean(axis=1, keepdims=True)
    rank = np.sign(np.round(quantities[:, :, None] - quantities[:, None], 12)).sum(axis=2) / (k - 1)
    by_rank = [np.abs(rank - level) < 1e-9 for level in np.linspace(-1, 1, k)[1:]]
    numbers = [values**power for values in every.values() for power in (1, 2)]
    numbers += [every[name] ** 3 for name in ("height", "across")]
    bands = [b for name, edges in _BANDS.items() for b in _banded(every[name], edges)]
    for name, edges in _BANDS_BESIDE.items():
        bands += _banded(every[name] - every[name].mean(axis=1, keepdims=True), edges)
    told = np.concatenate(
        [
            *by_rank,
            _products(rank, 1),
            _products(quantities, 1),
            _products(beside, 0),
            np.stack([*numbers, *bands], axis=-1),
        ],
        axis=-1,
    )
    differs: FloatArray = told[:, 0] - told.mean(axis=1)
    return differs


def _products(values: FloatArray, apart: int) -> FloatArray:
    """(S, k, d) products of two of the last axis, with themselves where `apart` is 0."""
    first, second = np.triu_indices(values.shape[-1], apart)
    return np.asarray(values[..., first] * values[..., second])


def _banded(values: FloatArray, edges: Sequence[float]) -> list[BoolArray]:
    """Which values lie in each band but the first, which follows from the others."""
    band = np.digitize(values, edges)
    return [band == n for n in range(1, len(edges) + 1)]


def weights(images: Sequence[FloatArray], emphasis: FloatArray = _EMPHASIS) -> list[FloatArray]:
    """Weights (S,) of the sets of each image, summing to 1, under which `traits` (S, d) vanish on average.

    emphasis: of the first traits; of the others it is 1.

    Minimises the mean over images of log mean exp(traits @ tilt), which is convex and has the mean traits as gradient.
    """
    from scipy.optimize import minimize

    if not images:
        return []
    every = np.concatenate(images)
    scale = every.std(axis=0)
    emphases = np.concatenate([emphasis, np.ones(len(scale) - len(emphasis))])
    scaled = every[:, scale > 1e-9] * (emphases / np.maximum(scale, 1e-9))[scale > 1e-9]
    counts = np.array([len(image) for image in images])
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])

    def shares(tilt: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(N,) weights within each image, and (images,) log of the sums."""
        logits = scaled @ tilt
        highest = np.maximum.reduceat(logits, starts)
        raised = np.exp(logits - np.repeat(highest, counts))
        total = np.add.reduceat(raised, starts)
        return raised / np.repeat(total, counts), highest + np.log(total / counts)

    def loss(tilt: FloatArray) -> tuple[float, FloatArray]:
        weight, level = shares(tilt)
        slope = weight @ scaled / len(images) + _RIDGE * tilt
        return float(level.mean() + _RIDGE * (tilt @ tilt) / 2), slope

    found = minimize(loss, np.zeros(scaled.shape[1]), jac=True, method="L-BFGS-B", options={"maxiter": _STEPS})
    return np.split(shares(found.x)[0], starts[1:])
