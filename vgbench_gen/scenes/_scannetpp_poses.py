"""Poses and cameras of ScanNet++: COLMAP text models, `pose_intrinsic_imu.json`, and nerfstudio's `transforms.json`.

Formats: `docs/formats.md#colmap-models`, `docs/formats.md#phone-poses` and `docs/formats.md#nerfstudio-poses`. COLMAP
stores world-to-camera poses and puts the centre of the first pixel at (0.5, 0.5); what leaves this module is
`world_from_camera` with pixel (0, 0) as that centre. The observation lines (`POINTS2D`) make up nearly all of a file
that can have 350 MB; they are stepped over and never kept.
"""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import check_pose, invert, make_pose, quaternion_to_matrix
from vgbench_gen.scenes._lens import Lens, make_lens
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import open_regular, read_json

# A header line has ten short fields; longer lines are observations and are read in pieces of this size.
_PIECE_BYTES = 1 << 16
_MAX_CAMERAS = 10_000
# COLMAP writes unit quaternions with 17 digits; more than this is another file.
_MAX_NORM_ERROR = 1e-2
PHONE_SIZE = (1920, 1440)
_MAX_FRAMES = 1_000_000
_MAX_TIME_S = 1e15  # far beyond any clock, also of one that counts microseconds
# World of nerfstudio's files: x' = y, y' = x, z' = -z; its own inverse.
_MESH_FROM_NERFSTUDIO = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]])
_OPENGL_FROM_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class CheckedPose:
    """A pose that passed the check."""

    world_from_camera: FloatArray
    deviation: float
    """The largest entry of |R^T R - I| before the repair."""
    camera_id: int | None = None
    """The id of its camera in the COLMAP model; None where the pose has another source."""


@dataclass(slots=True, eq=False)
class PoseSource:
    """What one file, or one COLMAP model, says of the frames, by their keys; poses are in the frame of the mesh."""

    poses: dict[str, CheckedPose] = field(default_factory=dict)
    problems: list[Issue] = field(default_factory=list)
    """Poses that are missing or unsound, which counts where this file gives the poses of the scene."""
    lenses: dict[int | None, Lens] = field(default_factory=dict)
    """By the id of the camera in a COLMAP model; None is the one of nerfstudio."""
    bad: set[str] = field(default_factory=set)
    """Frames that nerfstudio marks as bad, such as blurred ones."""
    times_s: dict[str, float | None] = field(default_factory=dict)
    """Of all frames of the phone's JSON file; None where it states none."""
    intrinsics: dict[str, Any] = field(default_factory=dict)
    """Unchecked entries of the phone's JSON file."""

    def check(self, key: str, matrix: Any, where: object) -> None:
        """Keep a pose (4, 4), or note what is wrong with it."""
        try:
            self.poses[key] = CheckedPose(*check_pose(matrix, where))
        except PoseError as problem:
            self.problems.append(Issue(key, "pose_invalid", str(problem)))

    def find_lens(self, pose: CheckedPose) -> Lens:
        """The lens of a frame; that of most images where COLMAP did not register it."""
        if pose.camera_id in self.lenses:
            return self.lenses[pose.camera_id]
        used = Counter(registered.camera_id for registered in self.poses.values())
        return self.lenses[min(self.lenses, key=lambda camera_id: (-used[camera_id], camera_id or 0))]


def frame_stem(name: str) -> str:
    """Key of a frame from any name it has on disk: "video/frame_000020.color.jpg" -> "frame_000020"."""
    return name.replace("\\", "/").rpartition("/")[2].partition(".")[0]


def read_model(folder: Path, where: str, make_key: Callable[[str], str] = frame_stem) -> PoseSource:
    """Cameras and poses of `folder/cameras.txt` and `folder/images.txt`, by the keys of the images' names.

    A bad image costs that image and is listed in `problems`; so is a count that differs from the file's header.

    Raises:
        SceneError: a file is missing, is no regular file, or `cameras.txt` cannot be understood.
    """
    model = PoseSource(lenses=_read_cameras(folder / "cameras.txt", f"{where}/cameras.txt"))
    _read_images(folder / "images.txt", f"{where}/images.txt", model, make_key)
    return model


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


def _read_cameras(path: Path, where: str) -> dict[int | None, Lens]:
    cameras: dict[int | None, Lens] = {}
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
                raise SceneError(at, repr(found), "CAMERA_ID MODEL WIDTH HEIGHT PARAMS[]") from problem
            cameras[camera_id] = make_lens(fields[1], width, height, params, at)
            if len(cameras) > _MAX_CAMERAS:
                raise SceneError(where, f"more than {_MAX_CAMERAS} cameras", "one or a few")
    if not cameras:
        raise SceneError(where, "no camera", "at least one camera line")
    return cameras


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_images(path: Path, where: str, model: PoseSource, make_key: Callable[[str], str]) -> None:
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
            if count > _MAX_FRAMES:
                raise SceneError(where, f"more than {_MAX_FRAMES} images", "a model of one scene")
            key = make_key(fields[9]) if len(fields) == 10 else ""
            try:
                pose = _parse_image(fields, key, model.lenses, f"{where} line {number}")
                if key in model.poses or key in repeated:
                    repeated.add(key)
                    model.poses.pop(key, None)
                    raise ValueError("the name stands more than once")
                model.poses[key] = pose
            except (ValueError, PoseError) as problem:
                detail = f"{where} line {number}: {str(problem)[:200]}"
                model.problems.append(Issue(key, "pose_invalid", detail))
    if promised >= 0 and promised != count:
        detail = f"{where}: {count} images, but its header says {promised}"
        model.problems.append(Issue("", "colmap_count", detail))


def _parse_image(fields: list[str], key: str, cameras: Container[int | None], at: str) -> CheckedPose:
    if not key:
        raise ValueError(f"{len(fields)} fields instead of IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME")
    return check_image(np.array([float(f) for f in fields[1:8]]), int(fields[8]), cameras, at)


def check_image(numbers: FloatArray, camera_id: int, cameras: Container[int | None], where: object) -> CheckedPose:
    """The pose of an image of a COLMAP model, of its QW QX QY QZ TX TY TZ and the id of its camera.

    Raises:
        ValueError: no quaternion, or no such camera.
        PoseError: no pose.
    """
    norm = float(np.linalg.norm(numbers[:4]))
    if not abs(norm - 1.0) <= _MAX_NORM_ERROR:
        raise ValueError(f"quaternion of length {norm:g} instead of 1")
    if camera_id not in cameras:
        raise ValueError(f"camera {camera_id} is not among the cameras")
    camera_from_world = make_pose(quaternion_to_matrix(numbers[:4] / norm), numbers[4:])
    return CheckedPose(*check_pose(invert(camera_from_world), where), camera_id)


def read_phone_json(path: Path, where: str) -> PoseSource:
    """Poses and records of `pose_intrinsic_imu.json`. Keys may be singular or plural; entries may be null.

    Raises:
        SceneError: unreadable, or no object of objects.
    """
    content = read_json(path, where)
    if not isinstance(content, Mapping) or not 0 < len(content) <= _MAX_FRAMES:
        found = f"{type(content).__name__} of {len(content)}" if isinstance(content, Mapping | list) else "no object"
        raise SceneError(where, found, "an object with an entry per frame (frame_000000, ...)")
    phone = PoseSource()
    for key, entry in content.items():
        if not isinstance(entry, Mapping):
            phone.times_s[key] = None
            phone.problems.append(Issue(key[:40], "pose_missing", f"{where}: the entry is {type(entry).__name__}"))
            continue
        # The plural `poses`/`pose` is never read: it lives in the phone's own world, not in the mesh's.
        stamp, pose = _read_either(entry, "timestamp"), _read_either(entry, "aligned_pose")
        # A comparison, because a whole number of JSON may be too long to become a float.
        timed = isinstance(stamp, int | float) and abs(stamp) < _MAX_TIME_S
        phone.times_s[key] = float(stamp) if timed else None
        phone.intrinsics[key] = _read_either(entry, "intrinsic")
        if pose is None:
            phone.problems.append(Issue(key, "pose_missing", "no aligned_pose"))
        else:
            phone.check(key, pose, f"{where} {key}")
    return phone


def _read_either(entry: Mapping[str, Any], name: str) -> Any:
    value = entry.get(name)
    return entry.get(name + "s") if value is None else value


def read_nerfstudio(path: Path, where: str) -> PoseSource:
    """Camera, poses and blur marks of a `transforms.json` (or `transforms_undistorted.json`). Raises SceneError."""
    content = read_json(path, where)
    if not isinstance(content, Mapping):
        raise SceneError(where, type(content).__name__, "an object with 'frames'")
    source = PoseSource(lenses={None: _make_nerfstudio_lens(content, where)})
    for group in ("frames", "test_frames"):
        frames = content.get(group) or []
        if not isinstance(frames, list) or len(frames) > _MAX_FRAMES:
            raise SceneError(where, f"no list under {group!r}", "a list of frames")
        for frame in frames:
            name = frame.get("file_path") if isinstance(frame, Mapping) else None
            if not isinstance(name, str):
                continue
            key = frame_stem(name)
            try:
                matrix = np.array(frame.get("transform_matrix"), dtype=np.float64)
            except (TypeError, ValueError, OverflowError):
                matrix = np.empty(0)
            if matrix.shape == (4, 4):
                with np.errstate(invalid="ignore"):
                    matrix = _MESH_FROM_NERFSTUDIO @ matrix @ _OPENGL_FROM_OPENCV
            source.check(key, matrix, f"{where} {key}")
            if frame.get("is_bad"):
                source.bad.add(key)
    return source


def _make_nerfstudio_lens(content: Mapping[str, Any], where: str) -> Lens:
    try:
        model = str(content.get("camera_model") or ("OPENCV_FISHEYE" if "k3" in content else "OPENCV"))
        width, height = int(content["w"]), int(content["h"])
        focal = float(content["fl_x"])
        params = [focal, float(content.get("fl_y", focal)), float(content["cx"]), float(content["cy"])]
        names = {"OPENCV": "k1 k2 p1 p2", "OPENCV_FISHEYE": "k1 k2 k3 k4"}.get(model, "")
        params += [float(content.get(name, 0.0)) for name in names.split()]
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise SceneError(where, f"camera entries with {problem!r:.80}", "fl_x fl_y cx cy w h") from problem
    return make_lens(model, width, height, params, where)
