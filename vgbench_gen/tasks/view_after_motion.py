"""Which image is seen after a given camera motion `X2 = R X1 + t` (VGBench, SpatialScore section D.2).

The source is camera 1; the candidates are frames that see about as much of what the source sees. Gates and margins:
`docs/validity.md#view-after-motion`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, ClassVar

import numpy as np
from pydantic import Strict

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Camera, Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.geometry import poses, projection, visibility
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks._noise import measure_mean_gaps_m, perturb_motions
from vgbench_gen.tasks._pairs import PairTable, Problem, TwoViewEvidence, collect_poses, get_pair_table, thin_rows
from vgbench_gen.tasks.base import add_margins, reject, tasks
from vgbench_gen.tasks.evidence import FactEvidence, Points, PosesEvidence, StoredCamera
from vgbench_gen.tasks.motions import MotionTask
from vgbench_gen.tasks.presentation import Margins, Presentation, make_number_slots
from vgbench_gen.tasks.records import make_camera_slots
from vgbench_gen.tasks.solving import Image, Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.epipolar import match_rays, measure_support
from vgbench_gen.tasks.solving.rules import MOST_SIMILAR_IMAGE
from vgbench_gen.tasks.solving.seen import list_candidate_images, read_cameras, read_motions
from vgbench_gen.text.render import fill_word


class SourceEvidence(FactEvidence):
    """What is kept of the source frame."""

    points_m: Points
    """Points that the source sees, in its camera's frame, meters."""


class ViewEvidence(PosesEvidence):
    """What is kept of a view."""

    camera: StoredCamera
    """Of the view."""
    pair: TwoViewEvidence
    """What was measured between the source and the view."""
    seen_points: Annotated[tuple[int, ...], Strict(False)] | None = None
    """Places in `SourceEvidence.points_m` of the points that the view sees as well; None where it is not known."""


_SIDE = 300  # tells five images apart as often as 400 does (99 of 100), in half the time
_ADDED_MATCHES = 10  # unexplained ones, so that two lucky matches are no proof


def score_by_matches(seen: VisibleQuestion) -> FloatArray:
    """Score per candidate image: the share of its matches with image 1 that the printed motion explains.

    The share, since an image that looks like image 1 has many matches and so many that fit by accident. Only camera 1
    is printed; the candidates are taken to come from the same camera.

    Raises:
        Unread: the text does not hold one camera and one motion.
    """
    K, motion = read_cameras(seen.context), read_motions(seen.question)
    if len(K) != 1 or len(motion) != 1:
        raise Unread(f"{len(K)} cameras, {len(motion)} motions")
    source = seen.images[0]
    scores = []
    for image in list_candidate_images(seen):
        x_1, x_2, tolerance = match_rays(source, image, K[0], _get_camera(K[0], source, image), _SIDE)
        scores.append(measure_support(motion[0], x_1, x_2, tolerance) / (len(x_1) + _ADDED_MATCHES))
    return np.array(scores)


def _get_camera(K: FloatArray, source: Image, image: Image) -> FloatArray:
    """K of another image of the same camera: as it is for the same size, else focal length by the long side."""
    if image.size == source.size:
        return K
    f = np.sqrt(K[0, 0] * K[1, 1]) * max(image.size) / max(source.size)
    width, height = image.size
    return np.array([[f, 0, (width - 1) / 2], [0, f, (height - 1) / 2], [0, 0, 1]])


SOLVERS = (Solver("matches under the stated motion", score_by_matches, 75.0),)


_POINTS = 48
_NOISE_POINTS = 16  # of them tell motions apart in the noise test, which asks for 3200 distances per question
_VIEWS = 36  # frames kept beside a source, three times what a pool holds; a long scan has a hundred
_ROUNDS = 3  # facts per source frame, each with another true frame


@tasks.register("view_after_motion")
class ViewAfterMotion(MotionTask):
    """See the module. Values are (3, 4) [R|t], second_from_source, as printed."""

    name = "view_after_motion"
    version = 5
    formats: ClassVar[tuple[QuestionType, ...]] = ("multi-choice",)
    category, subcategory = "Camera and Image Transformation", "2D Transformation"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(formats, "reconstruction_vqa")
    margins: ClassVar[Mapping[str, float]] = {
        "motion_min_deg": 10.0,  # from the source to the view that is asked, or
        "motion_min_m": 0.25,
        "rotation_gap_min_deg": 8.0,  # between two options, or
        "shift_gap_min_m": 0.2,
        "image_gap_min_d": 8.0,  # median, between where two options show the points of the source, D%
        "overlap_min": 0.30,  # with the source
        "overlap_spread_max": 0.30,  # of the options of a set
    }
    inside = True
    fact_evidence = SourceEvidence
    candidate_evidence = ViewEvidence
    solvers = SOLVERS
    image_rules = MOST_SIMILAR_IMAGE
    paper_column = "3D-Recon."

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """Sources in random order, at most `_ROUNDS` times each; the pool of one is a window of similar overlap."""
        table = get_pair_table(view)
        sources = rng.permutation(len(view.frames))
        gated: dict[int, tuple[list[int], Problem]] = {}
        used: list[tuple[int, int]] = []
        attempts, done = 0, set[int]()
        for turn in range(_ROUNDS):
            for source in (int(s) for s in sources if int(s) not in done):
                if len(used) >= limit or attempts >= 6 * limit:
                    return
                attempts += 1
                if source not in gated:
                    gated[source] = self._gate_frames(table, source, rng)
                frames, most = gated[source]
                draft: Fact | Problem
                if len(frames) < 4:
                    draft = (f"views_{most[0]}", float(len(frames)), 4.0)
                else:
                    draft = self._make_draft(
                        table, view, source, self._choose_pool(table, source, frames, rng), used, rng
                    )
                if isinstance(draft, Fact):
                    yield draft
                else:
                    done.add(source)
                    yield reject(self, view, f"{view.frames[source].id}/{turn}", *draft)

    def _gate_frames(self, table: PairTable, source: int, rng: np.random.Generator) -> tuple[list[int], Problem]:
        """Frames that may stand beside the source, and what most others failed."""
        kept: list[int] = []
        failed: list[Problem] = []
        for j in rng.permutation(len(table.frames)).tolist():
            if len(kept) >= _VIEWS:
                break
            if j != source:
                problem = self._find_problem(table, source, j)
                if problem is None:
                    kept.append(j)
                elif table.overlap[source, j] > 0:
                    failed.append(problem)
        names = [problem[0] for problem in failed]
        most = max(failed, key=lambda problem: (names.count(problem[0]), problem[0]), default=("overlap_low", 0.0, 0.0))
        return kept, most

    def _find_problem(self, table: PairTable, source: int, j: int) -> Problem | None:
        gates = self.limits
        turn, shift = float(table.rotation_deg[source, j]), float(table.baseline_m[source, j])
        if turn < gates.motion_min_deg and shift < gates.motion_min_m:
            return "motion_small", max(turn / gates.motion_min_deg, shift / gates.motion_min_m), 1.0
        if table.overlap[source, j] < gates.overlap_min - 0.1:
            return "overlap_low", float(table.overlap[source, j]), gates.overlap_min
        pair = table.pair(source, j)
        if pair is None or pair.overlap < gates.overlap_min:
            return "overlap_low", pair.overlap if pair else 0.0, gates.overlap_min
        return None

    def _choose_pool(self, table: PairTable, source: int, frames: list[int], rng: np.random.Generator) -> list[int]:
        """A random frame and others whose overlap with the source is alike."""
        overlap = np.array([_look_up_overlap(table, source, j) for j in frames])
        seed = int(rng.integers(len(frames)))
        alike = np.flatnonzero(np.abs(overlap - overlap[seed]) <= self.limits.overlap_spread_max)
        others = rng.permutation(alike[alike != seed])[: self.pool_size - 1]
        return [frames[seed], *(frames[int(k)] for k in others)]

    def _make_draft(
        self,
        table: PairTable,
        view: SceneView,
        source: int,
        pool: list[int],
        used: list[tuple[int, int]],
        rng: np.random.Generator,
    ) -> Fact | Problem:
        if len(pool) < 4:
            return "few_alike", float(len(pool)), 4.0
        frame = view.frames[source]
        uv_px, seen_m = frame.samples
        z_m = frame.depth_at(uv_px)
        points = thin_rows(seen_m[(z_m >= view.near_m) & (z_m <= view.far_m)], _POINTS)
        camera_points = poses.transform(poses.invert(frame.world_from_camera), points)
        candidates = tuple(self._make_candidate(table, source, j, points, view) for j in pool)
        fact = self.new_fact(
            view,
            candidates,
            frame_ids=(frame.id,),
            evidence=SourceEvidence(points_m=np.round(camera_points, 3), world_from_camera=collect_poses(frame)),
        )
        eligible = np.array([not table.is_taken(source, j, used) for j in pool])
        drawn = self.with_drawn_truth(fact, rng, eligible)
        if drawn is None:
            return "no_option_set", float(len(pool)), 4.0
        target = pool[drawn.truth]
        used.append((source, target))
        margins, gates = Margins(), self.limits
        margins.at_least("overlap", _look_up_overlap(table, source, target), gates.overlap_min)
        turn = float(table.rotation_deg[source, target]) / gates.motion_min_deg
        shift = float(table.baseline_m[source, target]) / gates.motion_min_m
        margins.at_least("motion", max(turn, shift), 1.0)
        return add_margins(drawn, f"{frame.id}/{drawn.truth_candidate.key}", margins.ratios)

    def _make_candidate(
        self, table: PairTable, source: int, j: int, points_world: FloatArray, view: SceneView
    ) -> Candidate:
        frame = table.frames[j]
        uv_px, z_m = projection.project_world(frame.depth_camera, frame.world_from_camera, points_world)
        state = visibility.classify(frame.depth_camera, frame.depth_m, uv_px, z_m, view.tolerance)
        evidence = ViewEvidence(
            camera=frame.camera,
            world_from_camera=collect_poses(frame),
            pair=table.evidence(source, j),
            seen_points=tuple(np.flatnonzero(state == visibility.VISIBLE).tolist()),
        ).write()
        value = self.rounded(table.relative[source, j, :3])
        return Candidate(f"frame:{frame.id}", value, (frame.id,), {}, evidence)

    def find_frames(self, fact: Fact, candidate: Candidate) -> tuple[str, ...]:
        """The source and the view."""
        return (*fact.frame_ids, *candidate.frame_ids)

    def list_poses(self, fact: Fact, candidate: Candidate) -> list[FloatArray]:
        """As the fact and the candidate keep them."""
        (source,) = SourceEvidence.of(fact).list_poses(fact.frame_ids)
        return [source, *ViewEvidence.of(candidate).list_poses(candidate.frame_ids)]

    def find_seen(self, fact: Fact, candidate: Candidate) -> tuple[FloatArray, Camera]:
        """What the source sees."""
        return SourceEvidence.of(fact).points_m, ViewEvidence.of(candidate).camera

    def compare_parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By the turn and the place of the second camera."""
        gates = self.limits
        turns = _poses.compare_all(_poses.measure_rotation_between_deg, values) / gates.rotation_gap_min_deg
        return turns, _poses.compare_all(_poses.measure_centre_distance_m, values) / gates.shift_gap_min_m

    def compare_translations(self, value: FloatArray, second: FloatArray) -> float:
        """By the place of the second camera."""
        return _poses.measure_centre_distance_m(value, second) / float(self.limits.shift_gap_min_m)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """The ceiling is on the difference in overlap with the source, so that overlap does not tell."""
        overlaps = np.array([ViewEvidence.of(candidate).pair.overlap for candidate in candidates])
        wide = np.abs(overlaps[:, None] - overlaps) / self.limits.overlap_spread_max
        return super().pair_margins(candidates, fact)[0], wide

    def allow_direction_deg(self, motion: FloatArray) -> float:
        """What half the margin is from the source's place."""
        shift_m = max(float(np.linalg.norm(motion[:3, 3])), 1e-6)
        return float(np.degrees(np.arctan(self.limits.shift_gap_min_m / 2 / shift_m)))

    def list_shown(self, fact: Fact) -> Sequence[Candidate]:
        """All of them."""
        return fact.candidates

    def list_overlay_points(self, fact: Fact) -> FloatArray:
        """Points that the true view sees as well, or all where that is not known."""
        points_m, seen = SourceEvidence.of(fact).points_m, ViewEvidence.of(fact.truth_candidate).seen_points
        return points_m if seen is None else points_m[[k for k in seen if 0 <= k < len(points_m)]]

    def noisy_gaps(
        self,
        fact: Fact,
        options: Sequence[Candidate],
        truth: int,
        noise: SensorNoise,
        rng: np.random.Generator,
        count: int,
    ) -> FloatArray:
        """See `NoiseTest`: from the printed motion to the one that leads to each image, meters, when all images were
        taken from places a little elsewhere."""
        motions = [self.read_motion(fact, option) for option in options]
        noisy = np.concatenate([perturb_motions(motion, noise, rng, count) for motion in motions])
        points = thin_rows(SourceEvidence.of(fact).points_m, _NOISE_POINTS)
        gaps_m = measure_mean_gaps_m(noisy, options[truth].value[None], points)
        return gaps_m.reshape(len(options), count)

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The source, then the candidates in the order of the options."""
        shown = (fact.frame_ids[0], *(option.frame_ids[0] for option in options.options))
        texts = tuple(fill_word("option.image", n=str(i + 2)) for i in range(len(options.options)))
        motion = _poses.make_slots(fact.truth_candidate.value, self.notation)
        slots = motion | make_camera_slots(fact.cameras[fact.frame_ids[0]])
        pictures = tuple(Picture(fact.pictures[frame_id]) for frame_id in shown)
        return Presentation(pictures, slots | make_number_slots(len(texts)), texts)


def _look_up_overlap(table: PairTable, i: int, j: int) -> float:
    pair = table.pair(i, j)
    return pair.overlap if pair else 0.0
