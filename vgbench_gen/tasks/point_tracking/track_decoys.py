"""Where wrong options of a track lie: as far from the query, and in such directions, as right answers of the scene do.

A reader of the text knows the query's pixel and those of the options, and tracked points move by laws of their own: not
far, seldom up or down, towards the middle from the border. So each wrong option is the query moved as a tracked point
of another pair of the scene moved that started near the query's pixel. Around such targets it stands where image 2
looks as unlike the query as another tracked point looks unlike its own (`track_looks`), so that neither place nor look
is of another law than that of right answers; what is left, choosing sets takes away (`distractors.balanced`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from vgbench_gen.core.types import BoolArray, Candidate, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.gates import TrackGates
from vgbench_gen.tasks.point_tracking import track_looks
from vgbench_gen.tasks.point_tracking.evidence import PlaceEvidence
from vgbench_gen.tasks.point_tracking.tracked import Tracks

_KEPT = 100  # motions of a pair and direction
_RING_D = 6.0  # starts this much nearer to the query, in D%, come first; within a ring by chance
_MIRRORED_RINGS = 2  # behind starts of so many rings; people film to the left as often as to the right
_LOOKED_AT = 400  # motions, those that start nearest
_ASIDE_D = 2.5  # how far from a target a place may lie, D%
# More would come from pairs that hardly show the query's surroundings, which are those with large motions.
_DECOYS = 10
DECOYS_MIN = 5  # sets of three among fewer are too few to choose from
LOOSE = 1.0, 2.5, 6.0  # tried in turn for a pair of frames; small scenes have few looks to choose from
_LOOKED = 6  # confirmed points of a pair
_LOOKS = 128  # that are tried for as many wrong options

_Sizes = tuple[tuple[int, int], tuple[int, int]]
_NONE = (np.zeros((0, 2)), np.zeros((0, 2)), np.zeros(0, dtype=np.int64))


@dataclass(slots=True)
class Motions:
    """How the tracked points of a scene moved, in both directions of each pair."""

    found: dict[_Sizes, tuple[FloatArray, FloatArray, IntArray]] = field(default_factory=dict)
    """Sizes of the two images -> start (n, 2) and end (n, 2) in them, pixels, and the number of the pair (n,)."""
    looks: dict[int, FloatArray] = field(default_factory=dict)
    """Number of a pair -> how unlike their start its confirmed points look at their end, (n, PARTS)."""

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

    def add_looks(self, number: int, tracks: Tracks, held: Sequence[int], view: SceneView) -> None:
        """How the confirmed points (rows of `tracks`) of pair `number` look."""
        first, second = (track_looks.get_ground(frame, view) for frame in (tracks.first, tracks.second))
        some = np.array(held[:_LOOKED])
        self.looks[number] = track_looks.look_at_pairs(first, tracks.uv_a[some], second, tracks.uv_b[some])

    def list_looks(self, own: int, rng: np.random.Generator) -> FloatArray:
        """(n, PARTS) looks of confirmed points of other pairs, in random order."""
        found = [looks for number, looks in self.looks.items() if number != own]
        return (
            np.asarray(rng.permutation(np.concatenate(found))[:_LOOKS]) if found else np.zeros((0, track_looks.PARTS))
        )

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
class WrongPlaces:
    """Places of image 2 for wrong options beside one point; any of them may stand together in a set."""

    uv_px: FloatArray
    """(n, 2) whole pixels."""
    points_m: FloatArray
    """(n, 3) their points in the camera's frame."""
    looks: FloatArray
    """(n, PARTS) how unlike the query they look (`track_looks.look_at_pairs`)."""
    own_look: FloatArray
    """(PARTS,) how unlike the query the point itself looks."""


def find_wrong_places(
    tracks: Tracks,
    k: int,
    looks: track_looks.Looks,
    number: int,
    motions: Motions,
    gates: TrackGates,
    rng: np.random.Generator,
    loose: float,
) -> WrongPlaces:
    """Places beside point `k`, at most `_DECOYS`, each of which keeps the margins to it and to the others.

    Args:
        tracks: of the pair.
        k: row of `tracks`.
        looks: of the places beside it.
        number: of the pair in `motions`.
        motions: of the scene.
        gates: margins.
        rng: source of order.
        loose: how much wider than usual looks may differ and still count as alike.
    """
    frames = tracks.first, tracks.second
    start, end = tracks.uv_a[k], np.floor(tracks.uv_b[k] + 0.5) + 0.0
    there = looks.ground
    truth_m = projection.back_project(there.camera, end, tracks.points_b_m[k, 2])
    gap_px, motion_px = (d / 100 * there.camera.diagonal_px for d in (gates.gap_min_d, gates.motion_min_d))

    def find_apart(rows: IntArray, uv: FloatArray, point_m: FloatArray) -> BoolArray:
        wide = _square_distances(there.uv_px[rows], uv) >= gap_px**2
        return wide & (_square_distances(there.points_m[rows], point_m) >= (1.01 * gates.gap_min_m) ** 2)

    def keep_free(rows: IntArray) -> IntArray:
        far = _square_distances(there.uv_px[rows], start) >= motion_px**2
        return rows[far & find_apart(rows, end, truth_m)]

    own = looks.of_pixel(end)
    # The point is held to what its rivals are: its look must be one that other places can have. That of most points is
    # not, so it is asked before anything else.
    rivals = keep_free(looks.find_alike(own, loose))
    none = WrongPlaces(np.zeros((0, 2)), np.zeros((0, 3)), np.zeros((0, track_looks.PARTS)), own)
    if not len(rivals):
        return none
    target = _find_targets(there, motions.list_targets(number, start, frames, rng))
    if (target[rivals] < 0).all():
        return none
    # By target, those that start nearest first; of the places around one, any.
    rows = rng.permutation(keep_free(np.flatnonzero(target >= 0)))
    rows = rows[np.argsort(target[rows], kind="stable")]
    ordered = track_looks.SortedLooks(looks.of_places(rows))
    free = np.ones(len(rows), dtype=bool)
    picked: list[int] = []
    law = motions.list_looks(number, rng)
    # As many places whose surroundings are more like the query's than those of the point as others: such are rarer.
    waiting = [list(law[law[:, -1] >= own[-1]]), list(law[law[:, -1] < own[-1]])]
    found = [0, 0]
    while len(picked) < _DECOYS and any(waiting):
        side = int(found[1] <= found[0])
        side = side if waiting[side] else 1 - side
        alike = ordered.find_alike(waiting[side].pop(), loose)
        alike = alike[free[alike]]
        if not len(alike):
            continue
        row = int(alike.min())
        picked.append(row)
        found[side] += 1
        free &= target[rows] != target[rows[row]]
        free &= find_apart(rows, there.uv_px[rows[row]], there.points_m[rows[row]])
    places = rows[picked]
    return WrongPlaces(there.uv_px[places], there.points_m[places], ordered.looks[picked], own)


def _square_distances(places: FloatArray, place: FloatArray) -> FloatArray:
    """(n,) of places (n, d) from one (d,); coordinate by coordinate, as NumPy is slow along a short last axis."""
    return np.asarray(sum((places[:, axis] - place[axis]) ** 2 for axis in range(len(place))))


def _find_targets(there: track_looks.Ground, targets_px: FloatArray) -> IntArray:
    """(n,) the first target around each place of the ground, -1 where there is none."""
    columns, rows = there.size
    scale = columns / there.camera.width
    reach = _ASIDE_D / 100 * there.camera.diagonal_px * scale
    center = (targets_px + 0.5) * scale - 0.5
    low = np.maximum(np.ceil(center - reach).astype(int), 0)
    high = np.maximum(np.floor(center + reach).astype(int) + 1, 0)
    first = np.full((rows, columns), -1)
    for k, (left, top, right, bottom) in reversed(list(enumerate(np.concatenate([low, high], axis=1).tolist()))):
        first[top:bottom, left:right] = k
    return np.asarray(first[there.cells[:, 1], there.cells[:, 0]])


def make_decoys(there: WrongPlaces) -> list[Candidate]:
    """Wrong options at places of image 2."""
    found = []
    for place, point_m, look in zip(there.uv_px, there.points_m, there.looks, strict=True):
        u, v = (int(x) for x in place)
        evidence = PlaceEvidence(point_2_m=np.round(point_m, 4), look=np.round(look, 3)).write()
        found.append(Candidate(f"decoy:{u},{v}", place, (), {"query": None}, evidence))
    return found
