"""Which of four marked regions is the farthest from the camera, or the nearest.

Ground truth: the region whose median z is extreme, with disjoint 10-90 % intervals against every other one shown.
The image fixes the truth, so what must not give it away is where regions lie: farther ones are higher and nearer the
middle. Every region of the pool may stand beside the truth, and sets are chosen such that places say nothing
(`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import BoolArray, Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.tasks import mirroring
from vgbench_gen.tasks._depth_margins import DepthMargins
from vgbench_gen.tasks._noise import is_nearest
from vgbench_gen.tasks._regions import (
    Region,
    RegionEvidence,
    check_regions,
    find_frame_regions,
    make_region_mark,
    measure_cloud_medians_m,
    mirror_region,
)
from vgbench_gen.tasks.base import Task, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import FactEvidence
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.records import make_camera_slots
from vgbench_gen.tasks.relative_depth.rules import make_depth_rules
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import read_evidence_rect
from vgbench_gen.tasks.solving import ImageRule, NoSolver
from vgbench_gen.text import numbers
from vgbench_gen.text.marks import list_marks, name_mark
from vgbench_gen.text.render import fill_word

DECOYS = 3
DECOYS_WANTED = 6  # regions beside a truth; twenty sets to choose from
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (docs/validity.md#repetition)


@tasks.register("relative_depth")
class RelativeDepth(Task):
    """See the module."""

    name = "relative_depth"
    version = 4
    candidate_draws = 24
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    asks = ("deepest", "nearest")
    unit = "m"
    category, subcategory = "Depth and Distance", "Relative"
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "relative_depth_vqa"}
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "median"}
    counterpart_kind = "mirror"
    checks = (check_regions,)
    fact_evidence = FactEvidence
    candidate_evidence = RegionEvidence
    solvers = NoSolver("Classical vision has no depth from one image without learning; rules and cues are reported.")
    paper_column = "Depth"

    @property
    def limits(self) -> DepthMargins:
        """The task's own gates and margins."""
        return self.gates.section(DepthMargins)

    def rules_for(self, ask: str) -> tuple[ImageRule, ...]:
        """What goes with far regions where the deepest is asked, otherwise what goes with near ones."""
        return make_depth_rules(1.0 if ask == "deepest" else -1.0)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per kind of question and frame."""
        made = 0
        for frame in view.distinct_frames(rng):
            taken: list[Region] = []
            for ask in self.asks:
                if made >= limit:
                    return
                draft = self._draft(frame, view, taken, ask, rng)
                made += isinstance(draft, Fact)
                yield draft

    def _draft(
        self, frame: ViewFrame, view: SceneView, taken: list[Region], ask: str, rng: np.random.Generator
    ) -> Fact | Rejected:
        """A fact whose truth is none of `taken` nor near one, and is added to them."""
        found, dropped = find_frame_regions(frame, view)
        key = f"{frame.id}/{ask}"
        if len(found) <= DECOYS:
            most = max(dropped, key=lambda name: dropped[name])
            return reject(self, view, key, f"regions_{most}", len(found), DECOYS + 1, str(dropped))
        # One region per depth: sensors count in millimetres, and equal values never stand together.
        found = list({region.median_m: region for region in found}.values())
        beside = [[other for other in found if self._decided(region, other, ask)] for region in found]
        able = [k for k in range(len(found)) if len(beside[k]) >= DECOYS]
        if not able:
            return reject(self, view, key, "no_option_set", len(found), DECOYS + 1)
        free = [k for k in able if all(_measure_apart_m(found[k], other) >= TARGETS_APART_M for other in taken)]
        if not free:
            return reject(self, view, key, "targets_near", len(able), 1)
        # Regions that hardly anything may stand beside have no sets to choose from.
        rich = [k for k in free if len(beside[k]) >= DECOYS_WANTED] or free
        place = rich[int(rng.integers(len(rich)))]
        truth, others = found[place], beside[place]
        taken.append(truth)
        members = [truth, *(others[k] for k in rng.permutation(len(others))[: self.pool_size - 1])]
        candidates = [
            Candidate(
                _make_key(region),
                np.array([region.median_m]),
                show={"rect": list(region.rect_px)},
                evidence=region.evidence().write(),
            )
            for region in members
        ]
        margin = min(self._order_separation(truth.median_m, other.median_m) for other in members[1:])
        fact = self.new_fact(view, candidates, frame_ids=(frame.id,), ask=ask, evidence=FactEvidence())
        return add_margins(fact, f"{frame.id}/{ask}/{_make_key(truth)}", {"order": margin})

    def _decided(self, truth: Region, other: Region, ask: str) -> bool:
        far, near = (truth, other) if ask == "deepest" else (other, truth)
        return (
            far.quantiles_m[1] > near.quantiles_m[5]
            and far.median_m > near.median_m
            and self._order_separation(truth.median_m, other.median_m) >= 1
            and far.median_m <= self.limits.order_ratio_max * near.median_m
        )

    def _order_separation(self, a_m: float, b_m: float) -> float:
        gates = self.limits
        by_ratio = abs(np.log(a_m / b_m)) / np.log(gates.order_ratio_min)
        return float(min(by_ratio, abs(a_m - b_m) / gates.order_gap_min_m))

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Cloud medians of all regions must leave the truth extreme; its own is returned."""
        frame = view.frame(fact.frame_ids[0])
        medians = measure_cloud_medians_m(frame, [read_evidence_rect(c.show) for c in fact.candidates])
        if not np.isfinite(medians).all():
            raise GeometryError(f"{fact.key}: a region has no point of the cloud")
        extreme = int(np.argmax(medians) if fact.ask == "deepest" else np.argmin(medians))
        if extreme != fact.truth:
            raise GeometryError(f"{fact.key}: by the cloud region {extreme} is the {fact.ask}, not {fact.truth}")
        return medians[fact.truth : fact.truth + 1]

    def recompute(self, fact: Fact) -> FloatArray:
        """The extreme stored median among the options, after comparing the stored 10 and 90 % quantiles.

        Raises:
            GeometryError: intervals of the extreme region and another one overlap.
        """
        quantiles = np.array([RegionEvidence.of(option).quantiles_m for option in fact.candidates])
        low, median, high = quantiles[:, 1], quantiles[:, 3], quantiles[:, 5]
        deepest = fact.ask == "deepest"
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
        return numbers.format_fixed(float(value[0]), 2)

    def margin_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Order margin where one of the two is the truth; two decoys may be equally deep."""
        if fact.truth_candidate.key in (a.key, b.key):
            return self._order_separation(float(a.value[0]), float(b.value[0]))
        return 1.0

    def ceiling_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """Log-ratio over the ceiling."""
        return float(abs(np.log(a.value[0] / b.value[0])) / np.log(self.limits.order_ratio_max))

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 7) where each region lies in the image, how far from its centre, how large and how broad it is."""
        camera = fact.cameras[fact.frame_ids[0]]
        size = np.array([camera["width"], camera["height"]], dtype=np.float64)
        rects = np.array([read_evidence_rect(option.show) for option in options]).reshape(-1, 2, 2) / size
        middle, sides = rects.mean(axis=1) - 0.5, np.maximum(rects[:, 1] - rects[:, 0], 1e-6)
        off = np.linalg.norm(middle * size, axis=1) / np.linalg.norm(size)
        return np.column_stack([middle, np.abs(middle[:, 0]), off, np.log(sides), np.log(sides.prod(axis=1))])

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """The image fixes which of the regions is the extreme one."""
        return [truth]

    def best_stays(
        self,
        fact: Fact,
        options: Sequence[Candidate],
        truth: int,
        noise: SensorNoise,
        rng: np.random.Generator,
        count: int,
    ) -> BoolArray:
        """(count,) whether the truth stays extreme when every region's depth is off by an error of its own."""
        median_m = np.array([[float(option.value[0])] for option in options])
        sigma_m = np.array([[noise.depth_sigma_m(z)] for z in median_m[:, 0].tolist()])
        depth_m = median_m + sigma_m * rng.standard_normal((len(options), count))
        return is_nearest(-depth_m if fact.ask == "deepest" else depth_m, truth)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Every region that is an option, with its depth."""
        return [[make_region_mark(option, option is fact.truth_candidate) for option in fact.candidates]]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """Regions are outlined in drawn colours, whatever the order of the options, which name them."""
        rects = [read_evidence_rect(option.show) for option in options.options]
        looks = zip(sorted(rects), rng.permutation(list(COLORS)).tolist(), strict=False)
        marks = [{"op": "region", "rect": rect, "color": color} for rect, color in looks]
        ops = [next(mark for mark in marks if mark["rect"] == rect) for rect in rects]
        listed = sorted(ops, key=lambda op: str(op["color"]))
        frame_id = fact.frame_ids[0]
        slots = {
            "extreme": fill_word(f"extreme.{fact.ask}"),
            "regions": list_marks(listed, [numbers.format_rect(op["rect"]) for op in listed]),
        } | make_camera_slots(fact.cameras[frame_id], intrinsics=False)
        texts = tuple(map(name_mark, ops))
        return Presentation((mirroring.make_picture(fact, frame_id, *listed),), slots, texts)

    def counterpart(self, fact: Fact) -> Fact | None:
        """The mirrored image: other places, the same depths."""
        width = int(fact.cameras[fact.frame_ids[0]]["width"])
        return mirroring.mirror_fact(self, fact, lambda member: mirror_region(member, width), fact.second_value)


def _measure_apart_m(a: Region, b: Region) -> float:
    return float(np.linalg.norm(a.point_m - b.point_m))


def _make_key(region: Region) -> str:
    return "region:" + ",".join(map(str, region.rect_px))
