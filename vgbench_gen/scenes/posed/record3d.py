"""Record3D's export as EXR and JPEG: pictures in `rgb` and `depth` by the number of a frame, and a list of poses.

Source: `marek-simonik/record3d`, issues 43, 67 and 108.
"""

from __future__ import annotations

from pathlib import Path

from vgbench_gen.core.errors import FormatError
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import read_json
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.listed import ListedFrame, make_recording
from vgbench_gen.scenes.posed.record3d_list import MAX_JSON_BYTES, Listing, note
from vgbench_gen.scenes.posed.records import StoredRecording
from vgbench_gen.scenes.promised import index_by_number, list_files


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder with `metadata.json`, `rgb` and `depth`. Raises SceneError."""
    issues: list[Issue] = []
    path = folder / "metadata.json"
    listing = Listing(read_json(path, path, MAX_JSON_BYTES), path)
    colors = index_by_number(list_files(folder, folder / "rgb", issues), ".jpg", ".jpeg", ".png")
    depths = index_by_number(list_files(folder, folder / "depth", issues), ".exr")
    entries = []
    for number in listing.pair(colors, depths, folder, issues):
        try:
            time_s, intrinsics, stored = listing.read(number)
            color, depth = folder / "rgb" / colors[number], folder / "depth" / depths[number]
            entries.append(ListedFrame(str(number), time_s, color, depth, None, intrinsics, stored))
        except FormatError as problem:
            issues.append(note(number, problem))
    total = len(colors.keys() | depths.keys())
    recording = make_recording(folder, listing.find_up(layout), entries, total, issues)
    recording.pairing, recording.order = f"{len(entries)} of {len(listing.poses)} poses by number", "xyzw"
    return recording
