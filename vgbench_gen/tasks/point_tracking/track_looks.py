"""How much a place of one image looks like a place of another, without any understanding.

A tracked point keeps its colour and much of its surroundings, so among places drawn blindly it is the one that looks
like the query. Wrong options are therefore drawn among places that look more like the query than the right one as well
as among others, and sets are balanced in all parts of a look (`docs/validity.md#balanced-selection`).

A look is (PARTS,), less for the more alike: the differences in lightness, in hue and chroma (CIE Lab) and in contrast,
as a logarithm, of what is inside a marker; those in color and in contrast of the surroundings; and one minus the
correlation of the surroundings as they are, neither turned nor scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, Camera, ColorArray, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.point_tracking.tracked import Tracks, gate_grid

# Colours are compared in the image at 640, patches at half of that. Radii there: what a marker leaves open, and the
# surroundings.
_CLOSE, _PATCH = 4, 12
_GROUNDS_KEPT = 32
_MOST_ROWS = 30000  # OpenCV takes maps of less than 32767
PARTS = 6
# How far two looks may be apart and still count as alike, and a share of them in addition.
_ALIKE = np.array([0.6, 0.6, 0.25, 1.5, 0.15, 0.06])
_SHARE = np.array([0.15, 0.15, 0.15, 0.15, 0.15, 0.0])


@dataclass(frozen=True, slots=True, eq=False)
class Ground:
    """Places of a frame that could carry a point, a grid of two pixels at 640, and what their looks are made of."""

    camera: Camera
    """Camera of the frame, at delivered size."""
    uv_px: FloatArray
    """(n, 2) whole pixels."""
    cells: IntArray
    """(n, 2) column and row of each place in the image at 320."""
    points_m: FloatArray
    """(n, 3) their points in the camera's frame."""
    inside: npt.NDArray[np.float32]
    """Mean color inside a marker, CIE Lab, and logarithm of the contrast, (rows, columns, 4) of the image at 640."""
    around: npt.NDArray[np.float32]
    """The same of the surroundings, of the image at 320."""
    places: FloatArray
    """(n, 8) what `sample` gives for `uv_px`."""
    grey: ColorArray
    """The grey image at 320, continued by reflection for `_PATCH` pixels on every side."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the grid."""
        rows, columns = (side - 2 * _PATCH for side in self.grey.shape[:2])
        return columns, rows

    def sample(self, uv_px: FloatArray) -> FloatArray:
        """(n, 8) color and contrast inside a marker and of the surroundings at pixels (n, 2)."""
        return _sample((self.inside, self.around), self.camera, uv_px)

    def sample_patch(self, uv_px: FloatArray) -> ColorArray:
        """The grey surroundings of a pixel (2,), a square of `_PATCH` pixels at 320 on every side of it."""
        center = (uv_px + 0.5) * (self.size[0] / self.camera.width) - 0.5 + _PATCH
        side = 2 * _PATCH + 1
        found = cv2.getRectSubPix(self.grey, (side, side), (float(center[0]), float(center[1])))
        return np.asarray(found, dtype=np.uint8)


# A ground must not hold its frame, which would keep it and its pixels for good.
GROUNDS: WeakKeyDictionary[ViewFrame, Ground] = WeakKeyDictionary()


def get_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The frame's ground; made where it is not kept."""
    if frame not in GROUNDS:
        while len(GROUNDS) >= _GROUNDS_KEPT:
            GROUNDS.pop(next(iter(GROUNDS)))
        GROUNDS[frame] = _make_ground(frame, view)
    return GROUNDS[frame]


class Looks:
    """How unlike one pixel of an image the places of another image look."""

    def __init__(self, first: Ground, query_px: FloatArray, second: Ground) -> None:
        """
        Args:
            first: ground of the query.
            query_px: (2,) pixel of its image.
            second: ground of the places.
        """
        self.ground = second
        self._template, self._query = first.sample_patch(query_px), first.sample(query_px[None])
        self._patch_off = 1 - _correlate(second.grey, self._template)[second.cells[:, 1], second.cells[:, 0]]

    def of_pixel(self, uv_px: FloatArray) -> FloatArray:
        """(PARTS,) the look of any pixel (2,) of the second image, see the module."""
        off = _compare(self.ground.sample(uv_px[None]), self._query)[0]
        # It lies anywhere between cells, and would look less like itself than it does if it were moved to one.
        return np.append(off, 1 - _correlate(self.ground.sample_patch(uv_px), self._template)[0, 0])

    def of_places(self, rows: IntArray) -> FloatArray:
        """(n, PARTS) the looks of some places (n,) of the ground."""
        return np.column_stack([_compare(self.ground.places[rows], self._query), self._patch_off[rows]])

    def find_alike(self, wanted: FloatArray, loose: float) -> IntArray:
        """The places that look as the look wanted (PARTS,), `loose` times as wide as usual."""
        rows = np.flatnonzero(np.abs(self._patch_off - wanted[-1]) <= loose * _ALIKE[-1])
        return rows[_are_alike(self.of_places(rows), wanted, loose)]


def look_for(tracks: Tracks, view: SceneView, k: int) -> Looks:
    """How unlike row k of the tracks, in its first image, the places of its second image look."""
    first, second = (get_ground(frame, view) for frame in (tracks.first, tracks.second))
    return Looks(first, tracks.uv_a[k], second)


class SortedLooks:
    """Looks in which many are looked up that are alike."""

    def __init__(self, looks: FloatArray) -> None:
        """looks: (n, PARTS)."""
        self.looks = looks
        self._order = np.argsort(looks[:, -1])
        self._patch_off = looks[self._order, -1]

    def find_alike(self, wanted: FloatArray, loose: float) -> IntArray:
        """The looks that are as the one wanted (PARTS,), `loose` times as wide as usual."""
        reach = loose * _ALIKE[-1]
        low, high = np.searchsorted(self._patch_off, (wanted[-1] - reach, wanted[-1] + reach))
        rows = self._order[low:high]
        return rows[_are_alike(self.looks[rows], wanted, loose)]


def _are_alike(looks: FloatArray, wanted: FloatArray, loose: float) -> BoolArray:
    return np.asarray((np.abs(looks - wanted) <= loose * (_ALIKE + _SHARE * wanted)).all(axis=1))


def look_at_pairs(first: Ground, uv_1: FloatArray, second: Ground, uv_2: FloatArray) -> FloatArray:
    """(n, PARTS) how unlike pixels uv_1 (n, 2) of the first image pixels uv_2 (n, 2) of the second look."""
    off = _compare(second.sample(uv_2), first.sample(uv_1))
    pairs = zip(uv_1, uv_2, strict=True)
    like = [_correlate(second.sample_patch(b), first.sample_patch(a))[0, 0] for a, b in pairs]
    return np.column_stack([off, 1 - np.array(like)])


def _make_ground(frame: ViewFrame, view: SceneView) -> Ground:
    at_color = frame.small_color()
    columns, rows = (max(1, size // 2) for size in at_color.shape[1::-1])
    at_half = cv2.resize(at_color, (columns, rows), interpolation=cv2.INTER_AREA)
    u_px, v_px = (
        np.floor((np.arange(cells) + 0.5) * (size / cells))
        for cells, size in zip((columns, rows), frame.camera.size, strict=True)
    )
    stands, z_m = gate_grid(frame, u_px, v_px, view)
    cells = np.argwhere(stands)[:, ::-1]
    uv_px = np.stack([u_px[cells[:, 0]], v_px[cells[:, 1]]], axis=1)
    grey = cv2.cvtColor(at_half, cv2.COLOR_RGB2GRAY)
    grey = cv2.copyMakeBorder(grey, _PATCH, _PATCH, _PATCH, _PATCH, cv2.BORDER_REFLECT_101)
    points_m = projection.back_project(frame.camera, uv_px, z_m[stands])
    areas = _see_areas(at_color, _CLOSE), _see_areas(np.asarray(at_half, dtype=np.uint8), _PATCH)
    places = _sample(areas, frame.camera, uv_px)
    return Ground(frame.camera, uv_px, cells, points_m, *areas, places, np.asarray(grey, dtype=np.uint8))


def _see_areas(image: ColorArray, reach: int) -> npt.NDArray[np.float32]:
    """(rows, columns, 4) mean color (CIE Lab) and logarithm of the contrast in the square around each pixel."""
    lab = cv2.cvtColor(image.astype(np.float32) / 255, cv2.COLOR_RGB2LAB)
    lab, squares = (cv2.blur(x, (2 * reach + 1,) * 2) for x in (lab, lab[..., 0] ** 2))
    contrast = np.log(np.maximum(squares - lab[..., 0] ** 2, 0) + 1) / 2
    return np.dstack([lab, contrast]).astype(np.float32)


def _sample(areas: Sequence[npt.NDArray[np.float32]], camera: Camera, uv_px: FloatArray) -> FloatArray:
    parts = [np.zeros((0, 8))]
    for k in range(0, len(uv_px), _MOST_ROWS):
        found = []
        for image in areas:
            at = ((uv_px[k : k + _MOST_ROWS] + 0.5) * (image.shape[1] / camera.width) - 0.5).astype(np.float32)
            seen = cv2.remap(image, at[:, :1].copy(), at[:, 1:].copy(), cv2.INTER_LINEAR)
            found.append(seen.reshape(-1, 4).astype(np.float64))
        parts.append(np.concatenate(found, axis=1))
    return np.concatenate(parts)


def _compare(seen: FloatArray, query: FloatArray) -> FloatArray:
    """(n, PARTS - 1) how unlike what was sampled at places (n, 8) is what was at others; all but the last part."""
    off = np.abs(seen - query)
    around = np.sqrt((off[:, 4:7] ** 2).sum(axis=1))
    return np.stack([off[:, 0], np.hypot(off[:, 1], off[:, 2]), off[:, 3], around, off[:, 7]], axis=1)


def _correlate(image: ColorArray, template: ColorArray) -> FloatArray:
    like = np.asarray(cv2.matchTemplate(image, template, cv2.TM_CCOEFF_NORMED), dtype=np.float64)
    return np.nan_to_num(like, nan=0.0, posinf=0.0, neginf=0.0)  # where one of both is of a single grey
