"""Where wrong options of a track lie: as far from the query, and in such directions, as right answers of the scene do.

A reader of the text knows the query's pixel and those of the options, and tracked points move by laws of their own: not
far, seldom up or down, towards the middle from the border. So each wrong option is the query moved as a tracked point
of another pair of the scene moved that started near the query's pixel: right and wrong answers are then draws from one
law (`docs/validity.md#exchangeable-by-construction`), each from a pair of its own. Around such a target it stands where
image 2 looks as much like the query as another tracked point looks like its own (`track_looks`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vgbench_gen.core.types import BoolArray, Candidate, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.point_tracking import track_looks
from vgbench_gen.tasks.point_tracking.evidence import PlaceEvidence
from vgbench_gen.tasks.point_tracking.gates import TrackGates
from vgbench_gen.tasks.point_tracking.tracked import Tracks

_KEPT = 100  # motions of a pair and direction
_RING_D = 6.0  # starts this much nearer to the query, in D%, come first; within a ring by chance
_MIRRORED_RINGS = 2  # behind starts of so many rings; people film to the left as often as to the right
_ENOUGH = 6  # places at which no other point is tried
_ELSEWHERE = 60  # looks of points of other pairs, after those of the pair's own
_CHOICE = 24  # fitting places around the first targets, of which the closest look is taken
_LOOKED_AT = 400  # motions, those that start nearest
_ASIDE_D = 2.5  # how far from it
# More would come from pairs that hardly show the query's surroundings, which are those with large motions.
_DECOYS = 10
_FEWEST_BACK = 4  # places in image 1; with fewer the question is not asked back

_Sizes = tuple[tuple[int, int], tuple[int, int]]
_NONE = (np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=np.int64))


@dataclass(frozen=True, slots=True, eq=False)
class Looked:
    """How the confirmed points of a pair look in the second image."""

    rows: IntArray
    """(n,) the rows of the points in the pair's tracks."""
    looks: FloatArray
    """(n, 7) their looks (see `track_looks`)."""

    @classmethod
    def at(cls, tracks: Tracks, rows: Sequence[int], view: SceneView) -> Looked:
        """Of these rows."""
        first, second = (track_looks.get_ground(frame, view) for frame in (tracks.first, tracks.second))
        uv_b = np.floor(tracks.uv_b[rows] + 0.5) + 0.0
        return cls(np.array(rows), track_looks.compare_looks(first, tracks.uv_a[rows], second, uv_b))

    def split(self, k: int, to: int) -> tuple[FloatArray, FloatArray]:
        """((7,) look of row `k`, (n - 1, 7) looks of the others), seen in image 1 + `to`."""
        looks = self.looks if to == 1 else track_looks.turn_looks(self.looks)
        return looks[self.rows == k][0], looks[self.rows != k]


@dataclass(slots=True)
class Motions:
    """How the tracked points of a scene moved, in both directions of each pair."""

    found: dict[_Sizes, tuple[FloatArray, FloatArray, IntArray]] = field(default_factory=dict)
    """Sizes of the two images -> start (n, 2) and end (n, 2) in them, pixels, and the number of the pair (n,)."""
    looked: dict[int, Looked] = field(default_factory=dict)
    """Number of a pair -> how its points look."""

    def add(self, number: int, tracks: Tracks, tried: Sequence[int], held: Sequence[int]) -> None:
        """Tracked points of pair `number`, there and back.

        Only points whose neighbourhood passes the second route: the next one of those `tried` is among those that
        `held` (rows of `tracks`). Large motions fail more often, and right answers all passed.
        """
        near = np.linalg.norm(tracks.uv_a[:, None] - tracks.uv_a[np.array(tried)], axis=2).argmin(axis=1)
        some = np.flatnonzero(np.isin(np.array(tried)[near], held))
        if len(some) > _KEPT:
            some = some[np.linspace(0, len(some) - 1, _KEPT).astype(np.int64)]
        a, b, uv_a, uv_b = tracks.first, tracks.second, tracks.uv_a[some], tracks.uv_b[some]
        for first, second, start, end in ((a, b, uv_a, uv_b), (b, a, uv_b, uv_a)):
            sizes = first.camera.size, second.camera.size
            known = self.found.get(sizes, _NONE)
            more = start, end, np.full(len(start), number)
            starts, ends, pairs = (np.concatenate(parts) for parts in zip(known, more, strict=True))
            self.found[sizes] = starts, ends, pairs

    def list_looks(self, own: int, to: int) -> FloatArray:
        """(n, 7) looks of confirmed points of the other pairs, seen in image 1 + `to`."""
        found = [looked.looks for number, looked in self.looked.items() if number != own]
        looks = np.concatenate(found) if found else np.zeros((0, 7))
        return looks if to == 1 else track_looks.turn_looks(looks)

    def list_targets(
        self, own: int, query_px: FloatArray, frames: Sequence[ViewFrame], rng: np.random.Generator
    ) -> FloatArray:
        """(n, 2) pixels of the second frame that a target may have, those that start nearest, in random order but for
        the pairs: as long as there are others, no pair gives two.

        Args:
            own: number of the pair that is asked about, which gives none.
            query_px: (2,) pixel of the first frame.
            frames: first and second.
            rng: source of order.
        """
        first, second = frames
        move, ring, pair = self._list_starts(own, query_px, first, second)
        rank = ring + rng.random(len(pair))
        first_rows = np.argpartition(rank, _LOOKED_AT)[:_LOOKED_AT] if len(rank) > _LOOKED_AT else np.arange(len(rank))
        order = first_rows[np.argsort(rank[first_rows])]
        leads = np.unique(pair[order], return_index=True)[1]
        later = np.ones(len(order), dtype=bool)
        later[leads] = False
        return np.asarray(query_px + move[np.concatenate([order[np.sort(leads)], order[later]])])

    def _list_starts(
        self, own: int, query_px: FloatArray, first: ViewFrame, second: ViewFrame
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Move, ring and pair of all motions between images of these sizes, then of their mirror images."""
        sizes = first.camera.size, second.camera.size
        start, end, pair = self.found.get(sizes, _NONE)
        others = pair != own
        start, end, pair = start[others], end[others], pair[others]
        flipped = [points * (-1, 1) + (size[0] - 1, 0) for points, size in zip((start, end), sizes, strict=True)]
        ring = np.concatenate([self._find_ring(starts, query_px, first) for starts in (start, flipped[0])])
        ring[len(pair) :] += _MIRRORED_RINGS
        move = np.concatenate([end - start, flipped[1] - flipped[0]])
        return move, ring, np.concatenate([pair, -1 - pair])

    @staticmethod
    def _find_ring(start_px: FloatArray, query_px: FloatArray, frame: ViewFrame) -> IntArray:
        away_d = 100 * np.linalg.norm(start_px - query_px, axis=1) / frame.camera.diagonal_px
        return np.asarray(np.floor(away_d / _RING_D), dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Wrong:
    """Places of one image for wrong options beside one point."""

    uv_px: FloatArray
    """(n, 2) whole pixels."""
    points_m: FloatArray
    """(n, 3) their points in the camera's frame."""
    fits: bool
    """Whether the first three places drawn may stand beside the point in one set."""


_NOWHERE = Wrong(np.zeros((0, 2)), np.zeros((0, 3)), False)


def find_wrong_places(
    tracks: Tracks,
    k: int,
    to: int,
    number: int,
    motions: Motions,
    looked: Looked,
    view: SceneView,
    gates: TrackGates,
    rng: np.random.Generator,
    loose: float = 1.0,
) -> Wrong:
    """Places beside point `k`, at most `_DECOYS`, each of which keeps the margins to it.

    Args:
        tracks: of the pair.
        k: row of `tracks`.
        to: 1 for places in image 2; 0 for places in image 1, where the question back is asked (`track_back`), all of
            which may stand together: else few sets that stand in image 2 could be asked back.
        number: of the pair in `motions`.
        motions: of the scene.
        view: of the frames.
        gates: margins.
        rng: source of order.
        loose: how much wider than usual looks may differ.
    """
    frames = tracks.first, tracks.second
    ends = tracks.uv_a[k], np.floor(tracks.uv_b[k] + 0.5) + 0.0
    frame, start, z_m = frames[to], ends[1 - to], (tracks.z_a[k], tracks.points_b_m[k, 2])[to]
    here = track_looks.get_ground(frames[1 - to], view)
    there = track_looks.get_ground(frame, view)
    targets = motions.list_targets(number, start, (frames[1 - to], frame), rng)
    rank = _find_nearest(there, targets)
    truth_m = projection.back_project(frame.camera, ends[to], np.array(z_m))
    diagonal_px = frame.camera.diagonal_px
    rows = np.flatnonzero(rank < len(targets))
    rank = rank[rows]
    seen = track_looks.Around(here, start, there, rows)
    own, others = looked.split(k, to)
    elsewhere = motions.list_looks(number, to)
    # The point is held to what its rivals are: its look must be one that other places can have.
    away = 100 * np.linalg.norm(there.uv_px[rows] - ends[to], axis=1) >= gates.gap_min_d * diagonal_px
    if not away[seen.find_alike(own, loose)[0]].any():
        return _NOWHERE
    wanted = np.concatenate([rng.permutation(others), rng.permutation(elsewhere)[:_ELSEWHERE]])
    picked = [int(rows[n]) for n in _pick_rows(seen, wanted, rank, loose)]
    if not picked:
        return _NOWHERE
    uv_px = np.concatenate([ends[to][None], there.uv_px[picked]])
    points_m = np.concatenate([truth_m[None], there.points_m[picked]])
    moved_d = 100 * np.linalg.norm(uv_px - start, axis=1) / diagonal_px
    may_stand = _compare_places(uv_px, points_m, diagonal_px, gates)
    may_stand[:, moved_d < gates.motion_min_d] = False
    return _keep_places(uv_px, points_m, moved_d, may_stand, to)


def _keep_places(uv_px: FloatArray, points_m: FloatArray, moved_d: FloatArray, may_stand: BoolArray, to: int) -> Wrong:
    """Those places that may stand beside the first one, which is the point's own; see `find_wrong_places` for `to`.

    Args:
        uv_px: (n, 2) pixels.
        points_m: (n, 3) their points.
        moved_d: (n,) how far each is from the query's pixel, D%.
        may_stand: (n, n) which may stand beside which.
        to: 1 for image 2, 0 for image 1.
    """
    good = 1 + np.flatnonzero(may_stand[0, 1:])
    if to == 1:
        nearer = moved_d[good] < moved_d[0]
        good = good[np.argsort(np.where(nearer, np.cumsum(nearer), np.cumsum(~nearer)), kind="stable")]
    else:
        good = _select_compatible(good, may_stand)
    good = good[:_DECOYS]
    # Not the first three that may stand beside the point, but the first three: where places crowd, right answers do.
    fits = len(uv_px) >= _ENOUGH and bool((may_stand[:4, :4] | np.eye(4, dtype=bool)).all())
    return Wrong(uv_px[good], points_m[good], fits)


def _pick_rows(seen: track_looks.Around, wanted: FloatArray, rank: IntArray, loose: float) -> list[int]:
    """Rows of `seen`, each with one of the looks wanted (n, 7) in turn, each around a target of its own.

    rank: the first target around each row; earlier ones are preferred.
    """
    picked: list[int] = []
    taken = np.zeros(rank.max(initial=0) + 1, dtype=bool)
    waiting = list(wanted)
    while waiting and len(picked) < 2 * _DECOYS:
        found = []
        for look in waiting:
            fitting, off = seen.find_alike(look, loose)
            free = ~taken[rank[fitting]]
            fitting, off = fitting[free], off[free]
            if not len(fitting):
                continue
            first = np.argsort(rank[fitting], kind="stable")[:_CHOICE]
            one = int(fitting[first[np.argmin(off[first])]])
            picked.append(one)
            taken[rank[one]] = True
            found.append(look)
        waiting = found
    return picked[: 2 * _DECOYS]


def _find_nearest(there: track_looks.Ground, targets_px: FloatArray) -> IntArray:
    """(n,) the first target around each place of the ground; their number where there is none."""
    columns, rows = there.size
    scale = columns / there.camera.width
    reach = _ASIDE_D / 100 * there.camera.diagonal_px * scale
    center = (targets_px + 0.5) * scale - 0.5
    low = np.maximum(np.ceil(center - reach).astype(int), 0)
    high = np.maximum(np.floor(center + reach).astype(int) + 1, 0)
    first = np.full((rows, columns), len(targets_px))
    for k, (left, top, right, bottom) in reversed(list(enumerate(np.concatenate([low, high], axis=1).tolist()))):
        first[top:bottom, left:right] = k
    return np.asarray(first[there.cells[:, 1], there.cells[:, 0]])


def make_decoys(there: Wrong, back: Wrong) -> list[Candidate]:
    """Wrong options at places of image 2, each with one of image 1 if there are enough of them."""
    count = min(len(there.uv_px), len(back.uv_px))
    both = count >= min(len(there.uv_px), _FEWEST_BACK)
    found = []
    for m in range(count if both else len(there.uv_px)):
        u, v = (int(x) for x in there.uv_px[m])
        place = PlaceEvidence(point_2_m=np.round(there.points_m[m], 4))
        if both:
            u_1, v_1 = (int(x) for x in back.uv_px[m])
            place = place.with_fields(uv_1_px=(u_1, v_1), point_1_m=np.round(back.points_m[m], 4))
        found.append(Candidate(f"decoy:{u},{v}", there.uv_px[m], (), {"query": None}, place.write()))
    return found


def make_same_pixel_decoy(truth: Candidate, tracks: Tracks, view: SceneView) -> Candidate | None:
    """The decoy at the query's own pixel, where image 2 has that pixel and knows its depth; never the truth."""
    uv, first, second = np.array(truth.show["query"], dtype=np.float64), tracks.first, tracks.second
    z_m = float(second.depth_at(uv))
    if first.camera.size != second.camera.size or not view.near_m <= z_m <= view.far_m:
        return None
    place = PlaceEvidence(point_2_m=_locate_pixel(second, uv, z_m))
    z_1_m = float(first.depth_at(truth.value))
    if view.near_m <= z_1_m <= view.far_m:
        place = place.with_fields(point_1_m=_locate_pixel(first, truth.value, z_1_m))
    return Candidate(f"same:{truth.key}", uv, (), {"query": None, "same_pixel_of": truth.key}, place.write())


def _locate_pixel(frame: ViewFrame, uv_px: FloatArray, z_m: float) -> FloatArray:
    """(3,) a pixel's point in the camera's frame, metres, as it is kept."""
    return np.round(projection.back_project(frame.camera, uv_px, np.array(z_m)), 4)


def _select_compatible(rows: IntArray, may_stand: BoolArray) -> IntArray:
    """The rows that may stand beside all those kept before them."""
    kept: list[int] = []
    for row in rows.tolist():
        if may_stand[kept, row].all():
            kept.append(row)
    return np.array(kept, dtype=np.int64)


def _compare_places(uv_px: FloatArray, points_m: FloatArray, diagonal_px: float, gates: TrackGates) -> BoolArray:
    """(n, n) which places keep the margins among each other."""
    apart_px = np.linalg.norm(uv_px[:, None] - uv_px, axis=-1)
    apart_m = np.linalg.norm(points_m[:, None] - points_m, axis=-1)
    return np.asarray((100 * apart_px >= gates.gap_min_d * diagonal_px) & (apart_m >= 1.01 * gates.gap_min_m))
