"""Which labelled objects the keyframes of a scene show, measured once for all kinds, by two routes: points of each
object looked for in the depth images, and depth pixels looked up among those points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
from scipy.spatial import cKDTree

from vgbench_gen.core.types import BoolArray, FloatArray, IntArray
from vgbench_gen.geometry import poses, projection
from vgbench_gen.geometry.overlap import compute_pairwise_states
from vgbench_gen.geometry.visibility import UNDECIDED, VISIBLE
from vgbench_gen.scenes.view import SceneView
from vgbench_gen.tasks._objects import is_bounded, is_structural, is_thing
from vgbench_gen.tasks._registration import match_features

SEEN_MIN = 0.25  # share of an object's points that a frame shows, or it is not said to show it
HIDDEN_MAX = 0.01  # and the share up to which it does not; between both nothing is asked
UNSURE_MAX = 0.05  # and the share of which depth says nothing, as of what is far beyond a sensor's reach
SIDE_MIN = 0.05  # of the image's width: the smaller side of what is seen of an object
AREA_MIN, AREA_NONE = 0.002, 0.0005  # of the depth pixels, by which the second route calls an object seen or hidden
LINK_OVERLAP, LINK_MATCHES = 0.1, 15  # of two frames that a reader can relate: what they share, and features on it
LABELLED_MIN = 0.95  # of the depth pixels of a frame, or something without a label may be what is asked about
_NEAR_M = 0.06  # between a depth pixel and a point of the surface to which it belongs
_COLUMNS = 80  # of depth pixels that the second route looks up
_NAME = re.compile(r"[a-z]+(?: [a-z]+){0,3}(?<!(?<!s)s)")  # no plural
# Labels that one annotator or reader uses for what another calls by a different one of the group.
_ALIKE = tuple(
    frozenset(group.split(", "))
    for group in (
        "cup, mug",
        "sofa, couch, armchair",
        "stool, chair, office chair, ottoman",
        "desk, table, workbench",
        "dresser, cabinet, cupboard, sideboard, nightstand, filing cabinet, chest of drawers, wardrobe",
        "shelf, bookshelf, bookcase, storage rack, rack, wall shelf",
        "tv, monitor, screen, television, display",
        "computer tower, pc tower, pc, computer",
        "trash bin, trash can, bin, bucket, waste basket, wastebasket, garbage bin, paint can",
        "box, package, crate, container, storage box, cardboard box, carton, toolbox",
        "canister, container, pen holder, jar",
        "bottle, soap dispenser",
        "bowl, pot",
        "picture, painting, poster, picture frame, photo, photo frame, map",
        "plant, cactus, flower, flowers",
        "bag, backpack, handbag",
        "book, books",
        "pillow, cushion",
        "rug, carpet",
        "hat, cap",
    )
)
# Objects that also come as a part of others, without a label of their own there.
_PART_OF = dict.fromkeys(
    ("pillow", "cushion"), frozenset(("sofa", "couch", "armchair", "chair", "office chair", "bed", "bench"))
)


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPixels:
    """Depth pixels of a frame that lie on the points of an object."""

    points_m: FloatArray
    """(N, 3) in the world of the scan, meters."""
    owners: IntArray
    """(N,) which object of the scene each lies on; -1 for none."""


class _Seen(NamedTuple):
    shares: FloatArray
    """(F, O) share of an object's points that the depth image shows."""
    sides: FloatArray
    """(F, O) the smaller side of what is seen of it, over the image's width."""
    unsure: FloatArray
    """(F, O) share of its points in the image of which depth says nothing."""
    points: list[IntArray]
    """Of each frame, the points that it shows."""


class Sightings:
    """What the keyframes of a scene show of its objects; F frames, O objects and parts of the building, in the order of
    the view."""

    def __init__(self, view: SceneView) -> None:
        self._frames, self._tolerance = view.frames, view.tolerance
        labelled = [*view.objects, *view.building]
        clouds = [np.zeros((0, 3)) if one.points_m is None else one.points_m for one in labelled]
        self._counts = np.array([len(cloud) for cloud in clouds], dtype=np.int64)
        self._points_m = np.concatenate([np.zeros((0, 3)), *clouds])
        self._owners = np.repeat(np.arange(len(clouds)), self._counts)
        self.labels = [one.label.replace("_", " ") for one in labelled]
        self._words = [set(label.split()) for label in self.labels]
        # "unknown" and "misc" say nothing of a surface, and mirrors show other places.
        self._says = np.array([is_structural(one.label) or is_thing(one.label) for one in labelled], dtype=bool)

    @cached_property
    def _seen(self) -> _Seen:
        shares, sides, unsure = np.zeros((3, len(self._frames), len(self.labels)))
        points = []
        for row, frame in enumerate(self._frames):
            camera = frame.depth_camera
            found = compute_pairwise_states(
                self._points_m, camera.K[None], frame.depth_m[None], frame.world_from_camera[None], self._tolerance
            )[0]
            seen = np.flatnonzero(found == VISIBLE)
            points.append(seen)
            owners = self._owners[seen]
            unknown = np.bincount(self._owners[found == UNDECIDED], minlength=len(self.labels))
            unsure[row] = unknown / np.maximum(self._counts, 1)
            shares[row] = np.bincount(owners, minlength=len(self.labels)) / np.maximum(self._counts, 1)
            uv_px, _ = projection.project_world(camera, frame.world_from_camera, self._points_m[seen])
            starts = np.flatnonzero(np.diff(owners, prepend=-1))  # points stand object by object
            if len(starts):
                ends = np.maximum.reduceat(uv_px, starts) - np.minimum.reduceat(uv_px, starts)
                sides[row, owners[starts]] = ends.min(axis=1) / camera.width
        return _Seen(shares, sides, unsure, points)

    @property
    def shares(self) -> FloatArray:
        """(F, O) share of an object's surface points that the depth image shows."""
        return self._seen.shares

    @cached_property
    def shown(self) -> BoolArray:
        """(F, O) whether a frame shows an object beyond doubt."""
        return np.asarray((self.shares >= SEEN_MIN) & (self._seen.sides >= SIDE_MIN))

    @cached_property
    def hidden(self) -> BoolArray:
        """(F, O) whether a frame shows nothing of an object that a reader could see."""
        return np.asarray((self.shares <= HIDDEN_MAX) & (self._seen.unsure <= UNSURE_MAX))

    @cached_property
    def pixels(self) -> list[LabelledPixels]:
        """Of each frame, for the second route."""
        tree, found = cKDTree(self._points_m) if len(self._points_m) else None, []
        for frame in self._frames:
            step = max(1, round(frame.depth_camera.width / _COLUMNS))
            points_m = projection.back_project_depth(frame.depth_camera, frame.depth_m, step)[0]
            points_m = poses.transform(frame.world_from_camera, points_m)
            owners = np.full(len(points_m), -1)
            if tree is not None and len(points_m):
                far_m, nearest = tree.query(points_m, distance_upper_bound=_NEAR_M)
                near = np.flatnonzero(np.isfinite(far_m))
                owners[near] = self._owners[np.asarray(nearest)[near]]
            found.append(LabelledPixels(points_m, owners))
        return found

    @cached_property
    def labelled(self) -> FloatArray:
        """(F,) share of a frame's depth pixels that lie on surface whose label says what it is."""
        said = [self._says[one.owners[one.owners >= 0]].sum() / max(len(one.owners), 1) for one in self.pixels]
        return np.array(said, dtype=np.float64)

    @cached_property
    def areas(self) -> FloatArray:
        """(F, O) share of a frame's depth pixels that lie on an object."""
        counts = [np.bincount(one.owners[one.owners >= 0], minlength=len(self.labels)) for one in self.pixels]
        sizes = [max(len(one.owners), 1) for one in self.pixels]
        return np.asarray(np.reshape(counts, (-1, len(self.labels))) / np.array(sizes)[:, None], dtype=np.float64)

    @cached_property
    def names(self) -> list[str]:
        """Labels that may be asked about: words for single things that end where their box ends."""
        return sorted({one for one in self.labels if _NAME.fullmatch(one) and is_thing(one) and is_bounded(one)})

    def list_instances(self, name: str) -> list[int]:
        """The objects of this label."""
        return [k for k, label in enumerate(self.labels) if label == name]

    def list_alike(self, name: str) -> list[int]:
        """The objects that a reader could call by this name: of this label, of one with more or with fewer words such
        as "office chair" for "chair", of labels that are used for one another, and those that may hold such a one."""
        words = set(name.split())
        alike = _PART_OF.get(name, frozenset()).union(*(group for group in _ALIKE if name in group))
        said = zip(self.labels, self._words, strict=True)
        return [k for k, (label, its) in enumerate(said) if words <= its or its <= words or label in alike]

    def list_seen_m(self, rows: Iterable[int], indices: Iterable[int]) -> FloatArray:
        """(N, 3) the points of these objects' surfaces that one of the frames shows, in the world, meters."""
        seen, wanted = np.zeros(len(self._points_m), dtype=bool), np.zeros(len(self.labels), dtype=bool)
        wanted[list(indices)] = True
        for row in rows:
            seen[self._seen.points[row]] = True
        return np.asarray(self._points_m[seen & wanted[self._owners]])

    def list_spots(self, rows: Iterable[int], names: Sequence[str]) -> list[list[tuple[str, int, int]]]:
        """Of each frame, name and pixel (u, v) of the objects with these names that it shows beyond doubt."""
        spots = []
        for row in rows:
            frame, found = self._frames[row], []
            for k in (k for k in np.flatnonzero(self.shown[row]).tolist() if self.labels[k] in names):
                seen = self._seen.points[row]
                middle_m = np.median(self._points_m[seen[self._owners[seen] == k]], axis=0, keepdims=True)
                uv_px, _ = projection.project_world(frame.camera, frame.world_from_camera, middle_m)
                found.append((self.labels[k], *np.rint(uv_px[0]).astype(int).tolist()))
            spots.append(found)
        return spots

    def list_points_m(self, rows: Iterable[int], index: int) -> FloatArray:
        """(N, 3) the points that frames measured on an object, in the world, meters."""
        return np.concatenate(
            [np.zeros((0, 3)), *(self.pixels[row].points_m[self.pixels[row].owners == index] for row in rows)]
        )

    def measure_shown(self, rows: Sequence[int], names: Sequence[str]) -> FloatArray:
        """(names,) the best share of an object of each name in the frames `rows`; 0 where none shows any, nan where it
        cannot be said."""
        return np.array([self._find_best(rows, name) for name in names])

    def _find_best(self, rows: Sequence[int], name: str) -> float:
        own = np.ix_(rows, self.list_instances(name))
        if self.shown[own].any():
            return float(self.shares[own][self.shown[own]].max())
        return 0.0 if self.hidden[np.ix_(rows, self.list_alike(name))].all() else float("nan")


_FOUND: WeakKeyDictionary[SceneView, Sightings] = WeakKeyDictionary()
_LINKS: WeakKeyDictionary[SceneView, BoolArray] = WeakKeyDictionary()


def get_sightings(view: SceneView) -> Sightings:
    """Those of a scene."""
    if view not in _FOUND:
        _FOUND[view] = Sightings(view)
    return _FOUND[view]


def find_links(view: SceneView) -> BoolArray:
    """(F, F) whether a reader can tell how two frames lie to each other: they see part of the same, and it has
    features."""
    if view not in _LINKS:
        links = _LINKS[view] = view.mutual_overlap >= LINK_OVERLAP
        for i, j in np.argwhere(np.triu(links, 1)).tolist():
            links[i, j] = links[j, i] = len(match_features(view.frames[i], view.frames[j])) >= LINK_MATCHES
    return _LINKS[view]
