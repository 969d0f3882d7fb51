"""Pairs of keyframes: measured once per view, gated per task.

Table entries of `SceneView` (strided depth) only choose which pairs are worth measuring; everything that a gate
judges is measured at full depth resolution, on the sampled points of both frames that the other one sees.
Source of the gates: `docs/validity.md#pairs-of-views`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from weakref import WeakKeyDictionary

import numpy as np

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.gates import Gates, PairGates
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.geometry import poses, projection, visibility
from vgbench_gen.geometry.overlap import largest_plane_share
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.evidence import Evidence
from vgbench_gen.tasks.presentation import Margins

MAX_PROPOSED = 1200  # pairs measured per scene and task, about 0.3 ms each; a long scan has tens of thousands
_TABLE_SLACK = 0.10  # by how much the strided table may differ from the full-size overlap
_MIN_SEEN = 30  # fewer co-visible samples measure nothing

Problem = tuple[str, float, float]  # reason, measured value, limit


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two frames, first before second in capture order. Medians are over the points that both frames see."""

    overlap: float
    """The smaller of the two fractions of a frame's points that the other frame sees."""
    rotation_deg: float
    """The angle of the rotation between the cameras."""
    baseline_m: float
    """The distance between the cameras."""
    parallax_deg: float
    """The median angle between the rays from both cameras to a point."""
    depth_m: float
    """The median depth of a point in its own camera."""
    shift_d: float
    """The median move of a point in the image, D%."""
    seen_m: tuple[FloatArray, FloatArray]
    """The world points (N, 3) of the first frame that the second sees, and of the second that the first sees."""


class TwoViewEvidence(Evidence):
    """What a question keeps of a pair of frames. The numbers are those of `Pair`, rounded to four decimals."""

    overlap: float
    """Smaller of the two fractions of a frame's points that the other frame sees, 0 to 1."""
    rotation_deg: float
    """Angle of the rotation between the two cameras, degrees."""
    baseline_m: float
    """Distance between the two camera centres, meters."""
    parallax_deg: float
    """Median angle between the rays from both cameras to a point that both see, degrees."""
    depth_m: float
    """Median depth of a point that both see, in its own camera, meters."""
    shift_d: float
    """Median distance by which a point moves in the image, D% (per cent of the image diagonal)."""


class PairTable:
    """Lazily measured pairs of one view. Holds frames but not the view, so that both can be forgotten together."""

    def __init__(self, view: SceneView) -> None:
        self.frames = view.frames
        self.overlap = view.mutual_overlap
        self.relative = view.relative if view.frames else np.zeros((0, 0, 4, 4))
        self.rotation_deg = poses.rotation_angle_deg(self.relative[..., :3, :3])
        self.baseline_m = np.linalg.norm(self.relative[..., :3, 3], axis=-1)
        self._tolerance, self._range_m = view.tolerance, (view.near_m, view.far_m)
        self._gates = view.gates.pair
        self._key = (view.dataset, view.id)
        self._pairs: dict[tuple[int, int], Pair | None] = {}
        self._planes: dict[tuple[int, int], float] = {}

    def pair(self, i: int, j: int) -> Pair | None:
        """The measured pair of two frame indices in either order; None where too few points are co-visible."""
        key = (min(i, j), max(i, j))
        if key not in self._pairs:
            self._pairs[key] = self._measure(*key)
        return self._pairs[key]

    def plane_share(self, i: int, j: int) -> float:
        """Share of the pair's co-visible points on one plane, at half the visibility tolerance (about one sigma)."""
        key = (min(i, j), max(i, j))
        if key not in self._planes:
            pair = self.pair(i, j)
            points = np.concatenate(pair.seen_m) if pair else np.zeros((0, 3))
            depth_m = projection.project_world(
                self.frames[key[0]].camera, self.frames[key[0]].world_from_camera, points
            )[1]
            ids = [self.frames[k].id for k in key]
            rng = rng_for(0, "plane_share", *self._key, *ids)
            self._planes[key] = largest_plane_share(points, rng, self._tolerance.of(depth_m) / 2)
        return self._planes[key]

    def propose_pairs(self, gates: PairGates, rng: np.random.Generator) -> list[tuple[int, int]]:
        """Unordered pairs that overlap at least half as much as they must, in random order."""
        first, second = np.nonzero(np.triu(self.overlap >= gates.overlap_min / 2, 1))
        order = rng.permutation(len(first))[:MAX_PROPOSED]
        return [(int(first[k]), int(second[k])) for k in order]

    def find_problem(self, i: int, j: int, gates: PairGates, planes: bool = False) -> Problem | None:
        """The first gate the pair fails, cheap ones first; `planes` adds the one that only poses need."""
        low = gates.overlap_min
        rotation, baseline = float(self.rotation_deg[i, j]), float(self.baseline_m[i, j])
        if rotation < gates.rotation_min_deg:
            return "rotation_small", rotation, gates.rotation_min_deg
        if rotation > gates.rotation_max_deg:
            return "rotation_large", rotation, gates.rotation_max_deg
        if baseline < gates.baseline_min_m:
            return "baseline_short", baseline, gates.baseline_min_m
        pair = self.pair(i, j) if self.overlap[i, j] >= low - _TABLE_SLACK else None
        if pair is None or pair.overlap < low:
            return "overlap_low", pair.overlap if pair else float(self.overlap[i, j]), low
        if pair.overlap > gates.overlap_max:
            return "overlap_high", pair.overlap, gates.overlap_max
        if pair.parallax_deg < gates.parallax_min_deg:
            return "parallax_small", pair.parallax_deg, gates.parallax_min_deg
        if pair.parallax_deg > gates.parallax_max_deg:
            return "parallax_large", pair.parallax_deg, gates.parallax_max_deg
        if baseline < gates.baseline_of_depth_min * pair.depth_m:
            return "baseline_of_depth", baseline / pair.depth_m, gates.baseline_of_depth_min
        if planes and self.plane_share(i, j) > gates.plane_share_max:
            return "one_plane", self.plane_share(i, j), gates.plane_share_max
        return None

    def margins(self, i: int, j: int, gates: Gates, planes: bool = False) -> Margins:
        """Value-over-limit ratios of a pair that passed."""
        pair, limits, margins = self.pair(i, j), gates.pair, Margins()
        if pair is not None:
            margins.at_least("overlap_min", pair.overlap, limits.overlap_min)
            margins.at_most("overlap_max", pair.overlap, limits.overlap_max)
            margins.at_least("rotation_min", pair.rotation_deg, limits.rotation_min_deg)
            margins.at_most("rotation_max", pair.rotation_deg, limits.rotation_max_deg)
            margins.at_least("baseline", pair.baseline_m, limits.baseline_min_m)
            margins.at_least("parallax_min", pair.parallax_deg, limits.parallax_min_deg)
            margins.at_most("parallax_max", pair.parallax_deg, limits.parallax_max_deg)
            if planes:
                margins.at_most("plane_share", self.plane_share(i, j), limits.plane_share_max)
        return margins

    @cached_property
    def near(self) -> BoolArray:
        """(F, F) frames too much alike to count as different (`PairGates.distinct_*`), themselves included."""
        limits = self._gates
        alike: BoolArray = (self.rotation_deg <= limits.distinct_turn_deg) & (
            self.baseline_m <= limits.distinct_shift_m
        )
        return alike

    def is_taken(self, i: int, j: int, used: Iterable[tuple[int, int]]) -> bool:
        """Whether an equal or hardly different unordered pair is among `used`."""
        near = self.near
        return any((near[i, k] and near[j, m]) or (near[i, m] and near[j, k]) for k, m in used)

    def evidence(self, i: int, j: int) -> TwoViewEvidence:
        """What is kept of a pair.

        Raises:
            GeometryError: too few points are co-visible to measure it.
        """
        pair = self.pair(i, j)
        if pair is None:
            raise GeometryError(f"frames {self.frames[i].id} and {self.frames[j].id} share too few points")
        return TwoViewEvidence(**{name: round(float(getattr(pair, name)), 4) for name in TwoViewEvidence.model_fields})

    def _measure(self, i: int, j: int) -> Pair | None:
        first, second = self.frames[i], self.frames[j]
        there, back = self._measure_one_way(first, second), self._measure_one_way(second, first)
        seen = (there[0], back[0])
        if min(len(seen[0]), len(seen[1])) < _MIN_SEEN:
            return None
        parallax = visibility.parallax_deg(np.concatenate(seen), first.center_m, second.center_m)
        return Pair(
            min(there[1], back[1]),
            float(self.rotation_deg[i, j]),
            float(self.baseline_m[i, j]),
            float(np.median(parallax)),
            float(np.median(np.concatenate([there[2], back[2]]))),
            float(np.median(np.concatenate([there[3], back[3]]))),
            seen,
        )

    def _measure_one_way(self, a: ViewFrame, b: ViewFrame) -> tuple[FloatArray, float, FloatArray, FloatArray]:
        """(points of a that b sees, visible fraction, their depth in a, their move in D% of a's diagonal)."""
        uv_a, points = a.samples
        z_a = a.sampled_depth_m
        uv_b, z_b = projection.project_world(b.camera, b.world_from_camera, points)
        state = visibility.classify(b.depth_camera, b.depth_m, b.depth_uv(uv_b), z_b, self._tolerance)
        believed = (z_a >= self._range_m[0]) & (z_a <= self._range_m[1])
        seen = (state == visibility.VISIBLE) & believed
        shift_d = 100 * np.linalg.norm(uv_b[seen] - uv_a[seen], axis=-1) / a.camera.diagonal_px
        return points[seen], visibility.overlap_fraction(state, _MIN_SEEN), z_a[seen], shift_d


_TABLES: WeakKeyDictionary[SceneView, PairTable] = WeakKeyDictionary()


def get_pair_table(view: SceneView) -> PairTable:
    """The view's pairs, shared by all tasks that look at it."""
    table = _TABLES.get(view)
    if table is None:
        table = _TABLES[view] = PairTable(view)
    return table


def thin_rows(points: FloatArray, count: int) -> FloatArray:
    """At most `count` rows, evenly spread over the order of the rows."""
    if len(points) <= count:
        return points
    return points[np.linspace(0, len(points) - 1, count).astype(np.int64)]


def collect_poses(*frames: ViewFrame) -> dict[str, FloatArray]:
    """Frame id -> (4, 4) `world_from_camera`, as evidence keeps it."""
    return {frame.id: frame.world_from_camera for frame in frames}


_EDGES: WeakKeyDictionary[ViewFrame, BoolArray] = WeakKeyDictionary()
_MASKS_KEPT = 48  # of one kind; one for every frame of a long scan would take as much memory as its images


def get_edges(frame: ViewFrame, view: SceneView) -> BoolArray:
    """`ViewFrame.edge_mask` of the view's gates, kept because many pairs share a frame."""
    return get_mask(_EDGES, frame, lambda: frame.edge_mask(view.gates.depth))


def get_mask(
    masks: WeakKeyDictionary[ViewFrame, BoolArray], frame: ViewFrame, make: Callable[[], BoolArray]
) -> BoolArray:
    """The frame's mask, made where it is not kept; the oldest one goes when there are too many."""
    if frame not in masks:
        while len(masks) >= _MASKS_KEPT:
            masks.pop(next(iter(masks)))
        masks[frame] = make()
    return masks[frame]
