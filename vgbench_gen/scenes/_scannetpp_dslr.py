"""The DSLR capture of a ScanNet++ scene (`docs/formats.md#undistortion`).

Undistorted pictures are taken where the scene has them, else the fisheye pictures are undistorted on load. Poses
come from COLMAP, else from nerfstudio. There is no depth on disk: it is rendered from the laser mesh.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import Camera
from vgbench_gen.scenes._colmap import Lens
from vgbench_gen.scenes._render_depth import MeshDepth
from vgbench_gen.scenes._scannetpp_frames import (
    LensFrame,
    PictureFolder,
    ScanNetPPScene,
    read_file_bytes,
    read_file_color,
    read_file_mask,
)
from vgbench_gen.scenes._scannetpp_opener import CaptureOpener, colmap_poses, mesh_depth
from vgbench_gen.scenes._scannetpp_poses import CheckedPose, frame_stem
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import Frame, Issue, SceneRef

_FILES = (
    "colmap/cameras.txt", "colmap/images.txt", "nerfstudio/transforms.json", "nerfstudio/transforms_undistorted.json",
)  # fmt: skip


class DslrOpener(CaptureOpener):
    """Opens `<scene>/dslr`."""

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        super().__init__(ref, resources)
        self._colmap = self.read_colmap()
        self._fisheye_json = self.read_nerfstudio("transforms.json")
        self._pinhole_json = self.read_nerfstudio("transforms_undistorted.json")
        self._choose_pictures()

    def _choose_pictures(self) -> None:
        """Undistorted pictures only together with their own camera; a fisheye camera would be wrong for them."""
        flat = PictureFolder(self.root, self.folder / "resized_undistorted_images", self.issues)
        self._lens: Lens | None = None
        if flat.files and self._pinhole_json is not None and self._pinhole_json.lens.is_pinhole:
            self._pictures, self._lens = flat, self._pinhole_json.lens
            masks = "resized_undistorted_masks"
        else:
            if flat.files:
                detail = "resized_undistorted_images/ has no pinhole camera in nerfstudio/transforms_undistorted.json"
                self.issues.append(Issue("", "undistorted_unused", detail))
            self._pictures = PictureFolder(self.root, self.folder / "resized_images", self.issues)
            masks = "resized_anon_masks"
        if not self._pictures.files:
            found = "no pictures in resized_images/, and no undistorted ones with their camera"
            raise SceneError(f"{self.where}: {self.folder}", found, "one of them", "Download dslr/resized_images.")
        self._masks = PictureFolder(self.root, self.folder / masks, self.issues)
        self.size = self._pictures.first_size(f"{self.where}/{next(iter(self._pictures.files.values())).parent.name}")

    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""
        objects, renderer = self.mesh.objects_and_depth(self.issues, want_depth=True)
        if renderer is None:
            raise SceneError(
                f"{self.where}: {self.mesh.path}",
                "no mesh, so no depth can be rendered for the DSLR pictures",
                "scans/mesh_aligned_0.05.ply (scenes of nvs_test have none)",
                "Download the mesh, or leave this scene out.",
            )
        poses = self._read_poses()
        bad = {key for source in (self._fisheye_json, self._pinhole_json) if source for key in source.bad}
        pictures = self._pictures.files
        frames: list[Frame] = []
        for key in sorted(pictures):
            if key not in poses:
                if not any(issue.frame_id == key for issue in self.issues):
                    self.issues.append(Issue(key, "pose_missing", "the picture has no pose"))
            elif key in bad:
                self.issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio"))
            else:
                frames.append(self._make_frame(key, poses[key], renderer))
        without = [key for key in poses if key not in pictures]
        if without:
            # Hidden test views have poses but no pictures, so this is no fault of single frames.
            self.issues.append(Issue("", "color_missing", f"{len(without)} poses have no picture, e.g. {without[0]}"))
        if not frames:
            found = f"no usable frame among {len(pictures)} pictures and {len(poses)} poses"
            raise SceneError(self.where, found, "pictures that have a pose", "Download dslr/colmap again.")
        return self.make_scene(frames, objects, "laser", {*pictures, *poses}, _FILES, (self._pictures, self._masks))

    def _read_poses(self) -> dict[str, CheckedPose]:
        if self._colmap is not None and self._colmap.images:
            for name, why in self._colmap.problems:
                self.issues.append(Issue(frame_stem(name), "pose_invalid" if name else "colmap_count", why))
            return colmap_poses(self._colmap)
        source = self._fisheye_json or self._pinhole_json
        if source is None:
            found, expected = "no COLMAP model and no nerfstudio poses", "colmap/ or nerfstudio/transforms.json"
            raise SceneError(self.where, found, expected, "Download dslr/colmap.")
        return self.check_nerfstudio_poses(source)

    def _make_frame(self, key: str, pose: CheckedPose, renderer: MeshDepth) -> LensFrame:
        camera, undistorter = self._find_camera(pose)
        depth_camera, depth = mesh_depth(renderer, camera, pose)
        path = self._pictures.files[key]
        mask = self._masks.files.get(key)
        return LensFrame(
            key,
            None,
            pose.world_from_camera,
            pose.deviation,
            (camera, depth_camera),
            partial(read_file_color, path, self.size),
            depth,
            encoded=partial(read_file_bytes, path),
            mask=partial(read_file_mask, mask) if mask is not None else None,
            undistorter=undistorter,
        )

    def _find_camera(self, pose: CheckedPose) -> tuple[Camera, Undistorter | None]:
        lens = self._lens
        if lens is None and self._colmap is not None:
            lens = self._colmap.cameras[pose.camera_id if pose.camera_id is not None else min(self._colmap.cameras)]
        if lens is None and self._fisheye_json is not None:
            lens = self._fisheye_json.lens
        if lens is None:
            found, expected = "no camera for resized_images/", "colmap/cameras.txt or nerfstudio/transforms.json"
            raise SceneError(self.where, found, expected, "Download dslr/colmap.")
        return self.fit_lens(lens)
