"""In which order objects of a scene are asked about, and how far apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import IntArray

PER_FRAME = 2
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (docs/validity.md#repetition)
_STRATUM = 1.25  # ratio of values that share a stratum


def order_in_strata(values: Sequence[float], targets: Sequence[str], rng: np.random.Generator) -> IntArray:
    """Order in which to take positive values: strata of equal ratio in turn; within one, targets not used yet
    first, otherwise at random."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    strata = np.floor(np.log(np.asarray(values)) / np.log(_STRATUM)).astype(int)
    chance = rng.random(len(values))
    uses: Counter[str] = Counter()
    repeat = np.zeros(len(values), dtype=int)
    for i in np.argsort(chance):
        repeat[i] = uses[targets[i]]
        uses[targets[i]] += 1
    turn = np.zeros(len(values), dtype=int)
    for stratum in np.unique(strata):
        members = np.flatnonzero(strata == stratum)
        turn[members[np.lexsort((chance[members], repeat[members]))]] = np.arange(len(members))
    order: IntArray = np.lexsort((chance, turn))
    return order
