"""Rotation and translation between two views: `X2 = R X1 + t`, meters (VGBench, SpatialScore section D.2).

Options are the motions of other frame pairs of the same scene with about the same angle and length, so that neither
size nor form tells the truth. Gates and margins: `docs/validity.md#relative-pose`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np
from scipy.spatial.transform import Rotation

from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import LETTERS, Camera, Candidate, Fact, FloatArray, IntArray, QuestionType, Rejected
from vgbench_gen.distractors.base import FactorPair, OptionSet, Proposal, compatibility, draw_other, draw_truth
from vgbench_gen.geometry import poses
from vgbench_gen.geometry.poses import angle_between_deg, rotation_angle_deg
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _poses, _registration
from vgbench_gen.tasks._noise import measure_mean_gaps_m, perturb_motions
from vgbench_gen.tasks._pairs import PairTable, Problem, TwoViewEvidence, collect_poses, get_pair_table, thin_rows
from vgbench_gen.tasks._proposals import make_pose
from vgbench_gen.tasks.base import SECOND_ROUTE_SHARE, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import FactEvidence, Points, PosesEvidence, StoredCamera
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.motions import MotionTask
from vgbench_gen.tasks.presentation import Claim, ClaimPair, Presentation
from vgbench_gen.tasks.records import make_camera_slots, read_camera_record
from vgbench_gen.tasks.solving import Solver, Unread, VisibleQuestion
from vgbench_gen.tasks.solving.epipolar import estimate_motion, match_rays, measure_support
from vgbench_gen.tasks.solving.seen import read_cameras, read_motions
from vgbench_gen.text.numbers import format_fixed
from vgbench_gen.text.render import fill_word


class InliersEvidence(FactEvidence):
    """What is kept of a fact besides its motions."""

    essential_inliers: int
    """Matches that fit one essential matrix of the asked pair; 0 where too few do to compare its rotation."""


class MotionEvidence(PosesEvidence):
    """What is kept of a motion. One that was named, not measured, has the points and the second camera alone."""

    points_m: Points
    """Points of which both frames see most, in the frame of the first camera, meters."""
    camera_1: StoredCamera | None = None
    """Of the first image; kept where the motion was turned around, since that image is another one then."""
    camera_2: StoredCamera
    """Of the second image, in which options must stand apart."""
    pair: TwoViewEvidence | None = None
    """What was measured between both frames."""


_ESTIMATE_SHARE = 0.4  # of the tolerance: an estimate is not rounded
_MATCHES_MIN = 12  # with fewer matches the solver guesses
# A true claim may be off by half the tolerance (2.4 degrees, 4 cm of at least 20 cm) and the estimate by some degrees.
_CLAIM_TURN_DEG, _CLAIM_DIRECTION_DEG = 7.0, 22.0


def score_by_matches(seen: VisibleQuestion) -> FloatArray:
    """Score per option: matches in front of both cameras that the stated motion explains; of a judgment, whether
    the estimated motion is the claimed one.

    Raises:
        Unread: the text does not hold two cameras and the motions.
    """
    K = read_cameras(seen.context)
    if len(K) != 2 or len(seen.images) != 2:
        raise Unread(f"{len(K)} cameras, {len(seen.images)} images")
    x_1, x_2, tolerance = match_rays(seen.images[0], seen.images[1], K[0], K[1])
    if seen.form == "judgment":
        return _score_claim(read_motions(seen.question), x_1, x_2, tolerance)
    stated = [read_motions(option) for option in seen.options]
    if any(len(one) != 1 for one in stated):
        raise Unread("an option without one motion")
    return np.array([measure_support(one[0], x_1, x_2, tolerance) for one in stated])


def _score_claim(claims: list[FloatArray], x_1: FloatArray, x_2: FloatArray, tolerance: float) -> FloatArray:
    if len(claims) != 1:
        raise Unread(f"{len(claims)} claimed motions")
    estimate = estimate_motion(x_1, x_2, tolerance * _ESTIMATE_SHARE, _MATCHES_MIN)
    if estimate is None:
        return np.zeros(2)
    found, claim = estimate[0], claims[0]
    turn_deg = float(rotation_angle_deg(found[:, :3] @ claim[:, :3].T))
    direction_deg = float(angle_between_deg(found[:, 3], claim[:, 3]))
    off = max(turn_deg / _CLAIM_TURN_DEG, direction_deg / _CLAIM_DIRECTION_DEG)
    return np.array([1.0, off])  # Yes wins where the claim is off by less than the limit


SOLVERS = (Solver("matches under the stated motion", score_by_matches, 75.0),)


PARTS = ("rotation", "translation")
CLAIM_ROTATION_DEG = 5.0  # a judgment's tolerance; half of it is spent on noise in true claims
CLAIM_TRANSLATION_M = 0.10
SECOND_TRANSLATION_MIN_M = 0.05  # two routes never agree better than the reference poses themselves
PUBLISHED_SHIFT_M, PUBLISHED_TURN_DEG = 0.5, (5.0, 15.0)  # off in wrong options by the rule of SpatialScore v2
_POINTS = 32
_FALSE_CLAIM_MIN = 2.0  # a false claim misses the stated tolerance at least twice over


@tasks.register("relative_pose")
class RelativePose(MotionTask):
    """See the module. Values are (3, 4) [R|t], second_from_first, as printed."""

    name = "relative_pose"
    version = 6
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    counterpart_kind = "inverse"
    partner_draws = ("factorial",)  # turned around, two rotations and two translations are two and four
    margins: ClassVar[Mapping[str, float]] = {
        "rotation_gap_min_deg": 15.0,  # between the rotations of two options, or
        "direction_gap_min_deg": 30.0,  # between the directions of their translations
        "direction_norm_min_m": 0.2,  # of a translation, below which its direction is noise
        "image_gap_min_d": 8.0,  # median, between points moved by one option and by another, D%
        "rotation_max_deg": 60.0,
        "norm_max_m": 2.0,
        "matched_within": 0.30,  # relative difference of angles, and of lengths, in one set
        "pnp_rotation_max_deg": 3.0,  # from the rotation that matches alone give
    }
    fact_evidence = InliersEvidence
    candidate_evidence = MotionEvidence
    solvers = SOLVERS
    paper_column = "Pose-Est."
    category, subcategory = "Camera and Image Transformation", "3D Camera Pose"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(formats, "pose_estimation_vqa")

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per unordered pair; every proposed pair is a fact or a reject. Those without a set of options are
        asked by claims alone, where the others are too few."""
        table = get_pair_table(view)
        proposed = table.propose_pairs(view.gates.pair, rng)
        either_way = np.array([pair for i, j in proposed for pair in ((i, j), (j, i))], dtype=np.int64).reshape(-1, 2)
        used: list[tuple[int, int]] = []
        made: dict[tuple[int, int], Candidate] = {}
        alone: list[tuple[str, list[tuple[int, int]], Problem]] = []
        for first, second in proposed[: 6 * limit]:
            if len(used) >= limit:
                break
            key = f"{view.frames[first].id}-{view.frames[second].id}"
            problem = self._find_problem(table, first, second, view)
            if problem is not None:
                yield reject(self, view, key, *problem)
                continue
            seed = (first, second) if rng.random() < 0.5 else (second, first)
            pool = self._choose_pool(table, either_way, seed, view, rng)
            draft = self._make_draft(table, view, pool, used, made, rng)
            if isinstance(draft, Fact):
                yield draft
            elif draft[0] in ("few_alike", "no_option_set"):
                alone.append((key, pool, draft))
            else:
                yield reject(self, view, key, *draft)
        for key, pool, problem in alone:
            if len(used) < limit:
                again = self._make_draft(table, view, pool, used, made, rng, sets=False)
                yield reject(self, view, key, *again) if isinstance(again, tuple) else again
            else:
                yield reject(self, view, key, *problem)

    def _find_problem(self, table: PairTable, i: int, j: int, view: SceneView) -> Problem | None:
        gates, turn, shift = self.limits, float(table.rotation_deg[i, j]), float(table.baseline_m[i, j])
        if shift > gates.norm_max_m:
            return "translation_long", shift, gates.norm_max_m
        if turn > gates.rotation_max_deg:
            return "rotation_large", turn, gates.rotation_max_deg
        return table.find_problem(i, j, view.gates.pair, planes=True)

    def _choose_pool(
        self, table: PairTable, either_way: IntArray, seed: tuple[int, int], view: SceneView, rng: np.random.Generator
    ) -> list[tuple[int, int]]:
        """The seed and gated pairs (of `either_way`, (N, 2)) that turn and move about as much; one direction and its
        inverse may both be in. Pairs are measured one after the other, until there are enough."""
        within = self.limits.matched_within
        alike = ~(either_way == seed).all(axis=1)
        for sizes in (table.rotation_deg, table.baseline_m):
            size, own = sizes[either_way[:, 0], either_way[:, 1]], sizes[seed]
            alike &= np.abs(size - own) <= within * own
        pool = [seed]
        for i, j in rng.permutation(either_way[alike]).tolist():
            if len(pool) >= self.pool_size:
                break
            if self._find_problem(table, i, j, view) is None:
                pool.append((i, j))
        return pool

    def _make_draft(
        self,
        table: PairTable,
        view: SceneView,
        pool: list[tuple[int, int]],
        used: list[tuple[int, int]],
        made: dict[tuple[int, int], Candidate],
        rng: np.random.Generator,
        sets: bool = True,
    ) -> Fact | Problem:
        """sets: whether there must be a set of options."""
        if sets and len(pool) < 4:
            return "few_alike", float(len(pool)), 4.0
        eligible = np.array([not table.is_taken(i, j, used) for i, j in pool])
        if not eligible.any():
            return "pair_alike", float(len(used)), float("nan")
        for i, j in pool:
            if (i, j) not in made:
                made[i, j] = self._make_candidate(table, i, j)
        fact = self.new_fact(view, tuple(made[pair] for pair in pool))
        drawn: Fact | None
        if sets:
            drawn = self.with_drawn_truth(fact, rng, eligible)
        else:
            k = draw_truth(compatibility(fact.candidates, fact, self), 2, rng, eligible)
            drawn = None if k is None else replace(fact, truth=k, second_value=fact.candidates[k].value)
        if drawn is None:
            return "no_option_set", float(len(pool)), 4.0
        i, j = pool[drawn.truth]
        gates, turn = self.limits, table.relative[i, j, :3, :3]
        found = _registration.estimate_essential_motion(view.frames[i], view.frames[j])
        if found is not None:
            off = float(rotation_angle_deg(found[0][:, :3] @ turn.T))
            if off > gates.pnp_rotation_max_deg:
                return "essential_rotation", off, gates.pnp_rotation_max_deg
        used.append((i, j))
        margins = table.margins(i, j, self.gates, planes=True)
        checked = replace(drawn, evidence=InliersEvidence(essential_inliers=found[1] if found else 0).write())
        return add_margins(checked, drawn.truth_candidate.key, margins.ratios)

    def _make_candidate(self, table: PairTable, i: int, j: int) -> Candidate:
        pair = table.pair(i, j)
        seen = pair.seen_m[0 if i < j else 1] if pair else np.zeros((0, 3))
        first, second = table.frames[i], table.frames[j]
        points = poses.transform(poses.invert(first.world_from_camera), thin_rows(seen, _POINTS))
        evidence = MotionEvidence(
            points_m=np.round(points, 3),
            camera_2=second.camera,
            world_from_camera=collect_poses(first, second),
            pair=table.evidence(i, j),
        )
        value = self.rounded(table.relative[i, j, :3])
        return Candidate(f"frames:{first.id}-{second.id}", value, (first.id, second.id), {}, evidence.write())

    def find_frames(self, fact: Fact, candidate: Candidate) -> tuple[str, ...]:
        """Of the candidate itself."""
        return candidate.frame_ids

    def list_poses(self, fact: Fact, candidate: Candidate) -> list[FloatArray]:
        """As the candidate keeps them."""
        return MotionEvidence.of(candidate).list_poses(candidate.frame_ids)

    def find_seen(self, fact: Fact, candidate: Candidate) -> tuple[FloatArray, Camera]:
        """Of the candidate itself, as its frames are its own."""
        stored = MotionEvidence.of(candidate)
        return stored.points_m, stored.camera_2

    def compare_parts(self, values: FloatArray) -> tuple[FloatArray, FloatArray]:
        """By the angles between rotations and between translations; of short ones the direction does not count."""
        gates, values = self.limits, self.as_stated(values)
        turns = _poses.compare_all(_poses.measure_rotation_between_deg, values) / gates.rotation_gap_min_deg
        long = np.linalg.norm(values[:, :, 3], axis=-1) >= gates.direction_norm_min_m
        directions = _poses.compare_all(_poses.measure_direction_between_deg, values) / gates.direction_gap_min_deg
        directions[~(long[:, None] & long)] = 0.0
        return turns, directions

    def compare_translations(self, value: FloatArray, second: FloatArray) -> float:
        """By what the margin of directions is at the end of the translation."""
        chord_m = 2 * np.linalg.norm(value[:, 3]) * np.sin(np.radians(self.limits.direction_gap_min_deg) / 2)
        needed_m = max(SECOND_TRANSLATION_MIN_M / SECOND_ROUTE_SHARE, float(chord_m))
        return float(np.linalg.norm(self.as_stated(value)[:, 3] - self.as_stated(second)[:, 3])) / needed_m

    def allow_direction_deg(self, motion: FloatArray) -> float:
        """Half the margin."""
        return float(self.limits.direction_gap_min_deg) / 2

    def factor_pairs(self, fact: Fact, rng: np.random.Generator) -> Iterator[FactorPair]:
        """Rotation and translation of another motion of the pool, each combined with the other part of the truth.

        For comparison alone: of four such options the two that were measured fit together, and the text tells which
        they are (`docs/validity.md#relative-pose`). The inverse of the truth, which anybody could find by computing,
        is left out.
        """
        turns, directions = self.compare_parts(np.stack([candidate.value for candidate in fact.candidates]))
        unlike = (turns[fact.truth] >= 1) & (directions[fact.truth] >= 1)
        truth = fact.truth_candidate
        for place in rng.permutation(np.flatnonzero(unlike)).tolist():
            other = fact.candidates[place]
            if set(other.frame_ids) != set(truth.frame_ids):
                yield FactorPair(PARTS, self._combine(truth, other))

    def _combine(self, first: Candidate, second: Candidate) -> tuple[Candidate, Candidate, Candidate]:
        """The first motion with the translation of the second, with its rotation, and the second motion.

        A combined motion is compared with others by the points and the camera of the motion that gave its rotation, so
        that a set is the same whichever of both motions is the true one.
        """
        mixed = []
        for turn, shift in ((first, second), (second, first)):
            parts = self.as_stated(turn.value)[:, :3], self.as_stated(shift.value)[:, 3:]
            value = self.rounded(self.as_stated(np.concatenate(parts, axis=1)))
            stored = MotionEvidence.of(turn)
            seen = MotionEvidence(points_m=stored.points_m, camera_2=stored.camera_2)
            mixed.append(Candidate("", value, evidence=seen.write()))
        return mixed[0], mixed[1], second

    def valid(self, candidate: Candidate, fact: Fact) -> bool:
        """A rotation within print precision, and within the ceilings."""
        value, gates = candidate.value, self.limits
        return (
            super().valid(candidate, fact)
            and _poses.measure_rotation_between_deg(value, np.eye(3, 4)) <= gates.rotation_max_deg
            and float(np.linalg.norm(value[:, 3])) <= gates.norm_max_m
        )

    def proposal(self, fact: Fact) -> Proposal:
        """Rotation vector and translation: numbers of which all are a pose, as those of a matrix are not."""
        gates = self.limits
        slots = {"high": f"{gates.rotation_max_deg:g}", "far": f"{gates.norm_max_m:g}"}
        return Proposal("pose", slots, 6, "pose")

    def proposed(self, fact: Fact, numbers: Sequence[float], rng: np.random.Generator) -> Candidate | None:
        """The pose, measured against others by the points and the second camera of the truth."""
        truth = MotionEvidence.of(fact.truth_candidate)
        seen = MotionEvidence(points_m=truth.points_m, camera_2=truth.camera_2)
        return Candidate("", self.rounded(make_pose(numbers, rng)), evidence=seen.write())

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """v2's rule 10: the truth in axes of which two are swapped or one is flipped, the truth with another
        translation, and with another rotation. How much other is not published."""
        motion = self.as_stated(fact.truth_candidate.value)
        seen = MotionEvidence.of(fact.truth_candidate)
        evidence = MotionEvidence(points_m=seen.points_m, camera_2=seen.camera_2).write()
        axes = np.eye(3)
        if rng.random() < 0.5:
            axes = axes[rng.choice([[1, 0, 2], [0, 2, 1], [2, 1, 0]])]
        else:
            axes[rng.integers(3)] *= -1
        shifted, turned = motion.copy(), motion.copy()
        shifted[:, 3] += rng.uniform(-PUBLISHED_SHIFT_M, PUBLISHED_SHIFT_M, 3)
        axis = rng.standard_normal(3)
        turn = axis / np.linalg.norm(axis) * np.radians(rng.uniform(*PUBLISHED_TURN_DEG))
        turned[:, :3] = Rotation.from_rotvec(turn).as_matrix() @ turned[:, :3]
        renamed = np.concatenate([axes @ motion[:, :3] @ axes.T, axes @ motion[:, 3:]], axis=1)
        values = [self.rounded(self.as_stated(one)) for one in (renamed, shifted, turned)]
        return [Candidate("published", value, evidence=evidence) for value in values[:count]]

    def rank_by(self, value: FloatArray, fact: Fact) -> float:
        """Angle of the rotation, degrees."""
        return _poses.measure_rotation_between_deg(value, np.eye(3, 4))

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """Those that are the motion between two frames; a computed one is not."""
        return [k for k, option in enumerate(options) if option.frame_ids]

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """See `NoiseTest`; of the stored motion, not of the printed one."""
        return perturb_motions(self.read_motion(fact, about), noise, rng, n)

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """See `NoiseTest` and `metric`, by the points that the frames of `about` share."""
        told = np.stack([option.value for option in options])
        return measure_mean_gaps_m(values, told, MotionEvidence.of(about).points_m)

    def claim_errors(self, values: FloatArray, claimed: FloatArray, fact: Fact) -> FloatArray | None:
        """See `NoiseTest` and `measure_claim_errors`."""
        return measure_claim_errors(self.as_stated(values), self.as_stated(claimed))

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """The truth's two frames; the options are printed poses."""
        texts = tuple(self.printed(option.value) for option in options.options)
        return Presentation(self._make_pictures(fact), self._make_slots(fact), texts)

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """True: the pose with noise inside half the tolerance. False: a compatible member of the pool, with noise of
        the same law, so that both are as far from what is stored and as much of a rotation once printed."""
        truth = fact.truth_candidate
        other = draw_other(compatibility(fact.candidates, fact, self), fact.truth, rng, (len(LETTERS), 2))
        if other is None:
            return None
        chosen = truth, fact.candidates[other]
        # Rounding a translation to two decimals moves it by up to 9 mm, which must fit into the half as well.
        values = [
            self.rounded(
                self.as_stated(
                    _poses.perturb_pose(
                        self.as_stated(self.read_motion(fact, one)[:3]),
                        0.48 * CLAIM_ROTATION_DEG,
                        0.5 * CLAIM_TRANSLATION_M - 0.009,
                        rng,
                    )
                )
            )
            for one in chosen
        ]
        errors = (
            measure_claim_errors(self.as_stated(one.value[None]), self.as_stated(value))[0]
            for one, value in zip(chosen, values, strict=True)
        )
        missed = measure_claim_errors(self.as_stated(truth.value[None]), self.as_stated(values[1]))[0]
        if max(errors) > 0.5 or missed < _FALSE_CLAIM_MIN:
            return None
        claims = [
            Claim(
                _poses.make_slots(value, self.notation),
                value,
                self.margin_ratio(truth, replace(truth, value=value), fact),
                one.key,
            )
            for one, value in zip(chosen, values, strict=True)
        ]
        slots = self._make_slots(fact) | {
            "tolerance_deg": format_fixed(CLAIM_ROTATION_DEG, 0),
            "tolerance_m": format_fixed(CLAIM_TRANSLATION_M, 2),
        }
        return ClaimPair(self._make_pictures(fact), slots, claims[0], claims[1], CLAIM_TRANSLATION_M)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Also by how much a claim is off."""
        told = super().explain(fact, pen)
        if pen.row.claim is None:
            return told
        own, claimed = self.as_stated(np.stack([fact.truth_candidate.value, pen.row.claim.value]))
        one, other = poses.find_nearest_rotation(np.stack([own, claimed])[..., :3])
        turn_deg, shift_m = float(rotation_angle_deg(one.T @ other)), math.dist(own[:, 3], claimed[:, 3])
        if pen.exact:
            turn_deg = float(np.degrees((Rotation.from_matrix(one).inv() * Rotation.from_matrix(other)).magnitude()))
        allowed = self.tolerance_words(fact.ask, CLAIM_TRANSLATION_M)
        told |= {"off_turn": pen.say("degrees", turn_deg), "off_place": pen.say("m", shift_m)}
        return told | {"allowed_turn": allowed[0], "allowed_place": allowed[1]}

    def tolerance_words(self, ask: str, tolerance: float) -> tuple[str, ...]:
        """The rotation's and the translation's."""
        degrees = fill_word("tolerance.degrees", value=format_fixed(CLAIM_ROTATION_DEG, 0))
        return degrees, fill_word("tolerance.meters", value=format_fixed(tolerance, 2))

    def counterpart(self, fact: Fact) -> Fact | None:
        """The pose from the second camera to the first, from the unrounded poses; every candidate is turned around.

        None where the camera of a candidate's first image is not known.
        """
        candidates = [self._exchange_frames(candidate, fact) for candidate in fact.candidates]
        known = tuple(candidate for candidate in candidates if candidate is not None)
        if len(known) < len(candidates):
            return None
        R, t = fact.second_value[:, :3], fact.second_value[:, 3]
        return replace(fact, candidates=known, second_value=np.concatenate([R.T, -(R.T @ t)[:, None]], axis=1))

    def _exchange_frames(self, candidate: Candidate, fact: Fact) -> Candidate | None:
        if not MotionEvidence.of(candidate).poses():  # it was named or combined, and no frames are behind it
            return replace(candidate, value=np.full((3, 4), np.nan))
        stored, (first, second) = MotionEvidence.of(candidate), candidate.frame_ids
        camera = stored.camera_1
        if camera is None and first in fact.cameras:
            camera = read_camera_record(fact.cameras[first])
        if camera is None:
            return None
        of_first, of_second = self.list_poses(fact, candidate)
        moved = poses.transform(poses.relative_pose(of_first, of_second), stored.points_m)
        turned = stored.with_fields(points_m=np.round(moved, 3), camera_1=stored.camera_2, camera_2=camera)
        value = self.rounded(poses.relative_pose(of_second, of_first)[:3])
        return Candidate(f"frames:{second}-{first}", value, (second, first), candidate.show, turned.write())

    def _make_pictures(self, fact: Fact) -> tuple[Picture, ...]:
        return tuple(Picture(fact.pictures[frame_id]) for frame_id in fact.truth_candidate.frame_ids)

    def _make_slots(self, fact: Fact) -> dict[str, str]:
        first, second = (fact.cameras[frame_id] for frame_id in fact.truth_candidate.frame_ids)
        return make_camera_slots(first, second)


def measure_claim_errors(values: FloatArray, claimed: FloatArray) -> FloatArray:
    """(n,) error of a claimed pose (3, 4) over the stated tolerances, were each of values (n, 3, 4) the truth; all
    in the direction of `MotionTask.as_stated`."""
    chords = np.linalg.norm((values[:, :, :3] - claimed[:, :3]).reshape(-1, 9), axis=1) / (2 * np.sqrt(2))
    turns_deg = np.degrees(2 * np.arcsin(np.minimum(chords, 1.0)))
    shifts_m = np.linalg.norm(values[:, :, 3] - claimed[:, 3], axis=1)
    return np.asarray(np.maximum(turns_deg / CLAIM_ROTATION_DEG, shifts_m / CLAIM_TRANSLATION_M))
