"""What the text of a distance question says about its answer: two rectangles and the camera."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray
from vgbench_gen.tasks._distance_margins import DistanceMargins
from vgbench_gen.tasks._known import Clue
from vgbench_gen.tasks._ladder import Prior

# Kernel widths: logarithms of the distance over the angle between the centres, of that angle, of the smaller and the
# larger rectangle's angle; and tangents of the lower edges below the horizon, upper and lower one. Those under which
# the facts of 36 varied sample scenes are likeliest, each scene under the others; `_known.learn` scales them together.
_FARNESS = 0.16
_TEXT = np.array([0.4, 0.9, 0.8, 0.08, 0.08])


@dataclass(frozen=True, slots=True)
class DistanceClue(Clue):
    """A question about the distance between two objects."""

    apart: float
    """Logarithm of the pixels between the centres of both rectangles over the focal length fx."""
    text: tuple[float, ...]
    """`apart` and what else questions are compared by whatever the answer, in kernel widths; the order of the two
    objects does not matter."""

    def features(self, x: FloatArray) -> FloatArray:
        """How far away the pair would have to be, at each of x (n,), to lie so many pixels apart, and the text."""
        return np.column_stack([(x - self.apart) / _FARNESS, np.tile(self.text, (len(x), 1))])

    def stretch(self, x: FloatArray) -> FloatArray:
        """Only the farness changes with the answer, and as the answer does."""
        return np.ones(len(x))


def distance_clue(
    value_m: float,
    rects_px: Sequence[Sequence[int]],
    camera: Mapping[str, Any],
    gates: Gates,
    scene: str = "",
    key: str = "",
) -> DistanceClue:
    """Of a distance between two objects that are framed by rects_px (x1, y1, x2, y2), ends included."""
    fx, cy = float(camera["K"][0]), float(camera["K"][5])
    rects = np.array(rects_px, dtype=np.float64).reshape(2, 2, 2)
    apart_px = max(float(np.linalg.norm((rects[0] - rects[1]).mean(axis=0))), 1.0)
    apart = apart_px / fx
    large = np.sort(np.log(np.sqrt((rects[:, 1] - rects[:, 0] + 1).prod(axis=1)) / fx))
    lower = np.sort((rects[:, 1, 1] - cy) / fx)
    margins = gates.section(DistanceMargins)
    scale = margins.guess_log_sd * (3 * apart) ** margins.guess_log_sd_power
    ends = np.log([margins.min_m, margins.max_m])
    # Rounded, so that weights of sets are found once for many facts.
    guess = round(float(np.log(margins.guess_depth_m * apart)), 2)
    usual = Prior(guess, round(scale, 2), float(ends[0]), float(ends[1]), margins.guess_freedom)
    text = tuple((np.array([np.log(apart), *large, *lower]) / _TEXT).tolist())
    return DistanceClue(scene, key, float(np.log(value_m)), usual, float(np.log(apart)), text)
