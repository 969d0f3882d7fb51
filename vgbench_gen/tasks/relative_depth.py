"""Which of four marked regions is the farthest from the camera, or the nearest.

Ground truth: the region whose median z is extreme, with disjoint 10-90 % intervals against every other one shown.
The image fixes the truth, so what must not give it away is where regions lie: of the sets of all images of a scene some
are drawn by weights under which the truth lies among its decoys as any of them does (`_balance`). Redrawing the options
takes another set with the same truth, drawn by the same weights.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import BoolArray, Candidate, ColorArray, Fact, FloatArray, IntArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet, leave_out
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _balance
from vgbench_gen.tasks._noise import is_nearest
from vgbench_gen.tasks._regions import (
    Region,
    RegionEvidence,
    check_regions,
    find_frame_regions,
    make_region_mark,
    measure_cloud_medians_m,
    reveal_region,
)
from vgbench_gen.tasks.base import OwnGates, Task, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import FactEvidence
from vgbench_gen.tasks.gates import DepthMargins
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.records import make_camera_slots
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import read_evidence_rect
from vgbench_gen.tasks.solving import Image, ImageRule, NoSolver, Score, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.seen import list_marks as list_seen_rects
from vgbench_gen.text import numbers
from vgbench_gen.text.marks import list_marks, name_mark
from vgbench_gen.text.render import fill_word


def _score_rects(measure: Callable[[FloatArray, Image], float], sign: float) -> Score:
    def rule(seen: VisibleQuestion) -> FloatArray:
        return sign * np.array([measure(rect, seen.images[0]) for rect in list_seen_rects(seen)])

    return rule


def _measure_top(rect: FloatArray, image: Image) -> float:
    return -float(rect[1] + rect[3])


def _measure_area(rect: FloatArray, image: Image) -> float:
    return float((rect[2] - rect[0] + 1) * (rect[3] - rect[1] + 1))


def _measure_off_centre(rect: FloatArray, image: Image) -> float:
    middle = (np.array(image.size) - 1) / 2
    return float(np.linalg.norm((rect[:2] + rect[2:]) / 2 - middle))


def _measure_detail(rect: FloatArray, image: Image) -> float:
    """Mean strength of fine structure: near surfaces show more of it and are blurred less."""
    return float(np.abs(cv2.Laplacian(_cut_inside(rect, image), cv2.CV_64F, ksize=3)).mean())


def _measure_brightness(rect: FloatArray, image: Image) -> float:
    return float(_cut_inside(rect, image).mean())


def _cut_inside(rect: FloatArray, image: Image) -> ColorArray:
    x1, y1, x2, y2 = (int(x) for x in rect)
    patch = image.gray[y1 : y2 + 1, x1 : x2 + 1]
    if patch.size == 0:
        raise Unread(f"region {rect} of an image of {image.size}")
    return patch


def make_depth_rules(far: float) -> tuple[ImageRule, ...]:
    """Image cues as rules; `far` is 1 where the deepest region is asked, -1 for the nearest: deep regions lie high, are
    small, smooth and dim, and lie in the middle."""
    scores: dict[str, Score] = {
        "top-most region" if far > 0 else "lowest region": _score_rects(_measure_top, far),
        "smallest region" if far > 0 else "largest region": _score_rects(_measure_area, -far),
        "least detail" if far > 0 else "most detail": _score_rects(_measure_detail, -far),
        "darkest region" if far > 0 else "brightest region": _score_rects(_measure_brightness, -far),
        "region nearest the centre" if far > 0 else "region farthest from the centre": _score_rects(
            _measure_off_centre, -far
        ),
    }
    return tuple(ImageRule(name, score) for name, score in scores.items())


DECOYS = 3
SETS_KEPT = 8  # drawn for a fact, some perhaps more than once; options are redrawn from them
_LEAST_WEIGHT = 1e-12
IMAGES_MIN = 12  # whose sets are weighed together
TARGETS_APART_M = 0.3  # groups on one frame need targets this far apart (docs/validity.md#repetition)


@dataclass(frozen=True, slots=True, eq=False)
class _Sets:
    """The sets of regions that may be asked about in one frame."""

    found: list[Region]
    """Regions of the frame, no two of the same median depth."""
    rows: IntArray
    """(S, 4) sets of regions as places in `found`, the right one first."""
    weight: FloatArray
    """(S,) weight with which each set is drawn, so that place and size of a region do not tell the answer."""


class SetsEvidence(FactEvidence):
    """What is kept of a fact besides its regions."""

    sets: list[list[int]]
    """Sets of wrong options of which one is asked: places of the candidates."""


@tasks.register("relative_depth")
class RelativeDepth(Task):
    """See the module."""

    name = "relative_depth"
    version = 5
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    asks = ("deepest", "nearest")
    unit = "m"
    category, subcategory = "Depth and Distance", "Relative"
    category_origin: ClassVar[Mapping[str, str]] = {"multi-choice": "relative_depth_vqa"}
    convention: ClassVar[Mapping[str, str]] = {"depth": "z", "axes": "opencv", "unit": "m", "statistic": "median"}
    checks = (check_regions,)
    limits = OwnGates(DepthMargins)
    fact_evidence = SetsEvidence
    candidate_evidence = RegionEvidence
    candidate_draws = 16
    options_max = DECOYS + 1  # its sets are chosen when scenes are measured, so that places and sizes stay balanced
    solvers = NoSolver("Classical vision has no depth from one image without learning; rules and cues are reported.")
    paper_column = "Depth"

    def rules_for(self, ask: str) -> tuple[ImageRule, ...]:
        """What goes with far regions where the deepest is asked, otherwise what goes with near ones."""
        return make_depth_rules(1.0 if ask == "deepest" else -1.0)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per kind of question and frame."""
        frames = view.distinct_frames(rng)
        made, seen = 0, 0
        targets: dict[str, list[Region]] = {frame.id: [] for frame in frames}
        while made < limit and seen < len(frames):
            # Enough images to weigh sets by, also where few facts are wanted; each of them is asked about once.
            wanted = max(-(-(limit - made) // len(self.asks)), IMAGES_MIN)
            batch, seen = frames[seen : seen + wanted], seen + wanted
            weighed = self._weighed(batch, view, rng)
            for frame, ask in itertools.product(batch, self.asks):
                if made >= limit:
                    return
                sets = weighed[frame.id, ask]
                if isinstance(sets, Rejected):
                    yield sets
                    continue
                draft = self._draft(frame, view, sets, targets[frame.id], ask, rng)
                if draft is None:
                    yield reject(self, view, f"{frame.id}/{ask}", "targets_near", len(sets.rows), 1)
                    continue
                fact, target = draft
                targets[frame.id].append(target)
                made += 1
                yield fact

    def _weighed(
        self, frames: Sequence[ViewFrame], view: SceneView, rng: np.random.Generator
    ) -> dict[tuple[str, str], _Sets | Rejected]:
        """(frame id, ask) -> the frame's sets with weights that balance them over all the frames, or why none."""
        weighed: dict[tuple[str, str], _Sets | Rejected] = {}
        for ask in self.asks:
            asked: dict[str, tuple[list[Region], IntArray]] = {}
            differs: list[FloatArray] = []
            for frame in frames:
                key = f"{frame.id}/{ask}"
                found, dropped = find_frame_regions(frame, view)
                if len(found) <= DECOYS:
                    most = max(dropped, key=lambda name: dropped[name])
                    problem = f"regions_{most}", len(found), DECOYS + 1, str(dropped)
                    weighed[frame.id, ask] = reject(self, view, key, *problem)
                    continue
                # One region per depth: sensors count in millimeters, and equal values never stand together.
                found = list({region.median_m: region for region in found}.values())
                allowed = np.array([[self._decided(a, b, ask) for b in found] for a in found])
                rows = _balance.drawn_sets(allowed, DECOYS, rng)
                if not len(rows):
                    weighed[frame.id, ask] = reject(self, view, key, "no_option_set", len(found), DECOYS + 1)
                    continue
                asked[frame.id] = found, rows
                rects = np.array([region.rect_px for region in found], dtype=np.float64)
                differs.append(_balance.traits(rects[rows], frame.camera.size))
            for (frame_id, (found, rows)), weight in zip(asked.items(), _balance.weights(differs), strict=True):
                weighed[frame_id, ask] = _Sets(found, rows, weight)
        return weighed

    def _draft(
        self,
        frame: ViewFrame,
        view: SceneView,
        sets: _Sets,
        taken: list[Region],
        ask: str,
        rng: np.random.Generator,
    ) -> tuple[Fact, Region] | None:
        """A fact of one of the sets, drawn by weight, and its truth, which is none of `taken` nor near one."""
        found, rows = sets.found, sets.rows
        near = np.array([any(_measure_apart_m(region, t) < TARGETS_APART_M for t in taken) for region in found])
        free = ~near[rows[:, 0]]
        if not free.any():
            return None
        # Weights may be too small for a number; where only such sets are left, they are all alike.
        weight = np.where(free, sets.weight + _LEAST_WEIGHT, 0.0)
        first = int(rng.choice(len(rows), p=weight / weight.sum()))
        # Drawn with replacement: among different sets those of little weight would be chosen too often.
        weight = np.where(rows[:, 0] == rows[first, 0], weight, 0.0)
        others = rng.choice(len(rows), SETS_KEPT - 1, p=weight / weight.sum()).tolist()
        truth = found[rows[first, 0]]
        picked: list[int] = []
        told: list[list[int]] = []
        for row in rows[[first, *others], 1:].tolist():
            picked += [r for r in row if r not in picked]
            told.append([1 + picked.index(r) for r in row])
        members = [truth, *(found[r] for r in picked)]
        margins = [self._order_separation(truth.median_m, found[r].median_m) for r in picked]
        candidates = [
            Candidate(
                _make_key(region),
                np.array([region.median_m]),
                show={"rect": list(region.rect_px)},
                evidence=region.evidence().with_fields(grey=_measure_grey(frame, region)).write(),
            )
            for region in members
        ]
        fact = self.new_fact(view, candidates, frame_ids=(frame.id,), ask=ask, evidence=SetsEvidence(sets=told))
        fact = add_margins(fact, f"{frame.id}/{ask}/{_make_key(truth)}", {"order": min(margins)})
        return fact, truth

    def _decided(self, truth: Region, other: Region, ask: str) -> bool:
        far, near = (truth, other) if ask == "deepest" else (other, truth)
        return (
            far.quantiles_m[1] > near.quantiles_m[5]
            and far.median_m > near.median_m
            and self._order_separation(truth.median_m, other.median_m) >= 1
            and far.median_m <= self.limits.order_ratio_max * near.median_m
        )

    def _order_separation(self, a_m: float, b_m: float) -> float:
        return float(self._compare(np.array([a_m, b_m]))[0][0, 1])

    def _compare(self, depths_m: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(order margin, ceiling) of all pairs of depths (n,), (n, n) each."""
        gates, logs = self.limits, np.log(depths_m)
        by_ratio = np.abs(logs[:, None] - logs)
        by_gap = np.abs(depths_m[:, None] - depths_m) / gates.order_gap_min_m
        return np.minimum(by_ratio / np.log(gates.order_ratio_min), by_gap), by_ratio / np.log(gates.order_ratio_max)

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
        """Difference of median depths, meters."""
        return float(abs(a[0] - b[0]))

    def rounded(self, value: FloatArray) -> FloatArray:
        """Nothing of the value is printed."""
        return value

    def printed(self, value: FloatArray) -> str:
        """For reports."""
        return numbers.format_fixed(float(value[0]), 2)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """The order margin where one of the two is the truth, as two decoys may be equally deep; log-ratio over the
        ceiling."""
        apart, wide = self._compare(np.array([float(candidate.value[0]) for candidate in candidates]))
        is_truth = np.array([candidate.key == fact.truth_candidate.key for candidate in candidates])
        return np.where(is_truth | is_truth[:, None], apart, 1.0), wide

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int] | None:
        """One of the fact's sets, or a part of one."""
        sets = SetsEvidence.of(fact).sets
        decoys = sets[int(rng.integers(len(sets)))]
        return leave_out([fact.truth_candidate, *(fact.candidates[k] for k in decoys)], 0, count, rng)

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 6) where each region lies in the image and how large it is: the middle from the image's middle, its
        distance from there, area and shape. Lengths over the sides or the diagonal of the image."""
        camera = fact.cameras[fact.frame_ids[0]]
        size = np.array([camera["width"], camera["height"]], dtype=np.float64)
        rects = np.array([read_evidence_rect(option.show) for option in options], dtype=np.float64).reshape(-1, 2, 2)
        middle_px, sides_px = rects.mean(axis=1) - (size - 1) / 2, rects[:, 1] - rects[:, 0] + 1
        off = np.linalg.norm(middle_px, axis=1) / np.linalg.norm(size)
        shape = np.log([sides_px.prod(axis=1), sides_px[:, 0] / sides_px[:, 1]]).T
        return np.column_stack([middle_px / size, np.abs(middle_px[:, 0]) / size[0], off, shape])

    def read_image_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 1) how bright each region is: in most rooms the nearest ones are bright."""
        return np.array([[RegionEvidence.of(option).grey or 0.0] for option in options])

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

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The depths of all regions that are options."""
        seen = [reveal_region(option, self.limits.order_ratio_min**0.5) for option in fact.candidates]
        return super().reveal(fact, row).with_fields(regions=seen)

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
            "count": fill_word(f"number.n{len(rects)}"),
            "count_first": fill_word(f"number.n{len(rects)}").capitalize(),
            "regions": list_marks(listed, [numbers.format_rect(op["rect"]) for op in listed]),
        } | make_camera_slots(fact.cameras[frame_id], intrinsics=False)
        texts = tuple(map(name_mark, ops))
        return Presentation((Picture(fact.pictures[frame_id], tuple(listed)),), slots, texts)


def _measure_apart_m(a: Region, b: Region) -> float:
    return float(np.linalg.norm(a.point_m - b.point_m))


def _measure_grey(frame: ViewFrame, region: Region) -> float:
    scale = frame.grey.shape[1] / frame.camera.width
    x1, y1, x2, y2 = np.round((np.array(region.rect_px) + [0, 0, 1, 1]) * scale).astype(int).tolist()
    return round(float(frame.grey[y1:y2, x1:x2].mean()), 1)


def _make_key(region: Region) -> str:
    return "region:" + ",".join(map(str, region.rect_px))
