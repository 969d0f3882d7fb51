"""How far apart two framed objects are, in meters.

Ground truth: Euclidean distance of the centres of the two oriented boxes, two decimals. The image fixes the answer,
so options are a ladder around it. Ladders are chosen such that no rung is the likelier truth for whoever knows how far
apart objects usually are that appear so large, so low and so many pixels from each other
(`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import ClassVar

import numpy as np

from vgbench_gen.core.errors import TooFewOptionsError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.geometry import boxes, projection
from vgbench_gen.geometry.poses import transform
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._object_evidence import PairEvidence, SidesEvidence, check_boxes, reveal_object
from vgbench_gen.tasks._object_routes import measure_second_corners
from vgbench_gen.tasks._objects import TARGETS_APART_M, GatedObject, gate_objects, order_in_strata
from vgbench_gen.tasks._proposals import make_range
from vgbench_gen.tasks.base import add_margins, reject, tasks
from vgbench_gen.tasks.gates import DistanceMargins
from vgbench_gen.tasks.presentation import ClaimPair, Margins, Mark, WorldBox
from vgbench_gen.tasks.records import make_camera_slots, read_camera_record
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import FALSE_RATIO_MAX, FALSE_RATIO_MIN, ScalarTask
from vgbench_gen.tasks.solving import NoSolver
from vgbench_gen.text import numbers
from vgbench_gen.text.render import fill_word

COLORS = ("orange", "blue")  # the pair of the palette that all readers tell apart best
PAIRS_PER_FRAME = 4  # asked about in one frame: few frames show two whole objects, and those often several
USES_MAX = 3  # of one pair of objects in a scene: its answer is the same from everywhere
VIEWS_APART_DEG = 8.0  # between two looks at one pair of objects, or one is
VIEWS_APART_RATIO = 1.25  # times as far away
LOOKS_APART_BITS = 12  # of 64: frames whose perceptual hashes differ in fewer look alike from wherever they are taken
PART_OF_MIN = 0.5  # of the smaller box inside the larger one
_PRINT_SLACK = 1.01  # keeps ratios of rungs above the margin once they are rounded
_POOL_FACTOR = 8  # measured pairs per wanted fact, for strata to choose from
_REJECTS_FACTOR = 5
_OTHER_SIDE = {"rect_a": "rect_b", "rect_b": "rect_a", "a_": "b_", "b_": "a_"}


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two objects of one frame and how far apart they are."""

    frame: ViewFrame
    a: GatedObject
    """The first object; it comes first in the order of instance ids."""
    b: GatedObject
    distance_m: float
    margins: Margins
    """Ratios of measured values to limits, filled while the pair is checked."""

    @property
    def key(self) -> str:
        """Name of the pair in its scene, made of both instance ids."""
        return f"{self.a.instance_id}+{self.b.instance_id}"

    @property
    def middle_m(self) -> FloatArray:
        """Point (3,) halfway between the centres of both boxes, in the world of the scan, meters."""
        return (self.a.world_box.center_m + self.b.world_box.center_m) / 2

    def looks_like(self, other: _Pair) -> bool:
        """Whether two frames look alike, or show these objects from nearly the same side and equally far away."""
        if (self.frame.look ^ other.frame.look).bit_count() < LOOKS_APART_BITS:
            return True
        sights = [pair.frame.world_from_camera[:3, 3] - self.middle_m for pair in (self, other)]
        ranges_m = [float(np.linalg.norm(sight)) for sight in sights]
        turn_deg = np.degrees(np.arccos(np.clip(sights[0] @ sights[1] / np.prod(ranges_m), -1, 1)))
        return bool(turn_deg < VIEWS_APART_DEG and max(ranges_m) < VIEWS_APART_RATIO * min(ranges_m))


@tasks.register("object_distance")
class ObjectDistance(ScalarTask):
    """See the module."""

    name = "object_distance"
    version = 5
    claim_tolerance = (
        0.20  # boxes are annotated to 2 or 3 cm, of which 10 percent of the nearest pairs leave too little
    )
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice", "open-ended")
    unit = "m"
    category, subcategory = "Depth and Distance", "Absolute"
    category_origin: ClassVar[Mapping[str, str]] = {
        "open-ended": "object_distance_open_ended_vqa",
        "multi-choice": "object_distance_multiple_choice_vqa",
        "judgment": "object_distance_yes_no_vqa",
    }
    convention: ClassVar[Mapping[str, str]] = {"distance": "box_centers", "unit": "m", "regions": "xyxy_inclusive"}
    needs_objects = True
    candidate_draws = 24
    options_max = 4  # five steps of a ladder do not fit between the gates `ratio_min` and `ratio_max`
    counterpart_kind = "swap"
    fact_evidence = SidesEvidence
    candidate_evidence = PairEvidence
    checks = (check_boxes,)
    solvers = NoSolver("Classical vision has no metric distance from one image without learning; cues are reported.")
    paper_column = "Distance"

    @property
    def limits(self) -> DistanceMargins:
        """The task's own gates and margins."""
        return self.gates.section(DistanceMargins)

    def gap_min(self, fact: Fact) -> float:
        return self.limits.gap_min_m

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A distance that could have been asked; so that every rung of a ladder may be the true one."""
        gates = self.limits
        return candidate.value.shape == (1,) and bool(gates.min_m <= candidate.value[0] <= gates.max_m)

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Pairs of gated objects, log-distance strata in turn, new pairs of objects before repeated ones."""
        pairs: list[_Pair] = []
        spare = _REJECTS_FACTOR * limit
        for frame in view.distinct_frames(rng):
            if len(pairs) >= _POOL_FACTOR * limit:
                break
            objects = gate_objects(frame, view)
            if len(objects.found) < 2:
                if spare > 0:
                    spare -= 1
                    counts = dict(sorted(Counter(reason for _, reason, _, _ in objects.dropped).items()))
                    yield reject(self, view, frame.id, "objects_too_few", len(objects.found), 2, str(counts))
                continue
            for a, b in combinations(sorted(objects.found, key=lambda found: found.instance_id), 2):
                pair = _Pair(frame, a, b, float(np.linalg.norm(a.world_box.center_m - b.world_box.center_m)), Margins())
                problem = self._problem(pair)
                if problem is None:
                    pairs.append(pair)
                elif spare > 0:
                    spare -= 1
                    yield reject(self, view, f"{frame.id}/{pair.key}", *problem)
        made: list[_Pair] = []
        for k in order_in_strata([pair.distance_m for pair in pairs], [pair.key for pair in pairs], rng):
            if len(made) >= limit:
                return
            pair = pairs[k]
            beside = [other for other in made if other.frame is pair.frame]
            near = any(np.linalg.norm(other.middle_m - pair.middle_m) < TARGETS_APART_M for other in beside)
            same = [other for other in made if other.key == pair.key]
            if len(beside) >= PAIRS_PER_FRAME or near or len(same) >= USES_MAX or any(map(pair.looks_like, same)):
                continue
            made.append(pair)
            yield self._fact(pair, [other for other in pairs if other.frame is pair.frame], view, rng)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Distance of the centres of corners that the second route finds in the camera frame."""
        frame = view.frame(fact.frame_ids[0])
        pair = PairEvidence.of(fact.truth_candidate)
        a, b = (measure_second_corners(frame, view, seen.instance_id).mean(axis=0) for seen in (pair.a, pair.b))
        return np.array([np.linalg.norm(a - b)])

    def value(self, about: Candidate, fact: Fact) -> float | None:
        """Between the means of the stored corners."""
        pair = PairEvidence.given(about)
        return None if pair is None else float(np.linalg.norm(np.subtract(*pair.centres_m)))

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int]:
        """A geometric ladder through the truth, at any place of it and with any step, as far as all may be asked.

        Raises:
            TooFewOptionsError: the ladder that was drawn leaves the range of distances.
        """
        gates, truth = self.limits, fact.truth_candidate
        low, high = np.log([_PRINT_SLACK * gates.ratio_min, (gates.ratio_max / _PRINT_SLACK) ** (1 / (count - 1))])
        rank, step = int(rng.integers(count)), rng.uniform(low, high)
        values = float(truth.value[0]) * np.exp(step * (np.arange(count) - rank))
        apart = values[1] - values[0] >= gates.gap_min_m + 10.0**-self.decimals
        if not (apart and gates.min_m <= values[0] and values[-1] <= gates.max_m):
            raise TooFewOptionsError("ladder_out_of_range", f"{fact.key}: {values[0]:.2f} to {values[-1]:.2f} m")
        rungs = [Candidate(f"rung:{k - rank}", self.rounded(values[k : k + 1])) for k in range(count)]
        return [*rungs[:rank], truth, *rungs[rank + 1 :]], rank

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 8) the distance, how far away the pair would have to be to lie so many pixels apart, and what the text
        says of both rectangles: sizes and lower edges as angles, the order of both objects left out."""
        truth, camera = fact.truth_candidate, fact.cameras[fact.frame_ids[0]]
        fx, cy = float(camera["K"][0]), float(camera["K"][5])
        rects = np.array([truth.show["rect_a"], truth.show["rect_b"]], dtype=np.float64).reshape(2, 2, 2)
        apart = np.log(max(float(np.linalg.norm((rects[0] - rects[1]).mean(axis=0))), 1.0) / fx)
        sizes = np.sort(np.log(np.sqrt((rects[:, 1] - rects[:, 0] + 1).prod(axis=1)) / fx))
        lower = np.sort((rects[:, 1, 1] - cy) / fx)
        logs = np.log([float(option.value[0]) for option in options])
        rest = np.broadcast_to([apart, *sizes, *lower], (len(logs), 5))
        return np.column_stack([logs, logs - apart, logs - apart + sizes.mean(), rest])

    def proposal(self, fact: Fact) -> Proposal:
        """Any distance that may be asked."""
        return make_range("distance", self.limits.min_m, self.limits.max_m, self.decimals)

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """The paper's truth x (1 + u), u uniform in (-0.5, 0.5)."""
        return Candidate("perturbed", self.rounded(fact.truth_candidate.value * (1 + rng.uniform(-0.5, 0.5))))

    def sigma(self, value: float, fact: Fact, noise: SensorNoise) -> float:
        """Of the difference of two centres, along one axis."""
        return float(np.sqrt(2) * noise.box_m)

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """Both centres are off in all directions alike, so only how far they are apart matters: a rung of the ladder
        is perturbed just as the truth. The camera's pose moves both."""
        value = self.exact_value(about, fact)
        apart = np.array([value, 0.0, 0.0]) + self.sigma(value, fact, noise) * rng.standard_normal((n, 3))
        return np.asarray(np.linalg.norm(apart, axis=1, keepdims=True))

    def pictures(self, fact: Fact) -> tuple[Picture, ...]:
        """The frame with both objects framed."""
        show = fact.truth_candidate.show
        ops = tuple(
            {"op": "region", "rect": list(show[f"rect_{side}"]), "color": _choose_colors(fact)[side]}
            for side in ("ba" if SidesEvidence.of(fact).swapped else "ab")
        )
        return (Picture(fact.pictures[fact.frame_ids[0]], ops),)

    def slots(self, fact: Fact) -> dict[str, str]:
        """Both objects with their names, colours and regions, and the camera."""
        named: dict[str, str] = {}
        truth = dict(PairEvidence.of(fact.truth_candidate))
        for side, color in _choose_colors(fact).items():
            named[f"thing_{side}"] = truth[side].name
            named[f"color_{side}"] = fill_word(f"color.{color}")
            named[f"region_{side}"] = numbers.format_rect(fact.truth_candidate.show[f"rect_{side}"])
        return named | make_camera_slots(fact.cameras[fact.frame_ids[0]])

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """Both objects."""
        truth = fact.truth_candidate
        allowed = self.limits.ratio_min**0.5
        seen = [reveal_object(one, truth.show[f"rect_{side}"], allowed) for side, one in PairEvidence.of(truth)]
        return super().reveal(fact, row).with_fields(objects=seen)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Both boxes and the line between their centres."""
        truth, camera = fact.truth_candidate, fact.cameras[fact.frame_ids[0]]
        pair = PairEvidence.of(truth)
        drawn = [
            mark for seen in (pair.a, pair.b) for mark in _overlays.draw_wireframe(seen.corners_m, camera, seen.label)
        ]
        uv_px, _ = projection.project(read_camera_record(camera), np.stack(pair.centres_m))
        return [[*drawn, _overlays.draw_span(uv_px, camera, f"{truth.value[0]:.2f} m")]]

    def world_boxes(self, fact: Fact) -> tuple[WorldBox, ...]:
        """Both objects."""
        pair, pose = PairEvidence.of(fact.truth_candidate), SidesEvidence.of(fact).poses()[fact.frame_ids[0]]
        return tuple(WorldBox(o.instance_id, o.label, transform(pose, o.corners_m)) for o in (pair.a, pair.b))

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """As for every scalar; None where either number could not be a true one, which would give it away."""
        twins = super().claim_pair(fact, rng)
        gates = self.limits
        if twins is None or twins.false.separation < 1:
            return None
        possible = all(gates.min_m <= claim.value[0] <= gates.max_m for claim in (twins.true, twins.false))
        return twins if possible else None

    def counterpart(self, fact: Fact) -> Fact | None:
        """From the second object to the first: the same picture, the objects named in the other order."""
        kept = SidesEvidence.of(fact)
        margins = {_OTHER_SIDE.get(name[:2], name[:2]) + name[2:]: ratio for name, ratio in kept.margins.items()}
        turned = kept.with_fields(margins=margins, swapped=None if kept.swapped else True)
        return replace(fact, candidates=tuple(map(_exchange_objects, fact.candidates)), evidence=turned.write())

    def draw_false_value(self, fact: Fact, rng: np.random.Generator) -> float | None:
        # Not from the pool: chosen facts are spread over distances, the pool is as the rooms are, and the difference
        # would tell true from false.
        factor = np.exp(rng.uniform(*np.log([FALSE_RATIO_MIN, FALSE_RATIO_MAX])) * (1 if rng.random() < 0.5 else -1))
        value = float(fact.truth_candidate.value[0]) * float(factor)
        return value if self.limits.min_m <= value <= self.limits.max_m else None

    def _problem(self, pair: _Pair) -> tuple[str, float, float] | None:
        gates, margins = self.limits, pair.margins
        overlap = boxes.rect_iou(pair.a.projected_px, pair.b.projected_px)
        if not margins.at_least("min", pair.distance_m, gates.min_m):
            return "distance_near", pair.distance_m, gates.min_m
        if not margins.at_most("max", pair.distance_m, gates.max_m):
            return "distance_far", pair.distance_m, gates.max_m
        if not margins.at_most("rects", overlap, gates.rect_iou_max):
            return "rects_overlap", overlap, gates.rect_iou_max
        shared = boxes.intersection_volume(pair.a.world_box, pair.b.world_box)
        volumes = [float(found.world_box.size_m.prod()) for found in (pair.a, pair.b)]
        part = shared / min(volumes)
        if part >= PART_OF_MIN:
            return "part_of", part, PART_OF_MIN
        iou = shared / (sum(volumes) - shared)
        if not margins.at_most("boxes", iou, gates.box_iou_max):
            return "boxes_overlap", iou, gates.box_iou_max
        return None

    def _candidate(self, pair: _Pair) -> Candidate:
        sides = {"a": pair.a, "b": pair.b}
        return Candidate(
            f"objects:{pair.key}",
            self.rounded(np.array([pair.distance_m])),
            show={f"rect_{side}": list(found.rect_px) for side, found in sides.items()},
            evidence=PairEvidence(a=pair.a.evidence(), b=pair.b.evidence()).write(),
        )

    def _fact(self, pair: _Pair, others: Sequence[_Pair], view: SceneView, rng: np.random.Generator) -> Fact:
        ratios = (
            {f"a_{name}": value for name, value in pair.a.margins.items()}
            | {f"b_{name}": value for name, value in pair.b.margins.items()}
            | pair.margins.ratios
        )
        rest = [others[i] for i in rng.permutation(len(others)) if others[i] is not pair][: self.pool_size - 1]
        truth = self._candidate(pair)
        fact = self.new_fact(
            view,
            (truth, *(self._candidate(other) for other in rest)),
            frame_ids=(pair.frame.id,),
            evidence=SidesEvidence(world_from_camera={pair.frame.id: pair.frame.world_from_camera}),
        )
        return add_margins(fact, f"{pair.frame.id}/{truth.key}", ratios)


def _choose_colors(fact: Fact) -> dict[str, str]:
    """Side -> colour; an object keeps its colour when both are exchanged."""
    # By hash, so that every format and seed of this fact shows the same picture and no colour means "nearer".
    swapped = int(hash_stably(fact.dataset, fact.scene_id, fact.key), 16) % 2 == 1
    if SidesEvidence.of(fact).swapped:
        swapped = not swapped
    return dict(zip("ab", COLORS[::-1] if swapped else COLORS, strict=True))


def _exchange_objects(candidate: Candidate) -> Candidate:
    """Objects a and b exchanged; a rung of a ladder is a number alone and stays."""
    show = {_OTHER_SIDE.get(name, name): value for name, value in candidate.show.items()}
    pair = PairEvidence.given(candidate)
    evidence = {} if pair is None else pair.with_fields(a=pair.b, b=pair.a).write()
    return replace(candidate, show=show, evidence=evidence)
