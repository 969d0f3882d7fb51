"""What the quantities of a scan can be (`docs/validity.md#plausible-values`): one table, checked as scans are opened.

`vgbench_gen.scenes.opening` checks the frames and objects of every loader against it. What lies outside is left out and
counted, for a number that no scan has comes from another unit, another format, or a hostile file.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError
from vgbench_gen.core.types import Camera, FloatArray, OrientedBox
from vgbench_gen.geometry.poses import MAX_TRANSLATION_M

_REMEDY = "Check unit and format; until then it is left out."


@dataclass(frozen=True, slots=True)
class PlausibleRange:
    """The values that a quantity can have, both ends included."""

    low: float
    high: float
    unit: str
    """The unit of both; empty for a ratio."""

    def __str__(self) -> str:
        return f"{self.low:g} to {self.high:g} {self.unit}".rstrip()


RANGES = {
    "image side": PlausibleRange(1, 32768, "px"),
    "focal length over the longer side": PlausibleRange(0.1, 10, ""),
    "ratio of the focal lengths": PlausibleRange(0.5, 2, ""),
    "distortion coefficient": PlausibleRange(-100, 100, ""),
    "coordinate": PlausibleRange(-MAX_TRANSLATION_M, MAX_TRANSLATION_M, "m"),
    "side of a box": PlausibleRange(0, 100, "m"),
    "depth of a sensor": PlausibleRange(0, 30, "m"),
    "depth of a laser": PlausibleRange(0, 100, "m"),
}
"""The ranges, by what errors call the quantity."""
MAX_IMPLAUSIBLE_SHARE = 0.01
"""Share of the depth of a frame that may lie outside its range, as single pixels at edges do; it counts as unknown."""


def check_plausible(
    quantity: str, values: Iterable[float] | FloatArray, where: object, error: type[FormatError] = FrameError
) -> None:
    """Hold values of one quantity against its range.

    Raises:
        FormatError: (of type `error`) one lies outside, or is no number.
    """
    limits = RANGES[quantity]
    for value in values:
        if not limits.low <= value <= limits.high:
            raise error(where, f"{quantity} {value:.4g} {limits.unit}".rstrip(), str(limits), _REMEDY)


def check_camera(camera: Camera, where: object, error: type[FormatError] = FrameError) -> None:
    """Hold the size and the focal lengths of a camera against their ranges. Raises like `check_plausible`."""
    longer = max(camera.size)
    check_plausible("image side", camera.size, where, error)
    check_plausible("focal length over the longer side", (camera.fx / longer, camera.fy / longer), where, error)
    check_plausible("ratio of the focal lengths", (camera.fy / camera.fx,), where, error)


def check_box(box: OrientedBox, where: object, error: type[FormatError] = FrameError) -> None:
    """Hold the place and the sides of a box against their ranges. Raises like `check_plausible`."""
    check_plausible("side of a box", box.size_m, where, error)
    check_plausible("coordinate", box.center_m, where, error)
    if not np.isfinite(box.rotation).all():
        raise error(where, "a box whose axes are not finite", "a rotation", _REMEDY)
