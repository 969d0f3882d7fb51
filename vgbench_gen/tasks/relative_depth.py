"""Which of four marked regions is the farthest from the camera, or the nearest.

Ground truth: the region whose median z is extreme, with disjoint 10-90 % intervals against every other one shown.
The image fixes the truth, so what must not give it away is where regions lie: farther things are higher in most
images. Each fact therefore has a rank, the number of decoys above the truth (0 to 3), decided before truth and decoys
are looked for; ranks of a scene and kind of question differ in number by at most one, and a frame that can only give
a rank that is in surplus gives nothing. Redrawing the options keeps the rank.
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
from vgbench_gen.tasks._regions import Region, cloud_medians_m, frame_regions, region_mark
from vgbench_gen.tasks._scalar import evidence_rect
from vgbench_gen.tasks.base import Mark, Presentation, Task, camera_slots, numbered, reject, tasks, with_margins
from vgbench_gen.text import numbers
from vgbench_gen.text.render import word

LABEL_COLOR = "yellow"  # one colour for all four: a colour must not single one out
DECOYS = 3
POOL_SIDE_MAX = 4  # decoys kept from above the truth, and from below it, to redraw options from
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (`benchmark-validity` 3.2)


@tasks.register("relative_depth")
class RelativeDepth(Task):
    """See the module."""

    name = "relative_depth"
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    asks = ("deepest", "nearest")
    unit = "m"
    category, subcategory = "Depth and Distance", "Relative"
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "relative_depth_vqa"}
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "median"}

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per kind of question and frame."""
        made = 0
        used_ranks = {ask: np.zeros(DECOYS + 1, dtype=np.int64) for ask in self.asks}
        for frame in view.distinct_frames(rng):
            found, dropped = frame_regions(frame, view)
            targets: list[Region] = []
            for ask in self.asks:
                if made >= limit:
                    return
                key = f"{frame.id}/{ask}"
                if len(found) <= DECOYS:
                    most = max(dropped, key=lambda name: dropped[name])
                    yield reject(self, view, key, f"regions_{most}", len(found), DECOYS + 1, str(dropped))
                    continue
                counts = used_ranks[ask]
                wanted = rng.permutation(np.flatnonzero(counts == counts.min())).tolist()
                free = [r for r in found if all(_apart_m(r, t) >= TARGETS_APART_M for t in targets)]
                drafts = (self._draft(frame, view, found, free, ask, rank, rng) for rank in wanted)
                draft = next((made_one for made_one in drafts if made_one is not None), None)
                if draft is None:
                    yield reject(self, view, key, "no_balanced_set", len(found), DECOYS + 1, f"wanted ranks {wanted}")
                    continue
                fact, target = draft
                counts[fact.evidence["above"]] += 1
                targets.append(target)
                made += 1
                yield fact

    def _draft(
        self,
        frame: ViewFrame,
        view: SceneView,
        found: list[Region],
        free: list[Region],
        ask: str,
        rank: int,
        rng: np.random.Generator,
    ) -> tuple[Fact, Region] | None:
        """A fact whose truth is one of `free` and has `rank` decoys above it in every option set, and its truth."""
        for t in rng.permutation(len(free)):
            truth = free[t]
            # One region per depth: sensors count in millimetres, and options with equal values never stand together.
            distinct = {region.median_m: region for region in found}.values()
            decoys = [region for region in distinct if region is not truth and self._decided(truth, region, ask)]
            above = [r for r in decoys if _middle(r) < _middle(truth)]
            below = [r for r in decoys if _middle(r) > _middle(truth)]
            if len(above) >= rank and len(below) >= DECOYS - rank:
                break
        else:
            return None
        picked = [
            side[i]
            for side, needed in ((above, rank), (below, DECOYS - rank))
            if needed
            for i in rng.permutation(len(side))[:POOL_SIDE_MAX]
        ]
        members = [truth, *picked]
        margins = [self._order_separation(truth.median_m, r.median_m) for r in picked]
        candidates = [
            Candidate(
                _key(region),
                np.array([region.median_m]),
                show={"rect": list(region.rect_px)},
                evidence=region.evidence(),
            )
            for region in members
        ]
        fact = self.new_fact(view, candidates, frame_ids=(frame.id,), ask=ask, evidence={"above": rank})
        fact = with_margins(fact, f"{frame.id}/{ask}/{_key(truth)}", {"order": min(margins)})
        return fact, truth

    def _decided(self, truth: Region, other: Region, ask: str) -> bool:
        far, near = (truth, other) if ask == "deepest" else (other, truth)
        return (
            far.quantiles_m[1] > near.quantiles_m[5]
            and far.median_m > near.median_m
            and self._order_separation(truth.median_m, other.median_m) >= 1
            and far.median_m <= self.gates.depths.order_ratio_max * near.median_m
        )

    def _order_separation(self, a_m: float, b_m: float) -> float:
        gates = self.gates.depths
        by_ratio = abs(np.log(a_m / b_m)) / np.log(gates.order_ratio_min)
        return float(min(by_ratio, abs(a_m - b_m) / gates.order_gap_min_m))

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Cloud medians of all regions must leave the truth extreme; its own is returned."""
        frame = view.frame(fact.frame_ids[0])
        medians = cloud_medians_m(frame, [evidence_rect(c.show) for c in fact.candidates])
        if not np.isfinite(medians).all():
            raise GeometryError(f"{fact.key}: a region has no point of the cloud")
        extreme = int(np.argmax(medians) if fact.ask == "deepest" else np.argmin(medians))
        if extreme != fact.truth:
            raise GeometryError(f"{fact.key}: by the cloud region {extreme} is the {fact.ask}, not {fact.truth}")
        return medians[fact.truth : fact.truth + 1]

    def recompute(self, evidence: Mapping[str, Any]) -> FloatArray:
        """The extreme stored median among the options, after comparing the stored 10 and 90 % quantiles.

        Raises:
            GeometryError: intervals of the extreme region and another one overlap.
        """
        quantiles = np.array([option["evidence"]["quantiles_m"] for option in evidence["options"]])
        low, median, high = quantiles[:, 1], quantiles[:, 3], quantiles[:, 5]
        deepest = evidence["ask"] == "deepest"
        first = int(np.argmax(low) if deepest else np.argmin(high))
        others = np.arange(len(median)) != first
        if not (low[first] > high[others] if deepest else high[first] < low[others]).all():
            raise GeometryError("depth intervals of the options overlap")
        return median[first : first + 1]

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Difference of median depths, metres."""
        return float(abs(a[0] - b[0]))

    def rounded(self, value: FloatArray) -> FloatArray:
        """Nothing of the value is printed."""
        return value

    def printed(self, value: FloatArray) -> str:
        """For reports."""
        return numbers.fixed(float(value[0]), 2)

    def separation(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Order margin where one of the two is the truth; two decoys may be equally deep."""
        if fact.truth_candidate.key in (a.key, b.key):
            return self._order_separation(float(a.value[0]), float(b.value[0]))
        return 1.0

    def spread(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Log-ratio over the ceiling."""
        return float(abs(np.log(a.value[0] / b.value[0])) / np.log(self.gates.depths.order_ratio_max))

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """Decoys redrawn from above and from below the truth, as many of each as the fact's rank says."""
        truth, rank = fact.truth_candidate, int(fact.evidence["above"])
        others = [c for i, c in enumerate(fact.candidates) if i != fact.truth]
        above = [c for c in others if _middle_px(c) < _middle_px(truth)]
        below = [c for c in others if _middle_px(c) > _middle_px(truth)]
        if len(above) < rank or len(below) < count - 1 - rank:
            return None
        decoys = [above[i] for i in rng.permutation(len(above))[:rank]]
        decoys += [below[i] for i in rng.permutation(len(below))[: count - 1 - rank]]
        return [truth, *decoys], 0

    def overlay(self, evidence: Mapping[str, Any]) -> list[list[Mark]]:
        """Every region that is an option, with its depth."""
        truth = evidence["truth"]["key"]
        return [[region_mark(record, record["key"] == truth) for record in evidence["options"]]]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """Regions carry numbers that say nothing about letters; the options name the numbers."""
        order = rng.permutation(len(options.options))
        rects = [evidence_rect(options.options[i].show) for i in order]
        ops = tuple(
            {"op": "region", "rect": rect, "color": LABEL_COLOR, "label": str(n + 1)} for n, rect in enumerate(rects)
        )
        place = {int(i): n + 1 for n, i in enumerate(order)}
        frame_id = fact.frame_ids[0]
        slots = {
            "extreme": word(f"extreme.{fact.ask}"),
            "regions": numbered([numbers.rect(rect) for rect in rects], "region"),
        } | camera_slots(fact.cameras[frame_id], intrinsics=False)
        texts = tuple(word("option.region", n=str(place[i])) for i in range(len(rects)))
        return Presentation((Picture(fact.pictures[frame_id], ops),), slots, texts)


def _middle(region: Region) -> float:
    return (region.rect_px[1] + region.rect_px[3]) / 2


def _middle_px(candidate: Candidate) -> float:
    rect = evidence_rect(candidate.show)
    return (rect[1] + rect[3]) / 2


def _apart_m(a: Region, b: Region) -> float:
    return float(np.linalg.norm(a.point_m - b.point_m))


def _key(region: Region) -> str:
    return "region:" + ",".join(map(str, region.rect_px))
