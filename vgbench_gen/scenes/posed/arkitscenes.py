"""ARKitScenes, 3dod and raw: the files are those of a table; the boxes stand in a file beside them.

Source: `apple/ARKitScenes`, DATA.md, threedod/README.md, tenFpsDataLoader.py and box_utils.py there. A row of the
trajectory holds seconds, axis times angle and translation of `camera_from_world`, ten times a second.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vgbench_gen.core.errors import FrameError, SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.scenes.base import Issue, SceneObject
from vgbench_gen.scenes.files import inside, parse_matrix, read_json
from vgbench_gen.scenes.posed.boxes import MAX_OBJECTS, collect_objects, make_box
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.records import StoredRecording
from vgbench_gen.scenes.posed.table import read_recording as read_table
from vgbench_gen.scenes.promised import try_to_read

_MAX_BYTES = 32_000_000


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording in a folder `<id>_frames`, or of raw data in `<id>`. Raises SceneError."""
    recording = read_table(folder, layout)
    name = f"{folder.resolve().name.removesuffix('_frames')}_3dod_annotation.json"
    path = next((each for each in (folder.parent / name, folder / name) if each.is_file()), None)
    if path is not None:
        up = np.array(layout.up or (0.0, 0.0, 1.0))
        read = partial(read_objects, path, up, recording.issues)
        recording.objects = try_to_read(recording.issues, read, "no boxes") or ()
    return recording


def read_objects(path: Path, up: FloatArray, issues: list[Issue]) -> list[SceneObject]:
    """Objects of an annotation, with boxes in the world; those without a usable box are noted.

    Raises:
        SceneError: a link elsewhere, or no list of objects.
    """
    stated = read_json(inside(path.parent, path), path, _MAX_BYTES)
    entries = stated.get("data") if isinstance(stated, dict) else None
    if not isinstance(entries, list) or len(entries) > MAX_OBJECTS:
        raise SceneError(path, "no list `data`", f"at most {MAX_OBJECTS} objects", "Get the annotation again.")
    named = ((_find_id(entry, place), entry) for place, entry in enumerate(entries))
    return collect_objects(((name, partial(_make_object, name, entry, up)) for name, entry in named), issues)


def _find_id(entry: Any, place: int) -> str:
    uid = entry.get("uid") if isinstance(entry, dict) else None
    return uid if isinstance(uid, str) and uid else str(place)


def _make_object(name: str, entry: Any, up: FloatArray) -> SceneObject:
    segments = entry.get("segments") if isinstance(entry, dict) else None
    box = segments.get("obbAligned") if isinstance(segments, dict) else None
    label = entry.get("label") if isinstance(entry, dict) else None
    if not isinstance(box, dict) or not isinstance(label, str):
        raise FrameError("the entry", "no label or no segments.obbAligned", "both", "The object is left out.")
    center, size = (parse_matrix(box.get(key), key, [(3,)]) for key in ("centroid", "axesLengths"))
    axes = parse_matrix(box.get("normalizedAxes"), "normalizedAxes", [(3, 3)])  # its rows are the axes
    return SceneObject(name, label.strip().lower(), make_box(center, size, axes.T, up))
