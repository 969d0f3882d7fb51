"""Pictures through a lens with distortion, made from pinhole pictures (`docs/formats.md#colmap-models`).

A wider pinhole picture is rendered and sampled where each pixel of the lens looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt
from scipy.interpolate import RectBivariateSpline

from vgbench_gen.core.types import Camera, FloatArray, IntArray
from vgbench_gen.geometry.cameras import resize_camera

_EXACT = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12)
_MARGIN_PX = 3
_KNOT_PX = 8
_ROWS = 32  # that are worked on at a time, for memory's sake


@dataclass(eq=False)
class LensImage:
    """The grid of pixels of one lens at one size."""

    model: str
    """The model of distortion: "OPENCV" (k1, k2, p1, p2) or "OPENCV_FISHEYE" (k1 to k4)."""
    camera: Camera
    """Intrinsics and size of the distorted picture."""
    distortion: tuple[float, float, float, float]
    """The four coefficients of the model."""
    focal_share: float = 1.0
    """The focal length of the pinhole picture that it is made from, as a share of that of the lens."""
    fine: int = 1
    """How many times finer the grid is on which colour is sampled before it is averaged; a fisheye squeezes the rim of
    the pinhole picture, which would alias."""
    pinhole: Camera = field(init=False)
    """The camera of the pinhole picture to render, wide enough for every pixel of the lens."""
    _maps: tuple[npt.NDArray[np.int16], npt.NDArray[np.uint16]] = field(init=False, repr=False)
    """Where each pixel looks in the pinhole picture, in whole pixels and 32nds, as `cv2.remap` works with."""

    def __post_init__(self) -> None:
        grid = resize_camera(self.camera, self.camera.width * self.fine, self.camera.height * self.fine)
        columns, rows = np.arange(grid.width), np.arange(grid.height)
        # The rim of the picture of the lens is the rim of what it sees.
        rim = [(columns, rows[[0, -1]]), (columns[[0, -1]], rows)]
        rays = np.concatenate([self._compute_rays(grid, *part).reshape(-1, 2) for part in rim])
        fx, fy = self.camera.fx * self.focal_share, self.camera.fy * self.focal_share
        low, high = rays.min(axis=0), rays.max(axis=0)
        cx, cy = _MARGIN_PX - low[0] * fx, _MARGIN_PX - low[1] * fy
        width = int(np.ceil(high[0] * fx + cx)) + 1 + _MARGIN_PX
        height = int(np.ceil(high[1] * fy + cy)) + 1 + _MARGIN_PX
        self.pinhole = Camera(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), width, height)
        # Rays are exact at every eighth pixel; between them a spline follows the lens to a millionth of a pixel.
        knots = [np.append(pixels[:-1:_KNOT_PX], pixels[-1]) for pixels in (columns, rows)]
        places = self._compute_rays(grid, *knots) * (fx, fy) + (cx, cy)
        splines = [RectBivariateSpline(knots[1], knots[0], place) for place in np.moveaxis(places, -1, 0)]
        shape = grid.height, grid.width
        self._maps = np.empty((*shape, 2), np.int16), np.empty(shape, np.uint16)
        for low_row in range(0, grid.height, _ROWS):
            part = rows[low_row : low_row + _ROWS]
            x, y = (spline(part, columns).astype(np.float32) for spline in splines)
            self._maps[0][part], self._maps[1][part] = cv2.convertMaps(x, y, cv2.CV_16SC2)

    def _compute_rays(self, grid: Camera, columns: IntArray, rows: IntArray) -> FloatArray:
        """The rays (x, y, 1) of some pixels of a grid without their 1, (rows, columns, 2)."""
        pixels = np.stack(np.meshgrid(columns, rows), -1)
        points, coefficients = pixels.reshape(-1, 1, 2).astype(np.float64), np.array(self.distortion)
        if self.model == "OPENCV_FISHEYE":
            rays = cv2.fisheye.undistortPoints(points, grid.K, coefficients, criteria=_EXACT)
        else:
            rays = cv2.undistortPoints(points, grid.K, coefficients, criteria=_EXACT)
        return np.asarray(rays, np.float64).reshape(pixels.shape)

    def color(self, pinhole_rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The distorted picture (H, W, 3) of a picture of `pinhole`."""
        shown = np.empty((self.camera.height, self.camera.width, 3), np.uint8)
        whole, share = self._maps
        for low in range(0, self.camera.height, _ROWS):
            fine = slice(low * self.fine, (low + _ROWS) * self.fine)
            band = cv2.remap(pinhole_rgb, whole[fine], share[fine], cv2.INTER_CUBIC)
            size = self.camera.width, len(band) // self.fine
            shown[low : low + _ROWS] = cv2.resize(band, size, interpolation=cv2.INTER_AREA) if self.fine > 1 else band
        return shown

    def nearest(self, pinhole_values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values (H, W) of a picture of `pinhole`, never mixed, as depth needs it; `fine` must be 1."""
        return np.asarray(cv2.remap(pinhole_values, *self._maps, cv2.INTER_NEAREST))
