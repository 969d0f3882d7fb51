"""Where a framed object is: the eight corners of its box in the camera frame, meters.

The image fixes the answer. Options combine two depths with two orientations or two lengths (`_box_factors`), and all
project onto the same rectangle (`docs/validity.md#object-location`). Where an object allows no such set, they are the
whole box scaled about the camera. Sets are chosen such that none is the likelier truth for whoever knows how deep, how
large and how low objects usually stand (`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from weakref import WeakKeyDictionary

import numpy as np

from vgbench_gen.core.errors import GeometryError, TooFewOptionsError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, OrientedBox, QuestionType, Rejected
from vgbench_gen.distractors.base import FactorPair, OptionSet, Proposal
from vgbench_gen.geometry import boxes
from vgbench_gen.geometry.projection import project
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._box_factors import DEPTH, BoxFamily, draw_box_sets, find_upright, make_family
from vgbench_gen.tasks._box_pairs import (
    PRINT_SLACK,
    compare_boxes,
    describe_boxes,
    find_largest_ratio,
    find_needed_ratio,
    find_up,
)
from vgbench_gen.tasks._box_words import hold_level, print_box, read_back, split_box, split_box_again
from vgbench_gen.tasks._noise import draw_pose_errors
from vgbench_gen.tasks._object_evidence import BoxEvidence, check_box, get_camera, reveal_object
from vgbench_gen.tasks._object_routes import measure_second_corners, order_corners, project_full_rect, solve_into_camera
from vgbench_gen.tasks._objects import PER_FRAME, TARGETS_APART_M, GatedObject, gate_objects, is_thing, order_in_strata
from vgbench_gen.tasks._proposals import make_range, move_numbers
from vgbench_gen.tasks.base import SECOND_ROUTE_SHARE, OwnGates, Task, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import FactEvidence
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.gates import BoxMargins
from vgbench_gen.tasks.presentation import Claim, ClaimPair, Mark, Presentation, WorldBox
from vgbench_gen.tasks.records import make_camera_slots
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import read_evidence_rect
from vgbench_gen.tasks.solving import NoSolver
from vgbench_gen.text import numbers
from vgbench_gen.text.render import fill_word

DECIMALS = 2
FINE_DECIMALS = 4
RESIDUAL_MAX_M = 0.012  # a corner moves up to 0.9 cm when its coordinates are rounded to 2 decimals
DRAWN_IOU_MIN = 0.9  # corners project onto the drawn rectangle (docs/validity.md#object-location)
TRUE_IOU_MIN = 0.75  # what a true claim's noise leaves: above the hit levels of detection; the words state it
_TRUE_NOISE = 0.03  # of the box's sides, in place and in size
_POOL_FACTOR = 4
_REJECTS_FACTOR = 5


@tasks.register("object_location")
class ObjectLocation(Task):
    """See the module. Values are (8, 3) arrays, corners in the order of `geometry.boxes` with the axes named as
    `boxes.find_listing` does."""

    name = "object_location"
    version = 7
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    unit = "m"
    category, subcategory = "Object Localization", "3D Localization"
    category_origin: ClassVar[Mapping[str, str]] = {
        "multi-choice": "object_location_multiple_choice_vqa",
        "judgment": "object_location_yes_no_vqa",
    }
    convention: ClassVar[Mapping[str, str]] = {
        "frame": "camera",
        "axes": "opencv",
        "unit": "m",
        "corners": "--- +-- ++- -+- --+ +-+ +++ -++",
        "regions": "xyxy_inclusive",
    }
    needs_objects = True
    candidate_draws = 24
    options_max = 4  # two parts with two values each; five depths do not fit below `depth_ratio_max`
    strategy = "factorial"
    limits = OwnGates(BoxMargins)
    fact_evidence = FactEvidence
    candidate_evidence = BoxEvidence
    checks = (check_box,)
    solvers = NoSolver("Classical vision has no metric box from one image without learning; cues are reported.")
    paper_column = "Obj-Pos."

    def __init__(self, gates: Gates | None = None) -> None:
        super().__init__(gates)
        self._families: WeakKeyDictionary[Candidate, BoxFamily] = WeakKeyDictionary()  # by the true box

    # --- measuring -------------------------------------------------------------------------------------------------

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Gated objects whose ladder exists, log-depth strata in turn, new objects before repeated ones."""
        targets: list[tuple[ViewFrame, GatedObject, float]] = []
        spare = _REJECTS_FACTOR * limit
        for frame in view.distinct_frames(rng):
            if len(targets) >= _POOL_FACTOR * limit:
                break
            objects = gate_objects(frame, view)
            refused = list(objects.dropped)
            for found in objects.found:
                needed = find_needed_ratio(found.box, self.limits)
                printed = self._measure_printed_iou(found.box, find_upright(found.world_box, view.up_world))
                if printed < self.limits.printed_iou_min:
                    refused.append((found.instance_id, "print_coarse", printed, self.limits.printed_iou_min))
                elif needed is None:
                    limit_iou = self.limits.iou_max
                    overlap = boxes.iou_3d(
                        found.box, boxes.scale_about_camera(found.box, find_largest_ratio(self.limits))
                    )
                    refused.append((found.instance_id, "ladder_overlap", overlap, limit_iou))
                else:
                    targets.append((frame, found, needed))
            if not refused and not objects.found:
                refused.append(("", "objects_too_few", 0, 1))
            for name, reason, value, bar in refused[: max(spare, 0)]:
                spare -= 1
                yield reject(self, view, f"{frame.id}/object:{name}", reason, value, bar)
        order = order_in_strata([t[1].depth_m for t in targets], [t[1].instance_id for t in targets], rng)
        made: list[tuple[ViewFrame, GatedObject]] = []
        for k in order:
            if len(made) >= limit:
                return
            frame, found, needed = targets[k]
            beside = [other for there, other in made if there is frame]
            apart = [np.linalg.norm(other.box.center_m - found.box.center_m) for other in beside]
            if len(beside) >= PER_FRAME or any(distance < TARGETS_APART_M for distance in apart):
                continue
            made.append((frame, found))
            yield self._fact(frame, found, needed, view, rng)

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Corners by the second route, in the truth's order, once the box is seen to project onto what was drawn."""
        frame, truth = view.frame(fact.frame_ids[0]), fact.truth_candidate
        name = BoxEvidence.of(truth).instance_id
        corners = measure_second_corners(frame, view, name)
        item = next(item for item in view.objects if item.instance_id == name)
        x1, y1, x2, y2 = read_evidence_rect(truth.show)
        projected = project_full_rect(frame, boxes.corners(item.box))
        overlap = boxes.rect_iou((x1, y1, x2, y2), projected)
        if overlap < DRAWN_IOU_MIN:
            raise GeometryError(f"{fact.key}: the corners project onto the drawn rectangle by {overlap:.2f} only")
        return order_corners(corners, truth.value)

    def recompute(self, fact: Fact) -> FloatArray:
        """Stored world corners solved into the camera frame."""
        pose = FactEvidence.of(fact).poses()[fact.frame_ids[0]]
        return self.rounded(solve_into_camera(pose, BoxEvidence.of(fact.truth_candidate).world_corners_m))

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Mean distance of corners over a fifth of the smallest step between rungs."""
        truth = fact.truth_candidate.value
        step = (self.limits.ladder_ratio_min - 1) * float(np.linalg.norm(truth.mean(axis=0)))
        return self.metric(truth, second, fact) / (SECOND_ROUTE_SHARE * step)

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Mean distance of corresponding corners, meters."""
        return float(np.linalg.norm(a - b, axis=1).mean())

    # --- answer space ----------------------------------------------------------------------------------------------

    def rounded(self, value: FloatArray) -> FloatArray:
        """To the printed decimals; in words to a tenth of a millimeter, as their numbers are rounded after."""
        decimals = FINE_DECIMALS if self.notation == "words" else DECIMALS
        return np.asarray(np.round(np.asarray(value, dtype=np.float64), decimals) + 0.0)  # no minus zero

    def printed(self, value: FloatArray) -> str:
        """The eight corners on one line."""
        return fill_word("option.box", box=numbers.format_corners(value, DECIMALS))

    def print_option(self, option: Candidate, fact: Fact) -> str:
        """The eight corners; in words, of a box that stands upright, its centre, its sides and its turn."""
        if self.notation == "matrix":
            return self.printed(option.value)
        return print_box(option.value, _find_vertical(BoxEvidence.of(fact.truth_candidate)))

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """Corner by corner; none in words."""
        return np.zeros(0) if self.notation == "words" else super().printed_numbers(value)

    def margin_ratio(self, a: Candidate, b: Candidate, fact: Fact) -> float:
        """>= 1 where the printed boxes overlap little enough or, at one depth, have footprints that differ enough."""
        try:
            return float(self.pair_margins((a, b), fact)[0][0, 1])
        except GeometryError:
            return 0.0

    def claim_ratio(self, claimed: Candidate, fact: Fact) -> float:
        """See `Task.claim_ratio`; from the exact box, of which printing may take a tenth."""
        truth = fact.truth_candidate
        return self.margin_ratio(replace(truth, value=BoxEvidence.of(truth).corners_m), claimed, fact)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """See `_box_pairs.compare_boxes`; the same both ways round."""
        measured, up = BoxEvidence.given(fact.truth_candidate), None
        if measured is not None and measured.upright is not None:
            up = find_up(boxes.fit_to_corners(measured.corners_m, "camera").rotation[:, measured.upright])
        return compare_boxes([candidate.value for candidate in candidates], up, self.limits)

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A cuboid in front of the camera at a depth that could have been asked."""
        value = candidate.value
        if value.shape != (8, 3) or not np.isfinite(value).all() or not (value[:, 2] > 0).all():
            return False
        if not self.gates.depth.near_m <= value[:, 2].mean() <= self.gates.object.depth_max_m:
            return False
        try:
            boxes.fit_to_corners(value, "camera")
        except GeometryError:
            return False
        return boxes.cuboid_residual_m(value) <= RESIDUAL_MAX_M

    def ladder(self, fact: Fact, count: int, rng: np.random.Generator) -> tuple[list[Candidate], int]:
        """The box at `count` depths in equal ratios, the truth at any place among them.

        Raises:
            TooFewOptionsError: a box that was drawn is nearer or farther than may be asked.
        """
        truth = fact.truth_candidate
        measured = BoxEvidence.of(truth)
        low, high = np.log([max(measured.needed_ratio, self.limits.ladder_ratio_min), find_largest_ratio(self.limits)])
        rank, step = int(rng.integers(count)), rng.uniform(low, high)
        boxes_m = [measured.corners_m * float(np.exp(step * (k - rank))) for k in range(count)]
        rungs = [Candidate(f"rung:{k - rank}", self.rounded(boxes_m[k])) for k in range(count)]
        if not all(self.valid(rung, fact) for rung in (rungs[0], rungs[-1])):
            raise TooFewOptionsError("ladder_out_of_range", f"{fact.key}: depths that are not asked")
        return [*rungs[:rank], truth, *rungs[rank + 1 :]], rank

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """See `_box_pairs.describe_boxes`; words tell them of the camera held level, and so how high a thing stands: by
        cues of the tilted camera a forest found 37 % of choices and 63 % of claims, else 29 % and 53 %."""
        values = [option.value for option in options]
        if self.notation == "words":
            camera_from_level = hold_level(_find_vertical(BoxEvidence.of(fact.truth_candidate)))
            values = [value @ camera_from_level for value in values]
        return describe_boxes(values)

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        """Depth, and orientation or length along the view (`_box_factors.draw_box_sets`).

        Raises:
            TooFewOptionsError: what was drawn gives no set, or its printed boxes fill the rectangle unequally well.
        """
        truth = fact.truth_candidate
        measured, camera = BoxEvidence.of(truth), get_camera(fact)
        if measured.upright is None:
            raise TooFewOptionsError("no_gravity", f"{fact.key}: nothing says which side stands upright")
        reach_m = self.gates.depth.near_m, self.gates.object.depth_max_m
        if truth not in self._families:
            box = boxes.fit_to_corners(measured.corners_m, "camera")
            self._families[truth] = make_family(box, measured.upright, camera, self.limits)
        for part, elsewhere in draw_box_sets(self._families[truth], self.limits, reach_m, rng):
            others = [Candidate("", self._list_corners(other, measured.upright)) for other in elsewhere]
            fits = [self._measure_fit(one, camera, fact) for one in (truth, *others)]
            if min(fits) < DRAWN_IOU_MIN or max(fits) - min(fits) > self.limits.fit_spread_max:
                raise TooFewOptionsError("fit_unlike", f"{fact.key}: boxes fill the rectangle by {np.round(fits, 2)}")
            yield FactorPair((DEPTH, part), (others[0], others[1], others[2]))

    def _measure_printed_iou(self, box: OrientedBox, upright: int | None) -> float:
        """Overlap (IoU) of a camera-frame box with what is printed of it; 0 where a side is below three units, or
        where words cannot tell it, since no axis is known to stand upright."""
        if box.size_m.min() < 3 * 10.0**-DECIMALS:
            return 0.0
        corners_m = self._list_corners(box, upright)
        if self.notation == "matrix":
            return boxes.iou_3d(box, boxes.fit_to_corners(corners_m, "camera"))
        try:
            if upright is None:
                return 0.0
            return boxes.iou_3d(box, read_back(corners_m, find_up(box.rotation[:, upright])))
        except GeometryError:
            return 0.0

    def _list_corners(self, box: OrientedBox, upright: int | None) -> FloatArray:
        """(8, 3) corners of a box in the camera frame as they are printed, meters, in the order that the words state;
        `upright` as `boxes.find_listing`."""
        return self.rounded(boxes.corners(boxes.rename_axes(box, boxes.find_listing(box, upright))))

    def _measure_fit(self, candidate: Candidate, camera: Camera, fact: Fact) -> float:
        """Overlap (IoU) of the drawn rectangle with that of the printed box."""
        uv_px, _ = project(camera, candidate.value)
        (x1, y1), (x2, y2) = uv_px.min(axis=0).tolist(), uv_px.max(axis=0).tolist()
        found = boxes.clip_rect((x1, y1, x2, y2), camera.width, camera.height)
        d1, e1, d2, e2 = read_evidence_rect(fact.truth_candidate.show)
        return boxes.rect_iou(found, (d1, e1, d2, e2))

    def proposal(self, fact: Fact) -> Proposal:
        """The depth of the centre: other boxes that project to the drawn rectangle are the true one, nearer or farther.

        Boxes named freely would not project there, and whoever projects them would find the truth.
        """
        return make_range("box", self.gates.depth.near_m, self.gates.object.depth_max_m, DECIMALS)

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """The box with its centre at that depth, seen under the same rays."""
        exact = BoxEvidence.of(fact.truth_candidate).corners_m
        (depth_m,) = move_numbers(numbers, rng)
        return Candidate("", self.rounded(exact * (depth_m / float(exact[:, 2].mean())))) if depth_m > 0 else None

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """Depth of the centre, meters."""
        return float(value[:, 2].mean())

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """Nothing: v2's rule 2 moves each coordinate of each corner, and eight such corners are no box, which tells."""
        raise TooFewOptionsError("no_rule", f"{fact.key}: published wrong corners are no box")

    def perturbed(self, fact: Fact, rng: np.random.Generator) -> Candidate | None:
        """The paper's slight noise on the true box: moved up to 10 cm along each axis, sides changed up to 10 %."""
        box = boxes.fit_to_corners(BoxEvidence.of(fact.truth_candidate).corners_m, "camera")
        center, size = box.center_m + rng.uniform(-0.1, 0.1, 3), box.size_m * rng.uniform(0.9, 1.1, 3)
        noisy = OrientedBox(center, size, box.rotation, box.frame)
        return Candidate("perturbed", self._list_corners(noisy, BoxEvidence.of(fact.truth_candidate).upright))

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """The box with another centre and other sides, seen from a camera that is elsewhere; rungs of a ladder too."""
        measured = BoxEvidence.given(about)
        exact = about.value if measured is None else measured.corners_m
        axes = boxes.fit_to_corners(exact, "camera").rotation
        centres, sides = noise.box_m * rng.standard_normal((2, n, 1, 3))
        turns, shifts = draw_pose_errors(noise, rng, n)
        corners = exact + centres + (boxes.CORNER_SIGNS * sides / 2) @ axes.T
        return np.asarray(corners @ np.swapaxes(turns, 1, 2) + shifts[:, None])

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """See `NoiseTest`; mean distance of corresponding corners, meters."""
        return np.stack([np.linalg.norm(values - option.value, axis=2).mean(axis=1) for option in options])

    # --- asking ----------------------------------------------------------------------------------------------------

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The object."""
        truth = fact.truth_candidate
        stored = BoxEvidence.of(truth)
        seen = reveal_object(stored, truth.show["rect"], stored.needed_ratio**0.5)
        return super().reveal(fact, row).with_fields(objects=[seen])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        truth, up = fact.truth_candidate, _find_vertical(BoxEvidence.of(fact.truth_candidate))
        split = split_box_again if pen.exact else split_box
        own, options = split(self.recompute(fact) if pen.exact else truth.value, up), []
        for k, option in enumerate(fact.candidates):
            options.append(pen.word("list.box", name=pen.name_option(k), **_tell_box(split(option.value, up), pen)))
        told = _tell_box(own, pen) | {"color": pen.word(f"color.{self._color(fact)}"), "options": "; ".join(options)}
        if pen.row.claim is not None:
            off = split(pen.row.claim.value, up) - own
            told["off_place"] = pen.say("m", float(np.linalg.norm(off[:3])), 3)
            told["off_sides"] = pen.say("m", float(np.abs(off[3:6]).max()), 3)
        return told

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The box with its label and depth, over those of the wrong options or of a false claim."""
        truth, camera = fact.truth_candidate, fact.cameras[fact.frame_ids[0]]
        label = f"{BoxEvidence.of(truth).label} {truth.value[:, 2].mean():.2f} m"
        claimed = [] if row.claim is None or row.claim.holds else [row.claim.candidate()]
        wrong = [option.value for option in (*fact.candidates, *claimed) if option.key != truth.key]
        marks = [mark for value in wrong for mark in _overlays.draw_wireframe(value, camera, right=False)]
        return [[*marks, *_overlays.draw_wireframe(truth.value, camera, label)]]

    def world_boxes(self, fact: Fact) -> tuple[WorldBox, ...]:
        """The object."""
        seen = BoxEvidence.of(fact.truth_candidate)
        return (WorldBox(seen.instance_id, seen.label, seen.world_corners_m),)

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        texts = tuple(self.print_option(option, fact) for option in options.options)
        return Presentation(self._pictures(fact), self._slots(fact), texts)

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """The true claim is the box with slight noise, the false one that same box nearer or farther, as on a ladder of
        two."""
        truth = fact.truth_candidate
        measured = BoxEvidence.of(truth)
        box = boxes.fit_to_corners(measured.corners_m, "camera")
        shift, grow = rng.uniform(-_TRUE_NOISE, _TRUE_NOISE, (2, 3))
        center_m = box.center_m + box.rotation @ (shift * box.size_m)
        noisy = OrientedBox(center_m, box.size_m * (1 + grow), box.rotation, "camera")
        low, high = measured.needed_ratio, self.limits.depth_ratio_max * PRINT_SLACK
        # The noise may bring the boxes nearer to each other, by about its share of the step.
        step = rng.uniform(*np.log([1 + (low - 1) * (1 + 2 * _TRUE_NOISE), high]))
        scale = float(np.exp(step if rng.random() < 0.5 else -step))
        claimed = noisy, boxes.scale_about_camera(noisy, scale)
        claims = [Candidate("", self._list_corners(box, measured.upright)) for box in claimed]
        off = [self.claim_ratio(claim, fact) for claim in claims]
        if self.notation == "words":  # which round, in the one direction or in the other
            up = _find_vertical(measured)
            said = [replace(claim, value=boxes.corners(read_back(claim.value, up))) for claim in claims]
            again = [self.claim_ratio(claim, fact) for claim in said]
            off = [max(off[0], again[0]), min(off[1], again[1])]
        most = (1 - TRUE_IOU_MIN) / (1 - self.limits.iou_max)
        if not all(self.valid(claim, fact) for claim in claims) or off[0] > most or off[1] < 1:
            return None
        true, false = (
            Claim({"box": self.print_option(claim, fact)}, claim.value, value)
            for claim, value in zip(claims, off, strict=True)
        )
        return ClaimPair(self._pictures(fact), self._slots(fact), true, false, TRUE_IOU_MIN)

    def _pictures(self, fact: Fact) -> tuple[Picture, ...]:
        rect = read_evidence_rect(fact.truth_candidate.show)
        op = {"op": "region", "rect": rect, "color": self._color(fact)}
        return (Picture(fact.pictures[fact.frame_ids[0]], (op,)),)

    def _slots(self, fact: Fact) -> dict[str, str]:
        camera = make_camera_slots(fact.cameras[fact.frame_ids[0]])
        return {"color": fill_word(f"color.{self._color(fact)}")} | camera

    def _color(self, fact: Fact) -> str:
        # By hash, so that every format and seed of this fact shows the same picture.
        return tuple(COLORS)[int(hash_stably(fact.dataset, fact.scene_id, fact.key), 16) % len(COLORS)]

    def _fact(
        self, frame: ViewFrame, found: GatedObject, needed: float, view: SceneView, rng: np.random.Generator
    ) -> Fact:
        upright = find_upright(found.world_box, view.up_world)
        listing = boxes.find_listing(found.box, upright)
        corners_m = boxes.corners(boxes.rename_axes(found.box, listing))
        truth = Candidate(
            f"object:{found.instance_id}",
            self.rounded(corners_m),
            show={"rect": list(found.rect_px)},
            evidence=BoxEvidence(
                **dict(found.evidence()) | {"corners_m": corners_m},
                world_corners_m=boxes.corners(boxes.rename_axes(found.world_box, listing)),
                needed_ratio=round(needed, 6),
                upright=None if upright is None else 2,
            ).write(),
        )
        ratios = dict(found.margins) | {
            "ladder": round((find_largest_ratio(self.limits) - 1) / (needed - 1), 4),
            "printed": round(self._measure_printed_iou(found.box, upright) / self.limits.printed_iou_min, 4),
        }
        fact = self.new_fact(
            view,
            (truth, *self._others(frame, found, view, rng)),
            frame_ids=(frame.id,),
            evidence=FactEvidence(world_from_camera={frame.id: frame.world_from_camera}),
        )
        return add_margins(fact, f"{frame.id}/{truth.key}", ratios)

    def _others(
        self, frame: ViewFrame, found: GatedObject, view: SceneView, rng: np.random.Generator
    ) -> list[Candidate]:
        """Boxes of other objects of the scene in this camera, for the paper's random values."""
        others: list[Candidate] = []
        for i in rng.permutation(len(view.objects)):
            item = view.objects[i]
            if len(others) >= self.pool_size - 1:
                break
            box = boxes.transform_box(item.box, frame.camera_from_world, "camera")
            if item.instance_id == found.instance_id or not is_thing(item.label):
                continue
            upright = find_upright(item.box, view.up_world)
            corners_m = self._list_corners(box, upright)
            if (corners_m[:, 2] > 0).all() and (upright is not None or self.notation == "matrix"):
                others.append(Candidate(f"object:{item.instance_id}", corners_m))
        return others


def _find_vertical(measured: BoxEvidence) -> FloatArray:
    """(3,) the upright axis of a measured box that has one, in the camera frame; its corners begin below."""
    return boxes.fit_to_corners(measured.corners_m, "camera").rotation[:, 2]


def _tell_box(box: FloatArray, pen: Explainer) -> dict[str, str]:
    """What is said of a box as `split_box` has it."""
    sides = zip(("wide", "deep", "high"), (pen.say("m", side) for side in box[3:6]), strict=True)
    return dict(sides) | {"place": pen.spot(box[:3]), "turned": pen.say("aside_degrees", float(box[6]), 0)}
