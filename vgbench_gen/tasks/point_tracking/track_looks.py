"""How much a place of one image looks like a place of another, without any understanding.

A tracked point keeps its colour and much of its surroundings, so among places drawn blindly it is the one that looks
like the query. Wrong options are therefore drawn among places that look more like the query than the right one as well
as among others, and sets are balanced in both looks (`docs/validity.md#balanced-selection`).

A look is (2,), less for the more alike: the difference of mean colour inside a marker (of 255), and one minus the
correlation of the surroundings as they are, neither turned nor scaled.
"""

from __future__ import annotations

from dataclasses import dataclass
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, Camera, ColorArray, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.tasks.point_tracking.tracked import gate_grid

# Colours are compared in the image at 640, patches at half of that. Radii there: what a marker leaves open, and the
# surroundings.
_CLOSE, _PATCH = 3, 12
_GROUNDS_KEPT = 32
_COLOR_STEPS = 256  # 16 bits are half of a float, and as good for a mean of bytes
_MOST_ROWS = 30000  # OpenCV takes maps of less than 32767
# How far two looks may be apart and still count as alike: colours of 255 and a share of them, and correlations.
_COLOR_ALIKE, _COLOR_SHARE, _PATCH_ALIKE = 2.0, 0.15, 0.06


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
    color: npt.NDArray[np.uint16]
    """Mean colours inside a marker, one for each pixel of the image at 640, in steps of 1 / `_COLOR_STEPS`."""
    place_colors: FloatArray
    """(n, 3) what `sample_colors` gives for `uv_px`."""
    grey: ColorArray
    """The grey image at 320, continued by reflection for `_PATCH` pixels on every side."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the grid."""
        rows, columns = (side - 2 * _PATCH for side in self.grey.shape[:2])
        return columns, rows

    def sample_colors(self, uv_px: FloatArray) -> FloatArray:
        """(n, 3) colours inside a marker at pixels (n, 2)."""
        return _sample_colors(self.color, self.camera, uv_px)

    def sample_patch(self, uv_px: FloatArray) -> ColorArray:
        """The grey surroundings of a pixel (2,), a square of `_PATCH` pixels at 320 on every side of it."""
        center = (uv_px + 0.5) * (self.size[0] / self.camera.width) - 0.5 + _PATCH
        side = 2 * _PATCH + 1
        found = cv2.getRectSubPix(self.grey, (side, side), (float(center[0]), float(center[1])))
        return np.asarray(found, dtype=np.uint8)


# A ground must not hold its frame, which would keep it and its pixels for good.
_GROUNDS: WeakKeyDictionary[ViewFrame, Ground] = WeakKeyDictionary()


def get_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The frame's ground; made where it is not kept."""
    if frame not in _GROUNDS:
        while len(_GROUNDS) >= _GROUNDS_KEPT:
            _GROUNDS.pop(next(iter(_GROUNDS)))
        _GROUNDS[frame] = _make_ground(frame, view)
    return _GROUNDS[frame]


class Looks:
    """How unlike one pixel of an image the places of another image look."""

    def __init__(self, first: Ground, query_px: FloatArray, second: Ground) -> None:
        """
        Args:
            first: ground of the query.
            query_px: (2,) pixel of its image.
            second: ground of the places.
        """
        self._ground = second
        self._template, self._color = first.sample_patch(query_px), first.sample_colors(query_px[None])
        self._patch_off = 1 - _correlate(second.grey, self._template)[second.cells[:, 1], second.cells[:, 0]]

    def of_pixel(self, uv_px: FloatArray) -> FloatArray:
        """(2,) the look of any pixel (2,) of the second image, see the module."""
        off = np.linalg.norm(self._ground.sample_colors(uv_px[None]) - self._color)
        # It lies anywhere between cells, and would look less like itself than it does if it were moved to one.
        return np.array([off, 1 - _correlate(self._ground.sample_patch(uv_px), self._template)[0, 0]])

    def of_places(self, rows: IntArray) -> FloatArray:
        """(n, 2) the looks of some places (n,) of the ground."""
        red, green, blue = (self._ground.place_colors[rows] - self._color).T
        return np.stack([np.sqrt(red**2 + green**2 + blue**2), self._patch_off[rows]], axis=1)

    def find_alike(self, wanted: FloatArray, loose: float) -> IntArray:
        """The places that look as the look wanted (2,), `loose` times as wide as usual."""
        rows = np.flatnonzero(np.abs(self._patch_off - wanted[1]) <= loose * _PATCH_ALIKE)
        return rows[_are_alike(self.of_places(rows), wanted, loose)]


class SortedLooks:
    """Looks in which many are looked up that are alike."""

    def __init__(self, looks: FloatArray) -> None:
        """looks: (n, 2)."""
        self.looks = looks
        self._order = np.argsort(looks[:, 1])
        self._patch_off = looks[self._order, 1]

    def find_alike(self, wanted: FloatArray, loose: float) -> IntArray:
        """The looks that are as the one wanted (2,), `loose` times as wide as usual."""
        reach = loose * _PATCH_ALIKE
        low, high = np.searchsorted(self._patch_off, (wanted[1] - reach, wanted[1] + reach))
        rows = self._order[low:high]
        return rows[_are_alike(self.looks[rows], wanted, loose)]


def _are_alike(looks: FloatArray, wanted: FloatArray, loose: float) -> BoolArray:
    color_off, patch_off = np.abs(looks - wanted).T / loose
    return np.asarray((color_off <= _COLOR_ALIKE + _COLOR_SHARE * wanted[0]) & (patch_off <= _PATCH_ALIKE))


def look_at_pairs(first: Ground, uv_1: FloatArray, second: Ground, uv_2: FloatArray) -> FloatArray:
    """(n, 2) how unlike pixels uv_1 (n, 2) of the first image pixels uv_2 (n, 2) of the second look."""
    off = np.linalg.norm(second.sample_colors(uv_2) - first.sample_colors(uv_1), axis=1)
    pairs = zip(uv_1, uv_2, strict=True)
    like = [_correlate(second.sample_patch(b), first.sample_patch(a))[0, 0] for a, b in pairs]
    return np.column_stack([off, 1 - np.array(like)])


def _make_ground(frame: ViewFrame, view: SceneView) -> Ground:
    at_color = frame.small_color()
    columns, rows = (max(1, size // 2) for size in at_color.shape[1::-1])
    at_grey = cv2.resize(at_color, (columns, rows), interpolation=cv2.INTER_AREA)
    u_px, v_px = (
        np.floor((np.arange(cells) + 0.5) * (size / cells))
        for cells, size in zip((columns, rows), frame.camera.size, strict=True)
    )
    stands, z_m = gate_grid(frame, u_px, v_px, view)
    cells = np.argwhere(stands)[:, ::-1]
    uv_px = np.stack([u_px[cells[:, 0]], v_px[cells[:, 1]]], axis=1)
    close = cv2.blur(at_color.astype(np.uint16) * _COLOR_STEPS, (2 * _CLOSE + 1,) * 2).astype(np.uint16, copy=False)
    grey = cv2.cvtColor(at_grey, cv2.COLOR_RGB2GRAY)
    grey = cv2.copyMakeBorder(grey, _PATCH, _PATCH, _PATCH, _PATCH, cv2.BORDER_REFLECT_101)
    points_m = projection.back_project(frame.camera, uv_px, z_m[stands])
    colors = _sample_colors(close, frame.camera, uv_px)
    return Ground(frame.camera, uv_px, cells, points_m, close, colors, np.asarray(grey, dtype=np.uint8))


def _sample_colors(image: npt.NDArray[np.uint16], camera: Camera, uv_px: FloatArray) -> FloatArray:
    at = ((uv_px + 0.5) * (image.shape[1] / camera.width) - 0.5).astype(np.float32)
    parts = [np.zeros((0, 3))]
    for k in range(0, len(at), _MOST_ROWS):
        some = at[k : k + _MOST_ROWS]
        found = cv2.remap(image, some[:, :1].copy(), some[:, 1:].copy(), cv2.INTER_LINEAR)
        parts.append(np.asarray(found, dtype=np.float64).reshape(-1, 3) / _COLOR_STEPS)
    return np.concatenate(parts)


def _correlate(image: ColorArray, template: ColorArray) -> FloatArray:
    like = np.asarray(cv2.matchTemplate(image, template, cv2.TM_CCOEFF_NORMED), dtype=np.float64)
    return np.nan_to_num(like, nan=0.0, posinf=0.0, neginf=0.0)  # where one of both is of a single grey
