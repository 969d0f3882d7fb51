"""Files of intrinsics, in the forms that recordings have them."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
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
_SIZES = (("width", "height"), ("w", "h"), ("image_width", "image_height"))
_ROS_MODELS = ("plumb_bob", "rational_polynomial")
_MAX_RAY = 1e4  # of the numbers of a matrix of rays, which are about 1
_MAX_SKEW = 1e-4  # of a focal length: a twentieth of a pixel at the rim
_COUNTS = (0, 4, 5, 8)  # of distortion by OpenCV


@dataclass(frozen=True, slots=True)
class StatedIntrinsics:
    """Focal lengths and principal point in pixels, as a file states them, distortion, and the size they hold for."""

    values: tuple[float, ...]
    """fx, fy, cx, cy."""
    distortion: tuple[float, ...] = ()
    """k1, k2, p1, p2, k3, … of `cv2.projectPoints`, or none."""
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


def take_numbers(values: Sequence[float], where: object, size: Sequence[float] | None = None) -> StatedIntrinsics:
    """Intrinsics of fx, fy, cx, cy and, where there are more, k1, k2, p1, p2, k3, … Raises SceneError."""
    if len(values) - 4 not in _COUNTS or not all(map(math.isfinite, values)):
        raise SceneError(where, f"{len(values)} numbers", "fx, fy, cx, cy and 4, 5 or 8 of distortion, all finite")
    check_plausible("image side", size or (), where, SceneError)
    whole = (int(size[0]), int(size[1])) if size else None
    return StatedIntrinsics(tuple(map(float, values[:4])), tuple(map(float, values[4:])), whole)


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
    values = parse_matrix(numbers, path, [(4,), (6,), (3, 3), (4, 4)], SceneError)
    if values.ndim == 2:
        return take_numbers(_split_matrix(values), path)
    return take_numbers(values[-4:].tolist(), path, values[:-4].tolist())


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
    found = found.get("camera", found) if isinstance(found, Mapping) else found
    if not isinstance(found, Mapping):
        raise SceneError(where, f"a {type(found).__name__}", _WANTED)

    def take(count: int, *values: Any) -> list[float]:
        return parse_matrix(list(values), where, [(count,)], SceneError).tolist()  # type: ignore[no-any-return]

    size = next((take(2, found[w], found[h]) for w, h in _SIZES if w in found and h in found), None)
    matrix = next((found[key] for key in ("intrinsic_matrix", "camera_matrix", "K") if key in found), None)
    if matrix is not None:
        K = parse_matrix(_take_data(matrix), where, [(3, 3)], SceneError)
        D = _take_data(found.get("distortion_coefficients", []))
        return take_numbers(
            [*_split_matrix(K), *parse_matrix(D, where, [(n,) for n in _COUNTS], SceneError)], where, size
        )
    keys = ("fl_x", "fl_y", "cx", "cy") if "fl_x" in found else ("fx", "fy", "cx", "cy")
    if not found.keys() >= set(keys):
        raise SceneError(where, f"keys {', '.join(map(str, list(found)[:12]))}", _WANTED)
    is_fisheye = found.get("camera_model") in ("OPENCV_FISHEYE", "FISHEYE")
    names = ("k1", "k2", "k3", "k4") if is_fisheye else ("k1", "k2", "p1", "p2", "k3")
    values = take(4 + len(names), *(found[key] for key in keys), *(found.get(name, 0.0) for name in names))
    return replace(take_numbers(values, where, size), fisheye=is_fisheye)


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
    is_fisheye = message.distortion_model in ("equidistant", "fisheye", "kannala_brandt4")
    counts = (4,) if is_fisheye else _COUNTS if message.distortion_model in _ROS_MODELS else ()
    if D.any() and len(D) not in counts:
        found = f"distortion {message.distortion_model!r:.40} of {len(D)} numbers"
        raise SceneError(where, found, f"one of {', '.join(_ROS_MODELS)} or equidistant", "Record rectified pictures.")
    values = [*_split_matrix(parse_matrix(K.tolist(), where, [(3, 3)], SceneError)), *(D if D.any() else ())]
    return replace(take_numbers(values, where, size), fisheye=is_fisheye and bool(D.any()))


def _split_matrix(K: FloatArray) -> list[float]:
    """fx, fy, cx, cy of a matrix (3, 3) or (4, 4), which may stand column by column."""
    K = K.T if np.allclose(K[:2, 2], 0) else K
    return [float(K[at]) for at in ((0, 0), (1, 1), (0, 2), (1, 2))]


def _take_data(found: Any) -> Any:
    """The numbers of a matrix, which OpenCV and ROS write below `data`."""
    return found.get("data") if isinstance(found, Mapping) else found


def _read_yaml(text: str, path: Path) -> Any:
    import yaml

    # OpenCV writes a version with a colon and a type of its own, which no other reader knows.
    plain = re.sub(r"^%YAML.*$|!!opencv-matrix", "", text, flags=re.MULTILINE)
    try:
        return yaml.safe_load(plain)
    except yaml.YAMLError as problem:
        raise SceneError(path, f"no readable YAML ({str(problem)[:80]})", _WANTED) from problem
