"""Which of four marked regions is the farthest from the camera, or the nearest.

Ground truth: the region whose median z is extreme, with disjoint 10-90 % intervals against every other one shown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._regions import (
    RegionEvidence,
    check_regions,
    disturb_region,
    find_frame_regions,
    make_region_mark,
    measure_cloud_medians_m,
    reveal_region,
)
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.marks import MarkedPlace, MarksTask, make_rules
from vgbench_gen.tasks.presentation import Mark
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import ImageRule, NoSolver

# Deep regions lie high, are small, smooth and dim, and lie in the middle.
_DEEP = make_rules("top-most region", "smallest region", "least detail", "darkest region", "region nearest the centre")
_NEAR = make_rules(
    "lowest region", "largest region", "most detail", "brightest region", "region farthest from the centre"
)


@tasks.register("relative_depth")
class RelativeDepth(MarksTask):
    """See the module."""

    needs_meters = False
    name = "relative_depth"
    version = 5
    asks = ("deepest", "nearest")
    unit = "m"
    category, subcategory = "Depth and Distance", "Relative"
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "median"}
    checks = (check_regions,)
    margins: ClassVar[Mapping[str, float]] = {
        "ratio_min": 1.15,  # between the asked depth and every other depth of a set
        "gap_min": 0.25,  # meters, likewise
        "ratio_max": 4.0,  # between any two depths of a set
    }
    candidate_evidence = RegionEvidence
    solvers = NoSolver("Classical vision has no depth from one image without learning; rules and cues are reported.")
    paper_column = "Depth"

    def rules_for(self, ask: str) -> tuple[ImageRule, ...]:
        """What goes with far regions where the deepest is asked, otherwise what goes with near ones."""
        return _DEEP if ask == "deepest" else _NEAR

    def find_places(self, frame: ViewFrame, view: SceneView) -> tuple[Sequence[MarkedPlace], Mapping[str, int]]:
        """The gated regions."""
        return find_frame_regions(frame, view)

    def value(self, seen: RegionEvidence) -> FloatArray:
        """Median depth, meters."""
        return np.asarray(seen.quantiles_m[..., 3])

    def find_ends(self, seen: RegionEvidence) -> tuple[float, float]:
        """Depth at 10 and 90 %."""
        return float(seen.quantiles_m[1]), float(seen.quantiles_m[5])

    def second(self, view: SceneView, measured: Measured) -> float:
        """Median depth of the cloud."""
        (median_m,) = measure_cloud_medians_m(measured.frames[0], [list(measured.marks["rect"])])
        if not np.isfinite(median_m):
            raise GeometryError(f"region {measured.marks['rect']} has no point of the cloud")
        return float(median_m)

    def disturb(self, seen: RegionEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> RegionEvidence:
        """The whole region is off by one error."""
        return disturb_region(seen, noise, rng, n)

    def count_hops(self, fact: Fact) -> int:
        """All regions that are options."""
        return len(fact.candidates)

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The depths of all regions that are options."""
        seen = [
            reveal_region(RegionEvidence.of(option), option.show["rect"], self.limits.ratio_min**0.5)
            for option in fact.candidates
        ]
        return super().reveal(fact, row).with_fields(regions=seen)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """The median depth of each region."""
        medians_m = {str(list(one.rect_px)): one.median_m for one in self.reveal(fact, pen.row).regions}
        depths = [(name, medians_m[str(list(map(int, rect)))]) for name, rect in pen.row.locate_marks().items()]
        return pen.tell_each("m", depths) | {"extreme": pen.word(f"extreme.{fact.ask}")}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Every region that is an option, with its depth."""
        return [[make_region_mark(option, option is fact.truth_candidate) for option in fact.candidates]]
