"""Which of four framed rectangles of image 2 frames the object that is framed in image 1.

All are objects of the scan that image 2 shows as well as the right one, by the same gates, and none of their rectangles
lies in another one. Sets are drawn by weights under which the right rectangle is like the others in place and size, and
in how it compares with the one in image 1 (`_balance`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates
from vgbench_gen.core.noise import SensorNoise
from vgbench_gen.core.types import BoolArray, Candidate, Fact, FloatArray, IntArray, Rejected
from vgbench_gen.distractors.base import OptionSet
from vgbench_gen.geometry import boxes, poses, projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.drawing import COLORS
from vgbench_gen.store.pictures import Picture
from vgbench_gen.tasks import _balance
from vgbench_gen.tasks._noise import perturb_motions
from vgbench_gen.tasks._object_evidence import ObjectEvidence, compare_with_rect, reveal_object
from vgbench_gen.tasks._objects import GatedObject, list_seen_objects
from vgbench_gen.tasks._poses import reveal_pose
from vgbench_gen.tasks.base import Problems, add_margins, reject, tasks
from vgbench_gen.tasks.evidence import Evidence, Pose
from vgbench_gen.tasks.explaining import Explainer
from vgbench_gen.tasks.kind import LOOKS_APART_BITS, Measured
from vgbench_gen.tasks.marks import DECOYS, MarkedPlace, MarksTask, SetsEvidence
from vgbench_gen.tasks.places import POINTS_MIN, disturb_box
from vgbench_gen.tasks.presentation import Mark, Presentation
from vgbench_gen.tasks.records import read_camera_record
from vgbench_gen.tasks.revealed import Revealed
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.tasks.solving import ImageRule, NoSolver, Unread, VisibleQuestion
from vgbench_gen.text.marks import name_mark
from vgbench_gen.text.render import fill_word

FRAMES_MAX, PAIRS_MAX = 32, 60  # looked at in a scene, and weighed together
USES_MAX = 3  # of an object in a scene
SETS = 60  # drawn for a fact, some more than once; what is alike in shape is rarely another object
MORE_MAX = 2  # of the facts of a scene with one rank by a likeness than with another; fewer leave few facts
OVERLAP_MAX = 0.5  # of two rectangles, as a share of the smaller one
INSIDE_MIN, INSIDE_GAP = 0.8, 0.3  # share of the warped object in its rectangle, and by how much it is less in others


class MatchEvidence(Evidence):
    """What is kept of a rectangle of image 2 beside the object that is asked about."""

    query: ObjectEvidence
    """The object that image 1 frames."""
    motion: Pose
    """The second camera's frame from the first one's, meters."""
    seen: ObjectEvidence
    """The object that the rectangle frames, in the second camera's frame."""


def compare_rects(query: FloatArray, rects: FloatArray) -> FloatArray:
    """(..., 6) how rectangles of image 2 compare with that of image 1, (..., 4), all over the size of their image: the
    middle, its distance, logarithms of area and shape as sizes of their differences, and that of the area."""
    (low, high), (others_low, others_high) = np.split(query, 2, axis=-1), np.split(rects, 2, axis=-1)
    moved, sides, others = (
        (others_low + others_high - low - high) / 2,
        np.log(high - low),
        np.log(others_high - others_low),
    )
    area, shape = (others - sides).sum(axis=-1), np.diff(others - sides, axis=-1)[..., 0]
    return np.stack(
        [*np.moveaxis(moved, -1, 0), np.linalg.norm(moved, axis=-1), np.abs(area), np.abs(shape), area], axis=-1
    )


def check_match(fact: Fact, gates: Gates) -> Problems:
    """Objects project onto the rectangles drawn, the motion is that between the stored poses, and only the truth is the
    object that is asked about."""
    first, second = (read_camera_record(fact.cameras[frame_id]) for frame_id in fact.frame_ids)
    motion = poses.relative_pose(*SetsEvidence.of(fact).list_poses(fact.frame_ids))
    found: Problems = []
    for option in fact.candidates:
        stored = MatchEvidence.of(option)
        found += compare_with_rect(f"{option.key} query", stored.query.corners_m, option.show["query"], first)
        found += compare_with_rect(option.key, stored.seen.corners_m, option.show["rect"], second)
        if not np.abs(motion - stored.motion).max() <= 1e-6:
            found.append(("motion", f"{option.key}: not the motion between the stored poses"))
        if (stored.seen.instance_id == stored.query.instance_id) != (option is fact.truth_candidate):
            found.append(("instance", f"{option.key}: frames object {stored.seen.instance_id}"))
    return found


def _score_by(measure: int) -> Any:
    def score(seen: VisibleQuestion) -> FloatArray:
        """By how little a rectangle differs from the one of image 1."""
        query = [place for name, place in seen.marks.items() if name not in seen.options]
        if len(query) != 1 or not set(seen.options) <= set(seen.marks):
            raise Unread(f"options {seen.options} of {sorted(seen.marks)}")
        size = np.tile(seen.images[1].size, 2)
        rects = np.array([seen.marks[name] for name in seen.options]) / size
        return -compare_rects(np.array(query[0]) / size, rects)[:, measure]

    return score


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Two frames with the sets that may be asked."""

    first: ViewFrame
    second: ViewFrame
    queries: Mapping[str, GatedObject]
    """Objects of the first frame by their ids."""
    found: Sequence[GatedObject]
    """Objects of the second frame."""
    rows: list[list[int]]
    """Sets of places in `found`, the right one first."""
    ranks: IntArray
    """(S, 3) how many others of each set are more like the rectangle of image 1 in place, in size and in shape than the
    right one."""
    differs: FloatArray
    """(S, d) by how much the right one of each set differs from the others in all that is balanced."""

    def looks_like(self, others: Sequence[_Pair]) -> bool:
        """Whether a frame of it looks like that of another one which stands in the same place, or both are the same."""
        return any(
            {self.first, self.second} == {other.first, other.second}
            or (self.first.look ^ other.first.look).bit_count() < LOOKS_APART_BITS
            or (self.second.look ^ other.second.look).bit_count() < LOOKS_APART_BITS
            for other in others
        )


@tasks.register("box_match")
class BoxMatch(MarksTask):
    """See the module. The score of a rectangle is 1 less the distance of both centres over the diagonal of the box."""

    name, by_default = "box_match", False
    input_modality = "multi-images"
    needs_objects = True
    category, subcategory = "Point and Object Tracking", "3D Tracking"
    candidate_draws = 60
    asked = "which rectangle of the second image frames the same object"
    convention: ClassVar = {"regions": "xyxy_inclusive"}
    margins: ClassVar = {"gap_min": 0.4, "visible_min": 0.3, "inside_min": 0.6, "share_min": 0.3}
    candidate_evidence = MatchEvidence
    checks = (check_match,)
    solvers = NoSolver("Programs that match points find few on small objects; rules and cues are reported.")
    image_rules = tuple(
        ImageRule(f"most alike in {look}", _score_by(n)) for n, look in ((2, "place"), (3, "size"), (4, "shape"))
    )

    def find_places(self, frame: ViewFrame, view: SceneView) -> tuple[Sequence[MarkedPlace], Mapping[str, int]]:
        """None: places depend on the other frame."""
        return (), {}

    def drafts(self, view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Fact | Rejected]:
        """At most one fact of each two frames. None, one, two or three others are more like the asked one in place, and
        so in size and in shape, about equally often."""
        limits = self.limits
        loose = {name: getattr(limits, name) for name in ("visible_min", "inside_min", "share_min")}
        seen = [(frame, list_seen_objects(frame, view, **loose)) for frame in view.distinct_frames(rng)[:FRAMES_MAX]]
        pairs: list[_Pair] = []
        for k in rng.permutation(len(seen) ** 2).tolist():
            (first, queries), (second, found) = seen[k // len(seen)], seen[k % len(seen)]
            if first is second or len(pairs) >= PAIRS_MAX:
                continue
            pair = self._find_sets(first, second, queries, found, rng)
            if pair.rows:
                pairs.append(pair)
            else:
                yield reject(self, view, f"{first.id}-{second.id}", "no_option_set", len(found), DECOYS + 1)
        uses: defaultdict[str, list[_Pair]] = defaultdict(list)
        made, ranked = 0, np.zeros((3, DECOYS + 1), int)
        for pair, weight in zip(pairs, _balance.weights([pair.differs for pair in pairs]), strict=True):
            if made >= limit:
                return
            asked = [pair.found[row[0]].instance_id for row in pair.rows]
            taken = {name for name, others in uses.items() if len(others) >= USES_MAX or pair.looks_like(others)}
            more = ranked[np.arange(3), pair.ranks] - ranked.min(axis=1)
            wanted = (more < MORE_MAX).all(axis=1)
            free = wanted & [name not in taken for name in asked]
            if free.any():
                first = rng.choice(len(asked), p=_share(weight, free))
                same = (pair.ranks == pair.ranks[first]).all(axis=1) & [name == asked[first] for name in asked]
                others = rng.choice(len(asked), SETS - 1, p=_share(weight, same)).tolist()
                uses[asked[first]].append(pair)
                made += 1
                ranked[np.arange(3), pair.ranks[first]] += 1
                yield self._match(view, pair, [pair.rows[k] for k in (int(first), *others)])

    def _find_sets(
        self,
        first: ViewFrame,
        second: ViewFrame,
        queries: Sequence[GatedObject],
        found: Sequence[GatedObject],
        rng: np.random.Generator,
    ) -> _Pair:
        """Sets of objects of image 2 with one first that image 1 shows, whose rectangles and centres are all apart."""
        rects = np.array([one.rect_px for one in found], dtype=np.float64).reshape(-1, 4)
        low, high = np.maximum(rects[:, None, :2], rects[:, :2]), np.minimum(rects[:, None, 2:], rects[:, 2:])
        area = (rects[:, 2:] - rects[:, :2]).prod(axis=1)
        apart = np.maximum(high - low, 0).prod(axis=2) <= OVERLAP_MAX * np.minimum(area[:, None], area)
        by_name = {one.instance_id: one for one in queries}
        centres_m = np.array([one.box.center_m for one in found]).reshape(-1, 3)
        reach_m = np.array([np.linalg.norm(one.box.size_m) for one in found])
        far = np.linalg.norm(centres_m[:, None] - centres_m, axis=2) >= self.limits.gap_min * reach_m[:, None]
        shown = np.array([one.instance_id in by_name for one in found], dtype=bool)
        rows = (
            _balance.drawn_sets(apart & far & shown[:, None], DECOYS, rng)
            if len(found) > DECOYS
            else np.zeros((0, 4), int)
        )
        rows = rows[[bool(apart[np.ix_(row, row)][np.triu_indices(len(row), 1)].all()) for row in rows]]
        asked = np.array([by_name[found[k].instance_id].rect_px for k in rows[:, 0]], dtype=np.float64).reshape(
            -1, 1, 4
        )
        if not len(rows):
            return _Pair(first, second, by_name, found, [], np.zeros((0, 3), int), np.zeros((0, 1)))
        beside = compare_rects(asked / np.tile(first.camera.size, 2), rects[rows] / np.tile(second.camera.size, 2))
        rank = (beside[:, :1, 2:5] > beside[:, 1:, 2:5]).sum(axis=1)
        place = _balance.traits(rects[rows], second.camera.size)
        differs = np.concatenate([place, beside[:, 0] - beside.mean(axis=1)], axis=1)
        return _Pair(first, second, by_name, found, rows.tolist(), rank, differs)

    def _match(self, view: SceneView, pair: _Pair, rows: list[list[int]]) -> Fact:
        picked = list(dict.fromkeys(k for row in rows for k in row))
        truth = pair.found[picked[0]]
        query = pair.queries[truth.instance_id]
        stored = {frame.id: frame.world_from_camera for frame in (pair.first, pair.second)}
        motion = poses.relative_pose(*stored.values())
        candidates = []
        for one in (pair.found[k] for k in picked):
            seen = MatchEvidence(query=query.evidence(), motion=motion, seen=one.evidence())
            candidates.append(
                Candidate(
                    f"object:{one.instance_id}",
                    np.array([self.value(seen)]),
                    show={"rect": list(one.rect_px), "query": list(query.rect_px)},
                    evidence=seen.write(),
                )
            )
        self._check_draws(MatchEvidence.of(candidates[0]))
        told = SetsEvidence(sets=[[picked.index(k) for k in row[1:]] for row in rows], world_from_camera=stored)
        fact = self.new_fact(view, candidates, frame_ids=tuple(stored), evidence=told)
        key = f"{pair.first.id}-{pair.second.id}/{candidates[0].key}"
        return add_margins(fact, key, {name: float(ratio) for name, ratio in query.margins.items()})

    def value(self, seen: MatchEvidence) -> FloatArray:
        """See the class."""
        query_m = seen.query.corners_m
        centre_m = query_m.mean(axis=-2)
        moved_m = (seen.motion[..., :3, :3] @ centre_m[..., None])[..., 0] + seen.motion[..., :3, 3]
        off_m = np.linalg.norm(moved_m - seen.seen.corners_m.mean(axis=-2), axis=-1)
        return np.asarray(1 - off_m / (2 * np.linalg.norm(query_m[..., 0, :] - centre_m, axis=-1)))

    def second(self, view: SceneView, measured: Measured) -> float:
        """Share of what image 1 measures in the box of its object that lies in the rectangle, of what image 2 sees."""
        return self._measure_shares(view, measured.frames, measured.evidence, [measured.marks["rect"]])[0]

    def _measure_shares(
        self, view: SceneView, frames: Sequence[ViewFrame], seen: MatchEvidence, rects: Iterable[Sequence[int]]
    ) -> list[float]:
        first, second = frames
        box = next(item.box for item in view.objects if item.instance_id == seen.query.instance_id)
        points_m = projection.back_project_depth(first.depth_camera, first.depth_m)[0]
        points_m = poses.transform(first.world_from_camera, points_m)
        points_m = points_m[boxes.contains(box, points_m, view.tolerance.absolute_m)]
        uv_px, z_m = projection.project(second.camera, poses.transform(second.camera_from_world, points_m))
        inside = (z_m > 0) & projection.is_in_image(second.camera, uv_px)
        uv_px, z_m = uv_px[inside], z_m[inside]
        there_m = second.depth_at(uv_px)
        uv_px = uv_px[(there_m > 0) & (np.abs(z_m - there_m) <= view.tolerance.of(z_m))]
        if len(uv_px) < POINTS_MIN:
            raise GeometryError(f"{second.id}: {len(uv_px)} points of image 1 are seen")
        return [float(((uv_px >= rect[:2]) & (uv_px <= rect[2:])).all(axis=1).mean()) for rect in rects]

    def recheck(self, fact: Fact, view: SceneView) -> FloatArray:
        """What `second` gives of the truth, which must be clearly more than of any other rectangle."""
        frames, seen = [view.frame(frame_id) for frame_id in fact.frame_ids], MatchEvidence.of(fact.truth_candidate)
        shares = self._measure_shares(view, frames, seen, (one.show["rect"] for one in fact.candidates))
        others = max(share for k, share in enumerate(shares) if k != fact.truth)
        if shares[fact.truth] - others < INSIDE_GAP:
            raise GeometryError(f"{fact.key}: {shares[fact.truth]:.2f} of it in its rectangle, {others:.2f} in another")
        return np.array([shares[fact.truth]])

    def agreement(self, second: FloatArray, fact: Fact) -> float:
        """The share outside the rectangle over what is allowed."""
        return float((1 - second[0]) / (1 - INSIDE_MIN))

    def disturb(self, seen: MatchEvidence, noise: SensorNoise, rng: np.random.Generator, n: int) -> MatchEvidence:
        """Both boxes as (n, 8, 3) and the motion as (n, 3, 4), each with errors of its own."""
        moved = {
            name: one.model_copy(update={"corners_m": disturb_box(one, noise, rng, n)})
            for name, one in (("query", seen.query), ("seen", seen.seen))
        }
        return seen.model_copy(update={**moved, "motion": perturb_motions(seen.motion, noise, rng, n)})

    def read_text_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 13) where each rectangle lies, and how it compares with that of image 1."""
        return np.column_stack([super().read_text_cues(fact, options), _compare(fact, options)])

    def read_image_cues(self, fact: Fact, options: Sequence[Candidate]) -> FloatArray:
        """(n, 3) how like the rectangle of image 1 each is in place, size and shape."""
        return -_compare(fact, options)[:, 2:5]

    def choice(self, fact: Fact, options: OptionSet, rng: np.random.Generator) -> Presentation:
        """Colors of the rectangles in image 2 are drawn, whatever the order of the options, which name them."""
        query = fact.truth_candidate.show["query"]
        own = tuple(COLORS)[sum(query) % len(COLORS)]  # the same for every draw of options
        rects = [option.show["rect"] for option in options.options]
        colors = rng.permutation([color for color in COLORS if color != own]).tolist()
        color_of = {str(rect): color for rect, color in zip(sorted(rects), colors, strict=False)}
        ops = [{"op": "region", "rect": rect, "color": color_of[str(rect)]} for rect in rects]
        first, second = (fact.pictures[frame_id] for frame_id in fact.frame_ids)
        asked = Picture(first, ({"op": "region", "rect": query, "color": own},))
        shown = Picture(second, tuple(sorted(ops, key=lambda op: str(op["color"]))))
        slots = {"color": fill_word(f"color.{own}"), "count": fill_word(f"number.n{len(rects)}")}
        return Presentation((asked, shown), slots, tuple(map(name_mark, ops)))

    def reveal(self, fact: Fact, row: RowEvidence) -> Revealed:
        """The cameras, their motion, and the objects in all rectangles."""
        truth = fact.truth_candidate
        stored, allowed = MatchEvidence.of(truth), 1.1
        objects = [reveal_object(stored.query, truth.show["query"], allowed)] + [
            reveal_object(MatchEvidence.of(one).seen, one.show["rect"], allowed, image=1) for one in fact.candidates
        ]
        motions = [reveal_pose(stored.motion, self.gates.pair.rotation_min_deg / 2, 15.0)]
        return super().reveal(fact, row).with_fields(objects=objects, motions=motions)

    def explain(self, fact: Fact, pen: Explainer) -> dict[str, str]:
        """Where the object is for each camera, and how far the objects in the regions are from there."""
        start_m = pen.find_middle(MatchEvidence.of(fact.truth_candidate).query.corners_m)
        end_m = pen.find_motion(*SetsEvidence.of(fact).list_poses(fact.frame_ids)) @ [*start_m, 1.0]
        (query, _), *marks = pen.row.locate_marks().items()
        middles = {
            tuple(one.show["rect"]): pen.find_middle(MatchEvidence.of(one).seen.corners_m) for one in fact.candidates
        }
        gaps = [(name, float(np.linalg.norm(middles[tuple(map(int, place))] - end_m))) for name, place in marks]
        return pen.tell_each("m", gaps) | {"query": query, "start": pen.spot(start_m), "end": pen.spot(end_m)}

    def overlay(self, fact: Fact, row: RowEvidence) -> list[list[Mark]]:
        """The object in image 1, and every rectangle that is an option with its score."""
        x1, y1, x2, y2 = fact.truth_candidate.show["query"]
        ((marks),) = super().overlay(fact, row)
        return [[Mark("rect", ((x1, y1), (x2, y2)), MatchEvidence.of(fact.truth_candidate).query.label)], marks]


def _compare(fact: Fact, options: Sequence[Candidate]) -> FloatArray:
    first, second = (np.tile([fact.cameras[f]["width"], fact.cameras[f]["height"]], 2) for f in fact.frame_ids)
    query = np.array(fact.truth_candidate.show["query"]) / first
    return compare_rects(query, np.array([option.show["rect"] for option in options]) / second)


def _share(weight: FloatArray, free: BoolArray) -> FloatArray:
    """Weights of those that are free, and 0 of others, which sum to 1 also where all are too small for a number."""
    weight = np.where(free, weight + 1e-12, 0.0)
    return np.asarray(weight / weight.sum())
