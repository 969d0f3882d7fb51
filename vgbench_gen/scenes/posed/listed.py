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
    """A picture, or the video of which the frame is one."""
    depth: Path
    confidence: Path | None
    intrinsics: StatedIntrinsics
    stored: FloatArray
    """(4, 4), as the list states it."""
    hide: Callable[[ColorArray], Mask] | None = None
    """Gives the mask of a picture, 0 where it shows nothing."""
    read: Callable[[], ColorArray] | None = None
    """Gives the picture, where `color` is a video."""


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
    video_size: tuple[int, int] | None = None,
) -> StoredRecording:
    """The recording of a list. Pictures are taken to have the sizes of the first sound ones of the same camera size.

    video_size: width and height of the video, where color is one.
    """
    sizes: dict[tuple[int, int] | None, tuple[tuple[int, int], tuple[int, int]]] = {}
    lenses: dict[StatedIntrinsics, Lens] = {}
    records = []
    for entry in entries:
        stated, camera = entry.intrinsics, None
        try:
            if stated.size not in sizes:
                color = video_size or read_file_header(entry.color).size
                sizes[stated.size] = color, read_depth_size(entry.depth)
            color, depth = sizes[stated.size]
            if stated not in lenses:  # nearly always one of all frames
                lenses[stated] = stated.make_lens(color, layout.first_pixel, entry.color)
            if layout.depth_camera:
                numbers = take_numbers(layout.depth_camera, entry.depth)
                camera = numbers.make_lens(depth, layout.first_pixel, entry.depth).camera
            else:
                check_aspect(depth, color, entry.depth, FrameError)
            readers = (entry.read, None) if entry.read else make_color_readers(entry.color, color)
            read = make_depth_reader(entry.depth, depth, layout, entry.confidence)
            records.append(StoredFrame(
                entry.id, entry.time_s, lenses[stated], *readers, camera, depth, read, entry.stored, entry.hide
            ))  # fmt: skip
        except FormatError as problem:
            issues.append(Issue(entry.id, "unusable_file", str(problem)))
    files = {path for entry in entries for path in (entry.color, entry.depth, entry.confidence) if path is not None}
    digest: list[tuple[object, ...]] = [(os.path.relpath(path, folder), path.stat().st_size) for path in sorted(files)]
    return StoredRecording(layout, records, total, issues, digest, f"{len(records)} listed")
