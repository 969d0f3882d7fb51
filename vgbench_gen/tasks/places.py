"""Where kinds measure: two views of a scene, or two framed objects of an image."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Annotated, Any, ClassVar, TypeVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, Rejected
from vgbench_gen.geometry import boxes, plans, poses, projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks._noise import perturb_motions
from vgbench_gen.tasks._object_evidence import ObjectEvidence, PairEvidence
from vgbench_gen.tasks._objects import GatedObject, gate_objects
from vgbench_gen.tasks._pairs import TwoViewEvidence, get_pair_table
from vgbench_gen.tasks._poses import reveal_pose
from vgbench_gen.tasks._registration import estimate_second_route
from vgbench_gen.tasks.base import Problems, Task, reject, tasks
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, Pose
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import MARK_COLORS, Measured, QuestionKind, check_kind
from vgbench_gen.tasks.presentation import Margins
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence

RECTS_IOU_MAX = 0.3  # of the rectangles of two objects, which must be told apart
POINTS_MIN = 100  # measured on an object

EvidenceT = TypeVar("EvidenceT", bound=Evidence)


class ViewsEvidence(Evidence):
    """What is kept of two views."""

    motion: Pose
    """The second camera's frame from the first one's, meters."""
    pair: TwoViewEvidence
    """What was measured between both."""


def check_motion(fact: Fact, gates: Gates) -> Problems:
    """The stored motion is that between the stored poses."""
    task = tasks[fact.task]
    assert isinstance(task, TwoViews)
    stored = task.candidate_evidence.of(fact.truth_candidate).motion
    off = np.abs(poses.relative_pose(*FactEvidence.of(fact).list_poses(fact.frame_ids)) - stored).max()
    return [] if off <= 1e-6 else [("motion", f"{fact.key}: {off:.2g} off the motion between the stored poses")]


class TwoViews(QuestionKind):
    """Pairs of views that overlap, each in both orders, of which chance asks one."""

    symmetric: ClassVar[bool] = True
    input_modality = "multi-images"
    candidate_evidence: ClassVar[type[ViewsEvidence]] = ViewsEvidence
    checks = (check_kind, check_motion)

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Pairs that pass `Gates.pair`."""
        table, gates = get_pair_table(view), self.gates
        for pair in table.propose_pairs(gates.pair, rng):
            problem = table.find_problem(*pair, gates.pair)
            if problem is not None:
                yield reject(self, view, "+".join(view.frames[k].id for k in pair), *problem)
                continue
            for i, j in (pair, pair[::-1]):
                first, second = view.frames[i], view.frames[j]
                motion = poses.relative_pose(first.world_from_camera, second.world_from_camera)
                seen = ViewsEvidence(motion=motion, pair=table.evidence(i, j))
                yield Measured((first, second), seen, ratios=table.margins(i, j, gates).ratios)

    def is_taken(self, view: SceneView, one: Measured, made: Sequence[Measured]) -> bool:
        """Whether an equal or hardly different pair of views is asked about."""
        place = {frame.id: k for k, frame in enumerate(view.frames)}
        (i, j), *used = ([place[frame.id] for frame in measured.frames] for measured in (one, *made))
        return get_pair_table(view).is_taken(i, j, [(k, m) for k, m in used])

    def register(self, view: SceneView, measured: Measured) -> FloatArray:
        """(3, 4) the second camera's frame from the first one's by pixels and depth, for a second route.

        Raises:
            GeometryError: neither matches nor the depth images tell.
        """
        first, second = measured.frames
        return estimate_second_route(first, second, view)

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """`motion` as (n, 3, 4) under errors of both poses."""
        return seen.model_copy(update={"motion": perturb_motions(seen.motion, noise, rng, n)})

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also how the camera turned and moved."""
        return super().explain(fact, pen) | pen.tell_motion(self.find_motion(fact, pen))

    def find_motion(self, fact: Fact, pen: Explainer) -> FloatArray:
        """(3, 4) the second camera's frame from the first one's, meters."""
        return pen.find_motion(*FactEvidence.of(fact).list_poses(fact.frame_ids))

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """Both cameras and the motion between them."""
        motion = self.candidate_evidence.of(fact.truth_candidate).motion
        half_deg = self.gates.pair.rotation_min_deg / 2
        return super().reveal(fact, row).with_fields(motions=[reveal_pose(motion, half_deg, 15.0)])


class UprightPairEvidence(PairEvidence):
    """What is kept of two objects and of gravity."""

    up: Annotated[FloatArray, ArrayShape(3)]
    """Unit vector against gravity in the camera's frame."""


class GroupEvidence(Evidence):
    """What is kept of two to five objects and of gravity."""

    a: ObjectEvidence
    """The objects in the order of their colors."""
    b: ObjectEvidence
    c: ObjectEvidence | None = None
    d: ObjectEvidence | None = None
    e: ObjectEvidence | None = None
    up: Annotated[FloatArray, ArrayShape(3)]
    """Unit vector against gravity in the camera's frame."""

    @property
    def objects(self) -> list[ObjectEvidence]:
        """All of them."""
        return [one for one in (self.a, self.b, self.c, self.d, self.e) if one is not None]


def pair_objects(
    task: Task, view: SceneView, rng: np.random.Generator
) -> Iterator[tuple[ViewFrame, GatedObject, GatedObject] | Rejected]:
    """Two objects of a frame that may be asked about, in the order of their ids; a reject for a frame with fewer."""
    for frame in view.distinct_frames(rng):
        objects = gate_objects(frame, view)
        if len(objects.found) < 2:
            counts = dict(sorted(Counter(reason for _, reason, _, _ in objects.dropped).items()))
            yield reject(task, view, frame.id, "objects_too_few", len(objects.found), 2, str(counts))
        for a, b in combinations(sorted(objects.found, key=lambda found: found.instance_id), 2):
            yield frame, a, b


def list_groups(
    found: Sequence[GatedObject], up: FloatArray, most: int, crowded_max: float
) -> list[tuple[GatedObject, ...]]:
    """Groups of 2 to `most` of these objects of a frame that stand apart in the image and seen from above.

    up: (3,) against gravity in the camera's frame. crowded_max: share of an outline that another one may cover.
    """
    axes = plans.find_plan_axes(up)
    outlines = {one.instance_id: boxes.corners(one.box) @ axes.T for one in found}
    apart = {
        (a.instance_id, b.instance_id)
        for a, b in combinations(found, 2)
        if boxes.rect_iou(a.projected_px, b.projected_px) <= RECTS_IOU_MAX
        and plans.measure_overlap(outlines[a.instance_id], outlines[b.instance_id])[1] <= crowded_max
    }
    groups = [group for count in range(2, most + 1) for group in combinations(found, count)]
    return [g for g in groups if apart.issuperset((a.instance_id, b.instance_id) for a, b in combinations(g, 2))]


class SingleEvidence(Evidence):
    """What is kept of one object."""

    a: ObjectEvidence


class OneObject(QuestionKind):
    """One framed object of an image, called `a`."""

    needs_objects = True
    per_frame = 4  # few frames show whole objects, and those often several
    candidate_evidence: ClassVar[type[Evidence]] = SingleEvidence

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Objects that may be asked about."""
        for frame in view.distinct_frames(rng):
            objects = gate_objects(frame, view)
            if not objects.found:
                yield reject(self, view, frame.id, "objects_too_few", 0, 1)
            for one in objects.found:
                name, show, seen = one.instance_id, {"a": list(one.rect_px)}, SingleEvidence(a=one.evidence())
                yield Measured((frame,), seen, show, one.margins, name, one.world_box.center_m, f"object:{name}")

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The corners of the box as (n, 8, 3)."""
        return disturb_objects(seen, noise, rng, n)


class TwoObjects(QuestionKind):
    """Two framed objects of one image in random order, called `a` and `b`."""

    needs_objects, needs_gravity = True, True
    per_frame = 4  # few frames show two whole objects, and those often several
    uses_max = 1  # from elsewhere the same two objects are the same question
    candidate_evidence: ClassVar[type[Evidence]] = UprightPairEvidence

    def rate_rect(self, rect: Sequence[int]) -> float:
        """How much a rectangle [x1, y1, x2, y2], drawn around an object, suggests the object to who looks at it alone:
        `Measured.guess` is the mark rated higher, none where both are rated alike."""
        return 0.0

    def propose(self, view: SceneView, rng: np.random.Generator) -> Iterator[Measured | Rejected]:
        """Pairs of objects of scenes that know where up is."""
        if view.up_world is None:
            yield reject(self, view, view.id, "no_gravity", float("nan"), float("nan"))
            return
        for pair in pair_objects(self, view, rng):
            if isinstance(pair, Rejected):
                yield pair
                continue
            frame, *both = pair
            target = "+".join(found.instance_id for found in both)
            a, b = (both[k] for k in rng.permutation(2))
            margins = Margins()
            margins.at_most("rects", boxes.rect_iou(a.projected_px, b.projected_px), RECTS_IOU_MAX)
            for side, found in (("a_", a), ("b_", b)):
                margins.ratios |= {side + name: ratio for name, ratio in found.margins.items()}
            up = frame.camera_from_world[:3, :3] @ view.up_world
            rates = [self.rate_rect(found.rect_px) for found in (a, b)]
            guess = "" if rates[0] == rates[1] else MARK_COLORS[int(np.argmax(rates))]
            yield Measured(
                (frame,),
                UprightPairEvidence(a=a.evidence(), b=b.evidence(), up=up),
                {"a": list(a.rect_px), "b": list(b.rect_px)},
                margins.ratios,
                target,
                (a.world_box.center_m + b.world_box.center_m) / 2,
                f"objects:{target}",
                guess,
            )

    def list_points(self, view: SceneView, measured: Measured) -> list[FloatArray]:
        """What `list_points` gives of `a` and of `b`, for a second route."""
        return list_points(view, measured, [measured.evidence.a, measured.evidence.b])

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The corners of both boxes as (n, 8, 3)."""
        return disturb_objects(seen, noise, rng, n)


def list_points(view: SceneView, measured: Measured, objects: Sequence[ObjectEvidence]) -> list[FloatArray]:
    """(N, 3) points that the first frame measured in the box of each object, in the world of the scan.

    Raises:
        GeometryError: the scene has no such object, or too few points are measured on it.
    """
    frame, known = measured.frames[0], {item.instance_id: item.box for item in view.objects}
    points = projection.back_project_depth(frame.depth_camera, frame.depth_m)[0]
    points = poses.transform(frame.world_from_camera, points)
    found = []
    for name in (stored.instance_id for stored in objects):
        margin_m = view.tolerance.absolute_m
        inside = points[boxes.contains(known[name], points, margin_m)] if name in known else np.zeros(0)
        if len(inside) < POINTS_MIN:
            raise GeometryError(f"{frame.id}: {len(inside)} points are measured on object {name}")
        found.append(inside)
    return found


def disturb_objects(seen: EvidenceT, noise: SensorNoise, rng: np.random.Generator, n: int) -> EvidenceT:
    """The evidence with the corners of its objects as (n, 8, 3), under errors of the boxes' centres and sides."""
    objects = {name: one for name, one in seen if isinstance(one, ObjectEvidence)}
    return seen.model_copy(
        update={
            name: stored.model_copy(update={"corners_m": disturb_box(stored, noise, rng, n)})
            for name, stored in objects.items()
        }
    )


def disturb_box(stored: ObjectEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> FloatArray:
    """(n, 8, 3) corners of a box under errors of its centre and sides, meters."""
    box = boxes.fit_to_corners(stored.corners_m, "camera")
    local = (stored.corners_m - box.center_m) @ box.rotation
    sides, moves = rng.normal(0.0, noise.box_m, (2, n, 1, 3))
    return np.asarray((local * (1 + sides / box.size_m)) @ box.rotation.T + box.center_m + moves)
