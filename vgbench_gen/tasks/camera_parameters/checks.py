"""Whether each crop that is an option has the camera that is stored with it."""

from __future__ import annotations

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Fact
from vgbench_gen.tasks.base import Problems
from vgbench_gen.tasks.camera_parameters.quantities import (
    ASK_AXIS,
    CropEvidence,
    compute_parameter_by_rays,
    get_decimals,
    read_shown_crop,
)

STORED = 1e-3  # pixels or degrees between a stored parameter and the one by the crop's rays


def check_crops(fact: Fact, gates: Gates) -> Problems:
    """By the rays through its edges, each crop has all the parameters stored with it, and the printed one."""
    K = np.asarray(fact.cameras[fact.frame_ids[0]]["K"], dtype=np.float64).reshape(3, 3)
    found: Problems = []
    for option in fact.candidates:
        if "rect" not in option.show:
            continue  # a computed value, which no crop has
        rect, size = read_shown_crop(option.show)
        by_rays = {name: compute_parameter_by_rays(name, K, rect, size) for name in ASK_AXIS}
        stored = CropEvidence.of(option).parameters
        found += [
            ("crop", f"{option.key}: {name} {stored[name]:.3f} stored, {value:.3f} by the crop")
            for name, value in by_rays.items()
            if not abs(stored[name] - value) <= STORED
        ]
        printed, digit = float(option.value[0]), 10.0 ** -get_decimals(fact.ask)
        if not abs(printed - by_rays[fact.ask]) <= digit / 2 + STORED:
            found.append(("crop", f"{option.key}: prints {printed:g}, the crop gives {by_rays[fact.ask]:.3f}"))
    return found
