"""The two captures of a ScanNet++ scene, of a phone and of a DSLR camera.

Phone (`docs/formats.md#iphone-streams`): one pose source per scene: `aligned_pose` where the json has any that is
sound, else COLMAP, else nerfstudio. The lens comes from COLMAP where there is a model; colour, sensor depth and masks
then lie on one distorted grid and are undistorted by one map. Without COLMAP the json's intrinsic of each frame is
taken as it is. Extracted pictures are used where a folder has them, streams (`rgb.mkv`, `depth.bin`) otherwise;
frame_%06d is the index in the streams.

DSLR (`docs/formats.md#undistortion`): undistorted pictures are taken where the scene has them, else the fisheye
pictures are undistorted on load. Poses come from COLMAP, else from nerfstudio. There is no depth on disk: it is
rendered from the laser mesh.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera, DepthArray, FloatArray, IntArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import rotation_angle_deg
from vgbench_gen.scenes import _depth_bin
from vgbench_gen.scenes._cameras import fit_pinhole
from vgbench_gen.scenes._depth_bin import DepthBin, open_depth_bin
from vgbench_gen.scenes._lazy_frame import ColorReaders, LazyFrame, Mask, check_aspect, make_color_readers
from vgbench_gen.scenes._lens import Lens, Undistorter
from vgbench_gen.scenes._mesh import RENDERED_WIDTH, MeshDepth, read_ply
from vgbench_gen.scenes._scannetpp_objects import is_building, read_objects
from vgbench_gen.scenes._scannetpp_poses import (
    PHONE_SIZE,
    CheckedPose,
    PoseSource,
    frame_stem,
    read_model,
    read_nerfstudio,
    read_phone_json,
)
from vgbench_gen.scenes._turned import count_turns_to_upright, turn_upright
from vgbench_gen.scenes.base import Issue, Scene, SceneRef
from vgbench_gen.scenes.files import (
    compute_source_digest,
    decode_depth_u16,
    decode_mask_u8,
    inside,
    parse_matrix,
    read_first_size,
    read_picture,
)
from vgbench_gen.scenes.promised import list_files, note_missing, note_without, require_frames, try_to_read
from vgbench_gen.scenes.video import Video

LICENCE = "scannetpp-tou"
MESH_NAME = "mesh_aligned_0.05.ply"
_UP: FloatArray = np.array([0.0, 0.0, 1.0])
_PICTURES = (".jpg", ".jpeg", ".png")
_COLMAP = ("colmap/cameras.txt", "colmap/images.txt")
_VIDEOS, _MASK_VIDEOS = ("rgb.mkv", "rgb.mp4"), ("rgb_mask.mkv", "rgb_mask.mp4")
# Folders of undistorted pictures, and those of their masks.
_FLAT = {
    "resized_undistorted_images": "resized_undistorted_masks",
    "undistorted_images": "undistorted_anon_masks",
}
_NO_MASKS = "hidden people are not left out"
_NO_OBJECTS = "the scene has no objects"
_KEY = re.compile(r"frame_(\d{1,9})")
# Two pose sources of one scene that differ by more than this on median do not describe the same world.
_MAX_SOURCE_GAP_M, _MAX_SOURCE_GAP_DEG = 0.10, 2.0
_DEPTH_SIZE = (_depth_bin.WIDTH, _depth_bin.HEIGHT)


class ScanNetPPScene(Scene, abc.ABC):
    """One open capture; holds videos, depth streams and the mesh's search structure until closed.

    Args:
        ref: the capture; its path is `<scene>/iphone` or `<scene>/dslr`.

    Raises:
        SceneError: it cannot be used.
    """

    dataset, licence = "scannetpp", LICENCE
    read_from: tuple[str, ...]
    """Files besides mesh, pictures and masks that the capture is read from, for its digest; named below its folder."""
    size: tuple[int, int]
    """Width and height of the colour pictures, in pixels; set by `read` before the first frame is made."""
    masks: Mapping[str, Path]

    def __init__(self, ref: SceneRef) -> None:
        self.id, self.split, self.up_world = ref.scene_id, ref.split, _UP.copy()
        self.root, self.folder = ref.path.parent, ref.path
        inside(self.root, self.folder)
        self.issues, self.objects = [], ()
        self.mesh = self.root / "scans" / MESH_NAME
        self.annotation = [self.mesh.with_name(name) for name in ("segments.json", "segments_anno.json")]
        self.pictures: dict[str, Path] = {}
        self.depths: dict[str, Path] = {}
        self._undistorters: dict[Lens, Undistorter] = {}
        self._was_rescaled = False
        with ExitStack() as self.resources:
            frames, keys = self.read()
            require_frames(self.id, frames, len(keys), self.issues)
            if self.masks:
                without = [frame.id for frame in frames if frame.id not in self.masks]
                note_without(self.issues, without, "an anonymisation mask")
            if self._was_rescaled:
                self.issues.append(Issue("", "intrinsics_rescaled", f"to images of {self.size[0]}x{self.size[1]}"))
            turns = count_turns_to_upright([frame.world_from_camera for frame in frames], _UP)
            self.frames = tuple(turn_upright(frame, k) for frame, k in zip(frames, turns, strict=True))
            self.total_frames, self.source_digest = len(keys), self._digest()
            self.resources = self.resources.pop_all()

    def close(self) -> None:
        self.resources.close()

    @abc.abstractmethod
    def read(self) -> tuple[list[LazyFrame], set[str]]:
        """The usable frames, and the keys of all frames that the capture names. Raises SceneError."""

    def read_colmap(self, without: str) -> PoseSource | None:
        """The model in `colmap/`; None, with an issue that says what the scene lacks then, where there is none."""
        read = partial(read_model, self.folder / "colmap", f"{self.id}/colmap")
        has_files = self._has_files([self.folder / name for name in _COLMAP], without)
        return try_to_read(self.issues, read, without) if has_files else None

    def read_nerfstudio(self, name: str) -> PoseSource | None:
        """The file `nerfstudio/NAME`; None, with an issue where it is unreadable, if there is none."""
        path = self.folder / "nerfstudio" / name
        if not path.exists():
            return None
        read = partial(read_nerfstudio, inside(self.root, path), f"{self.id}/nerfstudio/{name}")
        return try_to_read(self.issues, read, "its poses and its marks of bad frames are unknown")

    def choose_nerfstudio_poses(self, source: PoseSource | None, others: str) -> dict[str, CheckedPose]:
        """The sound poses of a scene without the `others`. Raises SceneError where there is no such file."""
        if source is None:
            expected = f"{others} or nerfstudio/transforms.json"
            raise SceneError(self.id, "no usable pose of any source", expected, "Download one of them.")
        detail = "only pose source; its scale could not be checked against COLMAP"
        self.issues += [Issue("", "nerfstudio_poses", detail), *source.problems]
        return source.poses

    def read_objects_and_depth(self, want_depth: bool) -> MeshDepth | None:
        """Read the objects of `scans/`; the renderer of the mesh, if that is wanted.

        Raises:
            SceneError: depth is to come from the mesh, and it is damaged or not there.
        """
        if not self.mesh.exists():
            if want_depth:
                expected = "one, as there is no sensor depth (scenes of nvs_test have none)"
                remedy = "Download the mesh, or leave this scene out."
                raise SceneError(self.mesh, "no mesh to render depth from", expected, remedy)
            note_missing(self.issues, [self.mesh], _NO_OBJECTS)
            return None
        read_mesh = partial(self._read_mesh, want_depth)
        mesh = read_mesh() if want_depth else try_to_read(self.issues, read_mesh, _NO_OBJECTS)
        if mesh is None:
            return None
        vertices, faces = mesh
        promised = self.split != "test" or any(path.exists() for path in self.annotation)
        if promised and self._has_files(self.annotation, _NO_OBJECTS):
            read = partial(read_objects, self.mesh.parent, vertices, _UP, f"{self.id}/scans")
            objects, found = try_to_read(self.issues, read, _NO_OBJECTS) or ((), [])
            self.issues += found
            self.objects = [item for item in objects if not is_building(item.label)]
            self.building = [item for item in objects if is_building(item.label)]
        return MeshDepth(vertices.astype(np.float32), faces.astype(np.uint32)) if want_depth else None

    def fit_lens(self, lens: Lens) -> tuple[Camera, Undistorter | None]:
        """The pinhole camera of pictures of `size` taken through a lens, and what undistorts them (None: a pinhole).

        Raises:
            SceneError: the pictures have another shape than the lens was calibrated for.
        """
        if (lens.width, lens.height) != self.size:
            check_aspect(self.size, (lens.width, lens.height), f"{self.id} colour")
            lens, self._was_rescaled = lens.resized(*self.size), True
        if lens.is_pinhole:
            return lens.camera, None
        if lens not in self._undistorters:
            self._undistorters[lens] = Undistorter(lens, f"{self.id}/colmap/cameras.txt")
        return self._undistorters[lens].camera, self._undistorters[lens]

    def find_mask(self, key: str) -> Callable[[], Mask] | None:
        """What reads the mask of a frame; None where it has none."""
        path = self.masks.get(key)
        return None if path is None else lambda: decode_mask_u8(read_picture(path), path)

    def list_pictures(self, name: str, without: str = "") -> dict[str, Path]:
        """Pictures of one folder by frame key. What is left out becomes an issue, as of `list_files`."""
        found: dict[str, Path] = {}
        folder = self.folder / name
        for file in list_files(self.root, folder, self.issues, without):
            key = frame_stem(file)
            if file.lower().endswith(_PICTURES) and found.setdefault(key, folder / file) != folder / file:
                self.issues.append(Issue(key, "name_twice", f"{file} has the key of {found[key].name}; not used"))
        return found

    def _has_files(self, paths: Sequence[Path], without: str) -> bool:
        note_missing(self.issues, paths, without)
        return all(path.is_file() and inside(self.root, path) for path in paths)

    def _read_mesh(self, want_faces: bool) -> tuple[FloatArray, IntArray]:
        vertices, faces = read_ply(inside(self.root, self.mesh), want_faces=want_faces)
        if want_faces and not len(faces):
            raise SceneError(self.mesh, "no faces", "a triangle mesh")
        return vertices, faces

    def _digest(self) -> str:
        """Digest of name, size and first bytes of the files that exist."""
        entries: list[tuple[str, int, bytes]] = []
        files = [*(self.folder / name for name in self.read_from), self.mesh, *self.annotation]
        for path in [*files, *self.pictures.values(), *self.depths.values(), *self.masks.values()]:
            if path.is_file():
                with path.open("rb") as file:
                    entries.append((path.relative_to(self.root).as_posix(), path.stat().st_size, file.read(64)))
        return compute_source_digest(entries)


class DslrScene(ScanNetPPScene):
    """`<scene>/dslr`."""

    depth_kind = "laser"
    read_from = (*_COLMAP, "nerfstudio/transforms.json", "nerfstudio/transforms_undistorted.json")

    def read(self) -> tuple[list[LazyFrame], set[str]]:
        colmap = self.read_colmap("poses and lens come from nerfstudio")
        fisheye, pinhole = (self.read_nerfstudio(f"transforms{name}.json") for name in ("", "_undistorted"))
        note_missing(self.issues, [self.folder / "nerfstudio/transforms.json"], "blurred pictures are not left out")
        lenses = self._choose_pictures(pinhole) or colmap or fisheye
        if lenses is None:
            found, expected = "no camera for resized_images/", "colmap/cameras.txt or nerfstudio/transforms.json"
            raise SceneError(self.id, found, expected, "Download dslr/colmap.")
        self.size = read_first_size(self.pictures.values(), self.folder)
        renderer = self.read_objects_and_depth(want_depth=True)
        assert renderer is not None
        if colmap is not None and colmap.poses:
            poses = colmap.poses
            self.issues += colmap.problems
        else:
            poses = self.choose_nerfstudio_poses(fisheye or pinhole, "colmap/")
        bad = {key for source in (fisheye, pinhole) if source for key in source.bad}
        frames: list[LazyFrame] = []
        for key in sorted(self.pictures):
            if key not in poses:
                if not any(issue.frame_id == key for issue in self.issues):
                    self.issues.append(Issue(key, "pose_missing", "the picture has no pose"))
            elif key in bad:
                self.issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio"))
            else:
                camera, undistorter = self.fit_lens(lenses.find_lens(poses[key]))
                frame = LazyFrame(
                    key,
                    None,
                    poses[key].world_from_camera,
                    poses[key].deviation,
                    camera,
                    *make_color_readers(self.pictures[key], self.size),
                    *_render_depth(renderer, camera, poses[key]),
                    self.find_mask(key),
                    undistorter=undistorter,
                )
                frames.append(frame)
        if without := [key for key in poses if key not in self.pictures]:
            # Hidden test views have poses but no pictures, so this is no fault of single frames.
            self.issues.append(Issue("", "color_missing", f"{len(without)} poses have no picture, e.g. {without[0]}"))
        return frames, {*self.pictures, *poses}

    def _choose_pictures(self, pinhole: PoseSource | None) -> PoseSource | None:
        """Undistorted pictures only together with their own camera; a fisheye camera would be wrong for them.

        Returns the source of that camera, or None where fisheye pictures are taken.
        """
        unused = []
        for name, masks in _FLAT.items():
            self.pictures = self.list_pictures(name)
            if self.pictures and pinhole is not None and pinhole.lenses[None].is_pinhole:
                self.masks = self.list_pictures(masks)
                return pinhole
            if self.pictures:
                unused.append(f"{name}/ has no pinhole camera in nerfstudio/transforms_undistorted.json")
                self.issues.append(Issue("", "undistorted_unused", unused[-1]))
        self.pictures = self.list_pictures("resized_images")
        self.masks = self.list_pictures("resized_anon_masks", _NO_MASKS)
        if not self.pictures:
            found = ", and ".join(["no pictures in resized_images/", *unused])
            expected = f"resized_images/, or {'/ or '.join(_FLAT)}/ with nerfstudio/transforms_undistorted.json"
            raise SceneError(f"{self.id}: {self.folder}", found, expected, "Download one of them.")
        return None


class IphoneScene(ScanNetPPScene):
    """`<scene>/iphone`."""

    read_from = (
        "pose_intrinsic_imu.json",
        *_VIDEOS,
        *_MASK_VIDEOS,
        "depth.bin",
        *_COLMAP,
        "nerfstudio/transforms.json",
    )

    def read(self) -> tuple[list[LazyFrame], set[str]]:
        path, self._phone = self.folder / "pose_intrinsic_imu.json", PoseSource()
        if path.exists():
            self._phone = read_phone_json(inside(self.root, path), f"{self.id}/{path.name}")
        else:
            note_missing(self.issues, [path], "most frames have no pose")
        # Problems with single images matter only where it gives the poses, see `_choose_poses`.
        self._colmap = self.read_colmap("lens distortion and poses of COLMAP are unknown")
        self._nerfstudio = self.read_nerfstudio("transforms.json")
        self.pictures, self.depths = self.list_pictures("rgb"), self.list_pictures("depth")
        # Not everybody makes the masks.
        self.masks = self.list_pictures("rgb_masks", _NO_MASKS if (self.folder / "rgb_masks").exists() else "")
        poses = self._choose_poses()
        if self.pictures:
            self._video, self.size = None, read_first_size(self.pictures.values(), f"{self.id}/rgb")
        elif (video := self._open_video(_VIDEOS)) is not None:
            self._video, self.size = video, (video.width, video.height)
        else:
            found = "neither rgb.mkv nor rgb.mp4 nor pictures in rgb/"
            raise SceneError(f"{self.id}: {self.folder}", found, "one of them", "Download rgb.mkv.")
        self._mask_video = None if self.masks else self._open_video(_MASK_VIDEOS)
        if self._video is not None and self._mask_video is None and not self.masks:
            note_missing(self.issues, [self.folder / _MASK_VIDEOS[0]], _NO_MASKS)
        self._stream, depth_size = self._open_depth()
        self.depth_kind = "sensor" if depth_size else "laser"
        if depth_size is None and self.split != "test":  # of which some have none
            note_missing(self.issues, [self.folder / "depth.bin"], "nor depth/: depth is rendered from the mesh")
        renderer = self.read_objects_and_depth(depth_size is None)
        frames: list[LazyFrame] = []
        for key in (keys := self._choose_keys(poses)):
            try:
                frames += self._make_frames(key, poses[key], depth_size, renderer)
            except PoseError as problem:
                self.issues.append(Issue(key, "intrinsic_invalid", str(problem)))
        self._note_lengths(_find_index(keys[-1]) + 1 if keys else 0)
        return frames, {*self._phone.times_s, *poses, *(issue.frame_id for issue in self.issues if issue.frame_id)}

    def _choose_poses(self) -> dict[str, CheckedPose]:
        """Poses of the scene's one source, by frame key."""
        colmap = self._colmap or PoseSource()
        if ours := self._phone.poses:
            self._compare(ours, colmap.poses)
            self.issues += self._phone.problems
            registered = {key: colmap.poses[key].camera_id for key in ours.keys() & colmap.poses.keys()}
            return {key: replace(pose, camera_id=registered.get(key)) for key, pose in ours.items()}
        if colmap.poses:
            self.issues += colmap.problems
            return colmap.poses
        return self.choose_nerfstudio_poses(self._nerfstudio, "pose_intrinsic_imu.json, colmap/")

    def _choose_keys(self, poses: dict[str, CheckedPose]) -> list[str]:
        """Keys of the frames to use, in order of the video."""
        keys = []
        for key in poses:
            if _KEY.fullmatch(key) is None:
                self.issues.append(Issue(key[:40], "name_unknown", "not of the form frame_000000"))
            elif self._nerfstudio is not None and key in self._nerfstudio.bad:
                self.issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio/transforms.json"))
            else:
                keys.append(key)
        return sorted(keys, key=_find_index)

    def _compare(self, ours: dict[str, CheckedPose], colmap: dict[str, CheckedPose]) -> None:
        common = [key for key in ours if key in colmap]
        if not common:
            return
        a, b = (np.stack([poses[key].world_from_camera for key in common]) for poses in (ours, colmap))
        gap_m = float(np.median(np.linalg.norm(a[:, :3, 3] - b[:, :3, 3], axis=1)))
        turned = a[:, :3, :3].transpose(0, 2, 1) @ b[:, :3, :3]
        gap_deg = float(np.median(rotation_angle_deg(turned)))
        if gap_m > _MAX_SOURCE_GAP_M or gap_deg > _MAX_SOURCE_GAP_DEG:
            detail = f"aligned_pose and COLMAP differ by {gap_m:.3f} m and {gap_deg:.2f} degrees on median"
            self.issues.append(Issue("", "pose_sources_disagree", detail))

    def _open_video(self, names: tuple[str, ...]) -> Video | None:
        path = next((self.folder / name for name in names if (self.folder / name).exists()), None)
        if path is None:
            return None
        inside(self.root, path)
        video = Video(path, f"{self.id}/{path.name}")
        self.resources.callback(video.close)
        return video

    def _open_depth(self) -> tuple[DepthBin | None, tuple[int, int] | None]:
        """The stream, if there is one, and the size of sensor depth (None: there is no sensor depth)."""
        path = self.folder / "depth.bin"
        stream: DepthBin | None = None
        size = read_first_size(self.depths.values(), f"{self.id}/depth") if self.depths else None
        if path.exists() and size in (None, _DEPTH_SIZE):
            stream = open_depth_bin(inside(self.root, path), f"{self.id}/depth.bin")
            self.resources.callback(stream.close)
            size = _DEPTH_SIZE
        if size is not None:
            check_aspect(size, self.size, f"{self.id} depth")
        return stream, size

    def _note_lengths(self, needed: int) -> None:
        video, stream = self._video, self._stream
        if video is not None and 0 < video.count < needed:
            detail = f"{video.where}: {video.count} frames by its header, {needed} needed; the last ones will fail"
            self.issues.append(Issue("", "video_short", detail))
        if stream is not None and stream.note:
            self.issues.append(Issue("", "depth_bin_odd", f"{self.id}/depth.bin: {stream.note}"))

    def _make_frames(
        self, key: str, pose: CheckedPose, depth_size: tuple[int, int] | None, renderer: MeshDepth | None
    ) -> list[LazyFrame]:
        """The frame; none, with an issue, where it has no colour or no depth. Raises PoseError."""
        if self._video is None and key not in self.pictures:
            self.issues.append(Issue(key, "color_missing", "no picture in rgb/"))
            return []
        camera, undistorter = self._find_camera(key, pose)
        color: ColorReaders
        if self._video is not None:
            color = partial(self._video.rgb, _find_index(key)), None
        else:
            color = make_color_readers(self.pictures[key], self.size)
        if renderer is not None:
            depth_camera, depth = _render_depth(renderer, camera, pose)
        elif depth_size is not None and (found := self._find_depth(key, depth_size)) is not None:
            depth_camera, depth = resize_camera(camera, *depth_size), found
        else:
            self.issues.append(Issue(key, "depth_missing", "no record in depth.bin and no picture in depth/"))
            return []
        frame = LazyFrame(
            key,
            self._phone.times_s.get(key),
            pose.world_from_camera,
            pose.deviation,
            camera,
            *color,
            depth_camera,
            depth,
            self.find_mask(key),
            undistorter=undistorter,
            depth_is_distorted=depth_size is not None,
        )
        return [frame]

    def _find_depth(self, key: str, size: tuple[int, int]) -> Callable[[], DepthArray] | None:
        index, stream = _find_index(key), self._stream
        if key in self.depths:
            path = self.depths[key]
            return lambda: decode_depth_u16(read_picture(path), path, size) * np.float32(0.001)
        if stream is not None and (stream.count is None or index < stream.count):
            return partial(stream.read, index)
        return None

    def find_mask(self, key: str) -> Callable[[], Mask] | None:
        video = self._mask_video
        return super().find_mask(key) if video is None else partial(video.grey, _find_index(key))

    def _find_camera(self, key: str, pose: CheckedPose) -> tuple[Camera, Undistorter | None]:
        if self._colmap is not None:
            return self.fit_lens(self._colmap.find_lens(pose))
        if (intrinsic := self._phone.intrinsics.get(key)) is not None:
            # The json does not say for which size its numbers are: the image's own, or that of the phone's video.
            K = parse_matrix(intrinsic, f"{self.id}/{key}", ((3, 3),), PoseError)
            sizes = self.size, PHONE_SIZE
            camera, was_rescaled = fit_pinhole(K, sizes, self.size, f"{self.id}/{key}", PoseError)
            self._was_rescaled |= was_rescaled
            return camera, None
        if self._nerfstudio is not None:
            return self.fit_lens(self._nerfstudio.find_lens(pose))
        raise PoseError(f"{self.id}/{key}", "no intrinsic", "one in the json or a COLMAP model", "Add one.")


def _find_index(key: str) -> int:
    """Index in the video of "frame_000120"."""
    return int(key.rpartition("_")[2])


def _render_depth(renderer: MeshDepth, camera: Camera, pose: CheckedPose) -> tuple[Camera, Callable[[], DepthArray]]:
    """Depth of a frame from the mesh: the camera it is rendered with, at most RENDERED_WIDTH px wide, and the call."""
    width = min(RENDERED_WIDTH, camera.width)
    depth_camera = resize_camera(camera, width, max(1, round(camera.height * width / camera.width)))
    return depth_camera, partial(renderer.render, depth_camera, pose.world_from_camera)
