"""What the two cameras of ScanNet++ share: one lazy frame, the open scene, and the opener that they subclass."""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray, IntArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._colmap import ColmapModel, Lens, read_model
from vgbench_gen.scenes._mesh import read_ply
from vgbench_gen.scenes._render_depth import RENDERED_WIDTH, MeshDepth
from vgbench_gen.scenes._scannetpp_objects import read_objects
from vgbench_gen.scenes._scannetpp_poses import CheckedPose, Nerfstudio, frame_stem, read_nerfstudio
from vgbench_gen.scenes._turned import count_turns_to_upright, turn_upright
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, Scene, SceneObject, SceneRef
from vgbench_gen.scenes.files import (
    compute_source_digest,
    decode_image_rgb,
    decode_mask_u8,
    inside,
    read_file_header,
    read_picture,
    read_picture_header,
)
from vgbench_gen.scenes.promised import list_files, note_missing, note_without, try_to_read

LICENCE = "scannetpp-tou"
UP_WORLD: FloatArray = np.array([0.0, 0.0, 1.0])
MESH_NAME = "mesh_aligned_0.05.ply"
_PICTURES = (".jpg", ".jpeg", ".png")
NO_MASKS = "hidden people are not left out"
_NO_OBJECTS = "the scene has no objects"
_MAX_ASPECT_ERROR = 0.02
# Compressed masks have grey edges; 255 is valid, 0 hidden.
_MASK_VALID = 128

Mask = npt.NDArray[np.uint8]


class LensFrame(Frame):
    """One image, undistorted when asked for.

    color: gives RGB of the stored image. depth: gives meters on the stored grid. mask: gives 0..255, or None.
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
        """(h, w) float32 meters, 0 = unknown. Raises FrameError."""
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


def list_pictures(scene_folder: Path, folder: Path, issues: list[Issue], without: str = "") -> dict[str, Path]:
    """Pictures of one folder by frame key. What is left out becomes an issue, as of `list_files`."""
    found: dict[str, Path] = {}
    for name in list_files(scene_folder, folder, issues, without):
        key = frame_stem(name)
        if name.lower().endswith(_PICTURES) and found.setdefault(key, folder / name) != folder / name:
            issues.append(Issue(key, "name_twice", f"{name} beside {found[key].name}; not used"))
    return found


def read_first_size(files: Mapping[str, Path], where: str) -> tuple[int, int]:
    """(width, height) by the header of the first picture that has a sound one.

    Raises:
        SceneError: none of the first few has.
    """
    problem: FrameError | None = None
    for path in list(files.values())[:20]:
        try:
            header = read_file_header(path)
        except FrameError as error:
            problem = problem or error
            continue
        return header.width, header.height
    raise SceneError(where, str(problem or "no picture"), "JPEG or PNG pictures", "Export the scene again.")


def read_file_color(path: Path, size: tuple[int, int]) -> ColorArray:
    """RGB of a picture of `size`. Raises FrameError."""
    return decode_image_rgb(read_picture(path), path, size)


def read_file_bytes(path: Path) -> bytes | None:
    """Bytes of a picture if every viewer shows them as `read_file_color` does, else None."""
    data = read_picture(path)
    return data if read_picture_header(data, path).plain else None


def read_file_mask(path: Path) -> Mask:
    """0..255 of a mask picture. Raises FrameError."""
    return decode_mask_u8(read_picture(path), path)


class CaptureOpener(abc.ABC):
    """One camera's capture of a scene while it is opened.

    Args:
        ref: the capture; its path is `<scene>/iphone` or `<scene>/dslr`.
        resources: closed with the scene, or at once where opening fails.

    Raises:
        SceneError: the folder lies outside the scene's folder.
    """

    size: tuple[int, int]
    """Width and height of the colour pictures, in pixels; set by the subclass before the first frame is made."""
    masks: dict[str, Path]
    """Pictures of what is hidden, by frame key; set by the subclass."""

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        self.ref, self.resources, self.where = ref, resources, ref.scene_id
        self.root, self.folder = ref.path.parent, ref.path
        self.issues: list[Issue] = []
        self.mesh = self.root / "scans" / MESH_NAME
        self.annotation = [self.mesh.with_name(name) for name in ("segments.json", "segments_anno.json")]
        self._undistorters: dict[Lens, Undistorter] = {}
        self.was_rescaled = False
        inside(self.root, self.folder)

    @abc.abstractmethod
    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""

    def has_files(self, paths: Sequence[Path], without: str) -> bool:
        """Whether all promised files are there; an issue says what the scene lacks for those that are not.

        Raises:
            SceneError: one lies outside the scene's folder.
        """
        note_missing(self.issues, paths, without)
        return all(path.is_file() and inside(self.root, path) for path in paths)

    def read_colmap(self, without: str) -> ColmapModel | None:
        """The model in `colmap/`; None, with an issue that says what the scene lacks then, where there is none."""
        files = [self.folder / "colmap" / name for name in ("cameras.txt", "images.txt")]
        read = partial(read_model, self.folder / "colmap", f"{self.where}/colmap")
        return try_to_read(self.issues, read, without) if self.has_files(files, without) else None

    def read_nerfstudio(self, name: str) -> Nerfstudio | None:
        """The file `nerfstudio/NAME`; None, with an issue where it is unreadable, if there is none."""
        path = self.folder / "nerfstudio" / name
        if not path.exists():
            return None
        read = partial(read_nerfstudio, inside(self.root, path), f"{self.where}/nerfstudio/{name}")
        return try_to_read(self.issues, read, "its poses and its marks of bad frames are unknown")

    def read_objects_and_depth(self, want_depth: bool) -> tuple[list[SceneObject], MeshDepth | None]:
        """Objects of `scans/` (none where unannotated) and, if wanted, the renderer (None where there is no mesh).

        Raises:
            SceneError: the mesh is damaged and depth was to come from it.
        """
        if not self.mesh.exists():
            if not want_depth:  # scenes without a mesh have no sensor depth either
                note_missing(self.issues, [self.mesh], _NO_OBJECTS)
            return [], None
        read_mesh = partial(self._read_mesh, want_depth)
        mesh = read_mesh() if want_depth else try_to_read(self.issues, read_mesh, _NO_OBJECTS)
        if mesh is None:
            return [], None
        vertices, faces = mesh
        renderer = MeshDepth(vertices.astype(np.float32), faces.astype(np.uint32)) if want_depth else None
        promised = self.ref.split != "test" or any(path.exists() for path in self.annotation)
        if not promised or not self.has_files(self.annotation, _NO_OBJECTS):
            return [], renderer
        read = partial(read_objects, self.mesh.parent, vertices, UP_WORLD, f"{self.where}/scans")
        objects, found = try_to_read(self.issues, read, _NO_OBJECTS) or ([], [])
        self.issues += found
        return objects, renderer

    def _read_mesh(self, want_faces: bool) -> tuple[FloatArray, IntArray]:
        vertices, faces = read_ply(inside(self.root, self.mesh), want_faces=want_faces)
        if want_faces and not len(faces):
            raise SceneError(self.mesh, "no faces", "a triangle mesh", "Download the mesh again.")
        return vertices, faces

    def check_nerfstudio_poses(self, source: Nerfstudio) -> dict[str, CheckedPose]:
        """The sound poses of a scene that has no other source, by frame key; the others become issues."""
        poses: dict[str, CheckedPose] = {}
        detail = "only pose source; its scale could not be checked against COLMAP"
        self.issues.append(Issue("", "nerfstudio_poses", detail))
        for key in source.poses:
            try:
                poses[key] = CheckedPose(*source.checked(key, f"{self.where}/nerfstudio {key}"))
            except PoseError as problem:
                self.issues.append(Issue(key, "pose_invalid", str(problem)))
        return poses

    def fit_lens(self, lens: Lens) -> tuple[Camera, Undistorter | None]:
        """The pinhole camera of pictures of `size` taken through a lens, and what undistorts them (None: a pinhole).

        Raises:
            SceneError: the pictures have another shape than the lens was calibrated for.
        """
        if (lens.width, lens.height) != self.size:
            check_aspect(self.size, (lens.width, lens.height), f"{self.where} colour")
            lens, self.was_rescaled = lens.resized(*self.size), True
        if lens.is_pinhole:
            return lens.camera, None
        if lens not in self._undistorters:
            self._undistorters[lens] = Undistorter(lens, f"{self.where}/colmap/cameras.txt")
        return self._undistorters[lens].camera, self._undistorters[lens]

    def make_scene(
        self,
        frames: list[Frame],
        objects: list[SceneObject],
        kind: DepthKind,
        keys: set[str],
        files: Iterable[str],
        pictures: Iterable[Mapping[str, Path]],
    ) -> ScanNetPPScene:
        """The open scene, which holds `resources` from now on.

        Args:
            keys: of all frames that the capture tells of, usable or not.
            files, pictures: what the scene was read from beside mesh and masks, for its digest; files are named below
                the capture's folder.
        """
        if self.masks:
            without = [frame.id for frame in frames if frame.id not in self.masks]
            note_without(self.issues, without, "an anonymisation mask")
        if self.was_rescaled:
            self.issues.append(Issue("", "intrinsics_rescaled", f"to images of {self.size[0]}x{self.size[1]}"))
        read = [*(self.folder / name for name in files), self.mesh, *self.annotation]
        for folder in (*pictures, self.masks):
            read += folder.values()
        return ScanNetPPScene(
            self.ref.scene_id, self.ref.split, frames, objects, kind, digest(self.root, read), self.issues, len(keys),
            self.resources.pop_all(),
        )  # fmt: skip


def colmap_poses(model: ColmapModel | None) -> dict[str, CheckedPose]:
    """Poses of the registered images by frame key; none without a model."""
    images = model.images.values() if model else ()
    return {
        frame_stem(image.name): CheckedPose(image.world_from_camera, image.pose_deviation, image.camera_id)
        for image in images
    }


def mesh_depth(renderer: MeshDepth, camera: Camera, pose: CheckedPose) -> tuple[Camera, Callable[[], DepthArray]]:
    """Depth of a frame from the mesh: the camera it is rendered with, at most RENDERED_WIDTH px wide, and the call."""
    width = min(RENDERED_WIDTH, camera.width)
    depth_camera = resize_camera(camera, width, max(1, round(camera.height * width / camera.width)))
    return depth_camera, partial(renderer.render, depth_camera, pose.world_from_camera)


def digest(scene_folder: Path, files: Iterable[Path]) -> str:
    """Digest of name, size and first bytes of the files that exist."""
    entries: list[tuple[str, int, bytes]] = []
    for path in files:
        if path.is_file():
            with path.open("rb") as file:
                head = file.read(64)
            entries.append((path.relative_to(scene_folder).as_posix(), path.stat().st_size, head))
    return compute_source_digest(entries)
