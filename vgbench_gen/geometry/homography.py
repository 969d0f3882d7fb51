"""Homographies between images of pixels. `x_dst ~ H x_src`, H33 = 1; conventions: package docstring."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import GeometryError
from vgbench_gen.core.types import FloatArray


def normalise_homography(H: npt.ArrayLike) -> FloatArray:
    """H (3, 3) scaled to H33 = 1.

    Raises:
        GeometryError: not a finite invertible 3x3 matrix, or pixel (0, 0) has no finite image.
    """
    H_ = np.asarray(H, dtype=np.float64)
    if H_.shape != (3, 3) or not np.isfinite(H_).all():
        raise GeometryError(f"a homography is a finite 3x3 matrix, got {np.shape(H)}")
    if abs(H_[2, 2]) <= 1e-12 * np.abs(H_).max():
        raise GeometryError("homography sends pixel (0, 0) to infinity, so it cannot be scaled to H33 = 1")
    scaled: FloatArray = H_ / H_[2, 2]
    # Written out: asked thousands of times per scene, and the library's checks take longer than nine products.
    (a, b, c), (d, e, f), (g, h, i) = scaled.tolist()
    if abs(a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)) <= 1e-12:
        raise GeometryError("homography cannot be inverted")
    return scaled


def apply(H: npt.ArrayLike, uv: npt.ArrayLike) -> FloatArray:
    """Where pixels (..., 2) go; `nan` on and beyond the line that H sends to infinity (seen from pixel (0, 0)).

    Raises:
        GeometryError: see `normalise_homography`.
    """
    return _map(normalise_homography(H), np.asarray(uv, dtype=np.float64))


def _map(Hs: FloatArray, uv: FloatArray) -> FloatArray:
    """Where each of Hs (..., 3, 3) sends pixels (..., 2); `nan` where the third coordinate is not above 0."""
    mapped = np.concatenate([uv, np.ones((*uv.shape[:-1], 1))], axis=-1) @ np.swapaxes(Hs, -1, -2)
    w = mapped[..., 2:]
    return np.asarray(mapped[..., :2] / np.where(w > 0, w, np.nan))


def fit_to_points(src: npt.ArrayLike, dst: npt.ArrayLike) -> FloatArray:
    """The (3, 3) homography that carries src (N, 2) to dst (N, 2) pixels, N >= 4, least squares beyond four.

    Normalised direct linear transform (Hartley 1997).

    Raises:
        GeometryError: too few points, or three of four on a line, so that more than one homography fits.
    """
    src_, dst_ = np.asarray(src, dtype=np.float64), np.asarray(dst, dtype=np.float64)
    if src_.shape != dst_.shape or src_.ndim != 2 or src_.shape[1] != 2 or len(src_) < 4:
        raise GeometryError(f"a homography needs two lists of at least 4 pixels, got {src_.shape} and {dst_.shape}")
    T_src, T_dst = _compute_conditioning(src_), _compute_conditioning(dst_)
    x, y = (src_ @ T_src[:2, :2] + T_src[:2, 2]).T
    u, v = (dst_ @ T_dst[:2, :2] + T_dst[:2, 2]).T
    zero, one = np.zeros_like(x), np.ones_like(x)
    A = np.concatenate(
        [
            np.stack([x, y, one, zero, zero, zero, -u * x, -u * y, -u], axis=-1),
            np.stack([zero, zero, zero, x, y, one, -v * x, -v * y, -v], axis=-1),
        ]
    )
    _, singular, Vt = np.linalg.svd(A, full_matrices=len(A) < 9)  # the null vector needs nine rows of Vt, U never
    if singular[7] <= 1e-9 * singular[0]:
        raise GeometryError("the pixels do not fix a homography: too many of them lie on one line")
    return normalise_homography(np.linalg.inv(T_dst) @ Vt[8].reshape(3, 3) @ T_src)


def _compute_conditioning(uv: FloatArray) -> FloatArray:
    """(3, 3) that moves the pixels to mean 0 and mean distance sqrt(2)."""
    middle = uv.mean(axis=0)
    spread = float(np.linalg.norm(uv - middle, axis=1).mean())
    if not np.isfinite(spread) or spread <= 0:
        raise GeometryError("the pixels do not fix a homography: they all coincide")
    s = np.sqrt(2.0) / spread
    return np.array([[s, 0.0, -s * middle[0]], [0.0, s, -s * middle[1]], [0.0, 0.0, 1.0]])


def image_corners(width: int, height: int) -> FloatArray:
    """(4, 2) centres of the corner pixels: top-left, top-right, bottom-right, bottom-left."""
    right, bottom = width - 1.0, height - 1.0
    return np.array([[0.0, 0.0], [right, 0.0], [right, bottom], [0.0, bottom]])


def move_corners(Hs: npt.ArrayLike, width: int, height: int) -> FloatArray:
    """(..., 4, 2) where each of Hs (..., 3, 3), H33 = 1, sends the corners of an image; `nan` beyond infinity."""
    return _map(np.asarray(Hs, dtype=np.float64), image_corners(width, height))


def corner_moves_px(Hs: npt.ArrayLike, width: int, height: int) -> FloatArray:
    """Mean distance (...) that each of Hs (..., 3, 3), H33 = 1, moves the corners, pixels; `inf` beyond infinity."""
    return measure_gaps_px(move_corners(Hs, width, height), image_corners(width, height))


def measure_gaps_px(a: FloatArray, b: FloatArray) -> FloatArray:
    """(...) mean distance of pixels a and b (..., N, 2); `inf` where one of them is not finite."""
    gaps = np.hypot(*np.moveaxis(a - b, -1, 0)).mean(axis=-1)
    return np.where(np.isfinite(gaps), gaps, np.inf)


def source_kept_fraction(H: npt.ArrayLike, width: int, height: int, samples: int = 64) -> float:
    """Share of a width x height source that H leaves inside a target of the same size.

    samples: points along each side of the regular grid that is counted.
    """
    x, y, w = normalise_homography(H) @ _make_pixel_grid(width, height, samples)
    inside = (w > 0) & (x >= -0.5 * w) & (x < (width - 0.5) * w) & (y >= -0.5 * w) & (y < (height - 0.5) * w)
    return float(np.count_nonzero(inside) / inside.size)


@lru_cache(maxsize=16)
def _make_pixel_grid(width: int, height: int, samples: int) -> FloatArray:
    """(3, samples^2) homogeneous pixels of a regular grid over an image; every warp of a pool is tried on it."""
    u = (np.arange(samples) + 0.5) * (width / samples) - 0.5
    v = (np.arange(samples) + 0.5) * (height / samples) - 0.5
    grid = np.stack([*(axis.ravel() for axis in np.meshgrid(u, v)), np.ones(samples * samples)])
    grid.flags.writeable = False
    return grid


def make_about_centre(
    width: int,
    height: int,
    angle_deg: npt.ArrayLike = 0.0,
    scale: npt.ArrayLike = 1.0,
    tx_px: npt.ArrayLike = 0.0,
    ty_px: npt.ArrayLike = 0.0,
    stretch: npt.ArrayLike = 1.0,
    shear: npt.ArrayLike = 0.0,
    px: npt.ArrayLike = 0.0,
    py: npt.ArrayLike = 0.0,
) -> FloatArray:
    """Homographies about the image centre: perspective, then stretch and shear, then scale and rotation, then shift.

    Args:
        width, height: of the image, pixels.
        angle_deg: positive turns clockwise on the screen (from x to y).
        scale: 1 keeps the size.
        tx_px, ty_px: shift of the centre, pixels.
        stretch: width over height of what was a square, at the same area; 1 keeps the shape.
        shear: by how many pixels a point moves to the right for each pixel that it lies below the centre.
        px, py: by how much the denominator grows from the centre to the right and to the bottom edge (1 at the
            centre); |px| + |py| < 1 keeps the whole image finite.

    Returns:
        (..., 3, 3) for parameters of the shape (...), H33 = 1; exactly the identity for the defaults.

    Raises:
        GeometryError: a perspective sends pixel (0, 0) to infinity, or a scale or stretch is not above 0.
    """
    values = np.broadcast_arrays(angle_deg, scale, tx_px, ty_px, stretch, shear, px, py)
    angle_deg, scale, tx_px, ty_px, stretch, shear, px, py = (np.asarray(x, dtype=np.float64) for x in values)
    if not (np.isfinite(values).all() and (scale > 0).all() and (stretch > 0).all()):
        raise GeometryError("a homography has a finite shift and angle and a scale and stretch above 0")
    cx, cy = (width - 1) / 2.0, (height - 1) / 2.0
    a, wide = np.radians(angle_deg), np.sqrt(stretch)
    c, s = scale * np.cos(a), scale * np.sin(a)
    # The product of similarity, stretch with shear, and perspective, all about the centre as the origin.
    H = np.zeros((*c.shape, 3, 3))
    H[..., 0, 0], H[..., 0, 1], H[..., 0, 2] = c * wide, c * shear - s / wide, tx_px
    H[..., 1, 0], H[..., 1, 1], H[..., 1, 2] = s * wide, s * shear + c / wide, ty_px
    H[..., 2, 2] = 1.0
    perspective = np.broadcast_to(np.eye(3), H.shape).copy()
    perspective[..., 2, 0], perspective[..., 2, 1] = 2.0 * px / width, 2.0 * py / height
    to_centre = np.array([[1.0, 0.0, -cx], [0.0, 1.0, -cy], [0.0, 0.0, 1.0]])
    from_centre = np.array([[1.0, 0.0, cx], [0.0, 1.0, cy], [0.0, 0.0, 1.0]])
    H = from_centre @ H @ perspective @ to_centre
    corner = H[..., 2:, 2:]
    if (np.abs(corner) <= 1e-12).any():
        raise GeometryError("homography sends pixel (0, 0) to infinity, so it cannot be scaled to H33 = 1")
    return np.asarray(H / corner)


def find_sources(Hs: npt.ArrayLike, width: int, height: int) -> FloatArray:
    """(..., 4, 2) pixels of the source that each of Hs (..., 3, 3), H33 = 1, draws at the corners of a target image.

    `nan` where a corner shows what lies beyond infinity, seen from the source's pixel (0, 0). All other pixels of the
    target show what lies between.
    """
    return _map(np.linalg.inv(np.asarray(Hs, dtype=np.float64)), image_corners(width, height))


def measure_enlargements(Hs: npt.ArrayLike, uv: npt.ArrayLike) -> FloatArray:
    """(...) by how much each of Hs (..., 3, 3), H33 = 1, enlarges lengths at pixels uv (..., 2) of its source.

    The larger singular value of the Jacobian.
    """
    H, uv_ = np.asarray(Hs, dtype=np.float64), np.asarray(uv, dtype=np.float64)
    homogeneous = np.concatenate([uv_, np.ones((*uv_.shape[:-1], 1))], axis=-1)
    x, y, w = np.moveaxis((H @ homogeneous[..., None])[..., 0], -1, 0)
    a = (H[..., 0, :2] - (x / w)[..., None] * H[..., 2, :2]) / w[..., None]  # derivatives of the new x
    b = (H[..., 1, :2] - (y / w)[..., None] * H[..., 2, :2]) / w[..., None]
    squares = (a * a + b * b).sum(axis=-1)
    area = a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]
    return np.asarray(np.sqrt((squares + np.sqrt(np.maximum(squares**2 - 4 * area**2, 0.0))) / 2))
