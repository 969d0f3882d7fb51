"""Kinds about where an object is, seen from a place and facing a way: ahead or behind, and to the left or right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Fact, FloatArray, QuestionType
from vgbench_gen.geometry import boxes, poses
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks import _overlays
from vgbench_gen.tasks._noise import draw_pose_errors, perturb_motions
from vgbench_gen.tasks._object_evidence import ObjectEvidence
from vgbench_gen.tasks._registration import estimate_second_route
from vgbench_gen.tasks._sightings import find_links, get_sightings
from vgbench_gen.tasks.evidence import ArrayShape, Evidence, FactEvidence, Pose
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import Measured
from vgbench_gen.tasks.label import LabelTask
from vgbench_gen.tasks.places import disturb_objects
from vgbench_gen.tasks.presentation import Mark, WorldBox
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.seen import LabelledScene

TOWARDS_DEG = np.array([45.0, 135.0, -135.0, -45.0])  # of the labels, from ahead to the right
LONGEST = 6  # frames in a row; more are hard to follow
PIXELS_MIN = 4  # on an object, of those that the second route looks up
NEAR_M, FAR_M = 0.5, 5.0  # from an observer to what is asked about
AHEAD = np.array([0.0, 0.0, 1.0])  # of a camera


class DirectionEvidence(Evidence):
    """What is kept of objects that are called by their labels. Corners are in the frame of the first camera shown."""

    up: Annotated[FloatArray, ArrayShape(3)]
    """Unit vector against gravity in the same frame."""
    a: ObjectEvidence
    b: ObjectEvidence | None = None
    c: ObjectEvidence | None = None
    d: ObjectEvidence | None = None
    """The objects in the order in which the question names them."""
    motion: Pose | None = None
    """The last camera's frame from the first one's, meters, where the question is about both."""
    turn_deg: float | None = None
    """By which an observer turns to the right, degrees."""
    walk_m: float | None = None
    """By which an observer walks ahead before, meters."""

    def list_objects(self) -> dict[str, ObjectEvidence]:
        """Those that the question names."""
        return {name: one for name, one in self if isinstance(one, ObjectEvidence)}


class DirectionTask(LabelledScene, LabelTask):
    """Four quarters around a level observer. A kind gives `propose` and `aim`; `value` and `second` follow."""

    candidate_evidence: ClassVar[type[DirectionEvidence]] = DirectionEvidence
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    labels: ClassVar[tuple[str, ...]] = ("front_right", "back_right", "back_left", "front_left")
    margins: ClassVar[Mapping[str, float]] = {"gap_min": 20.0}  # degrees: half of it from the edge of a quarter
    needs_gravity = True
    uses_max = 2
    per_frame = 4

    def aim(self, seen: DirectionEvidence) -> tuple[FloatArray, FloatArray]:
        """(..., 3) each: which way the observer faces, and where the object is from the observer."""
        raise TypeError(f"{self.name} has no observer: give `aim`")

    def measure(
        self, view: SceneView, rows: Sequence[int], indices: Sequence[int], group: str = "", **more: Any
    ) -> Measured | None:
        """A place with these objects of the scene; None where some corner of the last one is in another quarter than
        its centre."""
        frames, found = [view.frames[row] for row in rows], get_sightings(view)
        stored: dict[str, Any] = {
            name: ObjectEvidence(
                instance_id=view.objects[k].instance_id,
                label=found.labels[k],
                corners_m=poses.transform(frames[0].camera_from_world, boxes.corners(view.objects[k].box)),
                visible=round(float(found.shares[rows, k].max()), 4),
            )
            for name, k in zip("abcd", indices, strict=False)
        }
        up = frames[0].camera_from_world[:3, :3] @ np.asarray(view.up_world)
        seen = self.candidate_evidence(up=up, **stored, **more)
        about = "abcd"[len(indices) - 1]
        swept = self.value(_replace_corners(seen, {about: stored[about].corners_m[:, None].repeat(8, axis=1)}))
        if (swept.argmax(axis=-1) != self.value(seen).argmax()).any():
            return None
        apart_m = float(np.linalg.norm(self.aim(seen)[1]))
        ratios = {"near": apart_m / NEAR_M, "far": FAR_M / apart_m}
        key = "+".join(view.objects[k].instance_id for k in indices)
        target = "+".join(sorted(key.split("+")))
        return Measured(tuple(frames), seen, {}, ratios, target, key=f"objects:{key}", group=group)

    def value(self, seen: DirectionEvidence) -> FloatArray:
        """Minus how far the direction is from the middle of each quarter, degrees."""
        ahead, to = self.aim(seen)
        right = np.cross(ahead, seen.up)
        level = np.cross(seen.up, right)
        angle_deg = np.degrees(np.arctan2((to * right).sum(axis=-1), (to * level).sum(axis=-1)))
        off_deg = angle_deg[..., None] - TOWARDS_DEG
        return np.asarray(-np.abs((off_deg + 180) % 360 - 180))

    def second(self, view: SceneView, measured: Measured) -> FloatArray:
        """By the middle of what the frames measured of each object, and by the motion that pixels and depth give.

        Raises:
            GeometryError: too few pixels lie on an object, or nothing tells the motion.
        """
        seen: DirectionEvidence = measured.evidence
        found, rows = get_sightings(view), self.find_places(view, measured.frames)
        ids, corners = [one.instance_id for one in view.objects], {}
        camera_from_world = measured.frames[0].camera_from_world
        for name, one in seen.list_objects().items():
            points_m = found.list_points_m(rows, ids.index(one.instance_id)) if one.instance_id in ids else np.zeros(0)
            if len(points_m) < PIXELS_MIN:
                raise GeometryError(f"{measured.frames[0].id}: hardly a pixel lies on object {one.instance_id}")
            middle_m = (points_m.min(axis=0) + points_m.max(axis=0)) / 2
            corners[name] = poses.transform(camera_from_world, np.tile(middle_m, (8, 1)))
        seen = _replace_corners(seen, corners)
        if seen.motion is not None:
            motion = np.eye(4)
            for first, second in pairwise(measured.frames):
                step = estimate_second_route(first, second, view)
                motion = poses.make_pose(step[:, :3], step[:, 3]) @ motion
            seen = seen.model_copy(update={"motion": motion})
        return self.value(seen)

    def disturb(self, seen: Any, noise: SensorNoise, rng: np.random.Generator, n: int) -> Any:
        """The corners as (n, 8, 3) under errors of the boxes and of the pose by which each is known, and the motion as
        (n, 3, 4) under those of both poses."""
        moved = {} if seen.motion is None else {"motion": perturb_motions(seen.motion, noise, rng, n)}
        drawn, corners = disturb_objects(seen, noise, rng, n), {}
        for name, one in drawn.list_objects().items():
            turns, shifts = draw_pose_errors(noise, rng, n)
            corners[name] = one.corners_m @ np.swapaxes(turns, -1, -2) + shifts[:, None]
        return _replace_corners(drawn, corners).model_copy(update=moved)

    def slots(self, fact: Fact) -> dict[str, str]:
        """Also the labels of the objects."""
        stored = self.candidate_evidence.of(fact.truth_candidate).list_objects()
        return super().slots(fact) | {name: one.label for name, one in stored.items()}

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Where the object is for the observer."""
        seen = self.restore(fact, pen)
        ahead, to = self.aim(seen)
        return super().explain(fact, pen) | self.slots(fact) | pen.tell_sides(*pen.face(ahead, seen.up, to))

    def restore(self, fact: Fact, pen: Explainer) -> Any:
        """The evidence with the centres, and the motion from the first camera to the last, as the pen finds them."""
        seen = self.candidate_evidence.of(fact.truth_candidate)
        middles = {name: np.tile(pen.find_middle(one.corners_m), (8, 1)) for name, one in seen.list_objects().items()}
        ends = FactEvidence.of(fact).list_poses((fact.frame_ids[0], fact.frame_ids[-1]))
        motion = {} if seen.motion is None else {"motion": pen.find_motion(*ends)}
        return _replace_corners(seen, middles).model_copy(update=motion)

    def look_alike(self, one: Measured, other: Measured) -> bool:
        """Whether two places show the same frames."""
        return {frame.id for frame in one.frames} == {frame.id for frame in other.frames}

    def count_hops(self, fact: Fact) -> int:
        """The objects that the question names, and each walk, turn or way between cameras."""
        seen = self.candidate_evidence.of(fact.truth_candidate)
        moves = (seen.motion, seen.turn_deg, seen.walk_m)
        return len(seen.list_objects()) + sum(move is not None for move in moves)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The boxes of the objects in every image that looks their way, and the answer at the foot of the first."""
        first, *others = super().overlay(fact, row)
        stored = self.candidate_evidence.of(fact.truth_candidate).list_objects().values()
        known, drawn = self.stored_poses(fact), [first, *others]
        for marks, frame_id in zip(drawn, fact.frame_ids, strict=False):
            here_from_first = poses.relative_pose(known[fact.frame_ids[0]], known[frame_id])
            for one in stored:
                corners_m = poses.transform(here_from_first, one.corners_m)
                marks += _overlays.draw_wireframe(corners_m, fact.cameras[frame_id], one.label)
        return drawn

    def world_boxes(self, fact: Fact) -> tuple[WorldBox, ...]:
        """The objects that the question names."""
        pose, stored = self.stored_poses(fact)[fact.frame_ids[0]], self.candidate_evidence.of(fact.truth_candidate)
        return tuple(
            WorldBox(one.instance_id, one.label, poses.transform(pose, one.corners_m))
            for one in stored.list_objects().values()
        )


def _replace_corners(seen: DirectionEvidence, corners: Mapping[str, FloatArray]) -> DirectionEvidence:
    objects = seen.list_objects()
    return seen.model_copy(
        update={name: objects[name].model_copy(update={"corners_m": one}) for name, one in corners.items()}
    )


def is_farther_both_ways(seen: DirectionEvidence) -> bool:
    """Whether of the objects a and b the one further along the first camera's view is also the one farther from it on
    the floor, so that "nearer" means one of them whichever way it is taken."""
    a, b = (one - seen.up * (one @ seen.up) for one in (find_middle(seen.a), find_middle(seen.b)))
    return bool((np.linalg.norm(b) - np.linalg.norm(a)) * ((b - a) @ AHEAD) > 0)


def find_middle(one: ObjectEvidence | None) -> FloatArray:
    """(..., 3) the centre of an object's box, meters."""
    assert one is not None
    return np.asarray(one.corners_m.mean(axis=-2))


def measure_free_m(
    points_m: FloatArray,
    start_m: FloatArray,
    ahead: FloatArray,
    up: FloatArray,
    aside_m: float,
    body_m: Sequence[float],
) -> float:
    """How far a level way along the unit vector `ahead` (3,) from `start_m` (3,) has none of the points (N, 3) within
    `aside_m` of it and between the heights `body_m` above the start; all in one frame, in which `up` is up."""
    off_m = points_m - start_m
    height_m, along_m, right_m = off_m @ up, off_m @ ahead, off_m @ np.cross(up, ahead)
    low_m, high_m = body_m
    near = (np.abs(right_m) < aside_m) & (along_m > 0) & (height_m < high_m) & (height_m > low_m)
    return float(along_m[near].min(initial=np.inf))


def draw_spans(view: SceneView, rows: Sequence[int], rng: np.random.Generator) -> list[list[int]]:
    """Frames in a row of which each can be related to the one before, from two to `LONGEST`, in one of both orders."""
    linked = [bool(find_links(view)[i, j]) for i, j in pairwise(rows)]
    ends = [(i, j) for i in range(len(rows)) for j in range(i + 1, min(i + LONGEST, len(rows))) if all(linked[i:j])]
    return [
        list(rows[i : j + 1])[:: 1 if rng.random() < 0.5 else -1]
        for i, j in (ends[k] for k in rng.permutation(len(ends)))
    ]


def is_unshown(view: SceneView, frame: ViewFrame, index: int) -> bool:
    """Whether a frame shows nothing of whatever could be called as an object is."""
    found = get_sightings(view)
    return bool(found.hidden[view.frames.index(frame), found.list_alike(found.labels[index])].all())
