"""How deep a marked region is, in metres.

Ground truth: mean z over the region, two decimals (VGBench, SpatialScore section D.2); the region gates make mean and
median agree. Options are the depths of other gated regions of the same image.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks._regions import Region, blocks_mean_m, cloud_medians_m, frame_regions, region_mark
from vgbench_gen.tasks._scalar import ScalarTask, evidence_rect
from vgbench_gen.tasks.base import Mark, Presentation, camera_slots, reject, tasks, with_margins
from vgbench_gen.text import numbers
from vgbench_gen.text.render import word

MARK_COLORS = ("orange", "sky_blue", "bluish_green", "yellow", "reddish_purple")
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (`benchmark-validity` 3.2)
PER_FRAME = 2


@tasks.register("metric_depth")
class MetricDepth(ScalarTask):
    """See the module."""

    name = "metric_depth"
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice", "open-ended")
    unit = "m"
    category, subcategory = "Depth and Distance", "Absolute"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(formats, "metric_depth_vqa")
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "mean"}

    def ratio_min(self, fact: Fact) -> float:
        """See `ScalarTask`."""
        return self.gates.depths.ratio_min

    def ratio_max(self, fact: Fact) -> float:
        """See `ScalarTask`."""
        return self.gates.depths.ratio_max

    def gap_min(self, fact: Fact) -> float:
        """See `ScalarTask`."""
        return self.gates.depths.gap_min_m

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One or two facts per frame: a pool of disjoint regions, the asked one drawn."""
        made = 0
        for frame in view.distinct_frames(rng):
            if made >= limit:
                return
            found, dropped = frame_regions(frame, view)
            used: list[Region] = []
            for turn in range(min(PER_FRAME, limit - made)):
                key = f"{frame.id}/{turn}"
                if len(found) < 4:
                    most = max(dropped, key=lambda name: dropped[name])
                    yield reject(self, view, key, f"regions_{most}", len(found), 4, str(dropped))
                    break
                draft = self._draft(frame, view, found, used, rng)
                if draft is None:
                    yield reject(self, view, key, "no_option_set", len(found), 4)
                    break
                made += 1
                yield draft

    def _draft(
        self, frame: ViewFrame, view: SceneView, found: list[Region], used: list[Region], rng: np.random.Generator
    ) -> Fact | None:
        picked = _spread_over_depth(found, self.pool_size, rng)
        pool = tuple(
            Candidate(
                "region:" + ",".join(map(str, region.rect_px)),
                self.rounded(np.array([region.mean_m])),
                show={"rect": list(region.rect_px)},
                evidence=region.evidence(),
            )
            for region in picked
        )
        fact = self.new_fact(view, pool, frame_ids=(frame.id,))
        eligible = np.array(
            [all(np.linalg.norm(r.point_m - u.point_m) >= TARGETS_APART_M for u in used) for r in picked]
        )
        drawn = self.with_drawn_truth(fact, rng, eligible)
        if drawn is None:
            return None
        region, gates = picked[drawn.truth], view.gates.region
        used.append(region)
        low, quarter, median, three_quarters, high = region.quantiles_m[[0, 2, 3, 4, 6]]
        ratios = {
            "iqr": gates.iqr_of_median_max * median / max(three_quarters - quarter, 1e-6),
            "spread": gates.spread_of_median_max * median / max(high - low, 1e-6),
            "valid": region.valid / gates.valid_min,
        }
        return with_margins(drawn, f"{frame.id}/{drawn.truth_candidate.key}", ratios)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Median of the projected point cloud in the region."""
        frame = view.frame(fact.frame_ids[0])
        median = cloud_medians_m(frame, [evidence_rect(fact.truth_candidate.show)])
        if not np.isfinite(median).all():
            raise GeometryError(f"{fact.key}: no point of the cloud projects into the region")
        return median

    def recompute(self, evidence: Mapping[str, Any]) -> FloatArray:
        """Weighted mean of the stored parts of the region."""
        return self.rounded(np.array([blocks_mean_m(evidence["truth"]["evidence"])]))

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The frame with the region outlined."""
        op = {"op": "region", "rect": evidence_rect(fact.truth_candidate.show), "color": self._color(fact), "label": ""}
        return (Picture(fact.pictures[fact.frame_ids[0]], (op,)),)

    def slots(self, fact: Fact) -> dict[str, str]:
        """Region, colour word and camera."""
        return {
            "color": word(f"color.{self._color(fact)}"),
            "region": numbers.rect(evidence_rect(fact.truth_candidate.show)),
        } | camera_slots(fact.cameras[fact.frame_ids[0]])

    def overlay(self, evidence: Mapping[str, Any]) -> list[list[Mark]]:
        """Every region that is an option, with its depth."""
        truth = evidence["truth"]["key"]
        return [[region_mark(record, record["key"] == truth) for record in evidence["options"]]]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """See `Task.choice`."""
        texts = tuple(self.printed(option.value) for option in options.options)
        return Presentation(self.pictures(fact), self.slots(fact), texts)

    def _color(self, fact: Fact) -> str:
        # By place, so that every format and seed of this fact shows the same picture.
        return MARK_COLORS[sum(evidence_rect(fact.truth_candidate.show)) % len(MARK_COLORS)]


def _spread_over_depth(found: list[Region], count: int, rng: np.random.Generator) -> list[Region]:
    """A random choice in which depth strata take turns, so that a pool holds several sets of four."""
    order = rng.permutation(len(found))
    strata = [round(float(np.log(found[i].median_m) / np.log(1.25))) for i in order]
    turns = [strata[:n].count(stratum) for n, stratum in enumerate(strata)]
    return [found[order[n]] for n in np.argsort(turns, kind="stable")[:count]]
