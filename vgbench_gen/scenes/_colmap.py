"""COLMAP text models: `cameras.txt` and `images.txt` (`docs/formats.md#colmap-models`; format of `colmap/colmap`).

COLMAP stores world-to-camera poses and puts the centre of the first pixel at (0.5, 0.5); what leaves this module is
`world_from_camera` with pixel (0, 0) as that centre. The observation lines (`POINTS2D`) make up nearly all of a file
that can have 350 MB; they are stepped over and never held.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO, Literal

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.poses import check_pose, invert, make_pose, quaternion_to_matrix
from vgbench_gen.scenes.files import open_regular
from vgbench_gen.scenes.plausible import check_plausible

LensKind = Literal["pinhole", "opencv", "fisheye"]

# model name -> (kind, names of its parameters in file order); "f" stands for both focal lengths.
_MODELS: dict[str, tuple[LensKind, str]] = {
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

# A header line has ten short fields; longer lines are observations and are read in pieces of this size.
_PIECE_BYTES = 1 << 16
_MAX_CAMERAS = 10_000
_MAX_IMAGES = 1_000_000
# COLMAP writes unit quaternions with 17 digits; more than this is another file.
_MAX_NORM_ERROR = 1e-2
_REMEDY = "Export the COLMAP model as text again, or download it again."


@dataclass(frozen=True, slots=True)
class Lens:
    """A camera with lens distortion, whose pixel (0, 0) is the centre of the first pixel."""

    kind: LensKind
    """Which model of distortion holds: "opencv" is the Brown-Conrady model of `cv2.projectPoints`, "fisheye" the
    Kannala-Brandt model of `cv2.fisheye`, and "pinhole" has none."""
    width: int
    """The width of its images in pixels."""
    height: int
    """The height of its images in pixels."""
    fx: float
    """The horizontal focal length in pixels."""
    fy: float
    """The vertical focal length in pixels."""
    cx: float
    """The horizontal place of the principal point in pixels."""
    cy: float
    """The vertical place of the principal point in pixels."""
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
        x, y = width / self.width, height / self.height
        return replace(
            self,
            width=width,
            height=height,
            fx=self.fx * x,
            fy=self.fy * y,
            cx=(self.cx + 0.5) * x - 0.5,
            cy=(self.cy + 0.5) * y - 0.5,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ColmapImage:
    """One registered image of a COLMAP model."""

    name: str
    """The name of its file, without folders."""
    camera_id: int
    world_from_camera: FloatArray
    """Its pose, (4, 4)."""
    pose_deviation: float
    """How far the rotation was from orthonormal before it was repaired, as `check_pose` measures it."""


@dataclass(frozen=True, slots=True)
class ColmapModel:
    """Cameras and registered images of a COLMAP model."""

    cameras: dict[int, Lens]
    images: dict[str, ColmapImage]
    """The images by their name without folders."""
    problems: list[tuple[str, str]]
    """What could not be used, as pairs of an image name and what was wrong with it; the name is empty where the problem
    is no single image's."""


def make_lens(model: str, width: int, height: int, params: Sequence[float], where: object) -> Lens:
    """Lens of a COLMAP camera: model name and parameters as in `cameras.txt`.

    Raises:
        SceneError: unknown model, wrong number of parameters, or values no lens has.
    """
    if model not in _MODELS:
        known = ", ".join(_MODELS)
        raise SceneError(where, f"camera model {model[:40]!r}", f"one of {known}", "Undistort to one of these models.")
    kind, names = _MODELS[model]
    if len(params) != len(names.split()):
        raise SceneError(where, f"{len(params)} parameters", f"{model}: {names}", _REMEDY)
    value = dict(zip(names.split(), params, strict=True))
    fx, fy = value.get("f", value.get("fx", 0.0)), value.get("f", value.get("fy", 0.0))
    sound = all(map(math.isfinite, params)) and 0 < width < 1 << 15 and 0 < height < 1 << 15 and fx > 0 and fy > 0
    if not sound:
        found = f"{width}x{height} with {[float(p) for p in params]}"
        raise SceneError(where, found, "finite values, positive focal lengths, sides below 32768", _REMEDY)
    distortion = tuple(float(value.get(name, 0.0)) for name in _ORDER[kind].split())
    check_plausible("distortion coefficient", distortion, where, SceneError)
    return Lens(kind, width, height, float(fx), float(fy), value["cx"] - 0.5, value["cy"] - 0.5, distortion)


def read_model(folder: Path, where: str) -> ColmapModel:
    """Cameras and poses of `folder/cameras.txt` and `folder/images.txt`.

    A bad image costs that image and is listed in `problems`; so is a count that differs from the file's header.

    Raises:
        SceneError: a file is missing, is no regular file, or `cameras.txt` cannot be understood.
    """
    cameras = _read_cameras(folder / "cameras.txt", f"{where}/cameras.txt")
    images, problems = _read_images(folder / "images.txt", f"{where}/images.txt", cameras)
    return ColmapModel(cameras, images, problems)


def _open(path: Path, where: str) -> BinaryIO:
    file = open_regular(path, where)
    if file.read(3) != codecs.BOM_UTF8:
        file.seek(0)
    return file


def _read_lines(file: BinaryIO) -> Iterator[bytes]:
    """First 64 KiB of every line, stripped; the rest of longer lines is passed over."""
    while piece := file.readline(_PIECE_BYTES):
        tail = piece
        while tail and not tail.endswith(b"\n"):
            tail = file.readline(_PIECE_BYTES)
        yield piece.strip()


def _read_cameras(path: Path, where: str) -> dict[int, Lens]:
    cameras: dict[int, Lens] = {}
    with _open(path, where) as file:
        for number, line in enumerate(_read_lines(file), 1):
            if not line or line.startswith(b"#"):
                continue
            fields, at = line.decode("utf-8", "replace").split(), f"{where} line {number}"
            try:
                camera_id, width, height = int(fields[0]), int(fields[2]), int(fields[3])
                params = [float(f) for f in fields[4:]]
            except (ValueError, IndexError) as problem:
                found = line[:80].decode("utf-8", "replace")
                raise SceneError(at, repr(found), "CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]", _REMEDY) from problem
            cameras[camera_id] = make_lens(fields[1], width, height, params, at)
            if len(cameras) > _MAX_CAMERAS:
                raise SceneError(where, f"more than {_MAX_CAMERAS} cameras", "one or a few", _REMEDY)
    if not cameras:
        raise SceneError(where, "no camera", "at least one camera line", _REMEDY)
    return cameras


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_images(
    path: Path, where: str, cameras: dict[int, Lens]
) -> tuple[dict[str, ColmapImage], list[tuple[str, str]]]:
    images: dict[str, ColmapImage] = {}
    problems: list[tuple[str, str]] = []
    repeated: set[str] = set()
    promised, count, observations_next = -1, 0, False
    with _open(path, where) as file:
        for number, line in enumerate(_read_lines(file), 1):
            if line.startswith(b"#"):
                found = re.search(rb"Number of images:\s*(\d{1,9})", line)
                promised = int(found[1]) if found else promised
                continue
            fields = line.decode("utf-8", "replace").split(maxsplit=9)
            if observations_next:
                # Observations are all numbers, a name is not: a file that lost its blank lines is still read right.
                if len(fields) < 10 or _is_number(fields[9].split(maxsplit=1)[0]):
                    observations_next = False
                    continue
            elif not fields:
                continue
            observations_next = True
            count += 1
            if count > _MAX_IMAGES:
                raise SceneError(where, f"more than {_MAX_IMAGES} images", "a model of one scene", _REMEDY)
            name = fields[9].replace("\\", "/").rpartition("/")[2] if len(fields) == 10 else ""
            try:
                image = _parse_image(fields, name, cameras, f"{where} line {number}")
            except (ValueError, SceneError) as problem:
                problems.append((name, f"{where} line {number}: {str(problem)[:200]}"))
                continue
            if name in images or name in repeated:
                repeated.add(name)
                images.pop(name, None)
                problems.append((name, f"{where} line {number}: the name stands more than once"))
                continue
            images[name] = image
    if promised >= 0 and promised != count:
        problems.append(("", f"{where}: {count} images, but its header says {promised}"))
    return images, problems


def _parse_image(fields: list[str], name: str, cameras: dict[int, Lens], at: str) -> ColmapImage:
    if len(fields) != 10 or not name:
        raise ValueError(f"{len(fields)} fields instead of IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME")
    numbers = np.array([float(f) for f in fields[1:8]])
    norm = float(np.linalg.norm(numbers[:4]))
    if not abs(norm - 1.0) <= _MAX_NORM_ERROR:
        raise ValueError(f"quaternion of length {norm:g} instead of 1")
    camera_id = int(fields[8])
    if camera_id not in cameras:
        raise ValueError(f"camera {camera_id} is not in cameras.txt")
    camera_from_world = make_pose(quaternion_to_matrix(numbers[:4] / norm), numbers[4:])
    try:
        pose, deviation = check_pose(invert(camera_from_world), at)
    except PoseError as problem:
        raise ValueError(str(problem)) from problem
    return ColmapImage(name, camera_id, pose, deviation)
