"""How long the longest side of a framed object's box is, in meters.

Ground truth: the longest of the three edges from one corner. Second route: the spread of the corners that
`measure_second_corners` finds, whose covariance has the squares of half the sides as eigenvalues.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._object_routes import measure_second_corners
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.box_scalars import BoxScalar
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.places import OneObject, SingleEvidence
from vgbench_gen.tasks.solving import NoSolver


@tasks.register("object_size")
class ObjectSize(BoxScalar, OneObject):
    """See the module."""

    name = "object_size"
    category, subcategory = "Size", "Absolute"
    asked = "longest side of a framed object's box, meters"
    convention: ClassVar = {"size": "longest side of the 3D bounding box", "unit": "m", "regions": "xyxy_inclusive"}
    margins: ClassVar = {"min": 0.3, "max": 4.0, "ratio_min": 1.35, "ratio_max": 3.5, "gap_min": 0.1, "seen": 0.8}
    solvers = NoSolver("Classical vision has no sizes from one image without learning.")

    def value(self, seen: SingleEvidence) -> FloatArray:
        """Of the edges from the first corner."""
        corners_m = seen.a.corners_m
        return np.asarray(
            np.linalg.norm(corners_m[..., boxes.BESIDE_FIRST, :] - corners_m[..., :1, :], axis=-1).max(axis=-1)
        )

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also all sides, the longest first."""
        sides = sorted(pen.measure_sides(SingleEvidence.of(fact.truth_candidate).a.corners_m), reverse=True)
        return self.tell_value(float(sides[0]), fact, pen) | {"sides": pen.series("mmm", sides)}

    def second(self, view: SceneView, measured: Measured) -> float:
        """Twice the root of the largest eigenvalue of the corners' covariance."""
        corners_m = measure_second_corners(measured.frames[0], view, measured.evidence.a.instance_id)
        return float(2 * np.sqrt(np.linalg.eigvalsh(np.cov(corners_m.T, bias=True))[-1]))
