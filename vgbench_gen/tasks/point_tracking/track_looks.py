"""How a place of one image looks beside a place of another, and where an image looks as much like a query.

A tracked point keeps its colour and much of its surroundings, so among places drawn blindly it is the one that looks
like the query. Wrong options are therefore places that look as much like the query as tracked points of the same two
images look like theirs (`docs/validity.md#point-tracking`: "most similar patch").

A look is (7,): the difference of mean colour (of 255; the other image less the query's), (3,) inside a marker and (3,)
around it, and the correlation of the surroundings as they are, neither turned nor scaled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from weakref import WeakKeyDictionary

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, ColorArray, FloatArray, IntArray
from vgbench_gen.geometry import projection
from vgbench_gen.scenes.view import SceneView, ViewFrame
from vgbench_gen.store.pictures import decode
from vgbench_gen.tasks.point_tracking.tracked import gate_pixels

_COLOR_SIDE, _GREY_SIDE = 640, 320  # long sides of the images on which colours and patches are compared
_CLOSE, _AROUND, _PATCH = 3, 16, 12  # radii there: what a marker leaves open, and a ring around its strokes
_GROUNDS_KEPT = 32
_MOST_ROWS = 30000  # OpenCV takes maps of less than 32767
_STEPS = 128.0  # of a grey level that kept colours tell apart
_COLOR = slice(0, 3), slice(3, 6)
_ALIKE = 6


@dataclass(frozen=True, slots=True)
class Likeness:
    """How far two looks may be apart and still count as equal. Colours are of 255."""

    strength: float = 1.0
    """Between the lengths of both changes of the colour inside the marker."""
    off: float = 6.0
    """Between both changes of the colour inside the marker, as vectors."""
    around: float = 4.0
    """Between the lengths of both changes of the colour around the marker."""
    relative: float = 0.15
    """The share of the change itself that is allowed on top of each of the three."""
    patch: float = 0.06
    """Between both correlations of the surroundings."""


_WITHIN = Likeness()


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
    close: npt.NDArray[np.uint16]
    """Mean colours inside a marker times `_STEPS`, one for each pixel of the image at 640."""
    around: npt.NDArray[np.uint16]
    """Mean colours around a marker times `_STEPS`, one for each pixel of the image at 320."""
    grey: ColorArray
    """The grey image at 320, continued by reflection for `_PATCH` pixels on every side."""
    place_colors: npt.NDArray[np.float32]
    """(n, 6) what `sample_colors` gives for `uv_px`."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the grid."""
        rows, columns = self.around.shape[:2]
        return columns, rows

    def sample_colors(self, uv_px: FloatArray) -> FloatArray:
        """(N, 6) colours inside a marker and around it, at pixels (N, 2)."""
        return np.concatenate([self._interpolate(image, uv_px) for image in (self.close, self.around)], axis=1)

    def sample_patches(self, uv_px: FloatArray) -> npt.NDArray[np.float32]:
        """(N, p, p) grey surroundings of pixels (N, 2)."""
        center = self._scale_pixels(uv_px, self.size[0]) + _PATCH
        step = np.arange(-_PATCH, _PATCH + 1)
        x, y = center[:, 0, None] + step, center[:, 1, None] + step
        side = len(step)
        maps = (np.repeat(x[:, None], side, axis=1), np.repeat(y[:, :, None], side, axis=2))
        flat_x, flat_y = (m.reshape(-1, side).astype(np.float32) for m in maps)
        found = cv2.remap(self.grey, flat_x, flat_y, cv2.INTER_LINEAR)
        return np.asarray(found, dtype=np.float32).reshape(-1, side, side)

    def _interpolate(self, image: npt.NDArray[np.uint16], uv_px: FloatArray) -> FloatArray:
        at = self._scale_pixels(uv_px, image.shape[1]).astype(np.float32)
        parts = [np.zeros((0, 3))]
        for k in range(0, len(at), _MOST_ROWS):
            some = at[k : k + _MOST_ROWS]
            found = cv2.remap(image, some[:, :1].copy(), some[:, 1:].copy(), cv2.INTER_LINEAR)
            parts.append(np.asarray(found, dtype=np.float64).reshape(-1, 3) / _STEPS)
        return np.concatenate(parts)

    def _scale_pixels(self, uv_px: FloatArray, columns: int) -> FloatArray:
        return (uv_px + 0.5) * (columns / self.camera.width) - 0.5


# A ground must not hold its frame, which would keep it and its pixels for good.
_GROUNDS: WeakKeyDictionary[ViewFrame, Ground] = WeakKeyDictionary()


def get_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The frame's ground; made where it is not kept."""
    if frame not in _GROUNDS:
        while len(_GROUNDS) >= _GROUNDS_KEPT:
            _GROUNDS.pop(next(iter(_GROUNDS)))
        _GROUNDS[frame] = _make_ground(frame, view)
    return _GROUNDS[frame]


def compare_looks(first: Ground, uv_1: FloatArray, second: Ground, uv_2: FloatArray) -> FloatArray:
    """(N, 7) looks of pixels uv_2 (N, 2) beside uv_1 (N, 2)."""
    a, b = (where.sample_patches(uv).reshape(len(uv), -1) for where, uv in ((first, uv_1), (second, uv_2)))
    a, b = a - a.mean(axis=1, keepdims=True), b - b.mean(axis=1, keepdims=True)
    strength = np.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    like = (a * b).sum(axis=1) / np.maximum(strength, 1e-6)
    change = second.sample_colors(uv_2) - first.sample_colors(uv_1)
    return np.concatenate([change, like[:, None]], axis=1, dtype=np.float64)


class Around:
    """Looks of places of the second ground beside one pixel of the first image.

    Args:
        first: ground of the query.
        uv_px: (2,) the query.
        second: ground of the places.
        rows: (n,) which places.
    """

    def __init__(self, first: Ground, uv_px: FloatArray, second: Ground, rows: IntArray) -> None:
        template = np.floor(first.sample_patches(uv_px[None])[0] + 0.5).astype(np.uint8)
        like = np.asarray(cv2.matchTemplate(second.grey, template, cv2.TM_CCOEFF_NORMED))
        self._like = like[second.cells[rows, 1], second.cells[rows, 0]]
        self._change = (second.place_colors[rows] - first.sample_colors(uv_px[None])).astype(np.float32)
        squares = self._change**2
        self._close, self._around = (np.sqrt(squares[:, part].sum(axis=1)) for part in _COLOR)

    def find_alike(self, wanted: FloatArray, loose: float = 1.0) -> tuple[IntArray, FloatArray]:
        """(m,) which rows look as `wanted` (7,) does, all tolerances `loose` times as wide, and (m,) how far they
        are from that.
        """
        close, around = (float(np.linalg.norm(wanted[part])) for part in _COLOR)
        patch_off = np.abs(self._like - wanted[_ALIKE]) / _WITHIN.patch
        close_off = np.abs(self._close - close) / (_WITHIN.strength + _WITHIN.relative * close)
        good = (patch_off <= loose) & (close_off <= loose)
        good &= np.abs(self._around - around) <= loose * (_WITHIN.around + _WITHIN.relative * around)
        rows = np.flatnonzero(good)
        turned_off = np.linalg.norm(self._change[rows, :3] - wanted[:3], axis=1)
        rows = rows[turned_off <= loose * (_WITHIN.off + _WITHIN.relative * close)]
        return rows, np.asarray(np.hypot(patch_off[rows], close_off[rows]), dtype=np.float64)


def turn_looks(look: FloatArray) -> FloatArray:
    """The same looks (N, 7) from the other image's side."""
    back: FloatArray = look * np.array([-1.0] * 6 + [1.0])
    return back


def _make_ground(frame: ViewFrame, view: SceneView) -> Ground:
    color = decode(frame.base_image()[0], frame.id)
    at_color, at_grey = (_shrink_image(color, side) for side in (_COLOR_SIDE, _GREY_SIDE))
    rows, columns = at_grey.shape[:2]
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    cells = np.stack([x.ravel(), y.ravel()], axis=1)
    uv_px = np.floor((cells + 0.5) * (np.array(frame.camera.size) / (columns, rows)))
    stands = gate_pixels(frame, uv_px, view)
    close, around = (
        (_STEPS * cv2.blur(image.astype(np.float32), (2 * radius + 1,) * 2)).astype(np.uint16)
        for image, radius in ((at_color, _CLOSE), (at_grey, _AROUND // 2))
    )
    grey = cv2.cvtColor(at_grey, cv2.COLOR_RGB2GRAY)
    grey = cv2.copyMakeBorder(grey, _PATCH, _PATCH, _PATCH, _PATCH, cv2.BORDER_REFLECT_101)
    uv_px, cells = uv_px[stands], cells[stands]
    points_m = projection.back_project(frame.camera, uv_px, frame.depth_at(uv_px))
    kept_grey, none = np.asarray(grey, dtype=np.uint8), np.zeros((0, 6), np.float32)
    made = Ground(frame.camera, uv_px, cells, points_m, close, around, kept_grey, none)
    return replace(made, place_colors=made.sample_colors(uv_px).astype(np.float32)) if len(uv_px) else made


def _shrink_image(color: ColorArray, side: int) -> ColorArray:
    height, width = color.shape[:2]
    scale = min(1.0, side / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(color, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
