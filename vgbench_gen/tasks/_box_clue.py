"""What the text of a box question says about its depth: the whole box up to its scale about the camera."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks._box_margins import BoxMargins
from vgbench_gen.tasks._known import Clue
from vgbench_gen.tasks._ladder import Prior

# Kernel widths: logarithms of metres (depth, height, longer and shorter side), metres of drop, y / z of the centre.
# Those under which the facts of 36 varied sample scenes are likeliest, each scene under the others; `_known.learn`
# scales them together.
_DEPTH, _HEIGHT, _LONGER, _SHORTER, _DROP_M, _PLACE = 0.24, 0.54, 0.29, 0.21, 0.13, 0.2


@dataclass(frozen=True, slots=True)
class BoxPrior(Prior):
    """How the depth of a box is spread where only its scale about the camera is unknown."""

    drop: float = 0.0
    """Height of the camera above the lowest corner of the box, over the box's depth."""
    drop_m: tuple[tuple[float, float, float], ...] = ()
    """How that height is spread in metres: (share, mean, standard deviation) of each kind of place, as in
    `BoxMargins`."""

    def density(self, x: FloatArray) -> FloatArray:
        """The density of depth and drop together at logarithms x (n,) of the depth, at one ratio of both. There is one
        drop for each depth, hence the factor exp(x)."""
        depths_m = np.exp(x)
        drops = [share / sd * _bell((self.drop * depths_m - mean) / sd) for share, mean, sd in self.drop_m]
        return np.asarray(Prior.density(self, x) * np.sum(drops, axis=0) * depths_m)


@dataclass(frozen=True, slots=True)
class BoxClue(Clue):
    """A question about a box whose depth is the answer. All lengths are divided by that depth."""

    sides: tuple[float, float, float]
    """Sides of the box over its depth: the upright one, the longer and the shorter of the others."""
    drop: float
    """Height of the camera above the lowest corner of the box, over the box's depth."""
    place: float
    """y of the box's centre in the camera frame, downwards, over its depth."""

    def features(self, x: FloatArray) -> FloatArray:
        """Depth, sides, drop and place of the box scaled about the camera."""
        logs = np.log(self.sides) / (_HEIGHT, _LONGER, _SHORTER) + x[:, None] / (_HEIGHT, _LONGER, _SHORTER)
        rest = [x / _DEPTH, self.drop * np.exp(x) / _DROP_M, np.full(len(x), self.place / _PLACE)]
        return np.column_stack([logs, *rest])

    def stretch(self, x: FloatArray) -> FloatArray:
        """Drop is in metres, so that boxes of one drop over depth lie as much farther apart as they are deeper."""
        return np.exp(x)


def box_clue(corners_m: FloatArray, gates: Gates, scene: str = "", key: str = "") -> BoxClue:
    """Of exact corners (8, 3) in the camera frame, metres; scene and key as in `Clue`."""
    box = boxes.fit_to_corners(corners_m, "camera")
    upright = int(np.argmax(np.abs(box.rotation[1])))
    down = box.rotation[:, upright] * (1 if box.rotation[1, upright] > 0 else -1)
    centre, depth_m = box.center_m, float(corners_m[:, 2].mean())
    shorter, longer = np.sort(np.delete(box.size_m, upright)) / depth_m
    drop = float((corners_m @ down).max()) / depth_m
    ends = np.log([gates.depth.near_m, gates.object.depth_max_m])
    usual = BoxPrior(
        float(np.log(gates.section(BoxMargins).depth_typical_m)),
        gates.section(BoxMargins).depth_log_sd,
        float(ends[0]),
        float(ends[1]),
        # Rounded, so that weights of sets are found once for many facts.
        drop=round(drop, 2),
        drop_m=gates.section(BoxMargins).drop_m,
    )
    sides = float(box.size_m[upright]) / depth_m, float(longer), float(shorter)
    return BoxClue(scene, key, float(np.log(depth_m)), usual, sides, drop, float(centre[1] / depth_m))


def _bell(z: FloatArray) -> FloatArray:
    return np.asarray(np.exp(-0.5 * z**2))
