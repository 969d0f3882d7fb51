"""How far apart two framed objects are, in meters.

Ground truth: Euclidean distance of the centres of the two oriented boxes, two decimals. The image fixes the answer,
so options are a ladder around it. Ladders are chosen such that no rung is the likelier truth for whoever knows how far
apart objects usually are that appear so large, so low and so many pixels from each other
(`docs/validity.md#balanced-selection`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.rng import hash_stably
from vgbench_gen.core.types import Candidate, Fact, FloatArray, Rejected
from vgbench_gen.distractors.base import Proposal
from vgbench_gen.geometry import boxes, projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._object_evidence import PairEvidence, SidesEvidence
from vgbench_gen.tasks._object_routes import measure_second_corners
from vgbench_gen.tasks._objects import GatedObject
from vgbench_gen.tasks._proposals import make_range
from vgbench_gen.tasks.base import reject, tasks
from vgbench_gen.tasks.explaining import WAY, Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.places import pair_objects
from vgbench_gen.tasks.presentation import Margins, Mark
from vgbench_gen.tasks.records import make_camera_slots, read_camera_record
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.scalar import ScalarTask
from vgbench_gen.tasks.solving import NoSolver
from vgbench_gen.text.render import fill_word

COLORS = ("orange", "blue")  # the pair of the palette that all readers tell apart best
VIEWS_APART_DEG = 8.0  # between two looks at one pair of objects, or one is
VIEWS_APART_RATIO = 1.25  # times as far away
PART_OF_MIN = 0.5  # of the smaller box inside the larger one
_OTHER_SIDE = {"rect_a": "rect_b", "rect_b": "rect_a", "a_": "b_", "b_": "a_"}


@tasks.register("object_distance")
class ObjectDistance(ScalarTask):
    """See the module."""

    name = "object_distance"
    version = 5
    claim_tolerance = (
        0.20  # boxes are annotated to 2 or 3 cm, of which 10 percent of the nearest pairs leave too little
    )
    unit = "m"
    category, subcategory = "Depth and Distance", "Absolute"
    category_origin: ClassVar[Mapping[str, str]] = {
        "open-ended": "object_distance_open_ended_vqa",
        "multi-choice": "object_distance_multiple_choice_vqa",
        "judgment": "object_distance_yes_no_vqa",
    }
    convention: ClassVar[Mapping[str, str]] = {"distance": "box_centers", "unit": "m", "regions": "xyxy_inclusive"}
    needs_objects = True
    per_frame = 4  # few frames show two whole objects, and those often several
    candidate_draws = 24
    options_max = 4  # five steps of a ladder do not fit between the gates `ratio_min` and `ratio_max`
    counterpart_kind = "swap"
    margins: ClassVar[Mapping[str, float]] = {
        "min": 0.4,
        "max": 5.0,
        "ratio_min": 1.3,
        "ratio_max": 3.0,
        "gap_min": 0.15,
        "rects_iou_max": 0.3,
        "boxes_iou_max": 0.05,
    }
    fact_evidence = SidesEvidence
    candidate_evidence = PairEvidence
    solvers = NoSolver("Classical vision has no metric distance from one image without learning; cues are reported.")
    paper_column = "Distance"

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Pairs of gated objects."""
        for pair in pair_objects(self, view, rng):
            yield pair if isinstance(pair, Rejected) else self._measure(*pair, view)

    def _measure(self, frame: ViewFrame, a: GatedObject, b: GatedObject, view: SceneView) -> Measured | Rejected:
        target, margins = f"{a.instance_id}+{b.instance_id}", Margins()
        shared = boxes.intersection_volume(a.world_box, b.world_box)
        volumes = [float(found.world_box.size_m.prod()) for found in (a, b)]
        if shared >= PART_OF_MIN * min(volumes):
            return reject(self, view, f"{frame.id}/{target}", "part_of", shared / min(volumes), PART_OF_MIN)
        margins.at_most("rects", boxes.rect_iou(a.projected_px, b.projected_px), self.limits.rects_iou_max)
        margins.at_most("boxes", shared / (sum(volumes) - shared), self.limits.boxes_iou_max)
        sides = {"a_": a.margins, "b_": b.margins}
        return Measured(
            (frame,),
            PairEvidence(a=a.evidence(), b=b.evidence()),
            {"rect_a": list(a.rect_px), "rect_b": list(b.rect_px)},
            {side + name: ratio for side, found in sides.items() for name, ratio in found.items()} | margins.ratios,
            target,
            (a.world_box.center_m + b.world_box.center_m) / 2,
            f"objects:{target}",
        )

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Or show these objects from nearly the same side and equally far away."""
        if super().look_alike(one, other):
            return True
        assert one.point_m is not None
        sights = [place.frames[0].world_from_camera[:3, 3] - one.point_m for place in (one, other)]
        ranges_m = [float(np.linalg.norm(sight)) for sight in sights]
        turn_deg = np.degrees(np.arccos(np.clip(sights[0] @ sights[1] / np.prod(ranges_m), -1, 1)))
        return bool(turn_deg < VIEWS_APART_DEG and max(ranges_m) < VIEWS_APART_RATIO * min(ranges_m))

    def second(self, view: SceneView, measured: Measured) -> float:
        """Distance of the centres of corners that the second route finds in the camera frame."""
        (frame,), pair = measured.frames, measured.evidence
        a, b = (measure_second_corners(frame, view, seen.instance_id).mean(axis=0) for _, seen in pair)
        return float(np.linalg.norm(a - b))

    def value(self, seen: PairEvidence) -> float:
        """Between the means of the stored corners."""
        return float(np.linalg.norm(np.subtract(*seen.centres_m)))

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
        return make_range("distance", *self.ends, self.decimals)

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
        """The colours of both objects, and the camera."""
        colors = {f"color_{side}": fill_word(f"color.{color}") for side, color in _choose_colors(fact).items()}
        return colors | make_camera_slots(fact.cameras[fact.frame_ids[0]])

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Both boxes and the line between their centres."""
        truth, camera = fact.truth_candidate, fact.cameras[fact.frame_ids[0]]
        pair = PairEvidence.of(truth)
        drawn = [
            mark for seen in (pair.a, pair.b) for mark in _overlays.draw_wireframe(seen.corners_m, camera, seen.label)
        ]
        uv_px, _ = projection.project(read_camera_record(camera), np.stack(pair.centres_m))
        return [[*drawn, _overlays.draw_span(uv_px, camera, f"{truth.value[0]:.2f} m")]]

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        a, b = (pen.find_middle(one.corners_m) for _, one in PairEvidence.of(fact.truth_candidate))
        true = float(fact.truth_candidate.value[0])
        digits = pen.find_decimals("m", [a, b], lambda s: np.linalg.norm(s[1] - s[0]), true, 0.01)
        told = self.tell_value(float(np.linalg.norm(b - a)), fact, pen) | {"way": pen.series(WAY, b - a, digits)}
        told |= {f"color_{side}": pen.word(f"color.{color}") for side, color in _choose_colors(fact).items()}
        return told | {"spot_a": pen.spot(a, digits), "spot_b": pen.spot(b, digits)}

    def counterpart(self, fact: Fact) -> Fact | None:
        """From the second object to the first: the same picture, the objects named in the other order."""
        kept = SidesEvidence.of(fact)
        margins = {_OTHER_SIDE.get(name[:2], name[:2]) + name[2:]: ratio for name, ratio in kept.margins.items()}
        turned = kept.with_fields(margins=margins, swapped=None if kept.swapped else True)
        return replace(fact, candidates=tuple(map(_exchange_objects, fact.candidates)), evidence=turned.write())


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
