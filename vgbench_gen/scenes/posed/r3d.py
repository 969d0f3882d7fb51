"""Record3D's own archive `.r3d`: a zip of `metadata` and JPEG, depth and confidence by the number of a frame.

Source: `marek-simonik/record3d`, issues 7, 30 and 43. Depth is LZFSE of float32 meters, row by row, and older archives
do not say its size; confidence is LZFSE of bytes 0, 1, 2.
"""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import MAX_PIXELS, read_json, read_picture_header
from vgbench_gen.scenes.posed.archive import Archive, measure_lzfse, unpack_lzfse
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.record3d_list import MAX_JSON_BYTES, Listing, note
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import index_by_number

_PLACE = "rgbd/"
_TRIES = 20


def read_recording(path: Path, layout: FileLayout) -> StoredRecording:
    """The recording of an archive. Raises SceneError."""
    archive = Archive(path)
    with close_if_raised(archive.close):
        where = f"{path}:metadata"
        data = archive.read("metadata", MAX_JSON_BYTES, SceneError)
        listing = Listing(read_json(data, where), where)
        names = [name.removeprefix(_PLACE) for name in archive.sizes if name.startswith(_PLACE)]
        colors, depths, sure = (index_by_number(names, suffix) for suffix in (".jpg", ".depth", ".conf"))
        issues: list[Issue] = []
        numbers = listing.pair(colors, depths, path, issues)
        color, depth = _find_sizes(archive, [(colors[number], depths[number]) for number in numbers])
        records = []
        for number in numbers:
            try:
                time_s, intrinsics, stored = listing.read(number)
                lens = intrinsics.make_lens(color, layout.first_pixel, where)
                readers = archive.make_color_readers(_PLACE + colors[number], color)
                parts = _PLACE + depths[number], _PLACE + sure[number] if number in sure else ""
                read = partial(_read_depth, archive, *parts, depth, layout)
                records.append(StoredFrame(str(number), time_s, lens, *readers, None, depth, read, stored))
            except FormatError as problem:
                issues.append(note(number, problem))
        digest: list[tuple[object, ...]] = list(archive.sizes.items())
        pairing, total = f"{len(records)} of {len(listing.poses)} poses by number", len(colors.keys() | depths.keys())
        layout = listing.find_up(layout)
        return StoredRecording(layout, records, total, issues, digest, pairing, "xyzw", close=archive.close)


def _find_sizes(archive: Archive, names: list[tuple[str, str]]) -> tuple[tuple[int, int], tuple[int, int]]:
    """Width and height of color and of depth of the first sound frame among a few. Raises SceneError."""
    problems = []
    for color_name, depth_name in names[:_TRIES]:
        try:
            width, height = read_picture_header(archive.read(_PLACE + color_name), color_name).size
            count = measure_lzfse(archive.read(_PLACE + depth_name), depth_name) // 4
            columns = round(math.sqrt(count * width / height))
            rows = count // max(columns, 1)
            if columns * rows == count and 0 < count <= MAX_PIXELS:
                return (width, height), (columns, rows)
            raise FrameError(f"{archive.path}:{depth_name}", f"{count} values", f"the shape of {width}x{height}")
        except FrameError as problem:
            problems.append(problem)
    raise SceneError(archive.path, f"no sound frame ({problems[0]})", "one", "Export the recording again.")


def _read_depth(archive: Archive, name: str, sure: str, size: tuple[int, int], layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters, 0 where unknown or unsure. sure: the member of confidence, or "". Raises FrameError."""
    depth_m = convert_depth(unpack_lzfse(archive.read(name), "<f4", size, f"{archive.path}:{name}"), layout)
    if sure:
        depth_m[unpack_lzfse(archive.read(sure), "u1", size, f"{archive.path}:{sure}") < layout.confidence_min] = 0
    return depth_m
