"""Statistics of many rectangles of one depth image at once, through summed-area tables.

On a plane the inverse of the depth is linear in the pixel, so a plane is fitted to a rectangle from sums over it alone:
of the inverse depth, of its products with the pixel, and of the pixel's own. Frame: camera of the depth image; meters.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, DepthArray, FloatArray, IntArray

_PLANE_WIDTH = (
    256  # planes are fitted to every n-th pixel, so that about this many columns are left: enough for a plane
)
_FEWEST = 6  # pixels from which a plane is fitted to a quarter of a rectangle


@dataclass(frozen=True, slots=True, eq=False)
class PlaneFits:
    """Planes fitted to rectangles (N,)."""

    depth_m: FloatArray
    """(N,) depth at which the planes are, meters: the harmonic mean of what was measured."""
    residual_m: FloatArray
    """(N,) root mean square of how far the measured depth is off the plane along the viewing axis, meters."""
    spread_deg: FloatArray
    """(N,) largest angle between the plane and the planes of the four quarters, degrees; 90 where a quarter has too
    few pixels of known depth."""


class SummedDepth:
    """Summed-area tables of one depth image. Rectangles are (N, 4) whole depth pixels [x1, y1, x2, y2), ends excluded,
    within the image."""

    def __init__(self, camera: Camera, depth_m: DepthArray) -> None:
        self._camera = camera
        self._depth_m = depth_m
        self._stride = max(1, round(camera.width / _PLANE_WIDTH))

    def measure_means(self, rects: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """(share of pixels with known depth, their mean, their standard deviation), each (N,); 0 where none is
        known."""
        (x1, y1, x2, y2), table = rects.T, self._depth_table
        count, total, squares = (table[y2, x2] - table[y1, x2] - table[y2, x1] + table[y1, x1]).T
        n, area = np.maximum(count, 1), np.maximum((x2 - x1) * (y2 - y1), 1)
        mean = total / n
        return count / area, mean, np.sqrt(np.maximum(squares / n - mean**2, 0))

    def fit_planes(self, rects: IntArray) -> PlaneFits:
        """The plane of each rectangle, and how the planes of its quarters differ from it."""
        x1, y1, x2, y2 = -(-rects.T // self._stride)  # the first of the pixels looked at that is not before the edge
        columns, rows = (x1, (x1 + x2) // 2, x2), (y1, (y1 + y2) // 2, y2)
        at = [[self._plane_table[y, x] for x in columns] for y in rows]
        quarters = [at[j + 1][i + 1] - at[j][i + 1] - at[j + 1][i] + at[j][i] for j in range(2) for i in range(2)]
        whole = _Fit(np.sum(quarters, axis=0))
        normals, least = self._find_normals(whole), np.ones(len(rects))
        for part in map(_Fit, quarters):
            cosine = (self._find_normals(part) * normals).sum(axis=1)
            least = np.minimum(least, np.where(part.count >= _FEWEST, cosine, 0.0))
        depth_m = 1 / np.maximum(whole.mean, 1e-9)
        return PlaneFits(depth_m, whole.deviation * depth_m**2, np.degrees(np.arccos(np.clip(least, 0.0, 1.0))))

    @cached_property
    def _depth_table(self) -> FloatArray:
        z = self._depth_m.astype(np.float64)
        return _sum_up(z > 0, z, z * z)

    @cached_property
    def _plane_table(self) -> FloatArray:
        z = self._depth_m[:: self._stride, :: self._stride].astype(np.float64)
        inverse = np.divide(1.0, z, out=np.zeros_like(z), where=z > 0)
        # From the principal point, where the plane a u + b v + c = 1 / z has the normal (a fx, b fy, c).
        rows, columns = (np.arange(n, dtype=np.float64) * self._stride for n in z.shape)
        u, v, known = columns - self._camera.cx, rows[:, None] - self._camera.cy, z > 0
        pixels = known, known * u, known * v, known * u**2, known * (v * u), known * v**2
        return _sum_up(*pixels, inverse, inverse * u, inverse * v, inverse**2)

    def _find_normals(self, fit: _Fit) -> FloatArray:
        normals = np.stack([fit.slope_u * self._camera.fx, fit.slope_v * self._camera.fy, fit.offset], axis=1)
        return np.asarray(normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12))


class _Fit:
    """Least squares of the inverse depth over the pixel, from sums (N, 10) of what `SummedDepth` keeps."""

    def __init__(self, sums: FloatArray) -> None:
        self.count = sums[:, 0]
        u, v, uu, uv, vv, d, du, dv, dd = sums[:, 1:].T / np.maximum(self.count, 1)
        uu, uv, vv = uu - u * u, uv - u * v, vv - v * v
        du, dv, dd = du - d * u, dv - d * v, dd - d * d
        determinant = np.maximum(uu * vv - uv**2, 1e-9)
        self.mean = d
        self.slope_u, self.slope_v = (du * vv - dv * uv) / determinant, (dv * uu - du * uv) / determinant
        self.offset = d - self.slope_u * u - self.slope_v * v
        self.deviation = np.sqrt(np.maximum(dd - self.slope_u * du - self.slope_v * dv, 0))


def _sum_up(*values: npt.NDArray[Any]) -> FloatArray:
    """(h + 1, w + 1, n) sums of n images (h, w) over all that is above and left."""
    table = np.empty((values[0].shape[0] + 1, values[0].shape[1] + 1, len(values)))
    for k, image in enumerate(values):
        # One pass over the image; cumulative sums of NumPy, one axis after the other, take ten times as long.
        table[..., k] = cv2.integral(np.asarray(image, dtype=np.float64), sdepth=cv2.CV_64F)
    return table
