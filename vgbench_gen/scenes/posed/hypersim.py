"""Hypersim: one camera trajectory (`_detail/cam_XX`) of a rendered scene.

Source: `apple/ml-hypersim`, README.md and `contrib/mikeroberts3000`. Positions are in units of the scene, depth is in
meters along the ray. Most scenes have another camera than the plain one of 60 degrees, often with a tilted image plane.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import SceneError
from vgbench_gen.core.types import FloatArray
from vgbench_gen.geometry.poses import make_pose
from vgbench_gen.scenes._lazy_frame import check_aspect, make_color_readers
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import inside, parse_matrix, read_first_size
from vgbench_gen.scenes.posed.cameras import split_uv_matrix
from vgbench_gen.scenes.posed.hdf5 import read_array, read_depth, read_first_shape
from vgbench_gen.scenes.posed.layout import FileLayout
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
    size, (height, width) = read_first_size(colors.values(), root), read_first_shape(depths.values(), root)
    check_aspect((width, height), size, root)
    M, unit = _read_scene(root, size, issues)
    intrinsics, rotation = split_uv_matrix(M, size, root)
    lens = intrinsics.make_lens(size, 0.0, root)
    positions = read_array(inside(root, folder / "camera_keyframe_positions.hdf5"), (None, 3), SceneError)
    shape = (len(positions), 3, 3)
    rotations = read_array(inside(root, folder / "camera_keyframe_orientations.hdf5"), shape, SceneError)
    stored = make_pose(rotations @ rotation, positions * unit)
    records = []
    for name, path in colors.items():
        number = name.removeprefix("frame.")
        if not number.isdecimal() or int(number) >= len(stored) or name not in depths:
            issues.append(Issue(name, "incomplete", f"{path}: no depth, or no pose, of this number"))
            continue
        read, readers = partial(read_depth, depths[name], (height, width), layout), make_color_readers(path, size)
        records.append(StoredFrame(name, None, lens, *readers, None, (width, height), read, stored[int(number)]))
    return StoredRecording(layout, records, len(colors), issues, digest, f"{len(stored)} poses by number")


def _read_scene(root: Path, size: tuple[int, int], issues: list[Issue]) -> tuple[FloatArray, float]:
    """The matrix from pixels to rays (3, 3), and meters per unit. Raises SceneError."""
    about = root / "_detail" / "metadata_scene.csv"
    stated = read_columns(about, ("parameter_name", "parameter_value")) if about.is_file() else []
    unit = next((value for name, value in stated if name == "meters_per_asset_unit"), "")
    path = next((path for path in (above / _CAMERAS for above in (root, *root.parents[:2])) if path.is_file()), None)
    rows = read_columns(path, ("scene_name", _UNIT, *_M)) if path else []
    plain = ("", "", f"{_SLOPE} 0 0 0 {_SLOPE * size[1] / size[0]} 0 0 0 -1")
    row = next((row for row in rows if row[0] == root.name), plain)
    if row is plain:
        issues.append(Issue("", "camera_assumed", f"{root}: no row in {_CAMERAS}; the plain camera of 60 degrees"))
    meters = float(parse_matrix(unit or row[1], about, [(1,)], SceneError)[0])
    if not 0 < meters < 1e3:
        raise SceneError(about, f"{meters:g} meters per unit", "a length above 0")
    return parse_matrix(" ".join(row[2:]), about, [(3, 3)], SceneError), meters
