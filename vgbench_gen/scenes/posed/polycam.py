"""Raw data of Polycam: pictures, depth and one JSON of pose and intrinsics a keyframe.

Source: `PolyCam/polyform`, README.md and `core/capture_folder.py`. Poses of `corrected_cameras` are optimised and
belong to `corrected_images` alone; where they are not whole (long captures have none), nothing of them is used.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.core.types import ColorArray
from vgbench_gen.scenes._lazy_frame import Mask
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import read_json
from vgbench_gen.scenes.posed.cameras import take_mapping
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, find_file, make_recording
from vgbench_gen.scenes.posed.poses import parse_pose
from vgbench_gen.scenes.posed.records import StoredRecording
from vgbench_gen.scenes.promised import index_by_number, list_files

_KEYS = [f"t_{row}{column}" for row in range(3) for column in range(4)]
_MAX_JSON_BYTES = 100_000
_BLACK = 8  # of 255: what compression leaves of a border that was 0


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `keyframes`. Raises SceneError."""
    issues: list[Issue] = []
    keyframes = folder / "keyframes"
    kinds = ("images", "cameras", "corrected_images", "corrected_cameras", "depth", "confidence")
    sizes = {kind: list_files(folder, keyframes / kind, issues) for kind in kinds}
    files = {kind: index_by_number(sizes[kind], ".jpg", ".png", ".json") for kind in kinds}
    is_corrected = files["corrected_cameras"].keys() >= files["cameras"].keys() <= files["corrected_images"].keys()
    prefix = "corrected_" if is_corrected and files["cameras"] else ""
    cameras = files[f"{prefix}cameras"]
    if not cameras:
        raise SceneError(keyframes, "no cameras", "raw data with developer mode on", "Export the capture as raw data.")
    entries: list[ListedFrame] = []
    for number, name in cameras.items():
        path = keyframes / f"{prefix}cameras" / name
        try:
            found = read_json(path, path, _MAX_JSON_BYTES)
            intrinsics = take_mapping(found, path)
            stored = parse_pose([found.get(key) for key in _KEYS], path)
            color = find_file(folder, f"keyframes/{prefix}images/{files[f'{prefix}images'].get(number, name)}")
            depth = find_file(folder, f"keyframes/depth/{files['depth'].get(number, name)}", ".png")
            sure = files["confidence"].get(number)
            confidence = keyframes / "confidence" / sure if sure else None
            hide, time_s = hide_black_border if prefix else None, number / 1e6
            entries.append(ListedFrame(str(number), time_s, color, depth, confidence, intrinsics, stored, hide))
        except FormatError as problem:
            issues.append(Issue(str(number), "unusable_file", str(problem)))
    return make_recording(folder, layout, entries, len(files["images"]), issues)


def hide_black_border(color: ColorArray) -> Mask:
    """(H, W) 0 in the black border that correcting a picture leaves around it, 255 elsewhere."""
    import cv2

    black = np.ascontiguousarray((color.max(axis=2) < _BLACK).astype(np.uint8))
    _, labels = cv2.connectedComponents(black)
    rim = np.unique(np.concatenate([labels[0], labels[-1], labels[:, 0], labels[:, -1]]))
    return np.where(np.isin(labels, rim[rim > 0]), 0, 255).astype(np.uint8)
