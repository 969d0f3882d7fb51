"""Kinds about the motion from one camera to another, `X2 = R X1 + t` in meters: what all of them compare and show."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from vgbench_gen.core.gates import Gates
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray
from vgbench_gen.geometry import poses
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks import _overlays, _poses, _registration
from vgbench_gen.tasks.base import SECOND_ROUTE_SHARE, Problems, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.gates import NotationGates
from vgbench_gen.tasks.kind import EvidenceTask
from vgbench_gen.tasks.presentation import Mark, WorldPoint
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence


def check_motions(fact: Fact, gates: Gates) -> Problems:
    """Each option is the motion between its own two frames."""
    task, found = tasks[fact.task], Problems()
    assert isinstance(task, MotionTask)
    for option in fact.candidates:
        if stored := task.list_poses(fact, option):
            found += _poses.compare_with_way_back(option, poses.relative_pose(*stored[::-1]))
    return found


class MotionTask(EvidenceTask):
    """Values are (3, 4) [R|t], second_from_first, as printed. `margins` holds `rotation_gap_min_deg` and
    `image_gap_min_d`, by which two motions stand apart."""

    unit = "m"
    input_modality = "multi-images"
    convention: ClassVar[Mapping[str, str]] = {
        "pose": "second_from_first",
        "equation": "X2 = R X1 + t",
        "axes": "opencv",
        "unit": "m",
    }
    gates_base = NotationGates
    checks = (check_motions,)
    inside: ClassVar[bool] = False
    """Whether only points count that a motion puts into the image."""

    @abc.abstractmethod
    def find_frames(self, fact: Fact, candidate: Candidate) -> tuple[str, ...]:
        """The ids of both frames of a motion; none where it was named or combined."""

    @abc.abstractmethod
    def list_poses(self, fact: Fact, candidate: Candidate) -> list[FloatArray]:
        """(4, 4) `world_from_camera` of both frames; none where the motion was named or combined."""

    @abc.abstractmethod
    def find_seen(self, fact: Fact, candidate: Candidate) -> tuple[FloatArray, Camera]:
        """(points (N, 3) of the first camera's frame, meters; the second camera), by which motions are compared."""

    @abc.abstractmethod
    def compare_parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """(n, n) differences of motions (n, 3, 4) in rotation and in translation, over their margins."""

    @abc.abstractmethod
    def compare_translations(self, value: FloatArray, second: FloatArray) -> float:
        """Difference of the translations by both routes, over the margin."""

    @abc.abstractmethod
    def allow_direction_deg(self, motion: FloatArray) -> float:
        """By how much the direction of a translation may be off and still leave the answer."""

    def list_shown(self, fact: Fact) -> Sequence[Candidate]:
        """The candidates whose second images are shown."""
        return (fact.truth_candidate,)

    def list_overlay_points(self, fact: Fact) -> FloatArray:
        """(N, 3) points of which `overlay` numbers some."""
        return self.find_seen(fact, fact.truth_candidate)[0]

    def read_motion(self, fact: Fact, candidate: Candidate) -> FloatArray:
        """(4, 4) motion of a candidate before it was rounded."""
        return poses.relative_pose(*self.list_poses(fact, candidate))

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """From matches and depth, or from the two depth images; never from the product of the pose files."""
        first, second = (view.frame(frame_id) for frame_id in self.find_frames(fact, fact.truth_candidate))
        return _registration.estimate_second_route(first, second, view)

    def recompute(self, fact: Fact) -> FloatArray:
        """By quaternions and camera centres."""
        return _poses.compute_by_quaternions(*self.list_poses(fact, fact.truth_candidate))

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Mean distance, meters, between where both motions put the points of the truth."""
        return _poses.measure_mean_displacement_m(a, b, self.find_seen(fact, fact.truth_candidate)[0])

    def rounded(self, value: FloatArray) -> FloatArray:
        """R to three decimals, t to two; in words the place of the second camera to two, its turns in degrees to one.

        So a value in words has no rounding but that of its words, and every limit is one on what a reader is told.
        """
        return _poses.round_as_printed(value, self.notation)

    def printed(self, value: FloatArray) -> str:
        """R row by row, then t; in words, how the second camera stands as the first one sees it."""
        return _poses.print_pose(value, self.notation)

    def printed_numbers(self, value: FloatArray) -> FloatArray:
        """R row by row, then t; none in words."""
        if self.notation == "words":
            return np.zeros(0)
        printed = self.rounded(value)
        return np.concatenate([printed[:, :3].ravel(), printed[:, 3]])

    def as_stated(self, motions: FloatArray) -> FloatArray:
        """Motions [R|t] (..., 3, 4) in the direction that the text states: in words first_from_second, whose last
        column is the place of the second camera. Applied twice it gives them back."""
        return _poses.turn_around(motions) if self.notation == "words" else motions

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """Clear in rotation or in translation, and visible in the image of the first of a pair, all over their
        margins. There is no ceiling."""
        values = np.stack([candidate.value for candidate in candidates])
        shifts = np.stack([self.compare_images(candidate, values, fact) for candidate in candidates])
        apart = np.minimum(np.maximum(*self.compare_parts(values)), shifts)
        return apart, np.zeros_like(apart)

    def compare_images(self, candidate: Candidate, values: FloatArray, fact: Fact) -> FloatArray:
        """(n,) how far motions (n, 3, 4) put the points of a candidate from where it puts them, over the margin."""
        points_m, camera = self.find_seen(fact, candidate)
        shifts_d = _poses.measure_median_shifts_d(camera, candidate.value, values, points_m, self.inside)
        return shifts_d / float(self.limits.image_gap_min_d)

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A rotation within print precision."""
        return _poses.is_pose(candidate.value)

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Rotation, translation and what the image shows must each agree within a fifth of their margin."""
        truth = fact.truth_candidate
        gaps = (
            _poses.measure_rotation_between_deg(truth.value, second) / self.limits.rotation_gap_min_deg,
            self.compare_translations(truth.value, second),
            float(self.compare_images(truth, second[None], fact)[0]),
        )
        return float(max(gaps)) / SECOND_ROUTE_SHARE

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How the camera turned and moved, and how by each option."""
        values, options = [one.value for one in fact.candidates], []
        if pen.exact:
            values[fact.truth] = self.rounded(pen.find_motion(*self.list_poses(fact, fact.truth_candidate)))
        for k, value in enumerate(values):
            told = pen.tell_motion(value)
            words = {"name": pen.name_option(k), "turned": told["turned"], "place": told["place"]}
            options.append(pen.word("list.motion", **words))
        return pen.tell_motion(values[fact.truth]) | {"options": "; ".join(options), "case": self.notation}

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """How the camera of each second image stands to that of the first."""
        half_deg, motions = self.limits.rotation_gap_min_deg / 2, []
        for place, option in enumerate(self.list_shown(fact), start=1):
            motion = self.read_motion(fact, option)
            motions.append(_poses.reveal_pose(motion, half_deg, self.allow_direction_deg(motion), place))
        return super().reveal(fact, row).with_fields(motions=motions)

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """Points that both images show, in the second one where the true motion puts them."""
        on_first, on_second, _ = self._move_points(fact)
        return [on_first, *(on_second if option is fact.truth_candidate else [] for option in self.list_shown(fact))]

    def world_points(self, fact: Fact) -> tuple[WorldPoint, ...]:
        """The points of `overlay`."""
        marks, _, points_m = self._move_points(fact)
        placed = poses.transform(self.list_poses(fact, fact.truth_candidate)[0], points_m)
        return tuple(WorldPoint(mark.label, point_m) for mark, point_m in zip(marks, placed, strict=True))

    def _move_points(self, fact: Fact) -> tuple[list[Mark], list[Mark], FloatArray]:
        truth = fact.truth_candidate
        first, second = (fact.cameras[frame_id] for frame_id in self.find_frames(fact, truth))
        return _overlays.draw_moved_points(self.list_overlay_points(fact), truth.value, first, second)
