"""What the two cameras of ScanNet++ share: one lazy frame, the open scene, its files and objects."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes._mesh import read_ply
from vgbench_gen.scenes._render_depth import MeshDepth
from vgbench_gen.scenes._scannetpp_objects import read_objects
from vgbench_gen.scenes._scannetpp_poses import frame_stem
from vgbench_gen.scenes._turned import count_turns_to_upright, turn_upright
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, Scene, SceneObject
from vgbench_gen.scenes.files import (
    MAX_PICTURE_BYTES,
    compute_source_digest,
    decode_image_rgb,
    decode_mask_u8,
    inside,
    read_bytes,
    read_picture_header,
)

LICENCE = "scannetpp-tou"
UP_WORLD: FloatArray = np.array([0.0, 0.0, 1.0])
MESH_NAME = "mesh_aligned_0.05.ply"
_PICTURES = (".jpg", ".jpeg", ".png")
_MAX_ENTRIES = 1_000_000
_MAX_ASPECT_ERROR = 0.02
# Compressed masks have grey edges; 255 is valid, 0 hidden.
_MASK_VALID = 128

Mask = npt.NDArray[np.uint8]


class LensFrame(Frame):
    """One image, undistorted when asked for.

    color: gives RGB of the stored image. depth: gives metres on the stored grid. mask: gives 0..255, or None.
    undistorter: None where the stored image is a pinhole image already. depth_is_distorted: whether depth lies on
    the grid of the distorted image (sensor depth does, rendered depth does not).
    """

    def __init__(
        self,
        frame_id: str,
        timestamp_s: float | None,
        pose: FloatArray,
        pose_deviation: float,
        cameras: tuple[Camera, Camera],
        color: Callable[[], ColorArray],
        depth: Callable[[], DepthArray],
        *,
        encoded: Callable[[], bytes | None] | None = None,
        mask: Callable[[], Mask] | None = None,
        undistorter: Undistorter | None = None,
        depth_is_distorted: bool = False,
    ) -> None:
        self.id, self.timestamp_s = frame_id, timestamp_s
        self.world_from_camera, self.pose_deviation = pose, pose_deviation
        self.camera, self.depth_camera = cameras
        self._color, self._depth, self._encoded, self._mask = color, depth, encoded, mask
        self._undistorter, self._depth_is_distorted = undistorter, depth_is_distorted

    def color(self) -> ColorArray:
        """(H, W, 3) uint8 RGB. Raises FrameError."""
        image = self._color()
        self._check(image, self.camera)
        return image if self._undistorter is None else self._undistorter.color(image)

    def depth_m(self) -> DepthArray:
        """(h, w) float32 metres, 0 = unknown. Raises FrameError."""
        depth: DepthArray = self._depth()
        self._check(depth, self.depth_camera)
        if self._undistorter is None or not self._depth_is_distorted:
            return depth
        return np.asarray(self._undistorter.nearest(depth), np.float32)

    def encoded_color(self) -> bytes | None:
        """The file's bytes where they are the picture as it stands."""
        return self._encoded() if self._encoded is not None and self._undistorter is None else None

    def valid_mask(self) -> BoolArray | None:
        """(H, W) False where people were hidden; None where nothing is. Raises FrameError."""
        if self._mask is None:
            return None
        import cv2

        mask = self._mask()
        if (mask >= _MASK_VALID).all():
            return None
        if mask.shape != (self.camera.height, self.camera.width):
            check_aspect((mask.shape[1], mask.shape[0]), self.camera.size, f"mask of {self.id}", FrameError)
            mask = np.asarray(cv2.resize(mask, self.camera.size, interpolation=cv2.INTER_NEAREST), np.uint8)
        if self._undistorter is not None:
            mask = self._undistorter.nearest(mask)
        valid: BoolArray = mask >= _MASK_VALID
        return valid

    def _check(self, picture: npt.NDArray[Any], camera: Camera) -> None:
        if picture.shape[:2] != (camera.height, camera.width):
            found = f"{picture.shape[1]}x{picture.shape[0]} pixels"
            raise FrameError(self.id, found, f"{camera.width}x{camera.height}", "Export the scene again.")


class ScanNetPPScene(Scene):
    """An open scene; holds videos, depth streams and the mesh's search structure until closed."""

    def __init__(
        self,
        scene_id: str,
        split: str,
        frames: Sequence[Frame],
        objects: Sequence[SceneObject],
        depth_kind: DepthKind,
        digest: str,
        issues: list[Issue],
        total_frames: int,
        resources: ExitStack,
    ) -> None:
        self.dataset, self.id, self.split, self.licence = "scannetpp", scene_id, split, LICENCE
        turns = count_turns_to_upright([frame.world_from_camera for frame in frames], UP_WORLD)
        self.frames = tuple(turn_upright(frame, k) for frame, k in zip(frames, turns, strict=True))
        self.objects, self.depth_kind, self.source_digest = tuple(objects), depth_kind, digest
        self.up_world = UP_WORLD.copy()
        self.issues, self.total_frames = issues, total_frames
        self._resources = resources

    def close(self) -> None:
        """Release videos and depth streams."""
        self._resources.close()


def check_aspect(
    size: tuple[int, int], reference: tuple[int, int], where: object, error: type[FormatError] = SceneError
) -> None:
    """Refuse a size of another shape than the reference: it is another crop or orientation, not another scale.

    Raises:
        FormatError: (of type `error`).
    """
    ratio = size[0] * reference[1] / (size[1] * reference[0])
    if not abs(ratio - 1.0) <= _MAX_ASPECT_ERROR:
        expected = f"the shape of {reference[0]}x{reference[1]}"
        raise error(where, f"{size[0]}x{size[1]} pixels", expected, "Use files of the same export.")


class PictureFolder:
    """Pictures of one folder by frame key. Links that leave the scene folder are left out and noted."""

    def __init__(self, scene_folder: Path, folder: Path, issues: list[Issue]) -> None:
        self.files: dict[str, Path] = {}
        self.size_bytes = 0
        if not folder.is_dir():
            return
        inside(scene_folder, folder)
        with os.scandir(folder) as entries:
            for number, entry in enumerate(sorted(entries, key=lambda e: e.name)):
                if number >= _MAX_ENTRIES:
                    raise SceneError(folder, f"more than {_MAX_ENTRIES} files", "pictures of one scene", "Check it.")
                if not entry.name.lower().endswith(_PICTURES) or not entry.is_file():
                    continue
                key = frame_stem(entry.name)
                path = Path(entry.path)
                if entry.is_symlink():
                    try:
                        inside(scene_folder, path)
                    except SceneError as problem:
                        issues.append(Issue(key, "link_outside", str(problem)))
                        continue
                if key in self.files:
                    issues.append(Issue(key, "name_twice", f"{path.name} beside {self.files[key].name}; not used"))
                    continue
                self.files[key] = path
                self.size_bytes += entry.stat().st_size

    def first_size(self, where: str) -> tuple[int, int]:
        """(width, height) by the header of the first picture that has a sound one.

        Raises:
            SceneError: none of the first few has.
        """
        problem: FrameError | None = None
        for path in list(self.files.values())[:20]:
            try:
                header = read_picture_header(read_bytes(path, path, MAX_PICTURE_BYTES, FrameError), path)
            except FrameError as error:
                problem = problem or error
                continue
            return header.width, header.height
        raise SceneError(where, str(problem or "no picture"), "JPEG or PNG pictures", "Export the scene again.")


def read_file_color(path: Path, size: tuple[int, int]) -> ColorArray:
    """RGB of a picture of `size`. Raises FrameError."""
    return decode_image_rgb(read_bytes(path, path, MAX_PICTURE_BYTES, FrameError), path, size)


def read_file_bytes(path: Path) -> bytes | None:
    """Bytes of a picture if every viewer shows them as `read_file_color` does, else None."""
    data = read_bytes(path, path, MAX_PICTURE_BYTES, FrameError)
    return data if read_picture_header(data, path).plain else None


def read_file_mask(path: Path) -> Mask:
    """0..255 of a mask picture. Raises FrameError."""
    return decode_mask_u8(read_bytes(path, path, MAX_PICTURE_BYTES, FrameError), path)


class ScanMesh:
    """`scans/mesh_aligned_0.05.ply` of a scene, read at most once."""

    def __init__(self, scans: Path, where: str) -> None:
        self.path, self._scans, self._where = scans / MESH_NAME, scans, where

    def objects_and_depth(self, issues: list[Issue], *, want_depth: bool) -> tuple[list[SceneObject], MeshDepth | None]:
        """Objects (none where unannotated) and, if wanted, the renderer.

        Raises:
            SceneError: the mesh is damaged and depth was to come from it.
        """
        if not self.path.is_file():
            return [], None
        inside(self._scans.parent, self.path)
        try:
            vertices, faces = read_ply(self.path, want_faces=want_depth)
            if want_depth and not len(faces):
                raise SceneError(self.path, "no faces", "a triangle mesh", "Download the mesh again.")
        except SceneError as problem:
            if want_depth:
                raise
            issues.append(Issue("", "objects_unreadable", str(problem)))
            return [], None
        renderer = MeshDepth(vertices.astype(np.float32), faces.astype(np.uint32)) if want_depth else None
        if not (self._scans / "segments_anno.json").exists():
            return [], renderer
        try:
            objects, found = read_objects(self._scans, vertices, UP_WORLD, f"{self._where}/scans")
        except SceneError as problem:
            issues.append(Issue("", "objects_unreadable", str(problem)))
            return [], renderer
        issues += found
        return objects, renderer


def digest(scene_folder: Path, files: Iterable[Path]) -> str:
    """Digest of name, size and first bytes of the files that exist."""
    entries: list[tuple[str, int, bytes]] = []
    for path in files:
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(64)
            entries.append((path.relative_to(scene_folder).as_posix(), path.stat().st_size, head))
    return compute_source_digest(entries)
