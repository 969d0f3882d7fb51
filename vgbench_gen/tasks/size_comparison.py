"""Which of two framed objects is taller, by the vertical extents of their boxes; the taller rectangle is that of the
smaller object as often as not."""

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


@tasks.register("size_comparison")
class SizeComparison(TwoObjects, LabelTask):
    """See the module."""

    name, by_default = "size_comparison", False
    category, subcategory = "Size", "Relative"
    asked = "which of two framed objects is taller"
    convention: ClassVar = {"height": "vertical extent of the 3D bounding box", "regions": "xyxy_inclusive"}
    labels = ("orange", "blue")
    margins: ClassVar = {"ratio_min": 1.3}
    solvers = NoSolver("Classical vision has no sizes from one image without learning.")

    def rate_rect(self, rect: Sequence[int]) -> float:
        """The taller rectangle."""
        return float(rect[3] - rect[1])

    def value(self, seen: UprightPairEvidence) -> FloatArray:
        """Spans of the stored corners against gravity."""
        return np.stack([np.ptp(one.corners_m @ seen.up, axis=-1) for one in (seen.a, seen.b)], axis=-1)

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """Spans of what the frame measured in each box."""
        up = np.asarray(view.up_world)
        return np.array([np.ptp(cloud @ up) for cloud in self.list_points(view, measured)])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How tall each object is."""
        seen = UprightPairEvidence.of(fact.truth_candidate)
        ends = (pen.measure_heights(one.corners_m, seen.up) for one in (seen.a, seen.b))
        a, b = (high - low for low, high in ends)
        told = {"orange": pen.say("m", a, unlike=[b]), "blue": pen.say("m", b, unlike=[a])}
        return super().explain(fact, pen) | told
