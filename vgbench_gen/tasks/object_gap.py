"""How much space is between two framed objects, in meters: the smallest distance between their boxes.

Ground truth: alternating projections between both boxes. Second route: a bounded least-squares problem over the boxes
that `measure_second_corners` finds.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from scipy.optimize import lsq_linear

from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.geometry import boxes
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._object_routes import measure_second_corners
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.box_scalars import BoxScalar
from vgbench_gen.tasks.explaining import WAY, Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.places import TwoObjects, UprightPairEvidence
from vgbench_gen.tasks.solving import NoSolver


@tasks.register("object_gap")
class ObjectGap(BoxScalar, TwoObjects):
    """See the module."""

    name = "object_gap"
    category, subcategory = "Depth and Distance", "Absolute"
    asked = "space between the boxes of two framed objects, meters"
    convention: ClassVar = {"distance": "smallest between two boxes", "unit": "m", "regions": "xyxy_inclusive"}
    margins: ClassVar = {"min": 0.5, "max": 5.0, "ratio_min": 1.35, "ratio_max": 3.5, "gap_min": 0.2, "seen": 0.7}
    solvers = NoSolver("Classical vision has no metric distance from one image without learning.")

    def value(self, seen: UprightPairEvidence) -> FloatArray:
        """Between the stored boxes."""
        return boxes.measure_gap_m(seen.a.corners_m, seen.b.corners_m)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also the way from one box to the other."""
        pair, true = UprightPairEvidence.of(fact.truth_candidate), float(fact.truth_candidate.value[0])
        way = pen.find_way(pair.a.corners_m, pair.b.corners_m)
        digits = pen.find_decimals("m", way, np.linalg.norm, true, 0.01)
        return self.tell_value(float(np.linalg.norm(way)), fact, pen) | {"way": pen.series(WAY, way, digits)}

    def second(self, view: SceneView, measured: Measured) -> float:
        """The residual of `p0 + P x = q0 + Q y`, where x and y are in [0, 1] along the edges of each box."""
        pair = measured.evidence
        corners = [measure_second_corners(measured.frames[0], view, one.instance_id) for one in (pair.a, pair.b)]
        (p0, P), (q0, Q) = ((one[0], (one[list(boxes.BESIDE_FIRST)] - one[0]).T) for one in corners)
        found = lsq_linear(np.hstack([P, -Q]), q0 - p0, bounds=(0, 1), tol=1e-12)
        return float(np.sqrt(2 * found.cost))
