"""How far printed boxes are apart: by their overlap, or by their footprints where they stand at one depth."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from vgbench_gen.core.types import FloatArray, OrientedBox
from vgbench_gen.geometry import boxes
from vgbench_gen.tasks.gates import BoxMargins

SAME_DEPTH = 1.05  # ratio of depths up to which two boxes stand at one depth; printing moves a centre by less
PRINT_SLACK = 0.99  # keeps exact ratios and overlaps within their limits after rounding


def find_largest_ratio(gates: BoxMargins) -> float:
    """Largest ratio of neighbouring rungs of a ladder of four."""
    return min(gates.ladder_ratio_max, float((gates.depth_ratio_max * PRINT_SLACK) ** (1 / 3)))


def find_needed_ratio(box: OrientedBox, gates: BoxMargins) -> float | None:
    """Smallest allowed ratio at which the box and its scaled copy overlap little enough, or None.

    The overlap depends on the ratio alone, not on which rung the box is.
    """
    limit = gates.iou_max * PRINT_SLACK

    def overlap(ratio: float) -> float:
        return boxes.iou_3d(box, boxes.scale_about_camera(box, ratio))

    low, high = gates.ladder_ratio_min, find_largest_ratio(gates)
    if overlap(high) > limit:
        return None
    if overlap(low) <= limit:
        return low
    for _ in range(8):
        middle = (low + high) / 2
        low, high = (low, middle) if overlap(middle) <= limit else (middle, high)
    return high


def compare_boxes(
    values: Sequence[FloatArray], up: FloatArray | None, gates: BoxMargins
) -> tuple[FloatArray, FloatArray]:
    """(n, n) how far boxes are apart over the required margin, and their ratios of depth over the ceiling.

    Apart is (1 - IoU) / (1 - the largest IoU allowed). Boxes at one depth overlap much, however unlike they are; there
    the difference of footprints over the required one counts, where it is the larger ratio.

    Args:
        values: n arrays (8, 3) of corners in the camera frame, meters, as printed.
        up: (3,) unit vector against gravity in that frame; None where it is not known, and footprints do not count.
        gates: the margins.

    Raises:
        GeometryError: a value is no box.
    """
    found = [boxes.fit_to_corners(value, "camera") for value in values]
    logs = np.log([float(value[:, 2].mean()) for value in values])
    depths = np.abs(logs[:, None] - logs)
    margins = np.zeros(depths.shape)
    if up is not None:
        gaps = measure_footprint_gaps(found, up) / gates.footprint_gap_min
        margins = np.where(depths < math.log(SAME_DEPTH), gaps, 0.0)
    for i, j in itertools.combinations(range(len(found)), 2):
        if margins[i, j] < 1:
            apart = (1 - boxes.iou_3d(found[i], found[j])) / (1 - gates.iou_max)
            margins[i, j] = margins[j, i] = max(margins[i, j], apart)
    return margins, depths / math.log(gates.depth_ratio_max)


def measure_footprint_gaps(found: Sequence[OrientedBox], up: FloatArray) -> FloatArray:
    """(n, n) how much the footprints of boxes differ in shape and orientation.

    A footprint whose longer side is `rho` times the shorter one and points to the angle `phi` is the point
    log(rho) (cos 2 phi, sin 2 phi) of a plane, and a gap is the distance of two points: log(a / b) for two footprints
    that are elongated in one direction, log(a b) for two that are crosswise, and little for two that are nearly square,
    whichever of their sides is the longer one.

    Args:
        found: n boxes of one frame.
        up: (3,) unit vector against gravity in that frame.
    """
    ground = _find_ground_axes(up)
    placed = np.array([_place_footprint(box, up, ground) for box in found])
    return np.asarray(np.linalg.norm(placed[:, None] - placed, axis=2))


def _find_ground_axes(up: FloatArray) -> FloatArray:
    """(2, 3) two unit vectors that are level and at right angles."""
    first = np.eye(3)[int(np.argmin(np.abs(up)))]
    first = first - (first @ up) * up
    first /= math.sqrt(first @ first)
    (a, b, c), (x, y, z) = up.tolist(), first.tolist()
    return np.array([first, [b * z - c * y, c * x - a * z, a * y - b * x]])


def _place_footprint(box: OrientedBox, up: FloatArray, ground: FloatArray) -> tuple[float, float]:
    sides = box.size_m.tolist()
    upright = int(np.argmax(np.abs(up @ box.rotation)))
    shorter, longer = sorted((k for k in range(3) if k != upright), key=lambda k: sides[k])
    x, y = (ground @ box.rotation[:, longer]).tolist()
    elongation, angle = math.log(sides[longer] / sides[shorter]), 2 * math.atan2(y, x)
    return elongation * math.cos(angle), elongation * math.sin(angle)


def find_up(axis: FloatArray) -> FloatArray:
    """The upright axis (3,) of a box in the camera frame, turned against gravity: cameras do not hang upside down."""
    return np.asarray(axis if axis[1] < 0 else -axis)


def describe_boxes(corners_m: Sequence[FloatArray]) -> FloatArray:
    """(n, 12) what the printed corners (8, 3) of boxes in the camera frame, meters, tell a reader: logarithms of depth,
    of the upright side and of both ground sides, how low the box reaches, its height in the image as a tangent, how far
    its longer ground side points along the view, logarithms of its volume, of the ratio of its ground sides and of
    its sides in order of size."""
    cues = []
    for corners in corners_m:
        box = boxes.fit_to_corners(corners, "camera")
        upright = int(np.argmax(np.abs(box.rotation[1])))
        ground = np.delete(np.arange(3), upright)
        shorter_m, longer_m = np.sort(box.size_m[ground])
        axis = box.rotation[:, ground[int(np.argmax(box.size_m[ground]))]]
        depth_m, lowest_m = float(corners[:, 2].mean()), float(corners[:, 1].max())
        cues.append([
            np.log(depth_m), np.log(box.size_m[upright]), np.log(longer_m), np.log(shorter_m), lowest_m,
            box.center_m[1] / depth_m, abs(axis[2]), np.log(box.size_m.prod()), np.log(longer_m / shorter_m),
            *np.log(np.sort(box.size_m)),
        ])  # fmt: skip
    return np.array(cues)
