"""What happens to K, size and pose when an image is resized, cropped or turned. Conventions: package docstring."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.poses import make_pose

Rect = tuple[float, float, float, float]

# Up seen this close to the optical axis (sine) leaves the roll of the image undefined.
_MIN_ROLL_SINE = 1e-3


def _make_K(fx: float, fy: float, cx: float, cy: float) -> FloatArray:
    return np.array([[fx, 0.0, cx], [0.0, fy, cy], [0.0, 0.0, 1.0]])


def resize_camera(camera: Camera, width: int, height: int) -> Camera:
    """The camera after its image was resized edge to edge (as OpenCV and Pillow do) to width x height pixels."""
    sx, sy = width / camera.width, height / camera.height
    K = _make_K(camera.fx * sx, camera.fy * sy, (camera.cx + 0.5) * sx - 0.5, (camera.cy + 0.5) * sy - 0.5)
    return Camera(K, width, height)


def crop_camera(camera: Camera, x0: int, y0: int, width: int, height: int) -> Camera:
    """The camera of `image[y0:y0 + height, x0:x0 + width]`.

    Raises:
        ValueError: the crop is not inside the image.
    """
    if not (x0 >= 0 and 0 < width <= camera.width - x0 and y0 >= 0 and 0 < height <= camera.height - y0):
        raise ValueError(f"crop {width}x{height}+{x0}+{y0} is not inside {camera.width}x{camera.height}")
    return Camera(_make_K(camera.fx, camera.fy, camera.cx - x0, camera.cy - y0), width, height)


def rotate_camera_by_quarters(camera: Camera, k: int) -> Camera:
    """The camera of `np.rot90(image, k)` (k turns counter-clockwise)."""
    fx, fy, cx, cy, width, height = camera.fx, camera.fy, camera.cx, camera.cy, camera.width, camera.height
    for _ in range(k % 4):
        fx, fy, cx, cy, width, height = fy, fx, cy, width - 1 - cx, height, width
    return Camera(_make_K(fx, fy, cx, cy), width, height)


def quarter_turn_rotation(k: int) -> FloatArray:
    """(3, 3) `turned_from_camera` for an image turned by `np.rot90(image, k)`; exact integers."""
    turn = np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return np.linalg.matrix_power(turn, k % 4) + 0.0


def rotate_pose_by_quarters(world_from_camera: FloatArray, k: int) -> FloatArray:
    """`world_from_turned` (..., 4, 4) of a camera whose image was turned by `np.rot90(image, k)`."""
    camera_from_turned = make_pose(quarter_turn_rotation(k).T, np.zeros(3))
    turned: FloatArray = world_from_camera @ camera_from_turned
    return turned


def rotate_rect_by_quarters(rect: Rect, width: int, height: int, k: int) -> Rect:
    """Where a continuous rectangle (x1, y1, x2, y2) of a width x height image is after `np.rot90(image, k)`."""
    x1, y1, x2, y2 = rect
    for _ in range(k % 4):
        x1, y1, x2, y2 = y1, width - 1 - x2, y2, width - 1 - x1
        width, height = height, width
    return x1, y1, x2, y2


def up_in_camera(world_from_camera: FloatArray, up_world: npt.ArrayLike) -> FloatArray:
    """The up vector (3,) of the world as cameras (..., 4, 4) see it, (..., 3)."""
    up: FloatArray = np.asarray(up_world, dtype=np.float64) @ world_from_camera[..., :3, :3]
    return up


def count_upright_turns(world_from_camera: FloatArray, up_world: npt.ArrayLike) -> int:
    """Number k in 0..3 of turns `np.rot90(image, k)` that brings the image closest to upright.

    0 where the camera looks straight up or down, where no turn is more upright than another.
    """
    x, y, z = up_in_camera(world_from_camera, up_world)
    if np.hypot(x, y) <= _MIN_ROLL_SINE * np.hypot(np.hypot(x, y), z):
        return 0
    # y of the up vector after 0, 1, 2, 3 turns; the most negative is the most upright.
    return int(np.argmin([y, -x, -y, x]))


def fov_deg(camera: Camera) -> tuple[float, float]:
    """Horizontal and vertical field of view from edge to edge of the image, degrees.

    Reasons and values: `docs/validity.md#camera-parameters`.
    """
    across = np.arctan([(camera.cx + 0.5) / camera.fx, (camera.width - 0.5 - camera.cx) / camera.fx]).sum()
    down = np.arctan([(camera.cy + 0.5) / camera.fy, (camera.height - 0.5 - camera.cy) / camera.fy]).sum()
    return float(np.degrees(across)), float(np.degrees(down))


def map_pixels(dst_camera: Camera, src_camera: Camera, uv: npt.ArrayLike) -> FloatArray:
    """Pixels (..., 2) of `src_camera` in `dst_camera`, which has the same centre and axes but another K."""
    uv_ = np.asarray(uv, dtype=np.float64)
    scale = np.array([dst_camera.fx / src_camera.fx, dst_camera.fy / src_camera.fy])
    mapped: FloatArray = (uv_ - (src_camera.cx, src_camera.cy)) * scale + (dst_camera.cx, dst_camera.cy)
    return mapped
