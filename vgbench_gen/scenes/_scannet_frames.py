"""ScanNet frames from any of the lay-outs people have on disk: `.sens`, three kinds of exports, two derived sets.

Every lay-out becomes a `Recording`: frame numbers, raw poses, cameras for the pictures as they are, lazy pixels.
Frames are paired by their number, never by position.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes._cameras import (
    USUAL_COLOR,
    USUAL_DEPTH,
    check_pair,
    fit_camera,
    make_depth_camera,
    parse_keys,
    read_stated_size,
    warn_extrinsic,
)
from vgbench_gen.scenes._sens import MAX_DEPTH_SHIFT, MAX_FRAMES, SensFile
from vgbench_gen.scenes.base import Issue
from vgbench_gen.scenes.files import (
    decode_depth_u16,
    decode_image_rgb,
    inside,
    keep_plain,
    parse_matrix,
    read_first_size,
    read_picture,
    read_text,
)
from vgbench_gen.scenes.promised import index_by_number, list_files

_SUBFOLDERS = ("", "frames", "exported", "sens")
_CPP_FRAME = re.compile(r"frame-(\d{1,9})\.(color|depth|pose)\.(jpg|jpeg|png|pgm|txt)")
# Parts of a frame: their name in folders and files, and how their files may end.
_PARTS = {
    "colour": ("color", ".jpg", ".jpeg", ".png"),
    "depth": ("depth", ".png", ".pgm"),
    "pose": ("pose", ".txt"),
}
# Matrices of the cameras: their key in `_info.txt`, and the files that hold them in the other lay-outs.
_MATRICES = {
    "colour": (
        "m_calibrationColorIntrinsic",
        *("intrinsic/intrinsic_color.txt", "intrinsics_color.txt", "intrinsic_color.txt", "intrinsic.txt"),
    ),
    "depth": (
        "m_calibrationDepthIntrinsic",
        *("intrinsic/intrinsic_depth.txt", "intrinsics_depth.txt", "intrinsic_depth.txt", "depth_intrinsic.txt"),
    ),
    "colour extrinsic": ("m_calibrationColorExtrinsic", "intrinsic/extrinsic_color.txt"),
    "depth extrinsic": ("m_calibrationDepthExtrinsic", "intrinsic/extrinsic_depth.txt"),
}


@dataclass(slots=True)
class Recording:
    """The frames of one scan before their poses are checked."""

    variant: str
    source: SensFile | ExportedFrames
    numbers: list[int]
    """The numbers of the frames that have colour, depth and a pose."""
    poses: FloatArray
    """Their poses as in the files, (F, 4, 4) float64 in the order of `numbers`."""
    times_s: list[float | None]
    """Their times in seconds, in the same order; None where the recorder gives none."""
    color_camera: Camera
    depth_camera: Camera
    total_frames: int
    issues: list[Issue]
    digest: list[tuple[object, ...]]


def open_sens(path: Path) -> Recording:
    """Recording in a `.sens` file. The caller closes `source`. Raises SceneError like `SensFile`."""
    file = SensFile(path)
    with close_if_raised(file.close):
        header, issues = file.header, list[Issue]()
        if file.shortfall:
            issues.append(Issue("", "truncated", file.shortfall))
        numbers = [n for n in range(len(file)) if not file.is_empty(n)]
        empty = sorted(set(range(len(file))) - set(numbers))
        issues += [Issue(str(n), "no_pixels", "recorded without colour or depth") for n in empty]
        for number in numbers[:5]:  # a torn first picture must not cost the scene
            with suppress(FrameError):
                file.color_size = file.picture_size(number)
                break
        color = fit_camera("colour", path, header.color_K, header.color_size, file.color_size, issues)
        depth = fit_camera("depth", path, header.depth_K, header.depth_size, header.depth_size, issues)
        check_pair(color, depth, issues)
        warn_extrinsic("colour", header.color_extrinsic, issues)
        warn_extrinsic("depth", header.depth_extrinsic, issues)
        times = [t / 1e6 if 0 < t < 2**53 else None for t in file.times_us.tolist()]
        digest: list[tuple[object, ...]] = [(path.name, file.size_bytes, header.raw)]
        return Recording(
            "sens",
            file,
            numbers,
            file.poses[numbers],
            [times[n] for n in numbers],
            color,
            depth,
            header.frame_count,
            issues,
            digest,
        )


class ExportedFrames:
    """Pixels of an exported scan, read and decoded on demand; the first sound pictures say the sizes of all."""

    def __init__(self, color: Mapping[int, Path], depth: Mapping[int, Path], where: Path, depth_shift: float) -> None:
        self._color, self._depth, self._shift = color, depth, depth_shift
        self.color_size, self.depth_size = (read_first_size(files.values(), where) for files in (color, depth))

    def close(self) -> None:
        """Nothing is held open."""

    def encoded_color(self, index: int) -> bytes | None:
        """The file's bytes if every viewer shows them as `color` does, else None."""
        path = self._color[index]
        return keep_plain(read_picture(path), path, self.color_size)

    def color(self, index: int) -> ColorArray:
        """(H, W, 3) uint8 RGB. Raises FrameError if damaged or of another size."""
        path = self._color[index]
        return decode_image_rgb(read_picture(path), path, self.color_size)

    def depth_m(self, index: int) -> DepthArray:
        """(h, w) float32 meters, 0 = unknown. Raises FrameError if damaged or of another size."""
        path = self._depth[index]
        units = decode_depth_u16(read_picture(path), path, self.depth_size)
        return np.divide(units, np.float32(self._shift), dtype=np.float32)


def find_exported_variant(folder: Path) -> tuple[str, Path] | None:
    """Name of the lay-out exported frames have below a scan folder, and the folder they lie in; None if there is none.

    Names: "exported" (official Python exporter), "frames_25k", "exported_cpp", "posed_images".
    """
    for base in (folder / name for name in _SUBFOLDERS):
        if (base / "color").is_dir() and (base / "pose").is_dir():
            return ("frames_25k" if (base / "intrinsics_color.txt").is_file() else "exported"), base
        if (base / "_info.txt").is_file():
            return "exported_cpp", base
        if (base / "intrinsic.txt").is_file():
            return "posed_images", base
    return None


def open_exported(root: Path, variant: str, base: Path, keys: dict[str, str]) -> Recording:
    """Recording in exported files.

    Args:
        root: scan folder; nothing outside it is read.
        variant, base: from `find_exported_variant`.
        keys: of `<scanId>.txt`, for the sizes the intrinsics were made for; may be empty.

    Raises:
        SceneError: no usable frame, no or senseless intrinsics, or intrinsics for another resolution.
    """
    issues: list[Issue] = []
    info, prefix, path = dict[str, str](), "", base / "_info.txt"
    if variant == "exported_cpp":
        info, prefix = parse_keys(read_text(inside(root, path), path)), "m_"
        keys = info
    matrices = _read_matrices(root, base, info)
    if "colour" not in matrices:
        raise SceneError(base, "no colour intrinsics", " or ".join(_MATRICES["colour"]))
    shift = parse_matrix(info.get("m_depthShift", "1000"), f"{path}, m_depthShift", ((),), SceneError).item()
    if not 1 <= shift <= MAX_DEPTH_SHIFT:
        raise SceneError(path, f"m_depthShift = {shift:g}", f"1 to {MAX_DEPTH_SHIFT:g} (1000 for millimeters)")
    files, digest = _index_files(root, variant, base, issues)
    everything = sorted(set().union(*files.values()))
    if len(everything) > MAX_FRAMES:
        raise SceneError(base, f"{len(everything)} frames", f"at most {MAX_FRAMES}")
    poses: dict[int, FloatArray] = {}
    for number in everything:
        if missing := [what for what, found in files.items() if number not in found]:
            issues.append(Issue(str(number), "incomplete", f"frame {number} has no {' and no '.join(missing)}"))
            continue
        try:
            where = files["pose"][number]
            pose = parse_matrix(read_text(where, where, FrameError), where, ((4, 4), (3, 4)))
            poses[number] = np.vstack([pose[:3], pose[3:] if len(pose) > 3 else [[0.0, 0.0, 0.0, 1.0]]])
        except FormatError as problem:
            issues.append(Issue(str(number), "bad_pose", str(problem)))
    if not poses:
        why = f" ({issues[0].detail})" if issues else ""
        raise SceneError(base, f"no frame with colour, depth and pose among {len(everything)}{why}", "at least one")
    color_files, depth_files = ({number: files[what][number] for number in poses} for what in ("colour", "depth"))
    frames = ExportedFrames(color_files, depth_files, base, shift)
    for what in ("colour", "depth"):
        if f"{what} extrinsic" in matrices:
            warn_extrinsic(what, matrices[f"{what} extrinsic"][1], issues)
    stated = read_stated_size(keys, f"{prefix}colorWidth", f"{prefix}colorHeight") or USUAL_COLOR
    color = fit_camera("colour", *matrices["colour"], stated, frames.color_size, issues)
    if "depth" in matrices:
        stated = read_stated_size(keys, f"{prefix}depthWidth", f"{prefix}depthHeight") or USUAL_DEPTH
        depth = fit_camera("depth", *matrices["depth"], stated, frames.depth_size, issues)
    else:
        detail = f"{base}: no depth intrinsics; derived from those of colour"
        issues.append(Issue("", "depth_intrinsics_derived", detail))
        depth = make_depth_camera(color, frames.depth_size)
    check_pair(color, depth, issues)
    numbers, stacked = list(poses), np.array(list(poses.values()))
    digest.append(("cameras", color.K.tolist(), depth.K.tolist(), stacked.tobytes()))
    times: list[float | None] = [None] * len(numbers)
    return Recording(variant, frames, numbers, stacked, times, color, depth, len(everything), issues, digest)


def _read_matrices(root: Path, base: Path, info: Mapping[str, str]) -> dict[str, tuple[object, FloatArray]]:
    """Where each of `_MATRICES` stands, and the matrix, (3, 3) or (4, 4); from `info` where that is not empty."""
    found: dict[str, tuple[object, FloatArray]] = {}
    for what, (key, *names) in _MATRICES.items():
        path = next((base / name for name in names if (base / name).is_file()), None)
        where = f"{base / '_info.txt'}, {key}" if info else path
        text = info.get(key) if info else path and read_text(inside(root, path), path)
        if text is not None:
            found[what] = where, parse_matrix(text, where, ((4, 4), (3, 3)), SceneError)
    return found


def _index_files(
    root: Path, variant: str, base: Path, issues: list[Issue]
) -> tuple[dict[str, dict[int, Path]], list[tuple[object, ...]]]:
    """Files by frame number for each of `_PARTS`, names and sizes of all files; links that leave `root` drop out."""
    apart = variant in ("exported", "frames_25k")
    folders = {name: base / name if apart else base for name, *_ in _PARTS.values()}
    listed = {path: list_files(root, path, issues, "no frame is complete") for path in dict.fromkeys(folders.values())}
    found: dict[str, dict[int, Path]] = {}
    for what, (name, *suffixes) in _PARTS.items():
        names = {file: file for file in listed[folders[name]]}
        if variant == "exported_cpp":
            stems = ((_CPP_FRAME.fullmatch(file), file) for file in names)
            names = {f"{stem[1]}.{stem[3]}": file for stem, file in stems if stem and stem[2] == name}
        elif not apart and what == "colour":
            suffixes.remove(".png")  # which is depth there
        numbers = index_by_number(names, *suffixes)
        found[what] = {number: folders[name] / names[key] for number, key in numbers.items()}
    return found, [(f"{path.name}/{name}", size) for path, sizes in listed.items() for name, size in sizes.items()]
