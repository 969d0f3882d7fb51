"""Whether the stored corners of a warp and its printed matrix hold together."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.geometry import homography
from vgbench_gen.tasks._homographies.evidence import WarpedImageEvidence, WarpEvidence
from vgbench_gen.tasks.base import Problems

WARP_PX = 0.5  # between stored corners and those of the printed matrix


def check_warps(fact: Fact, gates: Gates) -> Problems:
    """Each matrix puts the corners where they are stored, and its inverse brings them home."""
    home = homography.image_corners(*WarpedImageEvidence.of(fact).size)
    found: Problems = []
    for option in fact.candidates:
        stored = WarpEvidence.given(option)
        if stored is None:
            continue
        away = stored.corners_px
        start, end = (away, home) if "source_H" in option.show else (home, away)
        there = homography.apply(option.value, start)
        back = homography.apply(np.linalg.inv(option.value), end)
        for name, off in (("there", there - end), ("back", back - start)):
            furthest = float(np.linalg.norm(off, axis=1).max())
            if not furthest <= WARP_PX:
                found.append(("warp_inverse", f"{option.key}: {name}, a corner is {furthest:.2f} px off"))
    return found
