"""WildRGB-D: folders of PNG pictures around one object, `<category>/scenes/<scene_dir>/`.

Source: `wildrgbd/wildrgbd: README.md, wildrgbd_generate_point_cloud.py`. Depth comes from a phone's LiDAR at some
256x192 resolution and was enlarged to the size of the picture, so its edges are soft. The world is that of a SLAM
run: metric, but which way is up is unknown.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import BoolArray, Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.scenes._values import choose_camera, parse_matrix
from vgbench_gen.scenes._wildrgbd_lists import CategoryLists, index_by_number, read_poses
from vgbench_gen.scenes.base import DatasetInfo, DepthKind, Frame, Issue, Loader, Scene, SceneObject, SceneRef, loaders
from vgbench_gen.scenes.files import (
    MAX_PICTURE_BYTES,
    PictureHeader,
    compute_source_digest,
    decode_depth_u16,
    decode_image_rgb,
    decode_mask_u8,
    inside,
    open_regular,
    read_bytes,
    read_json,
    read_picture_header,
)
from vgbench_gen.scenes.licence import find_licence
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
        header, depth_header = _read_header(color), _read_header(depth)
        actual = header.width, header.height
        if (depth_header.kind, depth_header.channels, depth_header.bits) != ("png", 1, 16):
            found = f"a {depth_header.bits}-bit {depth_header.kind} of {depth_header.channels} channels"
            raise FrameError(depth, found, "a 16-bit grey PNG", "Export depth without conversion to 8 bits.")
        self.camera, self.repair = choose_camera(K, made_for, actual, color)
        size = depth_header.width, depth_header.height
        if abs(size[0] * actual[1] / (size[1] * actual[0]) - 1) > 0.01:
            raise FrameError(depth, f"{size[0]}x{size[1]} pixels", f"{actual[0]}x{actual[1]} as {color}", _GET_ORIGINAL)
        self.depth_camera: Camera = self.camera if size == actual else resize_camera(self.camera, *size)

    def color(self) -> ColorArray:
        """See `Frame.color`."""
        return decode_image_rgb(_read_bytes(self._color), self._color, self.camera.size)

    def encoded_color(self) -> bytes | None:
        """The picture as stored, where it is 8-bit RGB."""
        data = _read_bytes(self._color)
        header = read_picture_header(data, self._color)
        return data if header.plain and (header.width, header.height) == self.camera.size else None

    def depth_m(self) -> DepthArray:
        """Sensor depth (h, w) float32 metres; 0 where unknown or above 5 m. See `Frame.depth_m`."""
        stored = decode_depth_u16(_read_bytes(self._depth), self._depth, self.depth_camera.size)
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
        return decode_mask_u8(_read_bytes(self.mask_path), self.mask_path, self.camera.size) > _MASK_ABOVE


class WildRGBDScene(Scene):
    """One video around an object. No boxes: `objects` is empty, frames may have masks.

    category: folder the scene is in, e.g. "box". object_type: "single", "multi" (a mask covers several objects),
    "hand" (an object held by a hand) or "unknown".
    """

    def __init__(self, ref: SceneRef) -> None:
        folder = ref.path.resolve()
        self._folder = folder
        category_folder, self.category = _find_category(folder)
        lists = CategoryLists(category_folder)
        self.dataset, self.id = "wildrgbd", f"{self.category}/{folder.name}"
        self.split = lists.split(folder.name)
        self.object_type = lists.object_type(folder.name)
        self.objects: Sequence[SceneObject] = ()
        self.up_world: FloatArray | None = None
        self.depth_kind: DepthKind = "sensor"
        self.licence = find_licence(folder, LICENCE)
        self.issues = list(lists.issues)
        metadata = _refuse_outside(category_folder, folder / "metadata")
        K, made_for = read_intrinsics(read_json(metadata, metadata, _MAX_METADATA_BYTES), metadata)
        poses_path = _refuse_outside(category_folder, folder / "cam_poses.txt")
        poses, seen, issues = read_poses(poses_path)
        self.issues += issues
        files = {kind: self._listed(category_folder, kind) for kind in ("rgb", "depth", "masks")}
        self.total_frames = len(seen | files["rgb"].keys())
        frames: list[WildRGBDFrame] = []
        for number in sorted(seen | files["rgb"].keys()):
            absent = [kind for kind in ("rgb", "depth") if number not in files[kind]]
            absent += ["pose"] if number not in seen else []
            if absent:
                reason = "pose_missing" if absent == ["pose"] else "incomplete"
                self.issues.append(Issue(str(number), reason, f"no {', '.join(absent)}"))
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
        self.source_digest = self._digest(files, metadata, poses_path)

    def _listed(self, category: Path, kind: str) -> dict[int, Path]:
        """Frame number -> file of one sub-folder; links that leave the category are refused."""
        folder = self._folder / kind
        names: list[str] = []
        try:
            with os.scandir(folder) as found:
                for entry in found:
                    if entry.is_symlink():
                        try:
                            inside(category, Path(entry.path))
                        except SceneError as error:
                            self.issues.append(Issue("", "link_outside", f"{kind}/{entry.name}: {error.found}"))
                            continue
                    if entry.name.lower().endswith((".png", ".jpg", ".jpeg")) and is_regular(entry):
                        names.append(entry.name)
        except OSError as error:
            self.issues.append(Issue("", "folder_missing", f"{folder}: {error.strerror}"))
        return {number: folder / name for number, name in sorted(index_by_number(names).items())}

    def _digest(self, files: dict[str, dict[int, Path]], *texts: Path) -> str:
        entries: list[tuple[object, ...]] = [(path.name, read_bytes(path, path, MAX_PICTURE_BYTES)) for path in texts]
        for kind, paths in files.items():
            entries += [(f"{kind}/{path.name}", path.stat().st_size) for path in paths.values()]
        return compute_source_digest(entries)


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
        found: dict[str, SceneRef] = {}
        lists: dict[Path, CategoryLists] = {}
        for folder, entries in walk(root):
            files = {
                entry.name for entry in entries if entry.name in ("metadata", "cam_poses.txt") and is_regular(entry)
            }
            real = folder.resolve() if files else folder
            if not files or (len(files) < 2 and real.parent.name != "scenes"):
                continue
            entries.clear()
            category_folder, category = _find_category(real)
            if category_folder not in lists:
                lists.clear()  # the walk finishes one category before the next
                lists[category_folder] = CategoryLists(category_folder)
            split, scene_id = lists[category_folder].split(real.name), f"{category}/{real.name}"
            poses = real / "cam_poses.txt"
            size = poses.stat().st_size * _BYTES_PER_POSE_BYTE if "cam_poses.txt" in files else 0
            found.setdefault(scene_id, SceneRef("wildrgbd", scene_id, folder, "", split, size))
        yield from (found[scene_id] for scene_id in sorted(found))

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


def _read_bytes(path: Path) -> bytes:
    return read_bytes(path, path, MAX_PICTURE_BYTES, FrameError)


def _read_header(path: Path) -> PictureHeader:
    """Header of a picture from its first and last bytes; a JPEG's whole file, its size stands anywhere."""
    if path.suffix.lower() != ".png":
        return read_picture_header(_read_bytes(path), path)
    with os.fdopen(open_regular(path, path, FrameError), "rb") as file:
        head = file.read(64)
        file.seek(max(file.seek(0, os.SEEK_END) - 16, len(head)))
        return read_picture_header(head + file.read(16), path)
