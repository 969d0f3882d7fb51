"""Poses and intrinsics of ScanNet++: `pose_intrinsic_imu.json` and nerfstudio's `transforms.json`.

Formats: `docs/formats.md#phone-poses` and `docs/formats.md#nerfstudio-poses`. COLMAP models are read by `_colmap`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import check_pose
from vgbench_gen.scenes._colmap import Lens, make_lens
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import read_json

PHONE_SIZE = (1920, 1440)
_MAX_FRAMES = 1_000_000
_MAX_TIME_S = 1e15  # far beyond any clock, also of one that counts microseconds
# A principal point further from the middle than this share of the image belongs to an image of another size.
_MAX_OFF_CENTRE = 0.15
_MAX_SKEW = 1e-3
_REMEDY = "Download the file again."
# World of nerfstudio's files: x' = y, y' = x, z' = -z; its own inverse.
_MESH_FROM_NERFSTUDIO = np.array([[0.0, 1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1]])
_OPENGL_FROM_OPENCV = np.diag([1.0, -1.0, -1.0, 1.0])


@dataclass(frozen=True, slots=True, eq=False)
class CheckedPose:
    """A pose that passed the check."""

    world_from_camera: FloatArray
    """The pose after repair, (4, 4)."""
    deviation: float
    """How far the rotation was from orthonormal before, max |R^T R - I|."""
    camera_id: int | None = None
    """The id of its camera in the COLMAP model; None where the pose has another source."""


@dataclass(frozen=True, slots=True, eq=False)
class PhoneRecord:
    """One frame of the phone's JSON file, with its values unchecked."""

    timestamp_s: float | None
    """The time of the frame in seconds; None where none is given."""
    intrinsic: Any
    """What stands under `intrinsic`; None where nothing does."""
    aligned_pose: Any
    """What stands under `aligned_pose`, a pose in the frame of the mesh; None where nothing does."""


def frame_stem(name: str) -> str:
    """Key of a frame from any name it has on disk: "video/frame_000020.color.jpg" -> "frame_000020"."""
    return name.replace("\\", "/").rpartition("/")[2].partition(".")[0]


def read_phone_json(path: Path, where: str) -> tuple[dict[str, PhoneRecord], list[Issue]]:
    """Records by frame key, in order of the file. Keys may be singular or plural; entries may be null.

    Raises:
        SceneError: unreadable, or no object of objects.
    """
    content = read_json(path, where)
    if not isinstance(content, Mapping) or not 0 < len(content) <= _MAX_FRAMES:
        found = f"{type(content).__name__} of {len(content)}" if isinstance(content, Mapping | list) else "no object"
        raise SceneError(where, found, "an object with an entry per frame (frame_000000, ...)", _REMEDY)
    records: dict[str, PhoneRecord] = {}
    issues: list[Issue] = []
    for key, entry in content.items():
        if not isinstance(entry, Mapping):
            issues.append(Issue(key[:40], "pose_missing", f"{where}: the entry is {type(entry).__name__}"))
            continue
        # The plural `poses`/`pose` is never read: it lives in the phone's own world, not in the mesh's.
        stamp = _read_either(entry, "timestamp")
        # A comparison, because a whole number of JSON may be too long to become a float.
        timed = isinstance(stamp, int | float) and abs(stamp) < _MAX_TIME_S
        aligned = _read_either(entry, "aligned_pose")
        records[key] = PhoneRecord(float(stamp) if timed else None, _read_either(entry, "intrinsic"), aligned)
    return records, issues


def _read_either(entry: Mapping[str, Any], name: str) -> Any:
    value = entry.get(name)
    return entry.get(name + "s") if value is None else value


def make_phone_camera(intrinsic: Any, size: tuple[int, int], where: object) -> tuple[Camera, bool]:
    """Camera of an image of `size` from the json's 3x3, and whether it had to be rescaled.

    The json does not say which size its numbers are for; it is the image's own, or that of the phone's video.

    Raises:
        PoseError: no pinhole matrix, or one for neither size.
    """
    try:
        K = np.array(intrinsic, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        K = np.empty(0)
    sound = K.shape == (3, 3) and np.isfinite(K).all() and K[0, 0] > 0 and K[1, 1] > 0
    if not sound or np.abs([K[0, 1], K[1, 0], K[2, 0], K[2, 1], K[2, 2] - 1]).max() > _MAX_SKEW * max(K[0, 0], 1.0):
        found = f"{str(intrinsic)[:80]}"
        raise PoseError(where, f"intrinsic {found}", "[[fx, 0, cx], [0, fy, cy], [0, 0, 1]]", "Leave the frame out.")
    pinhole = np.array([[K[0, 0], 0, K[0, 2]], [0, K[1, 1], K[1, 2]], [0, 0, 1]])
    for width, height in dict.fromkeys([size, PHONE_SIZE]):
        centre = (K[:2, 2] + 0.5) / (width, height)
        if (np.abs(centre - 0.5) <= _MAX_OFF_CENTRE).all():
            return resize_camera(Camera(pinhole, width, height), *size), (width, height) != size
    found = f"a principal point at ({K[0, 2]:.1f}, {K[1, 2]:.1f}) for images of {size[0]}x{size[1]}"
    expected = f"one near the middle of these or of {PHONE_SIZE[0]}x{PHONE_SIZE[1]}"
    raise PoseError(where, found, expected, "Use images and intrinsics of the same export.")


@dataclass(frozen=True, slots=True)
class Nerfstudio:
    """One camera and the poses of nerfstudio's file."""

    lens: Lens
    """The camera of all frames."""
    poses: dict[str, Any]
    """What stands as the pose of each frame, by frame key, in nerfstudio's own frame and unchecked; should be (4,
    4)."""
    bad: frozenset[str]
    """Keys of the frames that the file marks as bad, such as blurred ones."""

    def checked(self, key: str, where: object) -> tuple[FloatArray, float]:
        """The pose world_from_camera of a frame in the frame of the mesh, and its deviation before repair.

        Raises:
            PoseError: what stands there is no pose.
        """
        try:
            matrix = np.array(self.poses[key], dtype=np.float64)
        except (TypeError, ValueError, OverflowError):
            matrix = np.empty(0)
        if matrix.shape != (4, 4):
            return check_pose(matrix, where)
        with np.errstate(invalid="ignore"):
            return check_pose(_MESH_FROM_NERFSTUDIO @ matrix @ _OPENGL_FROM_OPENCV, where)


def read_nerfstudio(path: Path, where: str) -> Nerfstudio:
    """Camera, poses and blur marks of a `transforms.json` (or `transforms_undistorted.json`).

    Raises:
        SceneError: unreadable, or of another shape.
    """
    content = read_json(path, where)
    if not isinstance(content, Mapping):
        raise SceneError(where, type(content).__name__, "an object with 'frames'", _REMEDY)
    poses: dict[str, Any] = {}
    bad: set[str] = set()
    for group in ("frames", "test_frames"):
        frames = content.get(group) or []
        if not isinstance(frames, list) or len(frames) > _MAX_FRAMES:
            raise SceneError(where, f"no list under {group!r}", "a list of frames", _REMEDY)
        for frame in frames:
            name = frame.get("file_path") if isinstance(frame, Mapping) else None
            if not isinstance(name, str):
                continue
            key = frame_stem(name)
            poses[key] = frame.get("transform_matrix")
            if frame.get("is_bad"):
                bad.add(key)
    return Nerfstudio(_make_nerfstudio_lens(content, where), poses, frozenset(bad))


def _make_nerfstudio_lens(content: Mapping[str, Any], where: str) -> Lens:
    try:
        model = str(content.get("camera_model") or ("OPENCV_FISHEYE" if "k3" in content else "OPENCV"))
        width, height = int(content["w"]), int(content["h"])
        focal = float(content["fl_x"])
        params = [focal, float(content.get("fl_y", focal)), float(content["cx"]), float(content["cy"])]
        names = {"OPENCV": "k1 k2 p1 p2", "OPENCV_FISHEYE": "k1 k2 k3 k4"}.get(model, "")
        params += [float(content.get(name, 0.0)) for name in names.split()]
    except (KeyError, TypeError, ValueError, OverflowError) as problem:
        raise SceneError(where, f"camera entries with {problem!r:.80}", "fl_x fl_y cx cy w h", _REMEDY) from problem
    return make_lens(model, width, height, params, where)
