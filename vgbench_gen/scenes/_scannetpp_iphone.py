"""The iPhone capture of a ScanNet++ scene (`docs/formats.md#iphone-streams`).

One pose source per scene: `aligned_pose` where the json has any that is sound, else COLMAP, else nerfstudio. The
lens comes from COLMAP where there is a model; colour, sensor depth and masks then lie on one distorted grid and are
undistorted by one map. Without COLMAP the json's intrinsic of each frame is taken as it is. Extracted pictures are
used where a folder has them, streams (`rgb.mkv`, `depth.bin`) otherwise; frame_%06d is the index in the streams.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.core.types import Camera, ColorArray, DepthArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import check_pose, rotation_angle_deg
from vgbench_gen.scenes import _depth_bin
from vgbench_gen.scenes._colmap import ColmapModel
from vgbench_gen.scenes._depth_bin import DepthBin, open_depth_bin
from vgbench_gen.scenes._scannetpp_frames import (
    NO_MASKS,
    CaptureOpener,
    LensFrame,
    Mask,
    ScanNetPPScene,
    check_aspect,
    colmap_poses,
    list_pictures,
    mesh_depth,
    read_file_bytes,
    read_file_color,
    read_file_mask,
    read_first_size,
)
from vgbench_gen.scenes._scannetpp_poses import (
    CheckedPose,
    PhoneRecord,
    frame_stem,
    make_phone_camera,
    read_phone_json,
)
from vgbench_gen.scenes._undistort import Undistorter
from vgbench_gen.scenes._video import Video
from vgbench_gen.scenes.base import Frame, Issue, SceneRef
from vgbench_gen.scenes.files import decode_depth_u16, inside, read_picture
from vgbench_gen.scenes.promised import note_missing

_VIDEOS = ("rgb.mkv", "rgb.mp4")
_MASK_VIDEOS = ("rgb_mask.mkv", "rgb_mask.mp4")
_FILES = (
    "pose_intrinsic_imu.json", *_VIDEOS, *_MASK_VIDEOS, "depth.bin", "colmap/cameras.txt", "colmap/images.txt",
    "nerfstudio/transforms.json",
)  # fmt: skip
_KEY = re.compile(r"frame_(\d{1,9})")
# Two pose sources of one scene that differ by more than this on median do not describe the same world.
_MAX_SOURCE_GAP_M, _MAX_SOURCE_GAP_DEG = 0.10, 2.0
_DEPTH_SIZE = (_depth_bin.WIDTH, _depth_bin.HEIGHT)


class IphoneOpener(CaptureOpener):
    """Opens `<scene>/iphone`."""

    def __init__(self, ref: SceneRef, resources: ExitStack) -> None:
        super().__init__(ref, resources)
        self._records = self._read_records()
        # Problems with single images matter only where it gives the poses, see `_choose_poses`.
        self._colmap = self.read_colmap("lens distortion and poses of COLMAP are unknown")
        self._nerfstudio = self.read_nerfstudio("transforms.json")
        self._pictures = list_pictures(self.root, self.folder / "rgb", self.issues)
        self._depths = list_pictures(self.root, self.folder / "depth", self.issues)
        masks = self.folder / "rgb_masks"  # which is not made by everybody
        self.masks = list_pictures(self.root, masks, self.issues, NO_MASKS if masks.exists() else "")

    def open(self) -> ScanNetPPScene:
        """The scene. Raises SceneError."""
        poses, keys = self._choose_poses()
        self._video, self.size = self._open_color()
        self._mask_video = None if self.masks else self._open_video(_MASK_VIDEOS)
        if self._video is not None and self._mask_video is None and not self.masks:
            note_missing(self.issues, [self.folder / _MASK_VIDEOS[0]], NO_MASKS)
        self._stream, self._depth_size = self._open_depth()
        has_depth = self._depth_size is not None
        if not has_depth and self.ref.split != "test":  # of which some have none
            note_missing(self.issues, [self.folder / "depth.bin"], "nor depth/: depth is rendered from the mesh")
        objects, self._renderer = self.read_objects_and_depth(not has_depth)
        if not has_depth and self._renderer is None:
            found = f"neither depth.bin nor depth/ nor {self.mesh}"
            expected, remedy = "one of them (scenes of nvs_test have none)", "Download one, or leave this scene out."
            raise SceneError(f"{self.where}: {self.folder}", found, expected, remedy)
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
            raise SceneError(self.where, f"no usable frame ({first})", "pose, colour and depth", "Check it.")
        return self.make_scene(
            frames, objects, "sensor" if has_depth else "laser", {*self._records, *poses, *told}, _FILES,
            (self._pictures, self._depths),
        )  # fmt: skip

    # -- poses --------------------------------------------------------------------------------------------------

    def _read_records(self) -> dict[str, PhoneRecord]:
        """Records of `pose_intrinsic_imu.json` by frame key."""
        path = self.folder / "pose_intrinsic_imu.json"
        if not path.exists():
            note_missing(self.issues, [path], "most frames have no pose")
            return {}
        records, issues = read_phone_json(inside(self.root, path), f"{self.where}/{path.name}")
        self.issues += issues
        return records

    def _choose_poses(self) -> tuple[dict[str, CheckedPose], list[str]]:
        """Checked poses of the scene's one source, and the keys to use in order of the video."""
        from_json: dict[str, CheckedPose] = {}
        lost: list[Issue] = []
        for key, record in self._records.items():
            if record.aligned_pose is None:
                lost.append(Issue(key, "pose_missing", "no aligned_pose"))
                continue
            try:
                pose, deviation = check_pose(record.aligned_pose, f"{self.where}/{key}")
                from_json[key] = CheckedPose(pose, deviation)
            except PoseError as problem:
                lost.append(Issue(key, "pose_invalid", str(problem)))
        from_colmap = colmap_poses(self._colmap)
        if from_json:
            self._compare(from_json, from_colmap)
            poses = {
                key: CheckedPose(
                    p.world_from_camera, p.deviation, from_colmap[key].camera_id if key in from_colmap else None
                )
                for key, p in from_json.items()
            }
        elif from_colmap and self._colmap is not None:
            poses = from_colmap
            lost = [Issue(frame_stem(name), "pose_invalid", why) for name, why in self._colmap.problems]
        else:
            poses, lost = self._read_nerfstudio_poses(), []
        self.issues += lost
        bad = self._nerfstudio.bad if self._nerfstudio else frozenset()
        keys = []
        for key in poses:
            if _KEY.fullmatch(key) is None:
                self.issues.append(Issue(key[:40], "name_unknown", "not of the form frame_000000"))
            elif key in bad:
                self.issues.append(Issue(key, "marked_bad", "is_bad in nerfstudio/transforms.json"))
            else:
                keys.append(key)
        return poses, sorted(keys, key=_find_index)

    def _read_nerfstudio_poses(self) -> dict[str, CheckedPose]:
        if self._nerfstudio is None:
            expected = "pose_intrinsic_imu.json, colmap/ or nerfstudio/transforms.json"
            raise SceneError(self.where, "no usable pose of any source", expected, "Download one of them.")
        return self.check_nerfstudio_poses(self._nerfstudio)

    def _compare(self, ours: dict[str, CheckedPose], colmap: dict[str, CheckedPose]) -> None:
        common = [key for key in ours if key in colmap]
        if not common:
            return
        a = np.stack([ours[key].world_from_camera for key in common])
        b = np.stack([colmap[key].world_from_camera for key in common])
        gap_m = float(np.median(np.linalg.norm(a[:, :3, 3] - b[:, :3, 3], axis=1)))
        turned = a[:, :3, :3].transpose(0, 2, 1) @ b[:, :3, :3]
        gap_deg = float(np.median(rotation_angle_deg(turned)))
        if gap_m > _MAX_SOURCE_GAP_M or gap_deg > _MAX_SOURCE_GAP_DEG:
            detail = f"aligned_pose and COLMAP differ by {gap_m:.3f} m and {gap_deg:.2f} degrees on median"
            self.issues.append(Issue("", "pose_sources_disagree", detail))

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
        if self._pictures:
            return None, read_first_size(self._pictures, f"{self.where}/rgb")
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
        if self._depths:
            size = read_first_size(self._depths, f"{self.where}/depth")
        if path.exists() and size in (None, _DEPTH_SIZE):
            inside(self.root, path)
            stream = open_depth_bin(path, f"{self.where}/depth.bin")
            self.resources.callback(stream.close)
            size = _DEPTH_SIZE
        if size is not None:
            check_aspect(size, self.size, f"{self.where} depth")
        return stream, size

    def _note_lengths(self, keys: list[str]) -> None:
        needed = _find_index(keys[-1]) + 1 if keys else 0
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
        record = self._records.get(key)
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
            return partial(self._video.rgb, _find_index(key)), None
        path = self._pictures.get(key)
        if path is None:
            return None, None
        return partial(read_file_color, path, self.size), partial(read_file_bytes, path)

    def _find_depth(self, key: str, size: tuple[int, int]) -> Callable[[], DepthArray] | None:
        index, stream = _find_index(key), self._stream
        if key in self._depths:
            return partial(_read_png_depth, self._depths[key], size)
        if stream is not None and (stream.count is None or index < stream.count):
            return partial(stream.read, index)
        return None

    def _find_mask(self, key: str) -> Callable[[], Mask] | None:
        if key in self.masks:
            return partial(read_file_mask, self.masks[key])
        return None if self._mask_video is None else partial(self._mask_video.grey, _find_index(key))

    def _find_camera(
        self, key: str, pose: CheckedPose, record: PhoneRecord | None
    ) -> tuple[Camera, Undistorter | None]:
        colmap, nerfstudio = self._colmap, self._nerfstudio
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


def _find_index(key: str) -> int:
    """Index in the video of "frame_000120"."""
    return int(key.rpartition("_")[2])


def _most_used_camera(colmap: ColmapModel) -> int:
    """The camera of most registered images: the one of frames that COLMAP did not register."""
    used = Counter(i.camera_id for i in colmap.images.values())
    return min(colmap.cameras, key=lambda camera_id: (-used[camera_id], camera_id))


def _read_png_depth(path: Path, size: tuple[int, int]) -> DepthArray:
    data = read_picture(path)
    depth: DepthArray = decode_depth_u16(data, path, size) * np.float32(0.001)
    return depth
