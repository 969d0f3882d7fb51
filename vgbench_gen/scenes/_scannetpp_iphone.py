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
from vgbench_gen.geometry.cameras import resized
from vgbench_gen.scenes import _depth_bin
from vgbench_gen.scenes._colmap import ColmapModel, Lens
from vgbench_gen.scenes._depth_bin import DepthBin, open_depth_bin
from vgbench_gen.scenes._render_depth import RENDERED_WIDTH, MeshDepth
from vgbench_gen.scenes._scannetpp_frames import (
    LensFrame,
    Mask,
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
from vgbench_gen.scenes._scannetpp_phone_poses import PoseSources, frame_index
from vgbench_gen.scenes._scannetpp_poses import (
    CheckedPose,
    PhoneRecord,
    make_phone_camera,
)
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes._video import Video
from vgbench_gen.scenes.base import DepthKind, Frame, Issue, SceneRef
from vgbench_gen.scenes.files import MAX_PICTURE_BYTES, decode_depth_u16, inside, read_bytes

_VIDEOS = ("rgb.mkv", "rgb.mp4")
_MASK_VIDEOS = ("rgb_mask.mkv", "rgb_mask.mp4")
_DEPTH_SIZE = (_depth_bin.WIDTH, _depth_bin.HEIGHT)


def open_iphone(ref: SceneRef) -> ScanNetPPScene:
    """Open `<scene>/iphone`. Raises SceneError."""
    with ExitStack() as stack:
        return _Opening(ref, stack).scene()


class _Opening:
    """One scene being opened; what is open is closed again if that fails."""

    def __init__(self, ref: SceneRef, stack: ExitStack) -> None:
        self.ref, self.stack, self.where = ref, stack, ref.scene_id
        self.root, self.folder = ref.path.parent, ref.path
        self.issues: list[Issue] = []
        inside(self.root, self.folder)
        self.sources = PoseSources(self.root, self.folder, self.where, self.issues)
        self.pictures = PictureFolder(self.root, self.folder / "rgb", self.issues)
        self.depths = PictureFolder(self.root, self.folder / "depth", self.issues)
        self.masks = PictureFolder(self.root, self.folder / "rgb_masks", self.issues)
        self.undistorters: dict[Lens, Undistorter] = {}
        self.rescaled = False

    def scene(self) -> ScanNetPPScene:
        poses, keys = self.sources.chosen()
        video, self.size = self._color_source()
        mask_video = None if self.masks.files else self._video(_MASK_VIDEOS)
        stream, depth_size = self._depth_source()
        mesh = Mesh(self.root / "scans", self.where)
        objects, renderer = mesh.objects_and_depth(self.issues, want_depth=depth_size is None)
        if depth_size is None and renderer is None:
            raise SceneError(
                f"{self.where}: {self.folder}",
                "neither depth.bin nor depth/ nor scans/mesh_aligned_0.05.ply",
                "one of them (scenes of nvs_test have none)",
                "Download depth.bin or the mesh, or leave this scene out.",
            )
        frames: list[Frame] = []
        for key in keys:
            try:
                frame = self._frame(key, poses[key], video, mask_video, stream, depth_size, renderer)
            except PoseError as problem:
                self.issues.append(Issue(key, "intrinsic_invalid", str(problem)))
                continue
            if frame is not None:
                frames.append(frame)
        if self.rescaled:
            self.issues.append(Issue("", "intrinsics_rescaled", f"to images of {self.size[0]}x{self.size[1]}"))
        self._note_lengths(keys, video, stream)
        if not frames:
            first = next((f"{i.frame_id} {i.reason}: {i.detail}" for i in self.issues if i.frame_id), "no frame at all")
            raise SceneError(
                self.where, f"no usable frame ({first})", "frames with pose, colour and depth", "Check it."
            )
        total = len(set(self.sources.records) | set(poses) | {i.frame_id for i in self.issues if i.frame_id})
        kind: DepthKind = "sensor" if depth_size is not None else "laser"
        resources = self.stack.pop_all()
        return ScanNetPPScene(
            self.ref.scene_id, self.ref.split, frames, objects, kind, self._digest(mesh), self.issues, total, resources
        )

    # -- pixels -------------------------------------------------------------------------------------------------

    def _video(self, names: tuple[str, ...]) -> Video | None:
        for name in names:
            path = self.folder / name
            if path.exists():
                inside(self.root, path)
                video = Video(path, f"{self.where}/{name}")
                self.stack.callback(video.close)
                return video
        return None

    def _color_source(self) -> tuple[Video | None, tuple[int, int]]:
        if self.pictures.files:
            return None, self.pictures.first_size(f"{self.where}/rgb")
        video = self._video(_VIDEOS)
        if video is None:
            found = "neither rgb.mkv nor rgb.mp4 nor pictures in rgb/"
            raise SceneError(f"{self.where}: {self.folder}", found, "one of them", "Download rgb.mkv.")
        return video, (video.width, video.height)

    def _depth_source(self) -> tuple[DepthBin | None, tuple[int, int] | None]:
        """The stream, if there is one, and the size of sensor depth (None: there is no sensor depth)."""
        path = self.folder / "depth.bin"
        stream: DepthBin | None = None
        size: tuple[int, int] | None = None
        if self.depths.files:
            size = self.depths.first_size(f"{self.where}/depth")
        if path.exists() and size in (None, _DEPTH_SIZE):
            inside(self.root, path)
            stream = open_depth_bin(path, f"{self.where}/depth.bin")
            self.stack.callback(stream.close)
            size = _DEPTH_SIZE
        if size is not None:
            check_aspect(size, self.size, f"{self.where} depth")
        return stream, size

    def _note_lengths(self, keys: list[str], video: Video | None, stream: DepthBin | None) -> None:
        needed = frame_index(keys[-1]) + 1 if keys else 0
        if video is not None and 0 < video.count < needed:
            detail = f"{video.where}: {video.count} frames by its header, {needed} needed; the last ones will fail"
            self.issues.append(Issue("", "video_short", detail))
        if stream is not None and stream.note:
            self.issues.append(Issue("", "depth_bin_odd", f"{self.where}/depth.bin: {stream.note}"))

    # -- one frame ----------------------------------------------------------------------------------------------

    def _frame(
        self,
        key: str,
        pose: CheckedPose,
        video: Video | None,
        mask_video: Video | None,
        stream: DepthBin | None,
        depth_size: tuple[int, int] | None,
        renderer: MeshDepth | None,
    ) -> LensFrame | None:
        index = frame_index(key)
        if video is None and key not in self.pictures.files:
            self.issues.append(Issue(key, "color_missing", "no picture in rgb/"))
            return None
        record = self.sources.records.get(key)
        camera, undistorter = self._lens(key, pose, record)
        depth: Callable[[], DepthArray]
        if depth_size is None or renderer is not None:
            assert renderer is not None
            width = min(RENDERED_WIDTH, camera.width)
            depth_camera = resized(camera, width, max(1, round(camera.height * width / camera.width)))
            depth = render(renderer, depth_camera, pose.world_from_camera)
        else:
            depth_camera = resized(camera, *depth_size)
            if key in self.depths.files:
                depth = partial(_read_png_depth, self.depths.files[key], depth_size)
            elif stream is not None and (stream.count is None or index < stream.count):
                depth = partial(stream.read, index)
            else:
                self.issues.append(Issue(key, "depth_missing", "no record in depth.bin and no picture in depth/"))
                return None
        color: Callable[[], ColorArray]
        encoded: Callable[[], bytes | None] | None = None
        if video is None:
            color = partial(read_file_color, self.pictures.files[key], self.size)
            encoded = partial(read_file_bytes, self.pictures.files[key])
        else:
            color = partial(video.rgb, index)
        mask: Callable[[], Mask] | None = None
        if key in self.masks.files:
            mask = partial(read_file_mask, self.masks.files[key])
        elif mask_video is not None:
            mask = partial(mask_video.grey, index)
        return LensFrame(
            key,
            record.timestamp_s if record else None,
            pose.world_from_camera,
            pose.deviation,
            (camera, depth_camera),
            color,
            depth,
            encoded=encoded,
            mask=mask,
            undistorter=undistorter,
            depth_is_distorted=depth_size is not None,
        )

    def _lens(self, key: str, pose: CheckedPose, record: PhoneRecord | None) -> tuple[Camera, Undistorter | None]:
        colmap, nerfstudio = self.sources.colmap, self.sources.nerfstudio
        if colmap is not None:
            camera_id = pose.camera_id if pose.camera_id is not None else _make_usual_camera(colmap)
            lens = colmap.cameras[camera_id]
        elif record is not None and record.intrinsic is not None:
            camera, was_rescaled = make_phone_camera(record.intrinsic, self.size, f"{self.where}/{key}")
            self.rescaled |= was_rescaled
            return camera, None
        elif nerfstudio is not None:
            lens = nerfstudio.lens
        else:
            raise PoseError(f"{self.where}/{key}", "no intrinsic", "one in the json or a COLMAP model", "Add one.")
        if (lens.width, lens.height) != self.size:
            check_aspect(self.size, (lens.width, lens.height), f"{self.where} colour")
            lens, self.rescaled = lens.resized(*self.size), True
        if lens.is_pinhole:
            return lens.camera, None
        if lens not in self.undistorters:
            self.undistorters[lens] = Undistorter(lens, f"{self.where}/colmap/cameras.txt")
        return self.undistorters[lens].camera, self.undistorters[lens]

    def _digest(self, mesh: Mesh) -> str:
        names = (
            "pose_intrinsic_imu.json",
            *_VIDEOS,
            *_MASK_VIDEOS,
            "depth.bin",
            "colmap/cameras.txt",
            "colmap/images.txt",
        )
        files = [self.folder / name for name in (*names, "nerfstudio/transforms.json")]
        files += [mesh.path, mesh.path.with_name("segments.json"), mesh.path.with_name("segments_anno.json")]
        for folder in (self.pictures, self.depths, self.masks):
            files += folder.files.values()
        return digest(self.root, files)


def _make_usual_camera(colmap: ColmapModel) -> int:
    """The camera of most registered images: the one of frames that COLMAP did not register."""
    used = Counter(i.camera_id for i in colmap.images.values())
    return min(colmap.cameras, key=lambda camera_id: (-used[camera_id], camera_id))


def _read_png_depth(path: Path, size: tuple[int, int]) -> DepthArray:
    data = read_bytes(path, path, MAX_PICTURE_BYTES, FrameError)
    depth: DepthArray = decode_depth_u16(data, path, size) * np.float32(0.001)
    return depth
