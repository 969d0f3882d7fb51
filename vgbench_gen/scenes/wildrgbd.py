"""WildRGB-D: folders of PNG pictures around one object, `<category>/scenes/<scene_dir>/`.

Source: `wildrgbd/wildrgbd: README.md, wildrgbd_generate_point_cloud.py`. Depth comes from a phone's LiDAR at some
256x192 resolution and was enlarged to the size of the picture, so its edges are soft. The world is that of a SLAM
run: metric, but which way is up is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._values import choose_camera, parse_matrix
from vgbench_gen.scenes._wildrgbd_lists import index_by_number, read_poses, read_splits
from vgbench_gen.scenes.base import DatasetInfo, DepthKind, Frame, Issue, Loader, Scene, SceneObject, SceneRef, loaders
from vgbench_gen.scenes.files import (
    check_depth_header,
    compute_source_digest,
    decode_depth_u16,
    decode_image_rgb,
    decode_mask_u8,
    inside,
    read_file_header,
    read_json,
    read_picture,
    read_picture_header,
)
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.promised import list_files, note_without
from vgbench_gen.scenes.walk import is_regular, walk

MAX_DEPTH_M = 5.0
"""Where the official fusion cuts the depth."""
LICENCE = "mit"
_MASK_ABOVE = 128
_MAX_METADATA_BYTES = 1_000_000
# A pose line takes some 200 bytes, the three pictures of a frame some 0.5 MB: enough to order scenes by size.
_BYTES_PER_POSE_BYTE = 2_500
_GET_ORIGINAL = "Unpack the category again (large ones are split archives that must be joined first)."


class WildRGBDFrame(Frame):
    """One frame. `mask_path` is None where the scene has no mask for it."""

    def __init__(
        self, frame_id: str, color: Path, depth: Path, mask: Path | None, K: FloatArray, made_for: tuple[int, int]
    ) -> None:
        self.id, self.timestamp_s = frame_id, None
        self._color, self._depth, self.mask_path = color, depth, mask
        header, depth_header = read_file_header(color), read_file_header(depth)
        actual = header.width, header.height
        check_depth_header(depth_header, depth)
        self.camera, self.repair = choose_camera(K, made_for, actual, color)
        size = depth_header.width, depth_header.height
        if abs(size[0] * actual[1] / (size[1] * actual[0]) - 1) > 0.01:
            raise FrameError(depth, f"{size[0]}x{size[1]} pixels", f"{actual[0]}x{actual[1]} as {color}", _GET_ORIGINAL)
        self.depth_camera: Camera = self.camera if size == actual else resize_camera(self.camera, *size)

    def color(self) -> ColorArray:
        """See `Frame.color`."""
        return decode_image_rgb(read_picture(self._color), self._color, self.camera.size)

    def encoded_color(self) -> bytes | None:
        """The picture as stored, where it is 8-bit RGB."""
        data = read_picture(self._color)
        header = read_picture_header(data, self._color)
        return data if header.plain and (header.width, header.height) == self.camera.size else None

    def depth_m(self) -> DepthArray:
        """Sensor depth (h, w) float32 meters; 0 where unknown or above 5 m. See `Frame.depth_m`."""
        stored = decode_depth_u16(read_picture(self._depth), self._depth, self.depth_camera.size)
        depth = stored.astype(np.float32) / np.float32(1000.0)
        depth[depth > MAX_DEPTH_M] = 0.0
        return depth

    def object_mask(self) -> BoolArray | None:
        """(H, W) True on the object (values above 128), or None without a mask. Erode before reading depth under it.

        Raises:
            FrameError: the bytes are damaged or have another size than the camera's.
        """
        if self.mask_path is None:
            return None
        return decode_mask_u8(read_picture(self.mask_path), self.mask_path, self.camera.size) > _MASK_ABOVE


class WildRGBDScene(Scene):
    """One video around an object. No boxes: `objects` is empty, frames may have masks."""

    def __init__(self, ref: SceneRef) -> None:
        folder = ref.path.resolve()
        self._folder = folder
        self.issues = []
        category_folder, category = _find_category(folder)
        self.dataset, self.id = "wildrgbd", f"{category}/{folder.name}"
        self.split = read_splits(category_folder, self.issues).get(folder.name, "unknown")
        self.objects: Sequence[SceneObject] = ()
        self.up_world: FloatArray | None = None
        self.depth_kind: DepthKind = "sensor"
        self.licence = find_licence(folder, LICENCE)
        metadata = _refuse_outside(category_folder, folder / "metadata")
        K, made_for = read_intrinsics(read_json(metadata, metadata, _MAX_METADATA_BYTES), metadata)
        poses_path = _refuse_outside(category_folder, folder / "cam_poses.txt")
        poses, seen, issues = read_poses(poses_path)
        self.issues += issues
        digest: list[tuple[object, ...]] = [(path.name, read_picture(path)) for path in (metadata, poses_path)]
        files = {kind: self._list(category_folder, kind, digest) for kind in ("rgb", "depth", "masks")}
        self.total_frames = len(seen | files["rgb"].keys())
        frames: list[WildRGBDFrame] = []
        for number in sorted(seen | files["rgb"].keys()):
            absent = [f"picture in {kind}/" for kind in ("rgb", "depth") if number not in files[kind]]
            absent += ["pose in cam_poses.txt"] if number not in seen else []
            if absent:
                reason = "incomplete" if absent[0].startswith("picture") else "pose_missing"
                self.issues.append(Issue(str(number), reason, f"frame {number} has no {', no '.join(absent)}"))
                continue
            if number not in poses:  # said when the poses were read
                continue
            try:
                mask = files["masks"].get(number)
                frame = WildRGBDFrame(str(number), files["rgb"][number], files["depth"][number], mask, K, made_for)
            except FrameError as error:
                self.issues.append(Issue(str(number), "unusable_file", str(error)))
                continue
            frame.world_from_camera, frame.pose_deviation = poses[number]
            if frame.repair:
                detail = f"picture {frame.camera.size}, metadata {made_for}"
                self.issues.append(Issue(frame.id, frame.repair, detail))
            frames.append(frame)
        if not frames:
            why = f" ({self.issues[-1].detail})" if self.issues else ""
            found = f"{self.total_frames} frames, none usable{why}"
            raise SceneError(folder, found, "at least one with rgb, depth and pose", _GET_ORIGINAL)
        self.frames: Sequence[Frame] = tuple(frames)
        if files["masks"]:
            note_without(self.issues, [frame.id for frame in frames if frame.mask_path is None], "a mask in masks/")
        self.source_digest = compute_source_digest(digest)

    def _list(self, category: Path, kind: str, digest: list[tuple[object, ...]]) -> dict[int, Path]:
        """Frame number -> file of one sub-folder; links that leave the category are refused."""
        sizes = list_files(category, self._folder / kind, self.issues, f"no frame has {kind}")
        found = index_by_number(name for name in sizes if name.lower().endswith((".png", ".jpg", ".jpeg")))
        digest += [(f"{kind}/{name}", sizes[name]) for name in found.values()]
        return {number: self._folder / kind / name for number, name in sorted(found.items())}


def read_intrinsics(value: Any, where: Path) -> tuple[FloatArray, tuple[int, int]]:
    """K (3, 3) and the (width, height) it was made for, from parsed `metadata`.

    K is stored column by column (`wildrgbd_generate_point_cloud.py` transposes it); which way it lies is read from
    where (0, 0, 1) stands.

    Raises:
        SceneError: not a JSON object with w, h and K, or K has (0, 0, 1) neither as last row nor as last column.
    """
    wanted = "w, h and nine numbers K"
    if not isinstance(value, dict):
        raise SceneError(where, f"a JSON {type(value).__name__}", f"an object with {wanted}", _GET_ORIGINAL)
    stored = parse_matrix(value.get("K"), [(3, 3)], where, SceneError)
    size = value.get("w"), value.get("h")
    if not all(isinstance(length, int | float) and 0 < length < 1e5 and length == int(length) for length in size):
        raise SceneError(where, f"w, h = {str(size)[:60]}", wanted, _GET_ORIGINAL)
    if np.allclose(stored[2], (0, 0, 1), rtol=0, atol=1e-6):
        K = stored
    elif np.allclose(stored[:, 2], (0, 0, 1), rtol=0, atol=1e-6):
        K = stored.T
    else:
        raise SceneError(where, f"K = {stored.ravel().tolist()}", "(0, 0, 1) as last row or column", _GET_ORIGINAL)
    K = np.vstack([K[:2], (0.0, 0.0, 1.0)])
    return K, (int(size[0]), int(size[1]))  # type: ignore[arg-type]


INFO = DatasetInfo(
    title="WildRGB-D",
    licence="MIT",
    terms="MIT License",
    url="https://github.com/wildrgbd/wildrgbd/blob/main/LICENSE",
    may_publish_pixels=True,
    reason="MIT file in the repository and MIT tag on the data card; no separate terms for the data found",
    notice="WildRGB-D: MIT License, Copyright (c) 2024 rowdataset",
    citation="""@inproceedings{xia2024rgbd,
  title     = {RGBD Objects in the Wild: Scaling Real-World 3D Object Learning from RGB-D Videos},
  author    = {Xia, Hongchi and Fu, Yang and Liu, Sifei and Wang, Xiaolong},
  booktitle = {Proceedings of the IEEE/CVF Conference on Computer Vision and Pattern Recognition (CVPR)},
  year      = {2024},
}""",
)


@loaders.register("wildrgbd")
class WildRGBD(Loader):
    """Any folder under a `scenes/` that holds `metadata` and `cam_poses.txt`."""

    dataset = "wildrgbd"
    info = INFO

    def discover(self, root: Path) -> Iterator[SceneRef]:
        """See `Loader.discover`. A folder with only one of the two files is listed too; opening it says what lacks."""
        found: list[SceneRef] = []
        splits: dict[Path, dict[str, str]] = {}
        for folder, entries in walk(root):
            files = {
                entry.name for entry in entries if entry.name in ("metadata", "cam_poses.txt") and is_regular(entry)
            }
            real = folder.resolve() if files else folder
            if not files or (len(files) < 2 and real.parent.name != "scenes"):
                continue
            entries.clear()
            category_folder, category = _find_category(real)
            if category_folder not in splits:
                splits[category_folder] = read_splits(category_folder, [])
            split, scene_id = splits[category_folder].get(real.name, "unknown"), f"{category}/{real.name}"
            poses = real / "cam_poses.txt"
            size = poses.stat().st_size * _BYTES_PER_POSE_BYTE if "cam_poses.txt" in files else 0
            found.append(SceneRef("wildrgbd", scene_id, folder, "", split, size))
        yield from sorted(found, key=lambda ref: ref.scene_id)

    def open(self, ref: SceneRef) -> WildRGBDScene:
        """See `Loader.open`."""
        return WildRGBDScene(ref)


def _find_category(scene: Path) -> tuple[Path, str]:
    """Category folder and its name: `<category>/scenes/<scene>`, or the parent where `scenes` was left out."""
    folder = scene.parent.parent if scene.parent.name == "scenes" else scene.parent
    return folder, folder.name


def _refuse_outside(category: Path, path: Path) -> Path:
    """The path itself, after refusing a link that leaves the category."""
    if path.is_symlink():
        inside(category, path)
    return path
