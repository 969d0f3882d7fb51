"""The DSLR capture of a ScanNet++ scene (`docs/formats.md#undistortion`).

Undistorted pictures are taken where the scene has them, else the fisheye pictures are undistorted on load. Poses
come from COLMAP, else from nerfstudio. There is no depth on disk: it is rendered from the laser mesh.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera
from vgbench_gen.geometry.cameras import resized
from vgbench_gen.scenes._colmap import ColmapModel, Lens, read_model
from vgbench_gen.scenes._render_depth import RENDERED_WIDTH, MeshDepth
from vgbench_gen.scenes._scannetpp_frames import (
    LensFrame,
    Mesh,
    PictureFolder,
    ScanNetPPScene,
    check_aspect,
    digest,
    read_file_bytes,
    read_file_color,
    read_file_mask,
    render,
)
from vgbench_gen.scenes._scannetpp_poses import CheckedPose, Nerfstudio, frame_stem, read_nerfstudio
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import Frame, Issue, SceneRef
from vgbench_gen.scenes.files import inside


def open_dslr(ref: SceneRef) -> ScanNetPPScene:
    """Open `<scene>/dslr`. Raises SceneError."""
    return _Opening(ref).scene()


class _Opening:
    """One scene being opened."""

    def __init__(self, ref: SceneRef) -> None:
        self.ref, self.where = ref, ref.scene_id
        self.root, self.folder = ref.path.parent, ref.path
        self.issues: list[Issue] = []
        inside(self.root, self.folder)
        self.colmap = self._colmap()
        self.fisheye_json = self._nerfstudio("transforms.json")
        self.pinhole_json = self._nerfstudio("transforms_undistorted.json")
        self.undistorters: dict[Lens, Undistorter] = {}
        self._choose_pictures()

    def _colmap(self) -> ColmapModel | None:
        folder = self.folder / "colmap"
        if not (folder / "images.txt").exists():
            return None
        inside(self.root, folder)
        try:
            return read_model(folder, f"{self.where}/colmap")
        except SceneError as problem:
            self.issues.append(Issue("", "colmap_unreadable", str(problem)))
            return None

    def _nerfstudio(self, name: str) -> Nerfstudio | None:
        path = self.folder / "nerfstudio" / name
        if not path.exists():
            return None
        inside(self.root, path)
        try:
            return read_nerfstudio(path, f"{self.where}/nerfstudio/{name}")
        except SceneError as problem:
            self.issues.append(Issue("", "nerfstudio_unreadable", str(problem)))
            return None

    def _choose_pictures(self) -> None:
        """Undistorted pictures only together with their own camera; a fisheye camera would be wrong for them."""
        flat = PictureFolder(self.root, self.folder / "resized_undistorted_images", self.issues)
        self.lens: Lens | None = None
        if flat.files and self.pinhole_json is not None and self.pinhole_json.lens.is_pinhole:
            self.pictures, self.lens = flat, self.pinhole_json.lens
            masks = "resized_undistorted_masks"
        else:
            if flat.files:
                detail = "resized_undistorted_images/ has no pinhole camera in nerfstudio/transforms_undistorted.json"
                self.issues.append(Issue("", "undistorted_unused", detail))
            self.pictures = PictureFolder(self.root, self.folder / "resized_images", self.issues)
            masks = "resized_anon_masks"
        if not self.pictures.files:
            found = "no pictures in resized_images/, and no undistorted ones with their camera"
            raise SceneError(f"{self.where}: {self.folder}", found, "one of them", "Download dslr/resized_images.")
        self.masks = PictureFolder(self.root, self.folder / masks, self.issues)
        self.size = self.pictures.first_size(f"{self.where}/{next(iter(self.pictures.files.values())).parent.name}")

    def scene(self) -> ScanNetPPScene:
        mesh = Mesh(self.root / "scans", self.where)
        objects, renderer = mesh.objects_and_depth(self.issues, want_depth=True)
        if renderer is None:
            raise SceneError(
                f"{self.where}: {mesh.path}",
                "no mesh, so no depth can be rendered for the DSLR pictures",
                "scans/mesh_aligned_0.05.ply (scenes of nvs_test have none)",
                "Download the mesh, or leave this scene out.",
            )
        poses = self._poses()
        bad = {key for source in (self.fisheye_json, self.pinhole_json) if source for key in source.bad}
        frames: list[Frame] = []
        for key in sorted(self.pictures.files):
            if key not in poses:
                if not any(issue.frame_id == key for issue in self.issues):
                    self.issues.append(Issue(key, "pose_missing", "the picture has no pose"))
            elif key in bad:
                self.issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio"))
            else:
                frames.append(self._frame(key, poses[key], renderer))
        without = [key for key in poses if key not in self.pictures.files]
        if without:
            # Hidden test views have poses but no pictures, so this is no fault of single frames.
            self.issues.append(Issue("", "color_missing", f"{len(without)} poses have no picture, e.g. {without[0]}"))
        if not frames:
            found = f"no usable frame among {len(self.pictures.files)} pictures and {len(poses)} poses"
            raise SceneError(self.where, found, "pictures that have a pose", "Download dslr/colmap again.")
        total = len(set(self.pictures.files) | set(poses))
        return ScanNetPPScene(
            self.ref.scene_id,
            self.ref.split,
            frames,
            objects,
            "laser",
            self._digest(mesh),
            self.issues,
            total,
            ExitStack(),
        )

    def _poses(self) -> dict[str, CheckedPose]:
        if self.colmap is not None and self.colmap.images:
            for name, why in self.colmap.problems:
                self.issues.append(Issue(frame_stem(name), "pose_invalid" if name else "colmap_count", why))
            return {
                frame_stem(i.name): CheckedPose(i.world_from_camera, i.pose_deviation, i.camera_id)
                for i in self.colmap.images.values()
            }
        source = self.fisheye_json or self.pinhole_json
        if source is None:
            found, expected = "no COLMAP model and no nerfstudio poses", "colmap/ or nerfstudio/transforms.json"
            raise SceneError(self.where, found, expected, "Download dslr/colmap.")
        self.issues.append(Issue("", "nerfstudio_poses", "only pose source; its scale could not be checked"))
        poses: dict[str, CheckedPose] = {}
        for key in source.poses:
            try:
                poses[key] = CheckedPose(*source.checked(key, f"{self.where}/nerfstudio {key}"))
            except PoseError as problem:
                self.issues.append(Issue(key, "pose_invalid", str(problem)))
        return poses

    def _frame(self, key: str, pose: CheckedPose, renderer: MeshDepth) -> LensFrame:
        camera, undistorter = self._camera(pose)
        width = min(RENDERED_WIDTH, camera.width)
        depth_camera = resized(camera, width, max(1, round(camera.height * width / camera.width)))
        path = self.pictures.files[key]
        mask = self.masks.files.get(key)
        return LensFrame(
            key,
            None,
            pose.world_from_camera,
            pose.deviation,
            (camera, depth_camera),
            partial(read_file_color, path, self.size),
            render(renderer, depth_camera, pose.world_from_camera),
            encoded=partial(read_file_bytes, path),
            mask=partial(read_file_mask, mask) if mask is not None else None,
            undistorter=undistorter,
        )

    def _camera(self, pose: CheckedPose) -> tuple[Camera, Undistorter | None]:
        lens = self.lens
        if lens is None and self.colmap is not None:
            lens = self.colmap.cameras[pose.camera_id if pose.camera_id is not None else min(self.colmap.cameras)]
        if lens is None and self.fisheye_json is not None:
            lens = self.fisheye_json.lens
        if lens is None:
            found, expected = "no camera for resized_images/", "colmap/cameras.txt or nerfstudio/transforms.json"
            raise SceneError(self.where, found, expected, "Download dslr/colmap.")
        if (lens.width, lens.height) != self.size:
            check_aspect(self.size, (lens.width, lens.height), f"{self.where} pictures")
            lens = lens.resized(*self.size)
            if not any(issue.reason == "intrinsics_rescaled" for issue in self.issues):
                self.issues.append(Issue("", "intrinsics_rescaled", f"to pictures of {self.size[0]}x{self.size[1]}"))
        if lens.is_pinhole:
            return lens.camera, None
        if lens not in self.undistorters:
            self.undistorters[lens] = Undistorter(lens, f"{self.where}/colmap/cameras.txt")
        return self.undistorters[lens].camera, self.undistorters[lens]

    def _digest(self, mesh: Mesh) -> str:
        names = ["colmap/cameras.txt", "colmap/images.txt"]
        names += ["nerfstudio/transforms.json", "nerfstudio/transforms_undistorted.json"]
        files: list[Path] = [self.folder / name for name in names]
        files += [mesh.path, mesh.path.with_name("segments.json"), mesh.path.with_name("segments_anno.json")]
        files += [*self.pictures.files.values(), *self.masks.files.values()]
        return digest(self.root, files)
