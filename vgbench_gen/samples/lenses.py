"""Pictures through a lens with distortion, made from pinhole pictures (`docs/formats.md#colmap-models`).

A wider pinhole picture is rendered and sampled where each pixel of the lens looks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera

_EXACT = (cv2.TERM_CRITERIA_COUNT + cv2.TERM_CRITERIA_EPS, 100, 1e-12)
_MARGIN_PX = 3
_ROWS = 128  # of a grid that are worked on at a time, for memory's sake


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
    _maps: tuple[Any, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        grid = resize_camera(self.camera, self.camera.width * self.fine, self.camera.height * self.fine)
        rays = np.concatenate([self._rays(grid, slice(k, k + _ROWS)) for k in range(0, grid.height, _ROWS)])
        fx, fy = self.camera.fx * self.focal_share, self.camera.fy * self.focal_share
        low, high = rays.min(axis=0), rays.max(axis=0)
        cx, cy = _MARGIN_PX - low[0] * fx, _MARGIN_PX - low[1] * fy
        width = int(np.ceil(high[0] * fx + cx)) + 1 + _MARGIN_PX
        height = int(np.ceil(high[1] * fy + cy)) + 1 + _MARGIN_PX
        self.pinhole = Camera(np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1]]), width, height)
        there = (rays * (fx, fy) + (cx, cy)).reshape(grid.height, grid.width, 2).astype(np.float32)
        self._maps = (np.ascontiguousarray(there[..., 0]), np.ascontiguousarray(there[..., 1]))

    def _rays(self, grid: Camera, rows: slice) -> FloatArray:
        """The rays (x, y, 1) of the pixels in some rows of a grid without their 1, row by row, (N, 2)."""
        pixels = np.stack(np.meshgrid(np.arange(grid.width), np.arange(grid.height)[rows]), -1)
        points, coefficients = pixels.reshape(-1, 1, 2).astype(np.float64), np.array(self.distortion)
        if self.model == "OPENCV_FISHEYE":
            rays = cv2.fisheye.undistortPoints(points, grid.K, coefficients, criteria=_EXACT)
        else:
            rays = cv2.undistortPoints(points, grid.K, coefficients, criteria=_EXACT)
        return np.asarray(rays, np.float64).reshape(-1, 2)

    def color(self, pinhole_rgb: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """The distorted picture (H, W, 3) of a picture of `pinhole`."""
        picture = cv2.remap(pinhole_rgb, *self._maps, cv2.INTER_CUBIC)
        if self.fine > 1:
            picture = cv2.resize(picture, self.camera.size, interpolation=cv2.INTER_AREA)
        return np.asarray(picture, np.uint8)

    def nearest(self, pinhole_values: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """The values (H, W) of a picture of `pinhole`, never mixed, as depth needs it; `fine` must be 1."""
        return np.asarray(cv2.remap(pinhole_values, *self._maps, cv2.INTER_NEAREST))
