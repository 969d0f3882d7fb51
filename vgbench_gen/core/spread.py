"""Evenly spread choices."""

from __future__ import annotations


def choose_evenly(total: int, wanted: int) -> list[int]:
    """Places of `wanted` of `total` frames, evenly spread from the first to the last one, none twice; 0 for all.

    Rounded down, as `numpy.linspace(0, total - 1, wanted, dtype=int)` does in the harnesses that VSI-Bench runs in.
    """
    if not wanted or total <= wanted:
        return list(range(total))
    return [k * (total - 1) // (wanted - 1) for k in range(wanted)] if wanted > 1 else [0]
