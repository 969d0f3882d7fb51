"""Which of two framed objects reaches higher up, by the tops of their boxes; the rectangle whose top is higher in the
image is that of the lower object as often as not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import TwoObjects, UprightPairEvidence
from vgbench_gen.tasks.solving import NoSolver


@tasks.register("height_comparison")
class HeightComparison(TwoObjects, LabelTask):
    """See the module."""

    name, by_default = "height_comparison", False
    category, subcategory = "Depth and Distance", "Relative"
    asked = "which of two framed objects reaches higher up"
    convention: ClassVar = {"height": "top of the 3D bounding box above the floor", "regions": "xyxy_inclusive"}
    labels = ("orange", "blue")
    margins: ClassVar = {"gap_min": 0.1}  # meters
    solvers = NoSolver("Classical vision has no heights from one image without learning.")

    def rate_rect(self, rect: Sequence[int]) -> float:
        """The rectangle that ends higher in the image."""
        return float(-rect[1])

    def value(self, seen: UprightPairEvidence) -> FloatArray:
        """Heights of the highest corners above the camera."""
        return np.stack([(one.corners_m @ seen.up).max(axis=-1) for one in (seen.a, seen.b)], axis=-1)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Of what the frame measured in each box, the height that 1 % exceed."""
        up = np.asarray(view.up_world)
        return np.array([np.quantile(cloud @ up, 0.99) for cloud in self.list_points(view, measured)])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How high above the camera each object ends."""
        seen = UprightPairEvidence.of(fact.truth_candidate)
        ends = (pen.measure_heights(one.corners_m, seen.up) for one in (seen.a, seen.b))
        a, b = (high for _, high in ends)
        told = {"orange": pen.say("above_m", a, unlike=[b]), "blue": pen.say("above_m", b, unlike=[a])}
        return super().explain(fact, pen) | told
