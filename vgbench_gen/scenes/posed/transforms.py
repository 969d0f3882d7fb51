"""`transforms.json` of nerfstudio and NeRFCapture: names, poses and intrinsics of all frames in one file.

Sources: nerfstudio 1.1.5, `dataparsers/nerfstudio_dataparser.py`; `NVlabs/instant-ngp`, `scripts/nerfcapture2nerf.py`;
`spla-tam/SplaTAM`, `scripts/nerfcapture2dataset.py`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import FormatError, SceneError
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import read_json
from vgbench_gen.scenes.posed.cameras import take_mapping
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, find_file, make_recording
from vgbench_gen.scenes.posed.poses import parse_pose
from vgbench_gen.scenes.posed.records import StoredRecording

_MAX_BYTES = 64_000_000


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `transforms.json`. Raises SceneError."""
    path = folder / "transforms.json"
    found = read_json(path, path, _MAX_BYTES)
    frames = found.get("frames") if isinstance(found, dict) else None
    if not isinstance(frames, list) or not frames:
        raise SceneError(path, "no list `frames`", "nerfstudio's or NeRFCapture's transforms.json")
    first = frames[0] if isinstance(frames[0], dict) else {}
    if "depth_path" in first:  # NeRFCapture: ARKit's intrinsics and world, and its own unit of depth
        scale = found.get("integer_depth_scale", 10.0 / 65535)
        if not isinstance(scale, int | float) or not 0 < scale < 1:
            raise SceneError(path, f"integer_depth_scale {scale!r:.40}", "meters per stored step of depth, below 1")
        changed: dict[str, Any] = {"depth_per_meter": 1 / scale, "up": (0.0, 1.0, 0.0), "depth_unknown": (0.0,)}
    else:
        changed = {"first_pixel": 0.5}
    layout = layout.model_copy(update={k: v for k, v in changed.items() if k not in layout.model_fields_set})
    issues: list[Issue] = []
    entries = []
    for number, frame in enumerate(frames):
        where = f"{path}: frame {number}"
        try:
            if not isinstance(frame, dict):
                raise SceneError(where, f"a {type(frame).__name__}", "an object")
            color = find_file(folder, frame.get("file_path"), ".png", ".jpg", ".jpeg")
            depth = find_file(folder, frame.get("depth_file_path", frame.get("depth_path")), ".png", ".depth.png")
            stored, intrinsics = (
                parse_pose(frame.get("transform_matrix"), where),
                take_mapping({**found, **frame}, where),
            )
            time = frame.get("timestamp")
            time_s = float(time) if isinstance(time, int | float) else None
            entries.append(ListedFrame(color.stem, time_s, color, depth, None, intrinsics, stored))
        except FormatError as problem:
            issues.append(Issue(str(number), "unusable_file", str(problem)))
    return make_recording(folder, layout, entries, len(frames), issues)
