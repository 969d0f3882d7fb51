"""Hypersim: one camera trajectory (`_detail/cam_XX`) of a rendered scene.

Source: `apple/ml-hypersim`, README.md and `contrib/mikeroberts3000`. Positions are in units of the scene, depth is in
meters along the ray. Most scenes have another camera than the plain one of 60 degrees, often with a tilted image plane.
"""

from __future__ import annotations

import io
import math
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.types import DepthArray, FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes import files
from vgbench_gen.scenes._lazy_frame import check_aspect, make_color_readers
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.posed.cameras import split_uv_matrix
from vgbench_gen.scenes.posed.extras import need
from vgbench_gen.scenes.posed.layout import FileLayout
from vgbench_gen.scenes.posed.pixels import convert_depth
from vgbench_gen.scenes.posed.poses import read_columns
from vgbench_gen.scenes.posed.records import StoredFrame, StoredRecording
from vgbench_gen.scenes.promised import list_files

_CAMERAS, _UNIT = "metadata_camera_parameters.csv", "settings_units_info_meters_scale"
_M = tuple(f"M_cam_from_uv_{row}{column}" for row in range(3) for column in range(3))
_SLOPE = float(np.tan(np.radians(30)))


def read_recording(folder: Path, layout: FileLayout) -> StoredRecording:
    """The recording of a folder `_detail/cam_XX`. Raises SceneError."""
    issues: list[Issue] = []
    root, found = folder.resolve().parent.parent, []
    digest: list[tuple[object, ...]] = []
    for kind, end in (("final_preview", ".tonemap.jpg"), ("geometry_hdf5", ".depth_meters.hdf5")):
        place = root / "images" / f"scene_{folder.resolve().name}_{kind}"
        sizes = {name: size for name, size in list_files(root, place, issues).items() if name.endswith(end)}
        if not sizes:
            raise SceneError(place, f"no frame.*{end}", "one a frame", f"Download the folder *_{kind} of the scene.")
        found.append({name.removesuffix(end): place / name for name in sizes})
        digest += sizes.items()
    colors, depths = found
    size = files.read_first_size(colors.values(), root)
    shape = files.read_first(
        lambda path: read_array(path, (None, None)).shape, depths.values(), root, "arrays of depth"
    )
    check_aspect(shape[::-1], size, root)
    M, unit = _read_scene(root, size, issues)
    intrinsics, rotation = split_uv_matrix(M, size, root)
    lens = intrinsics.make_lens(size, 0.0, root)
    positions = read_array(files.inside(root, folder / "camera_keyframe_positions.hdf5"), (None, 3), SceneError)
    path = files.inside(root, folder / "camera_keyframe_orientations.hdf5")
    rotations = read_array(path, (len(positions), 3, 3), SceneError)
    stored = make_pose(rotations @ rotation, positions * unit)
    records = []
    for name, path in colors.items():
        number = name.removeprefix("frame.")
        if not number.isdecimal() or int(number) >= len(stored) or name not in depths:
            issues.append(Issue(name, "incomplete", f"{path}: no depth, or no pose, of this number"))
            continue
        read, readers = partial(_read_depth, depths[name], shape, layout), make_color_readers(path, size)
        records.append(StoredFrame(name, None, lens, *readers, None, shape[::-1], read, stored[int(number)]))
    return StoredRecording(layout, records, len(colors), issues, digest, f"{len(stored)} poses by number")


def _read_scene(root: Path, size: tuple[int, int], issues: list[Issue]) -> tuple[FloatArray, float]:
    """The matrix from pixels to rays (3, 3), and meters per unit. Raises SceneError."""
    about = root / "_detail" / "metadata_scene.csv"
    stated = read_columns(about, ("parameter_name", "parameter_value")) if about.is_file() else []
    unit = next((value for name, value in stated if name == "meters_per_asset_unit"), "")
    path = next((path for path in (above / _CAMERAS for above in (root, *root.parents[:2])) if path.is_file()), None)
    rows = read_columns(path, ("scene_name", _UNIT, *_M)) if path else []
    row = next((row for row in rows if row[0] == root.name), ())
    if not row:
        issues.append(Issue("", "camera_assumed", f"{root}: no row in {_CAMERAS}; the plain camera of 60 degrees"))
        row = ("", "", f"{_SLOPE} 0 0 0 {_SLOPE * size[1] / size[0]} 0 0 0 -1")
    meters = float(files.parse_matrix(unit or row[1], about, [(1,)], SceneError)[0])
    if not 0 < meters < 1e3:
        raise SceneError(about, f"{meters:g} meters per unit", "a length above 0")
    return files.parse_matrix(" ".join(row[2:]), about, [(3, 3)], SceneError), meters


def read_array(
    path: Path, shape: tuple[int | None, ...], error: type[FormatError] = FrameError
) -> npt.NDArray[np.float64]:
    """The numbers of an HDF5 file, float64; `shape` has None where any length will do.

    Raises:
        FormatError: (of type `error`) no such file, no array of numbers named `dataset` in it, one of another shape or
            of more than 64 million numbers, or one whose numbers stand in other files or do not decode.
        SceneError: h5py is not installed.
    """
    h5py = need("h5py", "recordings")
    data = files.read_bytes(path, path, files.MAX_PICTURE_BYTES, error)
    try:
        with h5py.File(io.BytesIO(data), "r") as file:
            link = file.get("dataset", getlink=True)
            array = file["dataset"] if isinstance(link, h5py.HardLink) else None
            if not isinstance(array, h5py.Dataset) or array.is_virtual or array.external:
                raise error(path, "no array `dataset` of its own", "one", "Get the file again.")
            # A chunk is unpacked whole, and may be larger than the array.
            count = max(math.prod(array.shape), math.prod(array.chunks or (0,)))
            if array.dtype.kind not in "fiu" or array.size < 1 or count > files.MAX_PIXELS:
                raise error(path, f"{array.shape} of {array.dtype}", f"1 to {files.MAX_PIXELS} numbers")
            pairs = zip(array.shape, shape, strict=False)
            if len(array.shape) != len(shape) or any(wanted not in (None, side) for side, wanted in pairs):
                expected = " x ".join("n" if side is None else str(side) for side in shape)
                raise error(path, f"an array {array.shape}", expected)
            return np.asarray(array[()], np.float64)
    except (OSError, RuntimeError, KeyError, ValueError, TypeError) as problem:
        raise error(path, f"no readable HDF5 ({str(problem)[:80]})", "a whole file", "Copy it again.") from problem


def _read_depth(path: Path, shape: tuple[int, int], layout: FileLayout) -> DepthArray:
    """(h, w) float32 meters of a file of this shape, 0 where unknown. Raises FrameError."""
    return convert_depth(read_array(path, shape), layout)
