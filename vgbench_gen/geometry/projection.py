"""From points to pixels and back. Conventions: package docstring."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import BoolArray, Camera, FloatArray
from vgbench_gen.geometry.poses import invert, transform


def project(camera: Camera, points_camera: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Pixels and z-depth of points (..., 3) in the camera frame, meters.

    Returns:
        uv (..., 2) pixels, `nan` where z <= 0 (behind or beside the camera; never wrapped), and z (...) meters.
        Pixels may lie outside the image: see `is_in_image`.
    """
    points = np.asarray(points_camera, dtype=np.float64)
    z = points[..., 2]
    front = np.where(z > 0, z, np.nan)
    uv = np.empty((*z.shape, 2))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for axis, (focal, centre) in enumerate(((camera.fx, camera.cx), (camera.fy, camera.cy))):
            # One coordinate at a time: NumPy is slow along a last axis of two.
            uv[..., axis] = points[..., axis] / front * focal + centre
    return uv, z


def project_world(
    camera: Camera, world_from_camera: FloatArray, points_world: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """As `project`, for points (N, 3) in the world frame and a pose (4, 4)."""
    return project(camera, transform(invert(world_from_camera), points_world))


def back_project(camera: Camera, uv: npt.ArrayLike, z_m: npt.ArrayLike) -> FloatArray:
    """Points (..., 3) in the camera frame, meters, of pixels (..., 2) at z-depth (...) meters."""
    uv_, z = np.asarray(uv, dtype=np.float64), np.asarray(z_m, dtype=np.float64)
    xy = (uv_ - (camera.cx, camera.cy)) / (camera.fx, camera.fy) * z[..., None]
    return np.concatenate([xy, np.broadcast_to(z[..., None], (*xy.shape[:-1], 1))], axis=-1)


def is_in_image(camera: Camera, uv: npt.ArrayLike, border_px: float = 0.0) -> BoolArray:
    """Whether pixels (..., 2) lie in the image, at least `border_px` from its edge; False for `nan`."""
    return is_within(uv, camera.width, camera.height, border_px)


def is_within(uv: npt.ArrayLike, width: int, height: int, border_px: float = 0.0) -> BoolArray:
    """As `is_in_image`, of an image that is `width` x `height` pixels large."""
    uv_ = np.asarray(uv, dtype=np.float64)
    u, v = uv_[..., 0], uv_[..., 1]
    low, right, bottom = border_px - 0.5, width - 0.5 - border_px, height - 0.5 - border_px
    return np.asarray((u >= low) & (u < right) & (v >= low) & (v < bottom))


def valid_mask(depth_m: npt.NDArray[Any]) -> BoolArray:
    """Where a depth image says something: finite and above 0."""
    return np.asarray(np.isfinite(depth_m) & (depth_m > 0))


def check_size(camera: Camera, image: npt.NDArray[Any]) -> None:
    """Refuse an image that is not of the camera's size.

    Raises:
        ValueError: another height or width.
    """
    if image.shape[:2] != (camera.height, camera.width):
        raise ValueError(f"image is {image.shape[1]}x{image.shape[0]}, its camera {camera.width}x{camera.height}")


def back_project_depth(camera: Camera, depth_m: npt.NDArray[Any], stride: int = 1) -> tuple[FloatArray, FloatArray]:
    """Points of a depth image (h, w), meters, 0 = unknown.

    Args:
        camera: of the depth image.
        depth_m: z-depth.
        stride: use every n-th row and column, starting at n // 2.

    Returns:
        Points (N, 3) in the camera frame and their pixels (N, 2), row by row; known pixels only.

    Raises:
        ValueError: depth and camera differ in size.
    """
    check_size(camera, depth_m)
    start = stride // 2
    coarse = depth_m[start::stride, start::stride]
    rows, columns = np.nonzero(valid_mask(coarse))
    uv = np.stack([columns, rows], axis=-1).astype(np.float64) * stride + start
    return back_project(camera, uv, coarse[rows, columns]), uv


def sample_nearest(image: npt.NDArray[Any], uv: npt.ArrayLike, outside: float = 0) -> npt.NDArray[Any]:
    """Values of `image` (h, w, ...) at the pixels nearest to uv (..., 2); `outside` beyond the image and for `nan`."""
    uv_ = np.asarray(uv, dtype=np.float64)
    height, width = image.shape[:2]
    inside = is_within(uv_, width, height)
    values = np.full((*inside.shape, *image.shape[2:]), outside, dtype=image.dtype)
    seen = uv_[inside]
    # Truncation is floor here: inside, no coordinate is below -0.5. One just below the far edge may round up to it.
    columns = np.minimum((seen[:, 0] + 0.5).astype(np.int64), width - 1)
    rows = np.minimum((seen[:, 1] + 0.5).astype(np.int64), height - 1)
    values[inside] = image[rows, columns]
    return values


def sample_grid(image: npt.NDArray[Any], u_px: FloatArray, v_px: FloatArray, outside: float = 0) -> npt.NDArray[Any]:
    """As `sample_nearest` at every pixel of a grid, rows v (n,) and columns u (m,): (n, m) values of `image` (h, w)."""
    places = []
    for along, size in ((v_px, image.shape[0]), (u_px, image.shape[1])):
        within = (along >= -0.5) & (along < size - 0.5)
        places.append((within, np.minimum((np.where(within, along, 0.0) + 0.5).astype(np.int64), size - 1)))
    (inside_v, rows), (inside_u, columns) = places
    values = image[np.ix_(rows, columns)]
    values[~inside_v] = outside
    values[:, ~inside_u] = outside
    return values


def sample_depth(
    depth_m: npt.NDArray[Any], uv: npt.ArrayLike, absolute_m: float = 0.10, relative: float = 0.05
) -> FloatArray:
    """Depth between pixels: interpolated on surfaces, the nearest pixel's at steps and holes.

    Interpolates 1 / z, which is exact on planes; the nearest pixel alone is off by up to half a pixel of slope.

    Args:
        depth_m: (h, w) z-depth in meters, 0 = unknown.
        uv: (..., 2) pixels.
        absolute_m, relative: four neighbours that range over more than max(absolute_m, relative * nearest z) are a
            step and are not mixed.

    Returns:
        (...) meters; 0 outside the image, for `nan`, and where the nearest pixel is unknown.
    """
    uv_ = np.asarray(uv, dtype=np.float64)
    nearest = sample_nearest(depth_m, uv_).astype(np.float64)
    nearest = np.where(valid_mask(nearest), nearest, 0.0)
    base = np.floor(uv_)
    right, down = np.moveaxis(uv_ - base, -1, 0)
    # Neighbours beyond the image read as 0 = unknown, so its outermost half pixel keeps the nearest value.
    four = np.stack([sample_nearest(depth_m, base + step) for step in ((0, 0), (1, 0), (0, 1), (1, 1))])
    four = four.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.stack([(1 - right) * (1 - down), right * (1 - down), (1 - right) * down, right * down])
        mixed = 1.0 / (weights / four).sum(axis=0)
        low, high = four.min(axis=0), four.max(axis=0)
        smooth = valid_mask(four).all(axis=0) & (high - low <= np.maximum(absolute_m, relative * low))
    between = (right > 0) | (down > 0)
    return np.where(between & smooth & (nearest > 0), mixed, nearest)
