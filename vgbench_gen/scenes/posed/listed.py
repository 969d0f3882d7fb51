"""Recordings of which a file lists every frame with its pictures, pose and intrinsics."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.errors import FormatError, FrameError
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.scenes._lazy_frame import Mask, check_aspect, make_color_readers
from vgbench_gen.scenes._lens import Lens
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, read_file_header
from vgbench_gen.scenes.posed.cameras import StatedIntrinsics, take_numbers
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import make_depth_reader, read_depth_size
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording


@dataclass(frozen=True, slots=True)
class ListedFrame:
    """What a list says of one frame."""

    id: str
    time_s: float | None
    color: Path
    depth: Path
    confidence: Path | None
    intrinsics: StatedIntrinsics
    stored: FloatArray
    """(4, 4), as the list states it."""
    hide: Callable[[ColorArray], Mask] | None = None
    """Gives the mask of a picture, 0 where it shows nothing."""


def find_file(folder: Path, name: object, *suffixes: str) -> Path:
    """The file of a name in a list, which may lack its suffix. Raises FrameError."""
    path = inside(folder, name, FrameError)
    found = next(
        (each for each in (path, *map(path.with_name, (path.name + end for end in suffixes))) if each.is_file()), None
    )
    if found is None:
        raise FrameError(path, "no such file", "the picture that the list names", "Copy it there.")
    return found


def make_recording(
    folder: Path,
    layout: FileLayout,
    entries: Sequence[ListedFrame],
    total: int,
    issues: list[Issue],
) -> StoredRecording:
    """The recording of a list. Pictures are taken to have the sizes of the first sound one of each kind."""
    sizes: dict[str, tuple[int, int]] = {}
    lenses: dict[StatedIntrinsics, Lens] = {}
    records = []
    for entry in entries:
        try:
            if not sizes:
                sizes |= {"color": read_file_header(entry.color).size, "depth": read_depth_size(entry.depth)}
            color, depth, camera = sizes["color"], sizes["depth"], None
            if entry.intrinsics not in lenses:  # nearly always one of all frames
                lenses[entry.intrinsics] = entry.intrinsics.make_lens(color, layout.first_pixel, entry.color)
            if layout.depth_camera:
                numbers = take_numbers(layout.depth_camera, entry.depth)
                camera = numbers.make_lens(depth, layout.first_pixel, entry.depth).camera
            else:
                check_aspect(depth, color, entry.depth, FrameError)
            readers = make_color_readers(entry.color, color)
            reader = make_depth_reader(entry.depth, depth, layout, entry.confidence)
            record = StoredFrame(
                entry.id,
                entry.time_s,
                lenses[entry.intrinsics],
                *readers,
                camera,
                depth,
                reader,
                entry.stored,
                entry.hide,
            )
            records.append(record)
        except FormatError as problem:
            issues.append(Issue(entry.id, "unusable_file", str(problem)))
    files = {path for entry in entries for path in (entry.color, entry.depth, entry.confidence) if path is not None}
    digest: list[tuple[object, ...]] = [(os.path.relpath(path, folder), path.stat().st_size) for path in sorted(files)]
    return StoredRecording(layout, records, total, issues, digest, f"{len(records)} listed")
