"""Where wrong options of a track lie: where tracked points of the scene went, half of them more like the query.

A reader of the text knows the query's pixel and those of the options, and tracked points move by laws of their own: not
far, seldom up or down, towards the middle from the border. So each wrong option is the query moved as a tracked point
of another pair of the scene moved that started near the query's pixel. A tracked point also keeps its color and much of
its surroundings, so places drawn blindly look less like the query than it does. So as many wrong options look more like
the query as do not; choosing sets does the rest (`distractors.balanced`).

A look is (2,), less for the more alike: the difference of mean color inside a marker (of 255), and one minus the
correlation of the surroundings as they are, neither turned nor scaled.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import cv2
import numpy as np
from scipy.spatial import cKDTree

from vgbench_gen.core.types import Camera, Candidate, ColorArray, FloatArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.gates import TrackGates
from vgbench_gen.tasks.point_tracking.evidence import PlaceEvidence
from vgbench_gen.tasks.point_tracking.tracked import Tracks, find_places

_STEP_PX = 3  # between places, at 640
_PATCH = 12  # pixels at 320 on every side that count as surroundings
_GROUNDS_KEPT = 32
_RING_D = 6.0  # starts this much nearer to the query, in D%, come first; within a ring by chance
_MIRRORED_RINGS = 2  # behind starts of so many rings; people film to the left as often as to the right
_LOOKED_AT = 400  # motions, those that start nearest
_ASIDE_D = 2.5  # how far from a target a place may lie, D%
_EACH = 5  # wrong options that look more like the query than the right one does, and as many others
DECOYS_MIN = 5  # sets of three among fewer are too few to choose from


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Places of a frame that could carry a point, on a grid, and what their looks are made of."""

    camera: Camera
    """Camera of the frame, at delivered size."""
    uv_px: FloatArray
    """(n, 2) whole pixels."""
    points_m: FloatArray
    """(n, 3) their points in the camera's frame."""
    color: ColorArray
    """Mean colors inside a marker, in the image at 320."""
    grey: ColorArray
    """The grey image at 320, continued by reflection for `_PATCH` pixels on every side."""
    tree: cKDTree
    """Of `uv_px`."""

    def find_cells(self, uv_px: FloatArray) -> FloatArray:
        """Pixels (..., 2) of the image at 320."""
        return (uv_px + 0.5) * (self.color.shape[1] / self.camera.width) - 0.5

    def sample(self, uv_px: FloatArray) -> tuple[FloatArray, ColorArray]:
        """The color (3,) inside a marker at a pixel (2,), and the grey surroundings of that pixel."""
        u, v = self.find_cells(uv_px).tolist()
        side = 2 * _PATCH + 1
        color = cv2.getRectSubPix(self.color, (1, 1), (u, v), patchType=cv2.CV_32F)
        patch = cv2.getRectSubPix(self.grey, (side, side), (u + _PATCH, v + _PATCH))
        return np.asarray(color, dtype=np.float64)[0, 0], np.asarray(patch, dtype=np.uint8)


# A ground must not hold its frame, which would keep it and its pixels for good.
_GROUNDS: WeakKeyDictionary[ViewFrame, Ground] = WeakKeyDictionary()


def get_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The frame's ground; made where it is not kept."""
    if frame not in _GROUNDS:
        while len(_GROUNDS) >= _GROUNDS_KEPT:
            _GROUNDS.pop(next(iter(_GROUNDS)))
        _GROUNDS[frame] = make_ground(frame, view)
    return _GROUNDS[frame]


def make_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The ground of a frame."""
    uv_px, z_m = find_places(frame, view, _STEP_PX)
    color = frame.small_color()
    columns, rows = (max(1, size // 2) for size in color.shape[1::-1])
    color = cv2.resize(color, (columns, rows), interpolation=cv2.INTER_AREA)
    grey = cv2.copyMakeBorder(cv2.cvtColor(color, cv2.COLOR_RGB2GRAY), *(_PATCH,) * 4, cv2.BORDER_REFLECT_101)
    return Ground(
        frame.camera,
        uv_px,
        projection.back_project(frame.camera, uv_px, z_m),
        np.asarray(cv2.blur(color, (3, 3)), dtype=np.uint8),
        np.asarray(grey, dtype=np.uint8),
        cKDTree(uv_px),
    )


def measure_look(first: Ground, uv_1: FloatArray, second: Ground, uv_2: FloatArray) -> FloatArray:
    """(2,) how unlike pixel uv_1 (2,) of the first image pixel uv_2 (2,) of the second looks."""
    (color_1, patch_1), (color_2, patch_2) = first.sample(uv_1), second.sample(uv_2)
    return np.array([np.linalg.norm(color_2 - color_1), 1 - _correlate(patch_2, patch_1)[0, 0]])


def measure_looks(first: Ground, uv_1: FloatArray, second: Ground) -> FloatArray:
    """(n, 2) how unlike pixel uv_1 (2,) of the first image the places of the second look."""
    color, patch = first.sample(uv_1)
    u, v = np.round(second.find_cells(second.uv_px)).astype(np.int64).T
    color_off = np.linalg.norm(second.color[v, u] - color, axis=1)
    return np.stack([color_off, 1 - _correlate(second.grey, patch)[v, u]], axis=1)


def _correlate(image: ColorArray, template: ColorArray) -> FloatArray:
    like = np.asarray(cv2.matchTemplate(image, template, cv2.TM_CCOEFF_NORMED), dtype=np.float64)
    return np.nan_to_num(like, nan=0.0, posinf=0.0, neginf=0.0)  # where one of both is of a single grey


class Motions:
    """How the tracked points of a scene moved, in both directions of each pair."""

    def __init__(self) -> None:
        self._found: dict[tuple[tuple[int, int], ...], list[tuple[int, FloatArray, FloatArray]]] = {}

    def add(self, number: int, tracks: Tracks, rows: Sequence[int]) -> None:
        """The points `rows` of pair `number`, there and back. All passed the second route, as right answers do: large
        motions fail it more often."""
        ends = (tracks.first, tracks.uv_a[rows]), (tracks.second, tracks.uv_b[rows])
        for (first, start), (second, end) in (ends, ends[::-1]):
            self._found.setdefault((first.camera.size, second.camera.size), []).append((number, start, end))

    def list_targets(
        self, own: int, query_px: FloatArray, frames: Sequence[ViewFrame], rng: np.random.Generator
    ) -> FloatArray:
        """(n, 2) pixels of the second frame that a target may have, those that start nearest first; as long as there
        are others, no pair gives two.

        Args:
            own: number of the pair that is asked about, which gives none.
            query_px: (2,) pixel of the first frame.
            frames: first and second.
            rng: source of order.
        """
        sizes = tuple(frame.camera.size for frame in frames)
        moves, ranks, pairs = [np.zeros((0, 2))], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
        for number, *ends in self._found.get(sizes, []):
            mirrored = [points * (-1, 1) + (size[0] - 1, 0) for points, size in zip(ends, sizes, strict=True)]
            for behind, name, (start, end) in ((0, number, ends), (_MIRRORED_RINGS, -1 - number, mirrored)):
                if number != own:
                    away_d = 100 * np.linalg.norm(start - query_px, axis=1) / frames[0].camera.diagonal_px
                    moves.append(end - start)
                    ranks.append(np.floor(away_d / _RING_D) + behind)
                    pairs.append(np.full(len(start), name))
        rank, pair = np.concatenate(ranks), np.concatenate(pairs)
        order = np.argsort(rank + rng.random(len(rank)))[:_LOOKED_AT]
        leads = np.sort(np.unique(pair[order], return_index=True)[1])
        order = np.concatenate([order[leads], np.delete(order, leads)])
        return np.asarray(query_px + np.concatenate(moves)[order])


@dataclass(frozen=True, slots=True, eq=False)
class WrongPlaces:
    """Places of one image for wrong options beside one point; any of them may stand together in a set."""

    uv_px: FloatArray
    """(n, 2) whole pixels; those that look more like the query than the point does and others in turn."""
    points_m: FloatArray
    """(n, 3) their points in the camera's frame."""
    looks: FloatArray
    """(n, 2) how unlike the query they look."""


def find_wrong_places(
    tracks: Tracks,
    k: int,
    to: int,
    number: int,
    motions: Motions,
    view: SceneView,
    gates: TrackGates,
    rng: np.random.Generator,
) -> WrongPlaces:
    """Places beside point `k`, each of which keeps the margins to it and to the others; `EACH` that look more like the
    query in color and in surroundings than the point does, and as many others, or none where there are not `EACH_MIN`
    of either.

    Args:
        tracks: of the pair.
        k: row of `tracks`.
        to: 1 for places in image 2; 0 for places in image 1, where the question back is asked.
        number: of the pair in `motions`.
        motions: of the scene.
        view: of the frames.
        gates: margins.
        rng: source of order.
    """
    frames = tracks.first, tracks.second
    ends = tracks.uv_a[k], np.floor(tracks.uv_b[k] + 0.5) + 0.0
    frame, start, z_m = frames[to], ends[1 - to], (tracks.z_a[k], tracks.points_b_m[k, 2])[to]
    here, there = get_ground(frames[1 - to], view), get_ground(frame, view)
    gap_px, motion_px = (d / 100 * frame.camera.diagonal_px for d in (gates.gap_min_d, gates.motion_min_d))
    looks = measure_looks(here, start, there)
    nearer = (looks < measure_look(here, start, there, ends[to])).all(axis=1)
    free = np.linalg.norm(there.uv_px - start, axis=1) >= motion_px

    def keep_apart(uv_px: FloatArray, point_m: FloatArray) -> None:
        free[np.linalg.norm(there.uv_px - uv_px, axis=1) < gap_px] = False
        free[np.linalg.norm(there.points_m - point_m, axis=1) < 1.01 * gates.gap_min_m] = False

    keep_apart(ends[to], projection.back_project(frame.camera, ends[to], np.array(z_m)))
    sides: tuple[list[int], list[int]] = ([], [])
    targets = (
        motions.list_targets(number, start, (frames[1 - to], frame), rng) if (free & nearer).any() else np.zeros((0, 2))
    )
    for around in there.tree.query_ball_point(targets, _ASIDE_D / 100 * frame.camera.diagonal_px, p=np.inf):
        rows = np.array(around, dtype=np.int64)
        rows = rows[free[rows]]
        for side in sorted((0, 1), key=lambda side: len(sides[side])):
            fits = rows[nearer[rows] == bool(side)]
            if len(fits) and len(sides[side]) < _EACH:
                row = int(rng.choice(fits))
                sides[side].append(row)
                keep_apart(there.uv_px[row], there.points_m[row])
                break
    picked = [*itertools.chain(*zip(*sides, strict=False)), *sides[0][len(sides[1]) :], *sides[1][len(sides[0]) :]]
    if not all(sides) or len(picked) < DECOYS_MIN:
        picked = []
    return WrongPlaces(there.uv_px[picked], there.points_m[picked], looks[picked])


def make_decoys(there: WrongPlaces, back: WrongPlaces) -> list[Candidate]:
    """Wrong options at places of image 2, each with one of image 1 if there are any of them."""
    found = []
    for m in range(min(len(there.uv_px), len(back.uv_px)) or len(there.uv_px)):
        u, v = (int(x) for x in there.uv_px[m])
        place = PlaceEvidence(point_2_m=np.round(there.points_m[m], 4), look=np.round(there.looks[m], 3))
        if len(back.uv_px):
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
    look = measure_look(get_ground(first, view), uv, get_ground(second, view), uv)
    place = PlaceEvidence(point_2_m=_locate_pixel(second, uv, z_m), look=np.round(look, 3))
    z_1_m = float(first.depth_at(truth.value))
    if view.near_m <= z_1_m <= view.far_m:
        place = place.with_fields(point_1_m=_locate_pixel(first, truth.value, z_1_m))
    return Candidate(f"same:{truth.key}", uv, (), {"query": None, "same_pixel_of": truth.key}, place.write())


def _locate_pixel(frame: ViewFrame, uv_px: FloatArray, z_m: float) -> FloatArray:
    """(3,) a pixel's point in the camera's frame, meters, as it is kept."""
    return np.round(projection.back_project(frame.camera, uv_px, np.array(z_m)), 4)
