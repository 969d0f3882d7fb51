"""Files of intrinsics, in the forms that recordings have them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._cameras import make_pinhole
from vgbench_gen.scenes._lazy_frame import check_aspect
from vgbench_gen.scenes._lens import Lens
from vgbench_gen.scenes.files import parse_matrix, read_json, read_text
from vgbench_gen.scenes.plausible import check_plausible

_WANTED = "fx fy cx cy, a 3x3 matrix, or a JSON or YAML file with them"
_FOCAL = (("fx", "fy"), ("fl_x", "fl_y"), ("f", "f"), ("fx", "fx"), ("fl_x", "fl_x"))
_SIZES = (("width", "height"), ("w", "h"), ("image_width", "image_height"))
_ROS_MODELS = ("plumb_bob", "rational_polynomial")
_MAX_RAY = 1e4  # of the numbers of a matrix of rays, which are about 1
_MAX_SKEW = 1e-4  # of a focal length: a twentieth of a pixel at the rim
_DISTORTION = ("k1", "k2", "p1", "p2", "k3")


@dataclass(frozen=True, slots=True)
class StatedIntrinsics:
    """Focal lengths and principal point in pixels, as a file states them, distortion, and the size they hold for."""

    values: tuple[float, float, float, float]
    distortion: tuple[float, ...] = ()
    """k1, k2, p1, p2, k3 of `cv2.projectPoints`, or none."""
    size: tuple[int, int] | None = None
    """Width and height, or None where nothing says them."""
    fisheye: bool = False
    """Whether the distortion is k1, k2, k3, k4 of `cv2.fisheye`."""

    def make_lens(self, size: tuple[int, int], first_pixel: float, where: object) -> Lens:
        """The lens of pictures of a size (width, height).

        first_pixel: as `FileLayout.first_pixel`.

        Raises:
            FrameError: no finite pinhole camera whose principal point is near the middle, or of another shape.
        """
        made_for = self.size or size
        check_aspect(size, made_for, where, FrameError)
        fx, fy, cx, cy = self.values
        # A negative focal length is how ICL-NUIM states its left-handed camera; the axes say that already.
        K = np.array([[abs(fx), 0, cx - first_pixel], [0, abs(fy), cy - first_pixel], [0, 0, 1]])
        check_plausible("distortion coefficient", self.distortion, where)
        camera = resize_camera(make_pinhole(K, *made_for, where), *size)
        kind = "fisheye" if self.fisheye else "opencv" if any(self.distortion) else "pinhole"
        places = (camera.fx, camera.fy, camera.cx, camera.cy)
        return Lens(kind, *size, *places, self.distortion if kind != "pinhole" else ())  # type: ignore[arg-type]


def take_numbers(values: Sequence[float], where: object, size: tuple[int, int] | None = None) -> StatedIntrinsics:
    """Intrinsics of fx, fy, cx, cy and, where there are more, k1, k2, p1, p2, k3. Raises SceneError."""
    if not 4 <= len(values) <= 9 or not all(map(math.isfinite, values)):
        raise SceneError(where, f"{len(values)} numbers", "fx, fy, cx, cy and up to five of distortion")
    return StatedIntrinsics(tuple(map(float, values[:4])), tuple(map(float, values[4:])), size)  # type: ignore[arg-type]


def read_intrinsics(path: Path) -> StatedIntrinsics:
    """Intrinsics of a JSON, YAML or text file.

    Text holds fx fy cx cy, w h fx fy cx cy (ARKitScenes' `.pincam`), or a 3x3 or 4x4 matrix.

    Raises:
        SceneError: unreadable, or none of these.
    """
    if path.suffix.lower() == ".json":
        return take_mapping(read_json(path, path, 1_000_000), path)
    text = read_text(path, path)
    if path.suffix.lower() in (".yaml", ".yml"):
        return take_mapping(_read_yaml(text, path), path)
    numbers = " ".join(line for line in text.splitlines() if not line.strip().startswith("#"))
    values = parse_matrix(numbers, path, [(4,), (6,), (3, 3), (4, 4), (8,)], SceneError)
    if values.ndim == 2:
        return _take_matrix(values, None)
    if len(values) == 6:
        return take_numbers(values[2:].tolist(), path, (int(values[0]), int(values[1])))
    return take_numbers(values.tolist(), path)


def split_uv_matrix(
    camera_from_uv: FloatArray, size: tuple[int, int], where: object
) -> tuple[StatedIntrinsics, FloatArray]:
    """The pinhole camera of rays (x right, y up, z back) that a matrix (3, 3) gives for (u, v, 1), from -1 to 1 to the
    right and up over a picture, and the rotation (3, 3) from it to the frame of the rays: where the image plane is
    tilted, its axis is another one. (0, 0) is the centre of the first pixel.

    Raises:
        SceneError: no camera, a mirrored one, or one with skew.
    """
    width, height = size
    uv_from_pixel = np.array([[2 / width, 0, 1 / width - 1], [0, -2 / height, 1 - 1 / height], [0, 0, 1]])
    opengl_from_opencv = np.diag([1.0, -1.0, -1.0])
    # Looking along -z, a matrix that is not mirrored has a negative determinant; larger rays would overflow.
    if not (np.abs(camera_from_uv) <= _MAX_RAY).all() or not np.linalg.det(camera_from_uv) < -1 / _MAX_RAY**2:
        raise SceneError(where, "a matrix of rays without a camera", "a finite one, not mirrored")
    rays = opengl_from_opencv @ camera_from_uv @ uv_from_pixel
    rotation, inverse_K = np.linalg.qr(rays)
    signs = np.sign(np.diag(inverse_K))
    rotation, inverse_K = rotation * signs, inverse_K * signs[:, None]
    K = np.linalg.inv(inverse_K / inverse_K[2, 2])
    if abs(K[0, 1]) > _MAX_SKEW * K[0, 0]:
        raise SceneError(where, f"skewed pixels ({K[0, 1] / K[0, 0]:.4f})", "a plain pinhole camera", "Leave it out.")
    return StatedIntrinsics((K[0, 0], K[1, 1], K[0, 2], K[1, 2])), opengl_from_opencv @ rotation @ opengl_from_opencv


def take_mapping(found: Any, where: object) -> StatedIntrinsics:
    """Intrinsics of a parsed JSON or YAML document, or of its part `camera`. Raises SceneError."""
    if isinstance(found, Mapping) and isinstance(found.get("camera"), Mapping):
        found = found["camera"]
    if not isinstance(found, Mapping):
        raise SceneError(where, f"a {type(found).__name__}", _WANTED)
    sizes = [(found[w], found[h]) for w, h in _SIZES if w in found and h in found]
    size = None
    if sizes:
        check_plausible("image side", [_number(side, where) for side in sizes[0]], where, SceneError)
        size = int(sizes[0][0]), int(sizes[0][1])
    matrix = next(
        (found[key] for key in ("intrinsic_matrix", "camera_matrix", "K", "cam_K", "intrinsics") if key in found), None
    )
    if isinstance(matrix, Mapping):
        matrix = matrix.get("data")
    if matrix is not None:
        made = _take_matrix(parse_matrix(matrix, where, [(3, 3), (4, 4)], SceneError), size)
        extra = found.get("distortion_coefficients", {})
        extra = extra.get("data", []) if isinstance(extra, Mapping) else extra
        numbers = tuple(_number(value, where) for value in extra[:5]) if isinstance(extra, list) else ()
        return StatedIntrinsics(made.values, numbers, size)
    focal = next(((found[a], found[b]) for a, b in _FOCAL if a in found and b in found), None)
    if focal is None or "cx" not in found or "cy" not in found:
        raise SceneError(where, f"keys {', '.join(map(str, list(found)[:12]))}", _WANTED)
    values = tuple(_number(value, where) for value in (*focal, found["cx"], found["cy"]))
    distortion = tuple(_number(found.get(name, 0.0), where) for name in _DISTORTION)
    if found.get("camera_model") in ("OPENCV_FISHEYE", "FISHEYE"):
        fisheye = tuple(_number(found.get(name, 0.0), where) for name in ("k1", "k2", "k3", "k4"))
        return StatedIntrinsics(values, fisheye, size, fisheye=True)  # type: ignore[arg-type]
    return StatedIntrinsics(values, distortion if any(distortion) else (), size)  # type: ignore[arg-type]


def take_camera_info(message: Any, is_rectified: bool, where: object) -> StatedIntrinsics:
    """Intrinsics of a message `sensor_msgs/CameraInfo`.

    is_rectified: whether the pictures have no distortion any more; P says their camera then.

    Raises:
        SceneError: a model of distortion that is not read.
    """
    K, D, P = (np.asarray(getattr(message, name, getattr(message, name.lower(), ()))) for name in "KDP")
    size = int(message.width), int(message.height)
    if is_rectified and len(P) == 12 and P[0]:
        return StatedIntrinsics((float(P[0]), float(P[5]), float(P[2]), float(P[6])), (), size)
    values = float(K[0]), float(K[4]), float(K[2]), float(K[5])
    distortion = tuple(map(float, D)) if D.any() else ()
    is_fisheye = message.distortion_model in ("equidistant", "fisheye", "kannala_brandt4")
    if distortion and not (
        len(D) == 4 if is_fisheye else message.distortion_model in _ROS_MODELS and len(D) in (4, 5, 8)
    ):
        found = f"distortion {message.distortion_model!r:.40} of {len(D)} numbers"
        raise SceneError(where, found, f"one of {', '.join(_ROS_MODELS)} or equidistant", "Record rectified pictures.")
    return StatedIntrinsics(values, distortion, size, is_fisheye and bool(distortion))


def _take_matrix(matrix: Any, size: tuple[int, int] | None) -> StatedIntrinsics:
    K = np.asarray(matrix)[:3, :3]
    K = K.T if np.allclose(K[:, 2], (0, 0, 1)) and not np.allclose(K[2], (0, 0, 1)) else K
    return StatedIntrinsics((float(K[0, 0]), float(K[1, 1]), float(K[0, 2]), float(K[1, 2])), (), size)


def _number(value: Any, where: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SceneError(where, f"{value!r:.40}", "a number")
    return float(value)


def _read_yaml(text: str, path: Path) -> Any:
    import yaml

    # OpenCV writes a version with a colon and a type of its own, which no other reader knows.
    plain = re.sub(r"^%YAML.*$|!!opencv-matrix", "", text, flags=re.MULTILINE)
    try:
        return yaml.safe_load(plain)
    except yaml.YAMLError as problem:
        raise SceneError(path, f"no readable YAML ({str(problem)[:80]})", _WANTED) from problem
