"""Sets of marked regions whose right one stands out by its place no more than any other does.

Where things lie in images goes with how far away they are: farther ones higher and nearer the middle, nearer ones at
the border. A set drawn freely therefore tells its answer. Here every set of every image of a scene has a weight, and
the weights are those nearest to equal ones (exponential tilting, as in Hainmueller's entropy balancing, 2012) under
which, averaged over the images, the right region is like the others in height, left to right, distance from the centre,
size and isolation, as numbers, as ranks and in pairs of ranks. Sets are then drawn by weight, each image on its own, so
any part of what is drawn is balanced in expectation (`benchmark-validity` 3.4 row 3).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import BoolArray, FloatArray, IntArray

SETS = 1500  # looked at per image; of most images there are thousands
_RIDGE = 0.005  # keeps weights near equal where only few images speak for a trait
_STEPS = 60
# Of `traits`: ranks one by one, products of two ranks, numbers. Where an image cannot have all, ranks come first.
_EMPHASIS = np.repeat([2.0, 0.5, 1.0], [18, 15, 12])


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
    apart = np.linalg.norm(placed[:, :, None] - placed[:, None], axis=-1)
    nearest = np.where(np.eye(k, dtype=bool), np.inf, apart).min(axis=2)
    off = np.linalg.norm(middle * size, axis=-1) / np.linalg.norm(size)
    ranked = np.stack([middle[..., 1], middle[..., 0], off, sides.prod(axis=-1), nearest, apart.sum(axis=2)], axis=-1)
    above = (ranked[:, :, None] > ranked[:, None]).sum(axis=2)
    below = (ranked[:, :, None] < ranked[:, None]).sum(axis=2)
    rank = (above - below) / (k - 1)
    places = [np.abs(rank - level) < 1e-9 for level in np.linspace(-1, 1, k)[1:]]
    pairs = np.triu_indices(rank.shape[-1], 1)
    numbers = np.concatenate(
        [middle, middle**2, middle**3, off[..., None], off[..., None] ** 2, sides, sides**2], axis=-1
    )
    told = np.concatenate([*places, rank[..., pairs[0]] * rank[..., pairs[1]], numbers], axis=-1)
    differs: FloatArray = told[:, 0] - told.mean(axis=1)
    return differs


def weights(images: Sequence[FloatArray]) -> list[FloatArray]:
    """Weights (S,) of the sets of each image, summing to 1, under which `traits` (S, d) vanish on average.

    Minimises the mean over images of log mean exp(traits @ tilt), which is convex and has the mean traits as gradient.
    """
    from scipy.optimize import minimize

    if not images:
        return []
    every = np.concatenate(images)
    scale = every.std(axis=0)
    scaled = every[:, scale > 1e-9] / scale[scale > 1e-9]
    scaled *= _EMPHASIS[scale > 1e-9]
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
