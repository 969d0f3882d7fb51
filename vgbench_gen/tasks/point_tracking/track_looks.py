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
from vgbench_gen.store.pictures import decode
from vgbench_gen.tasks.point_tracking.tracked import gate_pixels

_COLOR_SIDE, _GREY_SIDE = 640, 320  # long sides of the images on which colours and patches are compared
_CLOSE, _PATCH = 3, 12  # radii there: what a marker leaves open, and the surroundings
_GROUNDS_KEPT = 32
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
    color: npt.NDArray[np.float32]
    """Mean colours inside a marker, one for each pixel of the image at 320."""
    grey: ColorArray
    """The grey image at 320, continued by reflection for `_PATCH` pixels on every side."""

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the grid."""
        rows, columns = self.color.shape[:2]
        return columns, rows

    def find_cell(self, uv_px: FloatArray) -> tuple[int, int]:
        """Column and row of the grid at a pixel (2,) of the image."""
        column, row = (int(x) for x in np.floor((uv_px + 0.5) * (self.size[0] / self.camera.width)))
        return min(column, self.size[0] - 1), min(row, self.size[1] - 1)


# A ground must not hold its frame, which would keep it and its pixels for good.
_GROUNDS: WeakKeyDictionary[ViewFrame, Ground] = WeakKeyDictionary()


def get_ground(frame: ViewFrame, view: SceneView) -> Ground:
    """The frame's ground; made where it is not kept."""
    if frame not in _GROUNDS:
        while len(_GROUNDS) >= _GROUNDS_KEPT:
            _GROUNDS.pop(next(iter(_GROUNDS)))
        _GROUNDS[frame] = _make_ground(frame, view)
    return _GROUNDS[frame]


def compare_looks(
    first: Ground, query_px: FloatArray, second: Ground, rows: IntArray, own_px: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """How unlike the query some places look, and how unlike a point of the same image.

    Args:
        first: ground of the query.
        query_px: (2,) pixel of its image.
        second: ground of the places.
        rows: (n,) which places of it.
        own_px: (2,) pixel of the second image.

    Returns:
        (n, 2) looks of the places and (2,) that of the point, see the module.
    """
    column, row = first.find_cell(query_px)
    template = np.ascontiguousarray(first.grey[row : row + 2 * _PATCH + 1, column : column + 2 * _PATCH + 1])
    like = np.asarray(cv2.matchTemplate(second.grey, template, cv2.TM_CCOEFF_NORMED), dtype=np.float64)
    like = np.nan_to_num(like, nan=0.0, posinf=0.0, neginf=0.0)  # where one of both is of a single grey
    cells = np.concatenate([second.cells[rows], [second.find_cell(own_px)]])
    change = second.color[cells[:, 1], cells[:, 0]].astype(np.float64) - first.color[row, column]
    looks = np.stack([np.linalg.norm(change, axis=1), 1 - like[cells[:, 1], cells[:, 0]]], axis=1)
    return looks[:-1], looks[-1]


def find_alike(looks: FloatArray, wanted: FloatArray, loose: float) -> BoolArray:
    """(n,) which looks (n, 2) are so near to the one wanted (2,) that they count as alike, `loose` times as wide."""
    color_off, patch_off = np.abs(looks - wanted).T / loose
    return np.asarray((color_off <= _COLOR_ALIKE + _COLOR_SHARE * wanted[0]) & (patch_off <= _PATCH_ALIKE))


def look_at_pairs(first: Ground, uv_1: FloatArray, second: Ground, uv_2: FloatArray) -> FloatArray:
    """(n, 2) how unlike pixels uv_1 (n, 2) of the first image pixels uv_2 (n, 2) of the second look."""
    none = np.zeros(0, dtype=np.int64)
    return np.array([compare_looks(first, a, second, none, b)[1] for a, b in zip(uv_1, uv_2, strict=True)])


def _make_ground(frame: ViewFrame, view: SceneView) -> Ground:
    color = decode(frame.base_image()[0], frame.id)
    at_color, at_grey = (_shrink_image(color, side) for side in (_COLOR_SIDE, _GREY_SIDE))
    rows, columns = at_grey.shape[:2]
    x, y = np.meshgrid(np.arange(columns), np.arange(rows))
    cells = np.stack([x.ravel(), y.ravel()], axis=1)
    uv_px = np.floor((cells + 0.5) * (np.array(frame.camera.size) / (columns, rows)))
    stands = gate_pixels(frame, uv_px, view)
    close = cv2.blur(at_color.astype(np.float32), (2 * _CLOSE + 1,) * 2)
    close = cv2.resize(close, (columns, rows), interpolation=cv2.INTER_AREA)
    grey = cv2.cvtColor(at_grey, cv2.COLOR_RGB2GRAY)
    grey = cv2.copyMakeBorder(grey, _PATCH, _PATCH, _PATCH, _PATCH, cv2.BORDER_REFLECT_101)
    uv_px, cells = uv_px[stands], cells[stands]
    points_m = projection.back_project(frame.camera, uv_px, frame.depth_at(uv_px))
    return Ground(
        frame.camera, uv_px, cells, points_m, np.asarray(close, dtype=np.float32), np.asarray(grey, dtype=np.uint8)
    )


def _shrink_image(color: ColorArray, side: int) -> ColorArray:
    height, width = color.shape[:2]
    scale = min(1.0, side / max(width, height))
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return np.asarray(cv2.resize(color, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
