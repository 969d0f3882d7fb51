"""WildRGB-D: folders of PNG pictures around one object, `<category>/scenes/<scene_dir>/`.

Source: `wildrgbd/wildrgbd: README.md, wildrgbd_generate_point_cloud.py`; how lists key their scenes is not documented,
so every form in use is understood. Depth comes from a phone's LiDAR at some 256x192 resolution and was enlarged to the
size of the picture, so its edges are soft. The world is that of a SLAM run: metric, but which way is up is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, PoseError, SceneError
from vgbench_gen.core.types import BoolArray, FloatArray
from vgbench_gen.geometry.cameras import resize_camera
from vgbench_gen.geometry.poses import check_pose
from vgbench_gen.scenes._cameras import choose_camera
from vgbench_gen.scenes._lazy_frame import LazyFrame, check_aspect, make_color_readers
from vgbench_gen.scenes.base import DatasetInfo, DepthKind, Frame, Issue, Loader, Scene, SceneObject, SceneRef, loaders
from vgbench_gen.scenes.files import (
    check_depth_header,
    compute_source_digest,
    decode_depth_m,
    decode_mask_u8,
    inside,
    parse_matrix,
    read_bytes,
    read_file_header,
    read_json,
    read_picture,
)
from vgbench_gen.scenes.licence import find_licence
from vgbench_gen.scenes.promised import index_by_number, list_files, note_without, require_frames, try_to_read
from vgbench_gen.scenes.walk import is_regular, walk

MAX_DEPTH_M = 5.0
"""Where the official fusion cuts the depth."""
LICENCE = "mit"
_MASK_ABOVE = 128
_MAX_METADATA_BYTES = 1_000_000
_LISTS = ("nvs_list.json", "camera_eval_list.json")
_SPLITS = ("train", "val", "test")  # the last one wins: a scene that any list holds out must not be trained on
_MAX_LIST_BYTES = 4_000_000
_MAX_POSE_BYTES = 16_000_000
_NUMBERS = 17
# A pose line takes some 200 bytes, the three pictures of a frame some 0.5 MB: enough to order scenes by size.
_BYTES_PER_POSE_BYTE = 2_500
_GET_ORIGINAL = "Unpack the category again (large ones are split archives that must be joined first)."


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
        metadata = inside(category_folder, folder / "metadata")
        K, made_for = read_intrinsics(read_json(metadata, metadata, _MAX_METADATA_BYTES), metadata)
        poses_path = inside(category_folder, folder / "cam_poses.txt")
        poses, seen, issues = read_poses(poses_path)
        self.issues += issues
        digest: list[tuple[object, ...]] = [(path.name, read_picture(path)) for path in (metadata, poses_path)]
        files = {kind: self._list(category_folder, kind, digest) for kind in ("rgb", "depth", "masks")}
        self.total_frames = len(seen | files["rgb"].keys())
        frames: list[LazyFrame] = []
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
                color, depth = files["rgb"][number], files["depth"][number]
                frames.append(self._open_frame(number, color, depth, poses[number], K, made_for))
            except FrameError as error:
                self.issues.append(Issue(str(number), "unusable_file", str(error)))
                continue
            if number in files["masks"]:
                frames[-1].read_object_mask = partial(_read_mask, files["masks"][number], frames[-1].camera.size)
        require_frames(folder, frames, self.total_frames, self.issues)
        self.frames: Sequence[Frame] = tuple(frames)
        if files["masks"]:
            note_without(self.issues, [frame.id for frame in frames if not frame.read_object_mask], "a mask in masks/")
        self.source_digest = compute_source_digest(digest)

    def _open_frame(
        self,
        number: int,
        color: Path,
        depth: Path,
        pose: tuple[FloatArray, float],
        K: FloatArray,
        made_for: tuple[int, int],
    ) -> LazyFrame:
        actual, depth_header = read_file_header(color).size, read_file_header(depth)
        check_depth_header(depth_header, depth)
        camera, repair = choose_camera(K, made_for, actual, color)
        size = depth_header.size
        check_aspect(size, actual, depth, FrameError, 0.01)
        if repair:
            self.issues.append(Issue(str(number), repair, f"picture {actual}, metadata {made_for}"))
        return LazyFrame(
            str(number),
            None,
            *pose,
            camera,
            *make_color_readers(color, actual),
            camera if size == actual else resize_camera(camera, *size),
            lambda: decode_depth_m(read_picture(depth), depth, size, MAX_DEPTH_M),
        )

    def _list(self, category: Path, kind: str, digest: list[tuple[object, ...]]) -> dict[int, Path]:
        """Frame number -> file of one sub-folder; links that leave the category are refused."""
        sizes = list_files(category, self._folder / kind, self.issues, f"no frame has {kind}")
        found = index_by_number(sizes, ".png", ".jpg", ".jpeg")
        digest += [(f"{kind}/{name}", sizes[name]) for name in found.values()]
        return {number: self._folder / kind / name for number, name in sorted(found.items())}


def _read_mask(path: Path, size: tuple[int, int]) -> BoolArray:
    """(H, W) True on the object. Erode before reading depth under it."""
    return decode_mask_u8(read_picture(path), path, size) > _MASK_ABOVE


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
    stored = parse_matrix(value.get("K"), where, [(3, 3)], SceneError)
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


def read_splits(category: Path, issues: list[Issue]) -> dict[str, str]:
    """The split of each scene folder that `nvs_list.json` or `camera_eval_list.json` names; each may be absent."""
    splits: dict[str, str] = {}
    lists = []
    for path in filter(Path.exists, (category / name for name in _LISTS)):
        read = partial(read_json, inside(category, path), path, _MAX_LIST_BYTES)
        lists.append(try_to_read(issues, read, "the splits that it states are unknown"))
    for split in _SPLITS:
        for names in (found.get(split) for found in lists if isinstance(found, dict)):
            if isinstance(names, list):
                named = (name.replace("\\", "/").strip() for name in names if isinstance(name, str))
                splits.update((name.rstrip("/").rpartition("/")[2], split) for name in named)
    return splits


def read_poses(path: Path) -> tuple[dict[int, tuple[FloatArray, float]], set[int], list[Issue]]:
    """Poses of `cam_poses.txt`: a frame number and 16 row-major numbers per line (or any whole number of such runs).

    Returns:
        Frame number -> (world_from_camera (4, 4), deviation before repair); all numbers that occur; what was left out.

    Raises:
        SceneError: the file is missing, unreadable or larger than 16 MB.
    """
    text = read_bytes(path, path, _MAX_POSE_BYTES).decode("utf-8-sig", "replace")
    poses: dict[int, tuple[FloatArray, float]] = {}
    seen: set[int] = set()
    issues: list[Issue] = []
    for number, line in enumerate(text.splitlines(), 1):
        where = f"{path}:{number}"
        words = line.replace(",", " ").split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) % _NUMBERS:
            detail = f"{where}: found {len(words)} words; expected a frame number and 16 numbers"
            issues.append(Issue("", "pose_line_unusable", detail))
            continue
        for start in range(0, len(words), _NUMBERS):
            _parse_pose(words[start : start + _NUMBERS], where, poses, seen, issues)
    return poses, seen, issues


def _parse_pose(
    words: list[str],
    where: str,
    poses: dict[int, tuple[FloatArray, float]],
    seen: set[int],
    issues: list[Issue],
) -> None:
    frame = ""
    try:
        stated = float(words[0])
        if not stated.is_integer() or stated < 0:
            raise FrameError(where, words[0], "a whole frame number", "The line is left out.")
        key, frame = int(stated), str(int(stated))
        if key in seen:
            poses.pop(key, None)  # which of the two is right cannot be known
            raise FrameError(where, f"frame {key} again", "one pose per frame", "The frame is left out.")
        seen.add(key)
        poses[key] = check_pose(parse_matrix(" ".join(words[1:]), where, [(4, 4)]), where)
    except PoseError as error:
        issues.append(Issue(frame, "bad_pose", str(error)))
    except (FormatError, ValueError) as error:
        issues.append(Issue(frame, "pose_line_unusable", str(error)))


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
        # A folder with only one of the two files is listed too; opening it says what lacks.
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
        return WildRGBDScene(ref)


def _find_category(scene: Path) -> tuple[Path, str]:
    """Category folder and its name: `<category>/scenes/<scene>`, or the parent where `scenes` was left out."""
    folder = scene.parent.parent if scene.parent.name == "scenes" else scene.parent
    return folder, folder.name
