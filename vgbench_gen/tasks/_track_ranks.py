"""Which set of points to ask about: the truth has any place among them by chance.

Places that look like the query lie around its target, on the same surface. Drawn without care, the target would be
the point in the middle too often, and from there any rule about how options lie could start.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import BoolArray, Fact, FloatArray, IntArray


def drawn(fact: Fact, sets: IntArray, rng: np.random.Generator) -> int:
    """A row of `sets` (n, k), places in the pool of which the truth is one: by how far it lies from the query, and by
    how near it lies to the others, the truth takes each place among them equally often, as far as there are such sets.
    """
    uv_px = np.stack([candidate.value for candidate in fact.candidates])[sets]
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    from_query = np.linalg.norm(uv_px - query, axis=2)
    apart = np.linalg.norm(uv_px[:, :, None] - uv_px[:, None], axis=3).sum(axis=2)
    held = sets == fact.truth
    left = np.arange(len(sets))
    for values in rng.permutation([0, 1]).tolist():
        rank = _rank((from_query, apart)[values], held)
        off = np.abs(rank - rng.integers(sets.shape[1]))
        left = left[off[left] == off[left].min()]
    return int(rng.choice(left))


def _rank(values: FloatArray, held: BoolArray) -> IntArray:
    mine = values[held][:, None]
    return np.asarray((values < mine).sum(axis=1), dtype=np.int64)


def rival(fact: Fact, members: Sequence[int], rng: np.random.Generator) -> int:
    """One of these members: nearer to the query than the truth as often as further, where there are both."""
    query = np.array(fact.truth_candidate.show["query"], dtype=np.float64)
    distance = np.array([np.linalg.norm(candidate.value - query) for candidate in fact.candidates])
    nearer = [n for n in members if distance[n] < distance[fact.truth]]
    further = [n for n in members if distance[n] >= distance[fact.truth]]
    sides = (nearer, further) if rng.random() < 0.5 else (further, nearer)
    return int(rng.choice(sides[0] or sides[1]))
