"""What depth sensors make of exact depth. Pure numpy; all randomness comes in as a generator.

Sources: ranges, sizes and errors as collected in `docs/validity.md#noise-of-the-sources` (structured light: random
error grows with the square of the distance, 1.6 mm at 1 m, Khoshelham & Elberink 2012; tablet LiDAR: some 1 cm when
moving, 5 m range, Teo & Yang 2023) and `docs/formats.md#at-a-glance` (what is delivered: millimeters, 0 = unknown,
LiDAR edges soft). Where holes lie follows from geometry: the projector of structured light sits beside the camera and
cannot reach what stands in another thing's shadow; grazing surfaces send too little back.
"""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import BoolArray, Camera, DepthArray, FloatArray

STRUCTURED_LIGHT_RANGE_M = (0.4, 5.0)
LIDAR_RANGE_M = (0.3, 5.0)
LIDAR_SIZE = (256, 192)
_BASELINE_M = 0.075  # between projector and camera of the sensor clipped to the tablet
_RANDOM_ERROR = 1.6e-3  # meters per square meter of distance
# Slow waves over the picture plus a little between neighbours, growing with distance: 3 mm at half a meter, where
# turntables are filmed, 1 cm at the far end of a room.
_LIDAR_WAVY, _LIDAR_WAVY_M, _LIDAR_FINE = 2e-3, 1.5e-3, 6e-4
_LASER_ERROR_M = 5e-4
_SHADOW_SLACK_PX = 0.5
_GRAIN_PX = 1024  # side of the field of grain
_GRAIN_ROWS = 64  # that are worked on at a time, for memory's sake
_SHAKE_PX = 7  # side of the kernel that smears pictures a little
_STEP = 0.05  # neighbours that differ by more than this share of the nearer one are no surface


def simulate_structured_light(
    depth_m: DepthArray, cosine: FloatArray, camera: Camera, rng: np.random.Generator
) -> DepthArray:
    """Depth (h, w) meters as a structured-light sensor gives it, 0 = unknown.

    Args:
        depth_m: exact z-depth, 0 = nothing hit. cosine: of the angle between ray and normal. camera: of the depth.
    """
    known = depth_m > 0
    z = np.where(known, depth_m, 1.0).astype(np.float64)
    low, high = STRUCTURED_LIGHT_RANGE_M
    # Towards the end of the range more and more pixels come back empty, in patches.
    patches = np.clip(make_smooth_noise(rng, depth_m.shape, 6.0), -2.0, 2.0)
    fades = (z - 0.85 * high) / (0.15 * high) + 0.25 * patches > 0.75
    grazing = cosine < 0.16 + 0.06 * patches
    shadow = find_shadow(z, known, camera, _BASELINE_M)
    # The matching window of the sensor needs a surface around it, and loses single pixels anywhere.
    rim = find_near_step(z, known, 1)
    lost = rng.random(depth_m.shape) < 0.002
    # The window is a few pixels wide, so neighbours share part of their error.
    error = cv2.GaussianBlur(rng.standard_normal(depth_m.shape), (0, 0), 0.6)
    error *= _RANDOM_ERROR / error.std()
    measured = z + error * z**2
    good = known & (z >= low) & (measured < high) & ~(fades | grazing | shadow | rim | lost)
    return np.where(good, measured, 0.0).astype(np.float32)


def simulate_lidar(
    depth_m: DepthArray, cosine: FloatArray, rng: np.random.Generator
) -> tuple[DepthArray, npt.NDArray[np.float32]]:
    """Depth (h, w) meters of a phone's LiDAR after its maker's smoothing, and its confidence: 0, 0.5 or 1.

    Args:
        depth_m: exact z-depth at the sensor's own size, 0 = nothing hit. cosine: of the angle between ray and normal.
    """
    known = depth_m > 0
    z = np.where(known, depth_m, 0.0).astype(np.float64)
    # The few hundred laser spots are spread over the picture along its edges, imperfectly: steps become short ramps.
    weight = cv2.GaussianBlur(known.astype(np.float64), (0, 0), 0.9)
    soft = cv2.GaussianBlur(z, (0, 0), 0.9) / np.maximum(weight, 1e-6)
    measured = soft + (_LIDAR_WAVY_M + _LIDAR_WAVY * z) * make_smooth_noise(rng, z.shape, 12.0)
    measured += _LIDAR_FINE * z * rng.standard_normal(z.shape)
    low, high = LIDAR_RANGE_M
    good = known & (measured >= low) & (measured <= high)
    rim = find_near_step(np.where(known, z, 1.0), known, 2)
    confidence = np.where(rim | (cosine < 0.2) | (z > 4.0), 0.5, 1.0)
    confidence[~good | (rim & (z > 3.0))] = 0.0
    return np.where(good, measured, 0.0).astype(np.float32), confidence.astype(np.float32)


def enlarge_depth(depth_m: DepthArray, size: tuple[int, int]) -> DepthArray:
    """LiDAR depth at the size of the colour picture, as recorders store it: interpolated, so edges bleed."""
    known = (depth_m > 0).astype(np.float32)
    weight = cv2.resize(known, size, interpolation=cv2.INTER_LINEAR)
    summed = cv2.resize(depth_m, size, interpolation=cv2.INTER_LINEAR)
    return np.where(weight > 0.5, summed / np.maximum(weight, 1e-6), 0.0).astype(np.float32)


def simulate_laser(depth_m: DepthArray, hidden: BoolArray, rng: np.random.Generator) -> DepthArray:
    """Depth (h, w) meters rendered from a stationary laser scan: clean, empty where `hidden`."""
    measured = depth_m + _LASER_ERROR_M * rng.standard_normal(depth_m.shape)
    return np.where((depth_m > 0) & ~hidden, measured, 0.0).astype(np.float32)


def find_shadow(z: FloatArray, known: BoolArray, camera: Camera, baseline_m: float) -> BoolArray:
    """Pixels that a projector `baseline_m` to the right of the camera does not reach.

    In the projector's picture a point of column u stands at u - f b / z. Along a row these must go on increasing; a
    point that falls behind what was met before (from the right: after) lies behind it.
    """
    columns = np.arange(z.shape[1])
    there = np.where(known, columns - camera.fx * baseline_m / z, np.inf)
    nearest = np.minimum.accumulate(there[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(known & (there > nearest + _SHADOW_SLACK_PX))


def find_near_step(z: FloatArray, known: BoolArray, reach_px: int) -> BoolArray:
    """Pixels within `reach_px` of a step in depth or of an unknown pixel."""
    # Neighbouring pixels of one slanted plane differ too: the second difference takes the slope out.
    step = np.zeros(z.shape, bool)
    for axis in (0, 1):
        inner = [slice(None), slice(None)]
        inner[axis] = slice(1, -1)
        inverse = 1.0 / z
        bend = np.abs(np.diff(inverse, n=2, axis=axis)) / inverse[tuple(inner)]
        step[tuple(inner)] |= bend > _STEP
    step |= ~known
    side = 2 * reach_px + 1
    return np.asarray(cv2.dilate(step.astype(np.uint8), np.ones((side, side), np.uint8)) > 0)


def make_smooth_noise(rng: np.random.Generator, shape: tuple[int, ...], scale_px: float) -> FloatArray:
    """(h, w) noise of about unit variance that changes over some `scale_px` pixels."""
    height, width = shape[0], shape[1]
    coarse = rng.standard_normal((int(height / scale_px) + 3, int(width / scale_px) + 3))
    mixed = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    # Bilinear mixing of independent values leaves 4/9 of the variance on average.
    return np.asarray(1.5 * mixed, np.float64)


def smear_motion(color: npt.NDArray[np.uint8], camera: Camera, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A picture (H, W, 3) uint8 as taken while the camera turned by about a degree.

    Turning moves pixels by K R K^-1, whatever their depth, so the mean of a few turned pictures is the exposure.
    """
    axis = rng.standard_normal(3) * (1.0, 1.0, 0.3)
    axis *= np.radians(rng.uniform(0.6, 1.1)) / np.linalg.norm(axis)
    steps = np.linspace(-0.5, 0.5, 9)
    total = np.zeros(color.shape, np.uint16)
    for step in steps:
        R = cv2.Rodrigues(step * axis)[0]
        moved = camera.K @ R @ np.linalg.inv(camera.K)
        seen = cv2.warpPerspective(color, moved, camera.size, flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_REFLECT)
        total += np.asarray(seen, np.uint8)
    total += len(steps) // 2  # to the nearest: an odd number of pictures has no ties
    total //= len(steps)
    return total.astype(np.uint8)


def shake(color: npt.NDArray[np.uint8], way_px: FloatArray, sharpen: float = 0.0) -> npt.NDArray[np.uint8]:
    """A picture (H, W, 3) uint8 smeared evenly along a way (2,) of x and y pixels, half of it to either side, and
    sharpened: `sharpen` times what differs from the mean of the neighbours is added."""
    kernel = np.zeros((_SHAKE_PX, _SHAKE_PX))
    bound = _SHAKE_PX // 2 - 1
    for step in np.linspace(-0.5, 0.5, 9):
        x, y = np.clip(step * way_px, -bound, bound)
        left, top = int(np.floor(x)), int(np.floor(y))
        for row, high in ((top, 1 - (y - top)), (top + 1, y - top)):
            for column, wide in ((left, 1 - (x - left)), (left + 1, x - left)):
                kernel[row + _SHAKE_PX // 2, column + _SHAKE_PX // 2] += high * wide
    kernel /= kernel.sum()
    middle = slice(_SHAKE_PX // 2 - 1, _SHAKE_PX // 2 + 2)
    kernel[_SHAKE_PX // 2, _SHAKE_PX // 2] += sharpen
    kernel[middle, middle] -= sharpen * np.outer((0.25, 0.5, 0.25), (0.25, 0.5, 0.25))
    return np.asarray(cv2.filter2D(color, -1, kernel, borderType=cv2.BORDER_REPLICATE), np.uint8)


def add_grain(color: npt.NDArray[np.uint8], deviation: float, rng: np.random.Generator) -> npt.NDArray[np.uint8]:
    """A picture (H, W, 3) uint8 with the noise of a sensor, of so many grey levels in the middle of the scale.

    The tone curve stretches the noise of the shadows and presses that of the lights.
    """
    field = _make_grain()
    rows, columns = ((np.arange(size) + rng.integers(_GRAIN_PX)) % _GRAIN_PX for size in color.shape[:2])
    by_level = (deviation * (1.35 - 0.7 * np.arange(256) / 255)).astype(np.float32)
    grainy = np.empty_like(color)
    for low in range(0, len(color), _GRAIN_ROWS):
        band = slice(low, low + _GRAIN_ROWS)
        grain = np.take(np.take(field, rows[band], axis=0), columns, axis=1)
        grain *= cv2.LUT(color[band, :, 1], by_level)
        whole = np.asarray(np.rint(grain, out=grain), np.int16)
        grainy[band] = cv2.add(color[band], cv2.merge([whole] * 3), dtype=cv2.CV_8U)
    return grainy


@lru_cache(maxsize=1)
def _make_grain() -> npt.NDArray[np.float32]:
    """Grain of deviation 1 that tiles. Of one field every picture takes another part: nobody sees that they are kin."""
    grain = rng_for(0, "samples", "field", "sensor grain").standard_normal((_GRAIN_PX, _GRAIN_PX), dtype=np.float32)
    # Pixels of real images are not independent: demosaicing and denoising spread the grain.
    spread = cv2.GaussianBlur(np.pad(grain, 1, mode="wrap"), (3, 3), 0.6)[1:-1, 1:-1]
    return np.asarray(spread / spread.std(), np.float32)
