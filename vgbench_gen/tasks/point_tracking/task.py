"""Which marked point of image 2 is the marked point of image 1 (VGBench, SpatialScore section D.2).

A point that both frames see is drawn and marked in image 1. Wrong options are other places of image 2 that could have
been the answer by where they lie: the query moved as tracked points of other pairs of the scene moved
(`track_decoys`). Gates and margins: `docs/validity.md#point-tracking`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import Candidate, Fact, FloatArray, QuestionType, Rejected
from vgbench_gen.distractors.base import OptionSet, compatibility
from vgbench_gen.geometry import poses, projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS, CROSSHAIR, SHAPES
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _poses
from vgbench_gen.tasks._noise import perturb_motions
from vgbench_gen.tasks._pairs import PairTable, Problem, collect_poses, get_pair_table
from vgbench_gen.tasks.base import SECOND_ROUTE_SHARE, OwnGates, Task, add_margins, reject, tasks
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.gates import TrackGates
from vgbench_gen.tasks.point_tracking import rules, track_decoys, track_looks, tracked
from vgbench_gen.tasks.point_tracking.evidence import (
    ImagesEvidence,
    PlaceEvidence,
    TrackedEvidence,
    check_tracks,
)
from vgbench_gen.tasks.point_tracking.rules import RULES, SOLVERS
from vgbench_gen.tasks.presentation import Claim, ClaimPair, Mark, Presentation, WorldPoint
from vgbench_gen.tasks.revealed import Revealed, RevealedTrack
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.marks import list_marks, name_mark
from vgbench_gen.text.numbers import format_point
from vgbench_gen.text.render import fill_word

_DRAWN, _CONFIRMED_MIN = 16, 4  # points of a pair that go through the second route, of which about a third fails
_FEWEST_PAIRS = 12  # tracked for their motions even where fewer facts are wanted


@dataclass(frozen=True, slots=True, eq=False)
class _Tracked:
    """A gated pair of frames with its tracked points."""

    i: int
    j: int
    number: int
    """The number of the pair in `track_decoys.Motions`."""
    found: tracked.Tracks
    """The points that passed every gate."""
    tried: list[int]
    """The rows of `found` on which the second route was tried."""
    rows: list[int]
    """Those of the rows tried on which the second route agrees."""


@tasks.register("point_tracking")
class PointTracking(Task):
    """See the module. Values are (2,) integer pixels of image 2."""

    needs_meters = False
    name = "point_tracking"
    version = 9
    formats: ClassVar[tuple[QuestionType, ...]] = ("judgment", "multi-choice")
    unit = "px"
    input_modality = "multi-images"
    category, subcategory = "Point and Object Tracking", "3D Tracking"
    category_origin: ClassVar[Mapping[str, str]] = dict.fromkeys(formats, "tracking_vqa_pairs")
    convention: ClassVar[Mapping[str, str]] = {"pixel": "centre of the top-left pixel is (0, 0)", "unit": "px"}
    candidate_draws = 40
    options_max = len(SHAPES)  # of marks, none of which may look like another or like the query's
    limits = OwnGates(TrackGates)
    fact_evidence = ImagesEvidence
    candidate_evidence = PlaceEvidence
    checks = (check_tracks,)
    solvers = SOLVERS
    image_rules = RULES
    paper_column = "Tracking"

    def count_hops(self, fact: Fact) -> int:
        """The point and the pair of views."""
        return 2

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """One fact per unordered pair, its direction drawn."""
        table, motions = get_pair_table(view), track_decoys.Motions()
        source = self._track_pairs(table, view, rng, max(limit, _FEWEST_PAIRS))
        made, known = 0, 0
        while made < limit:
            waiting: list[_Tracked] = []
            while known < _FEWEST_PAIRS or made + len(waiting) < limit:
                found = next(source, None)
                if found is None:
                    break
                if isinstance(found, Rejected):
                    yield found
                    continue
                motions.add(found.number, found.found, found.tried, found.rows)
                motions.add_looks(found.number, found.found, found.rows, view)
                waiting.append(found)
                known += 1
            if not waiting:
                break
            for pair in waiting[: limit - made]:
                draft = self._make_draft(table, view, pair, motions, rng)
                made += isinstance(draft, Fact)
                where = f"{pair.found.first.id}-{pair.found.second.id}"
                yield draft if isinstance(draft, Fact) else reject(self, view, where, *draft)
        track_looks.GROUNDS.clear()  # other tasks need the memory

    def _track_pairs(
        self, table: PairTable, view: SceneView, rng: np.random.Generator, most: int
    ) -> Iterator[_Tracked | Rejected]:
        """Pairs with points that could be asked about, none hardly different from an earlier one."""
        used: list[tuple[int, int]] = []
        for first, second in table.propose_pairs(view.gates.pair, rng)[: 6 * most]:
            i, j = (first, second) if rng.random() < 0.5 else (second, first)
            a, b = view.frames[i], view.frames[j]
            problem = table.find_problem(i, j, view.gates.pair)
            if problem is None and table.is_taken(i, j, used):
                problem = ("pair_alike", float("nan"), float("nan"))
            if problem is None:
                found = tracked.find_tracks(a, b, view, self.limits)
                drawn = rng.permutation(len(found.uv_a))[:_DRAWN].tolist()
                targets = self.rounded(found.uv_b)
                rows = [k for k in drawn if self._confirm(a, b, found.uv_a[k], targets[k], view) is not None]
                if len(rows) >= _CONFIRMED_MIN:
                    used.append((i, j))
                    yield _Tracked(i, j, len(used), found, drawn, rows)
                    continue
                scarce = len(drawn) < _CONFIRMED_MIN
                problem = f"points_{found.scarce}" if scarce else "points_unconfirmed", float(len(rows)), _CONFIRMED_MIN
            yield reject(self, view, f"{a.id}-{b.id}", *problem)

    def _make_draft(
        self, table: PairTable, view: SceneView, pair: _Tracked, motions: track_decoys.Motions, rng: np.random.Generator
    ) -> Fact | Problem:
        i, j, found = pair.i, pair.j, pair.found
        a, b = found.first, found.second
        most, look = 0, cache(partial(track_looks.look_for, found, view))
        for loose, k in itertools.product(track_decoys.LOOSE, pair.rows):
            there = track_decoys.find_wrong_places(found, k, look(k), pair.number, motions, self.limits, rng, loose)
            most = max(most, len(there.uv_px))
            if len(there.uv_px) >= track_decoys.DECOYS_MIN:
                break
        else:
            return "decoys_few", float(most), track_decoys.DECOYS_MIN
        truth = self._make_candidate(found, k, there.own_look)
        images = ImagesEvidence(
            diagonal_px=b.camera.diagonal_px,
            camera_1=a.camera,
            camera_2=b.camera,
            world_from_camera=collect_poses(a, b),
            pair=table.evidence(i, j),
        )
        fact = self.new_fact(view, (truth, *track_decoys.make_decoys(there)), frame_ids=(a.id, b.id), evidence=images)
        margins = table.margins(i, j, self.gates)
        margins.at_least("motion", found.motion_d[k], self.limits.motion_min_d)
        margins.at_most("cycle", found.cycle_px_at_640[k], self.limits.cycle_max_px_at_640)
        return add_margins(fact, f"{a.id}-{b.id}/{truth.key}", margins.ratios)

    def _make_candidate(self, tracks: tracked.Tracks, k: int, look: FloatArray) -> Candidate:
        u, v = (int(x) for x in tracks.uv_a[k])
        evidence = TrackedEvidence(
            z_1_m=float(tracks.z_a[k]),
            uv_2_px=tracks.uv_b[k],
            point_2_m=np.round(tracks.points_b_m[k], 4),
            look=np.round(look, 3),
            cycle_px_at_640=round(float(tracks.cycle_px_at_640[k]), 4),
            motion_d=round(float(tracks.motion_d[k]), 3),
        ).write()
        return Candidate(f"point:{u},{v}", self.rounded(tracks.uv_b[k]), (), {"query": [u, v]}, evidence)

    def _confirm(
        self, a: ViewFrame, b: ViewFrame, query: FloatArray, target: FloatArray, view: SceneView
    ) -> FloatArray | None:
        """Where the second route leads, or None where it does not agree."""
        try:
            second = self._take_second_route(a, b, query, target, view)
        except GeometryError:
            return None
        allowed_px = SECOND_ROUTE_SHARE * self.limits.gap_min_d / 100 * b.camera.diagonal_px
        return second if np.linalg.norm(second - target) <= allowed_px else None

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        return rules.read_text_cues(fact, options)

    def read_image_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        return rules.read_image_cues(fact, options)

    def published(self, fact: Fact, count: int, rng: np.random.Generator) -> list[Candidate] | None:
        """v2's rule 12: random points of image 2. Nothing is known of them; they are put as deep as the truth."""
        camera, truth = ImagesEvidence.of(fact).camera_2, TrackedEvidence.of(fact.truth_candidate)
        found = []
        for _ in range(count):
            uv_px = self.rounded(rng.uniform(0, [camera.width - 1, camera.height - 1]))
            point_m = projection.back_project(camera, uv_px, np.array(truth.point_2_m[2]))
            evidence = PlaceEvidence(point_2_m=np.round(point_m, 4), look=truth.look).write()
            found.append(Candidate("published:{:.0f},{:.0f}".format(*uv_px), uv_px, (), {"query": None}, evidence))
        return found

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """Where the pixels themselves put the query in image 2, after the second frame's depth has led back to it."""
        a, b = (view.frame(frame_id) for frame_id in fact.frame_ids)
        truth = fact.truth_candidate
        return self._take_second_route(a, b, np.array(truth.show["query"], dtype=np.float64), truth.value, view)

    def _take_second_route(
        self, a: ViewFrame, b: ViewFrame, query: FloatArray, target: FloatArray, view: SceneView
    ) -> FloatArray:
        allowed_px = SECOND_ROUTE_SHARE * self.limits.gap_min_d / 100 * a.camera.diagonal_px
        seen = tracked.carry_into(b, a, target)
        where = f"{a.id}-{b.id}: pixel {target.tolist()}"
        if not np.linalg.norm(seen.uv_back - query) <= allowed_px:
            raise GeometryError(f"{where}: the second depth image leads elsewhere in the first image")
        z_query_m = float(a.depth_at(query))
        if not abs(seen.z_back_m - z_query_m) <= view.tolerance.of(z_query_m):
            raise GeometryError(f"{where}: the first image shows another surface there")
        return tracked.match_pixel(a, b, query, target, seen)

    def recompute(self, fact: Fact) -> FloatArray:
        """Homogeneous pixels: x2 ~ K2 (R K1^-1 x1 z + t), the pose composed by quaternions."""
        truth = fact.truth_candidate
        images, z_m = ImagesEvidence.of(fact), TrackedEvidence.of(truth).z_1_m
        motion = _poses.compute_by_quaternions(*images.list_poses(fact.frame_ids))
        x_1 = np.array([*truth.show["query"], 1.0])
        x_2 = images.camera_2.K @ (motion[:, :3] @ np.linalg.solve(images.camera_1.K, x_1) * z_m + motion[:, 3])
        return self.rounded(x_2[:2] / x_2[2])

    def metric(self, a: FloatArray, b: FloatArray, fact: Fact) -> float:
        """Distance in image 2, pixels."""
        return float(np.linalg.norm(a - b))

    def rounded(self, value: FloatArray) -> FloatArray:
        """Integer pixels; adding 0 turns a negative zero into zero."""
        nearest: FloatArray = np.floor(np.asarray(value, dtype=np.float64) + 0.5) + 0.0
        return nearest

    def printed(self, value: FloatArray) -> str:
        """ "(u, v)"."""
        return format_point(value)

    def pair_margins(self, candidates: Sequence[Candidate], fact: Fact) -> tuple[FloatArray, FloatArray]:
        """Apart in image 2 and in space, both over their margins. There is no ceiling."""
        gates, diagonal_px = self.limits, ImagesEvidence.of(fact).diagonal_px
        uv_px = np.stack([candidate.value for candidate in candidates])
        points_m = np.stack([PlaceEvidence.of(candidate).point_2_m for candidate in candidates])
        apart_px = np.linalg.norm(uv_px[:, None] - uv_px, axis=-1)
        apart_m = np.linalg.norm(points_m[:, None] - points_m, axis=-1)
        apart = np.minimum(100 * apart_px / diagonal_px / gates.gap_min_d, apart_m / gates.gap_min_m)
        return apart, np.zeros_like(apart)

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """Pixels apart over a fifth of the margin."""
        gap_d = 100 * self.metric(fact.truth_candidate.value, second, fact) / ImagesEvidence.of(fact).diagonal_px
        return gap_d / self.limits.gap_min_d / SECOND_ROUTE_SHARE

    def could_be_true(self, fact: Fact, options: Sequence[Candidate], truth: int) -> list[int]:
        """Image 1 shows the query alone, and no other option is its point."""
        return [truth]

    def noisy_values(
        self, fact: Fact, about: Candidate, noise: SensorNoise, rng: np.random.Generator, n: int
    ) -> FloatArray:
        """Where the query's point lies in image 2 if its depth and the cameras' motion are off."""
        images, z_m = ImagesEvidence.of(fact), TrackedEvidence.of(about).z_1_m
        depth_m = np.maximum(z_m + noise.depth_sigma_m(z_m) * rng.standard_normal(n), 0.0)
        points = projection.back_project(images.camera_1, np.broadcast_to(about.show["query"], (n, 2)), depth_m)
        motions = perturb_motions(poses.relative_pose(*images.list_poses(fact.frame_ids)), noise, rng, n)
        moved = (motions[:, :, :3] @ points[..., None])[..., 0] + motions[:, :, 3]
        return projection.project(images.camera_2, moved)[0]

    def gaps(self, values: FloatArray, options: Sequence[Candidate], about: Candidate, fact: Fact) -> FloatArray:
        """See `NoiseTest`; pixels of image 2."""
        told = np.stack([option.value for option in options])
        return np.asarray(np.linalg.norm(told[:, None] - values, axis=2))

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """Where the point is in the second image."""
        truth = fact.truth_candidate
        seen = RevealedTrack(
            first=0,
            second=1,
            first_px=np.array(truth.show["query"], dtype=np.float64),
            second_px=TrackedEvidence.of(truth).uv_2_px,
            allowed_px=self.limits.gap_min_d / 200 * ImagesEvidence.of(fact).diagonal_px,
        )
        return super().reveal(fact, row).with_fields(tracks=[seen])

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """How the point is carried from one camera to the other."""
        images, truth = ImagesEvidence.of(fact), fact.truth_candidate
        motion, z_m = pen.find_motion(*images.list_poses(fact.frame_ids)), TrackedEvidence.of(truth).z_1_m
        query = np.array(truth.show["query"], dtype=np.float64)
        if pen.exact:
            point_m = motion @ [*(np.linalg.solve(images.camera_1.K, [*query, 1.0]) * z_m), 1.0]
            uv_px = (images.camera_2.K @ point_m / point_m[2])[:2]
        else:
            point_m = motion @ [*projection.back_project(images.camera_1, query, np.array(z_m)), 1.0]
            uv_px = projection.project(images.camera_2, point_m)[0]
        marks = {place: name for name, place in pen.row.locate_marks().items()}
        told = pen.tell_motion(motion) | {
            "spot": pen.spot(point_m),
            "depth": pen.say("m", z_m),
            "end": pen.point(uv_px),
        }
        told |= {"point": format_point(query), "color": pen.word(f"color.{self._choose_color(fact)}")}
        claimed = truth.value if pen.row.claim is None else pen.row.claim.value
        return told | {"mark": marks[tuple(truth.value)], "claimed": marks[tuple(claimed)]}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The query, and where its 3D point and those of the decoys lie in the second image."""
        truth = fact.truth_candidate
        query = Mark("point", (tuple(truth.show["query"]),), "query")
        claimed = [] if row.claim is None or row.claim.holds else [row.claim.candidate()]
        marks = [
            Mark("point", (tuple(option.value.tolist()),), right=option.key == truth.key)
            for option in (*fact.candidates, *claimed)
        ]
        return [[query], marks]

    def world_points(self, fact: Fact) -> tuple[WorldPoint, ...]:
        """The tracked point and those of the wrong options, which image 2 shows."""
        pose, truth = self.stored_poses(fact)[fact.frame_ids[1]], fact.truth_candidate
        stored = [(option, PlaceEvidence.of(option).point_2_m) for option in fact.candidates]
        return tuple(
            WorldPoint("query" if option is truth else "", poses.transform(pose, point_m[None])[0], option is truth)
            for option, point_m in stored
        )

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """Colours and shapes in image 2 are drawn, so that none goes with a letter."""
        marks = self._draw_marks(fact, options.options, rng)
        return Presentation(*self._show(fact, marks), tuple(map(name_mark, marks)))

    def claim_pair(self, fact: Fact, rng: np.random.Generator) -> ClaimPair | None:
        """Two marks; the true claim names the target's, the false one the other."""
        beside = compatibility(fact.candidates, fact, self)[fact.truth]
        others = [k for k in np.flatnonzero(beside).tolist() if k != fact.truth]
        if not others:
            return None
        truth, decoy = fact.truth_candidate, fact.candidates[rng.choice(others)]
        marks = self._draw_marks(fact, (truth, decoy), rng)
        separations = (0.0, self.margin_ratio(truth, decoy, fact))
        true, false = (
            Claim({"mark": name_mark(mark)}, member.value, separation, member.key)
            for member, mark, separation in zip((truth, decoy), marks, separations, strict=True)
        )
        return ClaimPair(*self._show(fact, marks), true, false, 0.0)

    def _draw_marks(
        self, fact: Fact, members: Sequence[Candidate], rng: np.random.Generator
    ) -> list[Mapping[str, Any]]:
        """A mark around each member's pixel of image 2, whatever their order; none looks like the query's."""
        colors = rng.permutation([color for color in COLORS if color != self._choose_color(fact)]).tolist()
        places = [[int(x) for x in member.value] for member in members]
        looks = list(zip(sorted(places), colors, rng.permutation(SHAPES).tolist(), strict=False))
        marks = [{"op": "point", "uv": uv, "color": color, "shape": shape} for uv, color, shape in looks]
        return [next(mark for mark in marks if mark["uv"] == uv) for uv in places]

    def _show(self, fact: Fact, marks: Sequence[Mapping[str, Any]]) -> tuple[tuple[Picture, ...], dict[str, str]]:
        """Pictures and slots. Marks are drawn and listed in the order of their colours, which tells nothing."""
        color, query = self._choose_color(fact), list(fact.truth_candidate.show["query"])
        listed = sorted(marks, key=lambda mark: str(mark["color"]))
        drawn = ({"op": "point", "uv": query, "color": color, "shape": CROSSHAIR},), tuple(listed)
        pictures = (Picture(fact.pictures[id_], ops) for id_, ops in zip(fact.frame_ids, drawn, strict=True))
        return tuple(pictures), {
            "color": fill_word(f"color.{color}"),
            "point": format_point(query),
            "points": list_marks(listed, [format_point(mark["uv"]) for mark in listed]),
        }

    @staticmethod
    def _choose_color(fact: Fact) -> str:
        # By place, so that every format and seed of this fact shows the same first picture.
        u, v = fact.truth_candidate.show["query"]
        return tuple(COLORS)[int(u + v) % len(COLORS)]
