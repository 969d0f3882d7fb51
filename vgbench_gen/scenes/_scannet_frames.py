"""ScanNet frames from any of the lay-outs people have on disk: `.sens`, three kinds of exports, two derived sets.

Every lay-out becomes a `Recording`: frame numbers, raw poses, cameras for the pictures as they are, lazy pixels.
Frames are paired by their number, never by position.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.paths import close_if_raised
from vgbench_gen.core.types import Camera, ColorArray, DepthArray, FloatArray
from vgbench_gen.scenes._scannet_cameras import (
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
    MAX_PIXELS,
    decode_depth_u16,
    decode_image_rgb,
    inside,
    keep_plain,
    parse_matrix,
    read_file_header,
    read_picture,
    read_picture_header,
    read_text,
)
from vgbench_gen.scenes.promised import list_files

_SUBFOLDERS = ("", "frames", "exported", "sens")
_CPP_FRAME = re.compile(r"frame-(\d{1,9})\.(color|depth|pose)\.(jpg|jpeg|png|pgm|txt)")
_NUMBERED = re.compile(r"(\d{1,9})\.(jpg|jpeg|png|pgm|txt)", re.IGNORECASE)


class PixelSource(Protocol):
    """Pixels by frame number."""

    def color(self, index: int) -> ColorArray: ...
    def depth_m(self, index: int) -> DepthArray: ...
    def encoded_color(self, index: int) -> bytes | None: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class Recording:
    """The frames of one scan before their poses are checked."""

    variant: str
    """The lay-out the frames lie in: "sens", "exported", "frames_25k", "exported_cpp" or "posed_images"."""
    source: PixelSource
    """Where the pixels are read from; the caller closes it."""
    numbers: list[int]
    """The numbers of the frames that have colour, depth and a pose."""
    poses: FloatArray
    """Their poses as in the files, (F, 4, 4) float64 in the order of `numbers`."""
    times_s: list[float | None]
    """Their times in seconds, in the same order; None where the recorder gives none."""
    color_camera: Camera
    depth_camera: Camera
    total_frames: int
    """The number of frames in the files, with those that miss a part."""
    issues: list[Issue]
    digest: list[tuple[object, ...]]
    """Names, sizes and contents of the files, as `compute_source_digest` takes them."""


def _read_first_size(numbers: list[int], size_of: Callable[[int], tuple[int, int]]) -> tuple[int, int] | None:
    """Size of the first sound picture among a few; a torn first frame must not cost the scene."""
    for number in numbers[:5]:
        try:
            return size_of(number)
        except FrameError:
            continue
    return None


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
        file.color_size = _read_first_size(numbers, file.picture_size) or header.color_size
        color = fit_camera("colour", header.color_K, path, header.color_size, file.color_size, issues)
        depth = fit_camera("depth", header.depth_K, path, header.depth_size, header.depth_size, issues)
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


@dataclass(slots=True)
class _Layout:
    """Where the parts of an exported scan lie."""

    variant: str
    color_K: Path
    """The file with the intrinsics of colour; of "exported_cpp" the one that holds everything."""
    depth_K: Path | None
    """The file with the intrinsics of depth; None where they are derived from those of colour."""
    extrinsics: dict[str, Path] = field(default_factory=dict)
    """Files with extrinsics by "colour" or "depth"; empty where the lay-out has none."""
    info: dict[str, str] = field(default_factory=dict)
    """The keys and values of `_info.txt`; empty for every lay-out but "exported_cpp"."""
    color: dict[int, Path] = field(default_factory=dict)
    depth: dict[int, Path] = field(default_factory=dict)
    pose: dict[int, Path] = field(default_factory=dict)
    sizes: list[tuple[object, ...]] = field(default_factory=list)
    """Names and sizes in bytes of all files, for the digest of the source."""


class ExportedFrames:
    """Pixels of an exported scan, read and decoded on demand."""

    def __init__(self, layout: _Layout, depth_shift: float) -> None:
        self._color, self._depth, self._shift = layout.color, layout.depth, depth_shift
        self.color_size = self.depth_size = (0, 0)

    def close(self) -> None:
        """Nothing is held open."""

    def picture_size(self, index: int) -> tuple[int, int]:
        """(width, height) of the colour picture by its header."""
        return read_file_header(self._color[index]).size

    def depth_picture_size(self, index: int) -> tuple[int, int]:
        """(width, height) of the depth picture by its header."""
        path = self._depth[index]
        data = read_picture(path)
        if data[:2] == b"P5":
            return _read_pgm_header(data, path)[:2]
        return read_picture_header(data, path).size

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
        data = read_picture(path)
        units = _decode_pgm(data, path, self.depth_size) if data[:2] == b"P5" else None
        if units is None:
            units = decode_depth_u16(data, path, self.depth_size)
        return np.divide(units, np.float32(self._shift), dtype=np.float32)


def _read_pgm_header(data: bytes, where: object) -> tuple[int, int, int]:
    """(width, height, offset of the samples) of a 16-bit binary PGM (netpbm P5). Raises FrameError."""
    found = re.match(rb"P5(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)(?:\s|#[^\n]*\n)+(\d+)\s", data[:1024])
    if found is None:
        raise FrameError(where, f"bytes that begin {data[:16]!r}", "a binary PGM")
    width, height, most = (int(value) for value in found.groups())
    if most < 256 or most > 65535 or not 0 < width * height <= MAX_PIXELS:
        raise FrameError(where, f"PGM {width}x{height} up to {most}", "16-bit samples, at most 64 Mpixel")
    return width, height, found.end()


def _decode_pgm(data: bytes, where: object, size: tuple[int, int]) -> npt.NDArray[np.uint16]:
    """(h, w) uint16 samples. Raises FrameError if damaged or not of `size` (width, height)."""
    width, height, start = _read_pgm_header(data, where)
    if (width, height) != size:
        raise FrameError(where, f"{width}x{height} pixels", f"{size[0]}x{size[1]}")
    if len(data) - start < width * height * 2:
        raise FrameError(where, f"{len(data) - start} sample bytes", f"{width * height * 2}")
    # Samples of more than 8 bits are big-endian by the netpbm format.
    samples = np.frombuffer(data, ">u2", width * height, start)
    return samples.reshape(height, width).astype(np.uint16)


def _list_files(root: Path, folder: Path, sizes: list[tuple[object, ...]], issues: list[Issue]) -> list[Path]:
    """Regular files of a folder, sorted; links that leave `root` are dropped."""
    found = list_files(root, folder, issues, "no frame is complete")
    sizes += [(f"{folder.name}/{name}", size) for name, size in found.items()]
    return [folder / name for name in found]


def _index_by_number(paths: list[Path], suffixes: tuple[str, ...]) -> dict[int, Path]:
    out: dict[int, Path] = {}
    for path in paths:
        found = _NUMBERED.fullmatch(path.name)
        if found and path.suffix.lower() in suffixes:
            out.setdefault(int(found[1]), path)
    return out


def _find_first_file(base: Path, *names: str) -> Path | None:
    return next((base / name for name in names if (base / name).is_file()), None)


_COLOR_K_NAMES = ("intrinsic/intrinsic_color.txt", "intrinsics_color.txt", "intrinsic_color.txt")
_DEPTH_K_NAMES = ("intrinsic/intrinsic_depth.txt", "intrinsics_depth.txt", "intrinsic_depth.txt")


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


def _find_layout(root: Path, variant: str, base: Path, issues: list[Issue]) -> _Layout:
    if variant in ("exported", "frames_25k"):
        color_K = _find_first_file(base, *_COLOR_K_NAMES)
        if color_K is None:
            raise SceneError(base, "no colour intrinsics", _COLOR_K_NAMES[0])
        layout = _Layout(variant, color_K, _find_first_file(base, *_DEPTH_K_NAMES))
        for name in ("color", "depth"):
            extrinsic = base / "intrinsic" / f"extrinsic_{name}.txt"
            if extrinsic.is_file():
                layout.extrinsics["colour" if name == "color" else name] = extrinsic
        layout.color = _index_by_number(
            _list_files(root, base / "color", layout.sizes, issues), (".jpg", ".jpeg", ".png")
        )
        layout.depth = _index_by_number(_list_files(root, base / "depth", layout.sizes, issues), (".png", ".pgm"))
        layout.pose = _index_by_number(_list_files(root, base / "pose", layout.sizes, issues), (".txt",))
        return layout
    if variant == "exported_cpp":
        info = base / "_info.txt"
        layout = _Layout(variant, info, info, info=parse_keys(read_text(inside(root, info), info)))
        for path in _list_files(root, base, layout.sizes, issues):
            found = _CPP_FRAME.fullmatch(path.name)
            if found:
                {"color": layout.color, "depth": layout.depth, "pose": layout.pose}[found[2]].setdefault(
                    int(found[1]), path
                )
        return layout
    layout = _Layout(variant, base / "intrinsic.txt", _find_first_file(base, "depth_intrinsic.txt"))
    paths = _list_files(root, base, layout.sizes, issues)
    layout.color = _index_by_number(paths, (".jpg", ".jpeg"))
    layout.depth, layout.pose = _index_by_number(paths, (".png",)), _index_by_number(paths, (".txt",))
    return layout


def _parse_matrix(root: Path, path: Path) -> FloatArray:
    return parse_matrix(read_text(inside(root, path), path), path, ((4, 4), (3, 3)), SceneError)


def _parse_info_matrix(layout: _Layout, key: str) -> FloatArray:
    return parse_matrix(layout.info.get(key, ""), f"{layout.color_K}, {key}", ((4, 4),), SceneError)


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
    layout = _find_layout(root, variant, base, issues)
    everything = sorted(layout.color.keys() | layout.depth.keys() | layout.pose.keys())
    if len(everything) > MAX_FRAMES:
        raise SceneError(base, f"{len(everything)} frames", f"at most {MAX_FRAMES}")
    numbers: list[int] = []
    poses: list[FloatArray] = []
    for number in everything:
        parts = (("colour", layout.color), ("depth", layout.depth), ("pose", layout.pose))
        missing = [what for what, files in parts if number not in files]
        if missing:
            issues.append(Issue(str(number), "incomplete", f"frame {number} has no {' and no '.join(missing)}"))
            continue
        path = layout.pose[number]
        try:
            poses.append(parse_matrix(read_text(path, path, FrameError), path, ((4, 4), (3, 4))))
        except FormatError as problem:
            issues.append(Issue(str(number), "bad_pose", str(problem)))
            continue
        if poses[-1].shape == (3, 4):
            poses[-1] = np.vstack([poses[-1], [0.0, 0.0, 0.0, 1.0]])
        numbers.append(number)
    if not numbers:
        why = f" ({issues[0].detail})" if issues else ""
        raise SceneError(base, f"no frame with colour, depth and pose among {len(everything)}{why}", "at least one")
    frames, color, depth = _make_cameras(root, layout, numbers, keys, issues)
    layout.sizes.append(("cameras", color.K.tolist(), depth.K.tolist(), np.array(poses).tobytes()))
    return Recording(
        variant,
        frames,
        numbers,
        np.array(poses),
        [None] * len(numbers),
        color,
        depth,
        len(everything),
        issues,
        layout.sizes,
    )


def _make_cameras(
    root: Path, layout: _Layout, numbers: list[int], keys: dict[str, str], issues: list[Issue]
) -> tuple[ExportedFrames, Camera, Camera]:
    """Pixels with their sizes, colour camera, depth camera."""
    info = layout.info
    depth_K: FloatArray | None
    if info:
        color_K, depth_K = (_parse_info_matrix(layout, f"m_calibration{what}Intrinsic") for what in ("Color", "Depth"))
        stated = read_stated_size(info, "m_colorWidth", "m_colorHeight")
        stated_depth = read_stated_size(info, "m_depthWidth", "m_depthHeight")
        for what, name in (("colour", "Color"), ("depth", "Depth")):
            if f"m_calibration{name}Extrinsic" in info:
                warn_extrinsic(what, _parse_info_matrix(layout, f"m_calibration{name}Extrinsic"), issues)
    else:
        color_K = _parse_matrix(root, layout.color_K)
        depth_K = None if layout.depth_K is None else _parse_matrix(root, layout.depth_K)
        stated = read_stated_size(keys, "colorWidth", "colorHeight")
        stated_depth = read_stated_size(keys, "depthWidth", "depthHeight")
        for what, path in layout.extrinsics.items():
            extrinsic = np.eye(4)
            matrix = _parse_matrix(root, path)
            extrinsic[: len(matrix), : len(matrix)] = matrix
            warn_extrinsic(what, extrinsic, issues)
    try:
        shift = float(info.get("m_depthShift", "1000"))
    except ValueError:
        shift = float("nan")
    if not 1 <= shift <= MAX_DEPTH_SHIFT:
        found = f"m_depthShift = {info.get('m_depthShift', '')[:40]}"
        raise SceneError(layout.color_K, found, f"1 to {MAX_DEPTH_SHIFT:g} (1000 for millimeters)")
    frames = ExportedFrames(layout, shift)
    size = _read_first_size(numbers, frames.picture_size)
    depth_size = _read_first_size(numbers, frames.depth_picture_size)
    if size is None or depth_size is None:
        where = (layout.depth if size else layout.color)[numbers[0]].parent
        raise SceneError(where, "no sound picture in the first frames", "JPEG or PNG, depth PNG or PGM")
    frames.color_size, frames.depth_size = size, depth_size
    color = fit_camera("colour", color_K, layout.color_K, stated or USUAL_COLOR, size, issues)
    if depth_K is None:
        detail = f"{layout.color_K.parent}: no depth intrinsics; derived from those of colour"
        issues.append(Issue("", "depth_intrinsics_derived", detail))
        depth = make_depth_camera(color, depth_size)
    else:
        where_depth = layout.depth_K or layout.color_K
        depth = fit_camera("depth", depth_K, where_depth, stated_depth or USUAL_DEPTH, depth_size, issues)
    check_pair(color, depth, issues)
    return frames, color, depth
