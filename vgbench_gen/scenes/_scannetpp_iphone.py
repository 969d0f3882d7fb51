"""The iPhone capture of a ScanNet++ scene (`docs/formats.md#iphone-streams`).

One pose source per scene: `aligned_pose` where the json has any that is sound, else COLMAP, else nerfstudio. The
lens comes from COLMAP where there is a model; colour, sensor depth and masks then lie on one distorted grid and are
undistorted by one map. Without COLMAP the json's intrinsic of each frame is taken as it is. Extracted pictures are
used where a folder has them, streams (`rgb.mkv`, `depth.bin`) otherwise; frame_%06d is the index in the streams.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FrameError, PoseError, SceneError
from vgbench_gen.core.types import Camera, ColorArray, DepthArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes import _depth_bin
from vgbench_gen.scenes._colmap import ColmapModel
from vgbench_gen.scenes._depth_bin import DepthBin, open_depth_bin
from vgbench_gen.scenes._scannetpp_frames import (
    LensFrame,
    Mask,
    PictureFolder,
    ScanNetPPScene,
    check_aspect,
    read_file_bytes,
    read_file_color,
    read_file_mask,
)
from vgbench_gen.scenes._scannetpp_opener import CaptureOpener, mesh_depth
from vgbench_gen.scenes._scannetpp_phone_poses import PoseSources, frame_index
from vgbench_gen.scenes._scannetpp_poses import (
    CheckedPose,
    PhoneRecord,
    make_phone_camera,
)
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes._video import Video
from vgbench_gen.scenes.base import Frame, Issue, SceneRef
from vgbench_gen.scenes.files import MAX_PICTURE_BYTES, decode_depth_u16, inside, read_bytes

_VIDEOS = ("rgb.mkv", "rgb.mp4")
_MASK_VIDEOS = ("rgb_mask.mkv", "rgb_mask.mp4")
_FILES = (
    "pose_intrinsic_imu.json", *_VIDEOS, *_MASK_VIDEOS, "depth.bin", "colmap/cameras.txt", "colmap/images.txt",
    "nerfstudio/transforms.json",
)  # fmt: skip
_DEPTH_SIZE = (_depth_bin.WIDTH, _depth_bin.HEIGHT)


class IphoneOpener(CaptureOpener):
    """Opens `<scene>/iphone`."""

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        super().__init__(ref, resources)
        self._sources = PoseSources(self)
        self._pictures = PictureFolder(self.root, self.folder / "rgb", self.issues)
        self._depths = PictureFolder(self.root, self.folder / "depth", self.issues)
        self._masks = PictureFolder(self.root, self.folder / "rgb_masks", self.issues)

    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""
        poses, keys = self._sources.choose_poses()
        self._video, self.size = self._open_color()
        self._mask_video = None if self._masks.files else self._open_video(_MASK_VIDEOS)
        self._stream, self._depth_size = self._open_depth()
        has_depth = self._depth_size is not None
        objects, self._renderer = self.mesh.objects_and_depth(self.issues, want_depth=not has_depth)
        if not has_depth and self._renderer is None:
            raise SceneError(
                f"{self.where}: {self.folder}",
                "neither depth.bin nor depth/ nor scans/mesh_aligned_0.05.ply",
                "one of them (scenes of nvs_test have none)",
                "Download depth.bin or the mesh, or leave this scene out.",
            )
        frames: list[Frame] = []
        for key in keys:
            try:
                frame = self._make_frame(key, poses[key])
            except PoseError as problem:
                self.issues.append(Issue(key, "intrinsic_invalid", str(problem)))
                continue
            if frame is not None:
                frames.append(frame)
        self._note_lengths(keys)
        told = {issue.frame_id for issue in self.issues if issue.frame_id}
        if not frames:
            first = next((f"{i.frame_id} {i.reason}: {i.detail}" for i in self.issues if i.frame_id), "no frame at all")
            raise SceneError(
                self.where, f"no usable frame ({first})", "frames with pose, colour and depth", "Check it."
            )
        return self.make_scene(
            frames, objects, "sensor" if has_depth else "laser", {*self._sources.records, *poses, *told}, _FILES,
            (self._pictures, self._depths, self._masks),
        )  # fmt: skip

    # -- pixels -------------------------------------------------------------------------------------------------

    def _open_video(self, names: tuple[str, ...]) -> Video | None:
        for name in names:
            path = self.folder / name
            if path.exists():
                inside(self.root, path)
                video = Video(path, f"{self.where}/{name}")
                self.resources.callback(video.close)
                return video
        return None

    def _open_color(self) -> tuple[Video | None, tuple[int, int]]:
        if self._pictures.files:
            return None, self._pictures.first_size(f"{self.where}/rgb")
        video = self._open_video(_VIDEOS)
        if video is None:
            found = "neither rgb.mkv nor rgb.mp4 nor pictures in rgb/"
            raise SceneError(f"{self.where}: {self.folder}", found, "one of them", "Download rgb.mkv.")
        return video, (video.width, video.height)

    def _open_depth(self) -> tuple[DepthBin | None, tuple[int, int] | None]:
        """The stream, if there is one, and the size of sensor depth (None: there is no sensor depth)."""
        path = self.folder / "depth.bin"
        stream: DepthBin | None = None
        size: tuple[int, int] | None = None
        if self._depths.files:
            size = self._depths.first_size(f"{self.where}/depth")
        if path.exists() and size in (None, _DEPTH_SIZE):
            inside(self.root, path)
            stream = open_depth_bin(path, f"{self.where}/depth.bin")
            self.resources.callback(stream.close)
            size = _DEPTH_SIZE
        if size is not None:
            check_aspect(size, self.size, f"{self.where} depth")
        return stream, size

    def _note_lengths(self, keys: list[str]) -> None:
        needed = frame_index(keys[-1]) + 1 if keys else 0
        video, stream = self._video, self._stream
        if video is not None and 0 < video.count < needed:
            detail = f"{video.where}: {video.count} frames by its header, {needed} needed; the last ones will fail"
            self.issues.append(Issue("", "video_short", detail))
        if stream is not None and stream.note:
            self.issues.append(Issue("", "depth_bin_odd", f"{self.where}/depth.bin: {stream.note}"))

    # -- one frame ----------------------------------------------------------------------------------------------

    def _make_frame(self, key: str, pose: CheckedPose) -> LensFrame | None:
        """The frame; None, with an issue, where it has no colour or no depth. Raises PoseError."""
        color, encoded = self._find_color(key)
        if color is None:
            self.issues.append(Issue(key, "color_missing", "no picture in rgb/"))
            return None
        record = self._sources.records.get(key)
        camera, undistorter = self._find_camera(key, pose, record)
        if self._renderer is not None:
            depth_camera, depth = mesh_depth(self._renderer, camera, pose)
        else:
            assert self._depth_size is not None
            depth_camera = resize_camera(camera, *self._depth_size)
            found = self._find_depth(key, self._depth_size)
            if found is None:
                self.issues.append(Issue(key, "depth_missing", "no record in depth.bin and no picture in depth/"))
                return None
            depth = found
        return LensFrame(
            key,
            record.timestamp_s if record else None,
            pose.world_from_camera,
            pose.deviation,
            (camera, depth_camera),
            color,
            depth,
            encoded=encoded,
            mask=self._find_mask(key),
            undistorter=undistorter,
            depth_is_distorted=self._depth_size is not None,
        )

    def _find_color(self, key: str) -> tuple[Callable[[], ColorArray] | None, Callable[[], bytes | None] | None]:
        if self._video is not None:
            return partial(self._video.rgb, frame_index(key)), None
        path = self._pictures.files.get(key)
        if path is None:
            return None, None
        return partial(read_file_color, path, self.size), partial(read_file_bytes, path)

    def _find_depth(self, key: str, size: tuple[int, int]) -> Callable[[], DepthArray] | None:
        index, stream = frame_index(key), self._stream
        if key in self._depths.files:
            return partial(_read_png_depth, self._depths.files[key], size)
        if stream is not None and (stream.count is None or index < stream.count):
            return partial(stream.read, index)
        return None

    def _find_mask(self, key: str) -> Callable[[], Mask] | None:
        if key in self._masks.files:
            return partial(read_file_mask, self._masks.files[key])
        return None if self._mask_video is None else partial(self._mask_video.grey, frame_index(key))

    def _find_camera(
        self, key: str, pose: CheckedPose, record: PhoneRecord | None
    ) -> tuple[Camera, Undistorter | None]:
        colmap, nerfstudio = self._sources.colmap, self._sources.nerfstudio
        if colmap is not None:
            return self.fit_lens(
                colmap.cameras[pose.camera_id if pose.camera_id is not None else _most_used_camera(colmap)]
            )
        if record is not None and record.intrinsic is not None:
            camera, was_rescaled = make_phone_camera(record.intrinsic, self.size, f"{self.where}/{key}")
            self.was_rescaled |= was_rescaled
            return camera, None
        if nerfstudio is not None:
            return self.fit_lens(nerfstudio.lens)
        raise PoseError(f"{self.where}/{key}", "no intrinsic", "one in the json or a COLMAP model", "Add one.")


def _most_used_camera(colmap: ColmapModel) -> int:
    """The camera of most registered images: the one of frames that COLMAP did not register."""
    used = Counter(i.camera_id for i in colmap.images.values())
    return min(colmap.cameras, key=lambda camera_id: (-used[camera_id], camera_id))


def _read_png_depth(path: Path, size: tuple[int, int]) -> DepthArray:
    data = read_bytes(path, path, MAX_PICTURE_BYTES, FrameError)
    depth: DepthArray = decode_depth_u16(data, path, size) * np.float32(0.001)
    return depth
