"""What opening a ScanNet++ capture needs for either camera: pose files, lenses, depth from the mesh, the scene.

The iPhone and the DSLR subclass `CaptureOpener` with what differs: where pictures, poses and depth come from.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera, DepthArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._colmap import ColmapModel, Lens, read_model
from vgbench_gen.scenes._render_depth import RENDERED_WIDTH, MeshDepth
from vgbench_gen.scenes._scannetpp_frames import PictureFolder, ScanMesh, ScanNetPPScene, check_aspect, digest
from vgbench_gen.scenes._scannetpp_poses import CheckedPose, Nerfstudio, frame_stem, read_nerfstudio
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, SceneObject, SceneRef
from vgbench_gen.scenes.files import inside


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

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        self.ref, self.resources, self.where = ref, resources, ref.scene_id
        self.root, self.folder = ref.path.parent, ref.path
        self.issues: list[Issue] = []
        self.mesh = ScanMesh(self.root / "scans", self.where)
        self._undistorters: dict[Lens, Undistorter] = {}
        self.was_rescaled = False
        inside(self.root, self.folder)

    @abc.abstractmethod
    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""

    def read_colmap(self) -> ColmapModel | None:
        """The model in `colmap/`; None, with an issue where it is unreadable, if there is none."""
        folder = self.folder / "colmap"
        if not (folder / "images.txt").exists():
            return None
        inside(self.root, folder)
        try:
            return read_model(folder, f"{self.where}/colmap")
        except SceneError as problem:
            self.issues.append(Issue("", "colmap_unreadable", str(problem)))
            return None

    def read_nerfstudio(self, name: str) -> Nerfstudio | None:
        """The file `nerfstudio/NAME`; None, with an issue where it is unreadable, if there is none."""
        path = self.folder / "nerfstudio" / name
        if not path.exists():
            return None
        inside(self.root, path)
        try:
            return read_nerfstudio(path, f"{self.where}/nerfstudio/{name}")
        except SceneError as problem:
            self.issues.append(Issue("", "nerfstudio_unreadable", str(problem)))
            return None

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
        folders: Iterable[PictureFolder],
    ) -> ScanNetPPScene:
        """The open scene, which holds `resources` from now on.

        Args:
            keys: of all frames that the capture tells of, usable or not.
            files, folders: what the scene was read from beside the mesh, for its digest; files are named below the
                capture's folder.
        """
        if self.was_rescaled:
            self.issues.append(Issue("", "intrinsics_rescaled", f"to images of {self.size[0]}x{self.size[1]}"))
        read = [self.folder / name for name in files]
        read += [
            self.mesh.path,
            self.mesh.path.with_name("segments.json"),
            self.mesh.path.with_name("segments_anno.json"),
        ]
        for folder in folders:
            read += folder.files.values()
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
