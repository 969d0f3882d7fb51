"""The one array of a small HDF5 file, without trusting the file."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import DepthArray
from vgbench_gen.scenes.files import MAX_PICTURE_BYTES, MAX_PIXELS, read_bytes
from vgbench_gen.scenes.posed.extras import need
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth

_NAME = "dataset"  # as Hypersim calls it


def read_first_shape(paths: Iterable[Path], where: object) -> tuple[int, int]:
    """The (rows, columns) of the array of the first sound file among a few; no numbers are read.

    Raises:
        SceneError: none of them is sound, or h5py is not installed.
    """
    problem = FrameError(where, "no file", "one")
    for path in islice(paths, 20):
        try:
            with _open(path, FrameError) as array:
                if len(array.shape) == 2:
                    return int(array.shape[0]), int(array.shape[1])
                problem = FrameError(path, f"an array {array.shape}", "rows and columns")
        except FrameError as found:
            problem = found
    raise SceneError(where, f"no sound array ({problem})", "rows and columns of numbers")


def read_array(
    path: Path, shape: tuple[int | None, ...], error: type[FormatError] = FrameError
) -> npt.NDArray[np.float64]:
    """The numbers of a file, float64; `shape` has None where any length will do.

    Raises:
        FormatError: (of type `error`) no such file, no array of numbers named `dataset` in it, one of another shape or
            of more than 64 million numbers, or one whose numbers stand in other files or do not decode.
        SceneError: h5py is not installed.
    """
    with _open(path, error) as array:
        if len(array.shape) != len(shape) or any(b not in (None, a) for a, b in zip(array.shape, shape, strict=True)):
            wanted = " x ".join("n" if side is None else str(side) for side in shape)
            raise error(path, f"an array {array.shape}", wanted)
        return np.asarray(array[()], np.float64)


def read_depth(path: Path, shape: tuple[int, int], layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters of a file of this shape, 0 where unknown. Raises FrameError."""
    return convert_depth(read_array(path, shape), layout)


@contextmanager
def _open(path: Path, error: type[FormatError]) -> Iterator[Any]:
    h5py = need("h5py", "recordings")
    data = read_bytes(path, path, MAX_PICTURE_BYTES, error)
    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            link = file.get(_NAME, getlink=True)
            array = file[_NAME] if isinstance(link, h5py.HardLink) else None
            if not isinstance(array, h5py.Dataset) or array.is_virtual or array.external:
                raise error(path, f"no array `{_NAME}` of its own", "one", "Get the file again.")
            # A chunk is unpacked whole, and may be larger than the array.
            count = max(math.prod(array.shape), math.prod(array.chunks or (0,)))
            if array.dtype.kind not in "fiu" or array.size < 1 or count > MAX_PIXELS:
                raise error(path, f"{array.shape} of {array.dtype}", f"1 to {MAX_PIXELS} numbers")
            yield array
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as problem:
        raise error(path, f"no readable HDF5 ({str(problem)[:80]})", "a whole file", "Copy it again.") from problem
