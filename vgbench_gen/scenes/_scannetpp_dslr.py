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
    NO_MASKS,
    CaptureOpener,
    LensFrame,
    ScanNetPPScene,
    colmap_poses,
    list_pictures,
    mesh_depth,
    read_file_bytes,
    read_file_color,
    read_file_mask,
    read_first_size,
)
from vgbench_gen.scenes._scannetpp_poses import CheckedPose, frame_stem
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes.base import Frame, Issue, SceneRef
from vgbench_gen.scenes.promised import note_missing

_FILES = (
    "colmap/cameras.txt", "colmap/images.txt", "nerfstudio/transforms.json", "nerfstudio/transforms_undistorted.json",
)  # fmt: skip

# Folders of undistorted pictures, and those of their masks.
_FLAT = {
    "resized_undistorted_images": "resized_undistorted_masks",
    "undistorted_images": "undistorted_anon_masks",
}


class DslrOpener(CaptureOpener):
    """Opens `<scene>/dslr`."""

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        super().__init__(ref, resources)
        self._colmap = self.read_colmap("poses and lens come from nerfstudio")
        self._fisheye_json = self.read_nerfstudio("transforms.json")
        self._pinhole_json = self.read_nerfstudio("transforms_undistorted.json")
        note_missing(self.issues, [self.folder / "nerfstudio/transforms.json"], "blurred pictures are not left out")
        self._choose_pictures()

    def _choose_pictures(self) -> None:
        """Undistorted pictures only together with their own camera; a fisheye camera would be wrong for them."""
        self._lens: Lens | None = None
        for name, masks in _FLAT.items():
            self._pictures = list_pictures(self.root, self.folder / name, self.issues)
            if self._pictures and self._pinhole_json is not None and self._pinhole_json.lens.is_pinhole:
                self._lens = self._pinhole_json.lens
                self.masks = list_pictures(self.root, self.folder / masks, self.issues)
                break
            if self._pictures:
                detail = f"{name}/ has no pinhole camera in nerfstudio/transforms_undistorted.json"
                self.issues.append(Issue("", "undistorted_unused", detail))
        else:
            self._pictures = list_pictures(self.root, self.folder / "resized_images", self.issues)
            self.masks = list_pictures(self.root, self.folder / "resized_anon_masks", self.issues, NO_MASKS)
        if not self._pictures:
            unused = "".join(f", and {issue.detail}" for issue in self.issues if issue.reason == "undistorted_unused")
            found = f"no pictures in resized_images/{unused}"
            expected = f"resized_images/, or {'/ or '.join(_FLAT)}/ with nerfstudio/transforms_undistorted.json"
            raise SceneError(f"{self.where}: {self.folder}", found, expected, "Download one of them.")
        self.size = read_first_size(self._pictures, f"{self.where}/{next(iter(self._pictures.values())).parent.name}")

    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""
        objects, renderer = self.read_objects_and_depth(want_depth=True)
        if renderer is None:
            found, expected = "no mesh to render depth from", "one (scenes of nvs_test have none)"
            raise SceneError(self.mesh, found, expected, "Download the mesh, or leave this scene out.")
        poses = self._read_poses()
        bad = {key for source in (self._fisheye_json, self._pinhole_json) if source for key in source.bad}
        pictures = self._pictures
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
        return self.make_scene(frames, objects, "laser", {*pictures, *poses}, _FILES, (self._pictures,))

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
        path = self._pictures[key]
        mask = self.masks.get(key)
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
