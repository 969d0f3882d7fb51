"""Binary COLMAP models (`colmap/colmap`, `src/colmap/scene/reconstruction_io_binary.cc`), little-endian.

`cameras.bin`: count u64; each camera id u32, model i32, width u64, height u64, parameters f64.
`images.bin`: count u64; each image id u32, qw qx qy qz tx ty tz f64 (`camera_from_world`), camera id u32, name with a
zero at its end, count of observations u64, each x f64, y f64, point u64; the last make up nearly all of it and are
stepped over.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from vgbench_gen.core.errors import PoseError, SceneError
from vgbench_gen.scenes._lens import MODELS, make_lens
from vgbench_gen.scenes._scannetpp_poses import PoseSource, check_image
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import open_regular

_MODELS = (  # by number
    *("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL", "OPENCV", "OPENCV_FISHEYE", "FULL_OPENCV", "FOV"),
    *("SIMPLE_RADIAL_FISHEYE", "RADIAL_FISHEYE", "THIN_PRISM_FISHEYE"),
)
_MAX_CAMERAS, _MAX_IMAGES, _MAX_NAME = 100_000, 1_000_000, 4096
_OBSERVATION_BYTES = 24


def read_binary_model(folder: Path) -> PoseSource:
    """Cameras and poses of `folder/cameras.bin` and `folder/images.bin`, by the names of the images.

    A bad image costs that image and is listed in `problems`, a file cut off the images behind its end.

    Raises:
        SceneError: a file is missing, or `cameras.bin` cannot be understood.
    """
    model = PoseSource()
    path = folder / "cameras.bin"
    with open_regular(path, path) as file:
        for _ in range(_read_count(file, path, _MAX_CAMERAS)):
            camera_id, number, width, height = _take(file, path, "<IiQQ")
            name = _MODELS[number] if 0 <= number < len(_MODELS) else str(number)
            _, parameters = MODELS.get(name, ("", ""))
            numbers = _take(file, path, f"<{len(parameters.split())}d")
            model.lenses[camera_id] = make_lens(name, width, height, numbers, path)
    path = folder / "images.bin"
    with open_regular(path, path) as file:
        total = _read_count(file, path, _MAX_IMAGES)
        try:
            for name, numbers, camera_id in _read_images(file, path, total):
                try:
                    if name in model.poses:
                        raise ValueError("the name stands more than once; the first counts")
                    model.poses[name] = check_image(np.array(numbers), camera_id, model.lenses, path)
                except (ValueError, PoseError) as problem:
                    model.problems.append(Issue(name, "pose_invalid", f"{path}: {name}: {str(problem)[:200]}"))
        except SceneError as problem:
            model.problems.append(Issue("", "colmap_count", str(problem)))
    return model


def _read_images(file: BinaryIO, path: Path, total: int) -> Iterator[tuple[str, tuple[float, ...], int]]:
    for _ in range(total):
        _, *numbers, camera_id = _take(file, path, "<I7dI")
        name = bytearray()
        while (letter := file.read(1)) not in (b"\0", b"") and len(name) < _MAX_NAME:
            name += letter
        if letter != b"\0":
            raise SceneError(path, f"a name without an end ({bytes(name[:20])!r})", f"at most {_MAX_NAME} bytes")
        yield name.decode("utf-8", "replace"), tuple(numbers), camera_id
        (count,) = _take(file, path, "<Q")
        if count * _OBSERVATION_BYTES > os.fstat(file.fileno()).st_size - file.tell():
            raise SceneError(path, f"{count} observations of {name[:80]!r}", "what the file has room for")
        file.seek(count * _OBSERVATION_BYTES, os.SEEK_CUR)


def _read_count(file: BinaryIO, path: Path, most: int) -> int:
    (count,) = _take(file, path, "<Q")
    if count > most:
        raise SceneError(path, f"a count of {count}", f"at most {most}", "This is not such a file; get the original.")
    return int(count)


def _take(file: BinaryIO, path: Path, form: str) -> tuple[Any, ...]:
    data = file.read(struct.calcsize(form))
    if len(data) < struct.calcsize(form):
        raise SceneError(path, f"an end after {file.tell()} bytes", "a whole file", "Copy it again.")
    return struct.unpack(form, data)
