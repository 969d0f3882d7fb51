"""Lenses with distortion, and pinhole images made from theirs (`docs/formats.md#undistortion`).

The pinhole camera keeps image size, principal point and the ratio of the focal lengths; the focal length is the
smallest for which every pixel of the new image, border included, lies inside the old one. So nothing is invented at
the border (OpenCV's own choices, and the dataset's toolkit, leave or reflect an empty rim there), and the ray through
the principal point stays where it was.

A sensor depth map lies on the same distorted grid as the colour image, only coarser. It goes through the same
map at its own size, taking the nearest value, because a mean of two depths is a point on neither surface. z-depth
itself does not change: the optical axis stays.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Camera, ColorArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes.plausible import check_plausible

LensKind = Literal["pinhole", "opencv", "fisheye"]

# model name -> (kind, names of its parameters in file order); "f" stands for both focal lengths.
MODELS: dict[str, tuple[LensKind, str]] = {
    "SIMPLE_PINHOLE": ("pinhole", "f cx cy"),
    "PINHOLE": ("pinhole", "fx fy cx cy"),
    "SIMPLE_RADIAL": ("opencv", "f cx cy k1"),
    "RADIAL": ("opencv", "f cx cy k1 k2"),
    "OPENCV": ("opencv", "fx fy cx cy k1 k2 p1 p2"),
    "FULL_OPENCV": ("opencv", "fx fy cx cy k1 k2 p1 p2 k3 k4 k5 k6"),
    "OPENCV_FISHEYE": ("fisheye", "fx fy cx cy k1 k2 k3 k4"),
    "SIMPLE_RADIAL_FISHEYE": ("fisheye", "f cx cy k1"),
    "RADIAL_FISHEYE": ("fisheye", "f cx cy k1 k2"),
}
_ORDER = {"pinhole": "", "opencv": "k1 k2 p1 p2 k3 k4 k5 k6", "fisheye": "k1 k2 k3 k4"}
_BORDER_STEP_PX = 4.0
# Focal lengths tried, as multiples of the lens's own. A lens that needs more crops nearly everything away.
_ZOOM = (0.2, 5.0)
# `cv2.projectPoints` makes derivatives with the pixels, 300 bytes a point: a mask of a phone has 2.8 million.
_POINTS_AT_ONCE = 1 << 16


@dataclass(frozen=True, slots=True)
class Lens:
    """A camera with lens distortion: size, focal lengths and principal point in pixels, (0, 0) the first's centre."""

    kind: LensKind
    """The model of distortion: "opencv" is the Brown-Conrady model of `cv2.projectPoints`, "fisheye" the Kannala-Brandt
    model of `cv2.fisheye`, and "pinhole" has none."""
    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    distortion: tuple[float, ...] = ()
    """Coefficients in OpenCV's order: (k1, k2, p1, p2, k3, k4, k5, k6) for "opencv", (k1, k2, k3, k4) for "fisheye",
    none for "pinhole"."""

    @property
    def K(self) -> FloatArray:
        """The matrix of intrinsics without distortion, (3, 3) float64."""
        return np.array([[self.fx, 0.0, self.cx], [0.0, self.fy, self.cy], [0.0, 0.0, 1.0]])

    @property
    def is_pinhole(self) -> bool:
        """Whether images of this lens need no undistortion."""
        return self.kind == "pinhole" or (self.kind == "opencv" and not any(self.distortion))

    @property
    def camera(self) -> Camera:
        """The pinhole part, without distortion."""
        return Camera(self.K, self.width, self.height)

    def resized(self, width: int, height: int) -> Lens:
        """The lens of the same image scaled to `width` x `height`, edge to edge; distortion is unchanged."""
        camera = resize_camera(self.camera, width, height)
        return replace(self, width=width, height=height, fx=camera.fx, fy=camera.fy, cx=camera.cx, cy=camera.cy)


def make_lens(model: str, width: int, height: int, params: Sequence[float], where: object) -> Lens:
    """Lens of a COLMAP camera: model name and parameters as in `cameras.txt`. Raises SceneError."""
    if model not in MODELS:
        known = ", ".join(MODELS)
        raise SceneError(where, f"camera model {model[:40]!r}", f"one of {known}", "Undistort to one of these models.")
    kind, names = MODELS[model]
    if len(params) != len(names.split()):
        raise SceneError(where, f"{len(params)} parameters", f"{model}: {names}")
    value = dict(zip(names.split(), params, strict=True))
    fx, fy = value.get("f", value.get("fx", 0.0)), value.get("f", value.get("fy", 0.0))
    sound = all(map(math.isfinite, params)) and 0 < width < 1 << 15 and 0 < height < 1 << 15 and fx > 0 and fy > 0
    if not sound:
        found = f"{width}x{height} with {[float(p) for p in params]}"
        raise SceneError(where, found, "finite values, positive focal lengths, sides below 32768")
    distortion = tuple(float(value.get(name, 0.0)) for name in _ORDER[kind].split())
    check_plausible("distortion coefficient", distortion, where, SceneError)
    return Lens(kind, width, height, float(fx), float(fy), value["cx"] - 0.5, value["cy"] - 0.5, distortion)


def distort(lens: Lens, rays_xy: FloatArray) -> FloatArray:
    """(N, 2) pixels in the distorted image of the rays (x, y, 1), (N, 2)."""
    import cv2

    points = np.concatenate([rays_xy, np.ones((len(rays_xy), 1))], axis=1).reshape(-1, 1, 3)
    zero, coefficients = np.zeros(3), np.array(lens.distortion)
    if lens.kind == "fisheye":
        pixels = cv2.fisheye.projectPoints(points, zero, zero, lens.K, coefficients)[0]
    else:
        pixels = cv2.projectPoints(points, zero, zero, lens.K, coefficients)[0]
    return np.asarray(pixels, np.float64).reshape(-1, 2)


class Undistorter:
    """Maps of one lens; made when first used, one per image size.

    camera: the pinhole camera of the undistorted image, of the lens's size.

    Raises:
        SceneError: no pinhole image without an empty border fits, or the model folds over inside the image.
    """

    def __init__(self, lens: Lens, where: str) -> None:
        self.lens = lens
        self.camera = Camera(self._zoomed(self._smallest_zoom(where)), lens.width, lens.height)
        self._check_fold(where)
        self._color_maps: tuple[Any, Any] | None = None
        self._nearest: dict[tuple[int, int], npt.NDArray[np.int32]] = {}

    def _zoomed(self, zoom: float) -> FloatArray:
        K = self.lens.K
        K[0, 0] *= zoom
        K[1, 1] *= zoom
        return K

    def _border(self) -> FloatArray:
        """(N, 2) pixels around the rim of the image, at the centres of the outermost pixels."""
        right, bottom = self.lens.width - 1.0, self.lens.height - 1.0
        x = np.linspace(0, right, int(right / _BORDER_STEP_PX) + 2)
        y = np.linspace(0, bottom, int(bottom / _BORDER_STEP_PX) + 2)
        rows = [np.stack([x, np.full_like(x, v)], 1) for v in (0.0, bottom)]
        columns = [np.stack([np.full_like(y, v), y], 1) for v in (0.0, right)]
        return np.concatenate(rows + columns)

    def _rays(self, pixels: FloatArray, K: FloatArray) -> FloatArray:
        rays: FloatArray = (pixels - K[:2, 2]) / [K[0, 0], K[1, 1]]
        return rays

    def _fits(self, zoom: float, border: FloatArray) -> bool:
        pixels = distort(self.lens, self._rays(border, self._zoomed(zoom)))
        limit = [self.lens.width - 1.0, self.lens.height - 1.0]
        return bool(np.isfinite(pixels).all() and (pixels >= 0).all() and (pixels <= limit).all())

    def _smallest_zoom(self, where: str) -> float:
        border = self._border()
        zooms = np.geomspace(*_ZOOM, 65)
        # From the longest focal length downwards: a folding polynomial can come back inside further out.
        misfit = next((i for i in range(len(zooms) - 1, -1, -1) if not self._fits(zooms[i], border)), -1)
        if misfit == len(zooms) - 1:
            found = f"{self.lens.kind} coefficients {self.lens.distortion} at {self.lens.width}x{self.lens.height}"
            raise SceneError(where, found, "a lens a pinhole image can be cut from")
        if misfit < 0:
            return float(zooms[0])
        bad, good = float(zooms[misfit]), float(zooms[misfit + 1])
        for _ in range(40):
            middle = (bad + good) / 2
            bad, good = (bad, middle) if self._fits(middle, border) else (middle, good)
        return good

    def _check_fold(self, where: str) -> None:
        """The map must keep its sense of rotation everywhere, or some pixels show a second copy of others.

        Distortion polynomials turn back outside the range they were fitted to.
        """
        x = np.linspace(0, self.lens.width - 1, 97)
        y = np.linspace(0, self.lens.height - 1, 73)
        grid = np.stack(np.meshgrid(x, y), -1).reshape(-1, 2)
        there = distort(self.lens, self._rays(grid, self.camera.K)).reshape(73, 97, 2)
        right, down = np.diff(there, axis=1)[:-1], np.diff(there, axis=0)[:, :-1]
        area = right[..., 0] * down[..., 1] - right[..., 1] * down[..., 0]
        if not (area > 0).all():
            found = f"{self.lens.kind} coefficients {self.lens.distortion}, which fold the image over"
            raise SceneError(where, found, "a lens model valid over the image")

    def color(self, image: ColorArray) -> ColorArray:
        """(H, W, 3) uint8 image of `camera` from one of the lens's size; bilinear."""
        import cv2

        if self._color_maps is None:
            size, coefficients = (self.lens.width, self.lens.height), np.array(self.lens.distortion)
            make = cv2.fisheye.initUndistortRectifyMap if self.lens.kind == "fisheye" else cv2.initUndistortRectifyMap
            self._color_maps = make(  # fixed-point maps: a third of the memory, twice the speed
                self.lens.K, coefficients, np.eye(3), self.camera.K, size, cv2.CV_16SC2
            )
        # The map ends within a hundredth of a pixel of the rim; replication covers its fixed-point rounding.
        first, second = self._color_maps
        out = cv2.remap(image, first, second, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        return np.asarray(out, np.uint8)

    def nearest(self, image: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """(h, w) depth or mask of `resize_camera(camera, w, h)` from one that covers the lens's image at any size."""
        height, width = image.shape[:2]
        if (width, height) not in self._nearest:
            lens, camera = self.lens.resized(width, height), resize_camera(self.camera, width, height)
            places = np.empty(width * height, np.int32)
            for start in range(0, len(places), _POINTS_AT_ONCE):
                y, x = np.divmod(np.arange(start, min(start + _POINTS_AT_ONCE, len(places))), width)
                source = distort(lens, self._rays(np.stack([x, y], -1).astype(np.float64), camera.K))
                columns = np.clip(np.rint(source[:, 0]), 0, width - 1)
                rows = np.clip(np.rint(source[:, 1]), 0, height - 1)
                places[start : start + len(x)] = rows * width + columns
            self._nearest[width, height] = places
        picked: npt.NDArray[Any] = image.reshape(-1)[self._nearest[width, height]].reshape(height, width)
        return picked
