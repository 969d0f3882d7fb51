"""Reading small files and pictures from disk without trusting them.

Every size is checked before memory is taken: pictures by their header, files by `fstat`. Errors are typed and say
where, what was found, what was expected and what to do.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import os
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.errors import FormatError, FrameError, SceneError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.paths import inside as inside  # loaders take it from here
from vgbench_gen.core.paths import open_file
from vgbench_gen.core.stand_ins import HEAD_BYTES as STAND_IN_BYTES
from vgbench_gen.core.stand_ins import describe_stand_in
from vgbench_gen.core.types import ColorArray, DepthArray, FloatArray

_K = TypeVar("_K")
_T = TypeVar("_T")

# A picture of this size needs 192 MB as RGB; no sensor of the four datasets comes near it.
MAX_PIXELS = 64_000_000
# Encoders write some ten passes of a progressive JPEG. Each is decoded over all pixels, so that a small file with
# thousands of them takes minutes.
MAX_JPEG_SCANS = 100
# Numbers and short texts take up to 12 times the bytes of their JSON text and an empty object 25 times; these two
# bounds keep a hostile file below 0.6 GB. A long ScanNet++ capture has some 200 000 lists and objects.
MAX_JSON_BYTES = 32_000_000
MAX_JSON_CONTAINERS = 2_000_000
MAX_PICTURE_BYTES = 200_000_000
MAX_TEXT_BYTES = 1_000_000
# Cameras append a little padding after the end marker; a torn file lacks the marker altogether.
_TAIL_BYTES = 4096


def open_regular(path: Path, where: object, error: type[FormatError] = SceneError) -> BinaryIO:
    """A regular file, open for reading, in whose place nothing else lies (`vgbench_gen.core.stand_ins`).

    Raises:
        FormatError: (of type `error`) the file is missing, unreadable, not a regular file, or a stand-in of it.
    """
    try:
        file = open_file(path)
        stand_in = describe_stand_in(os.pread(file.fileno(), STAND_IN_BYTES, 0))
    except (OSError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        found, remedy = f"no readable file ({reason})", "Check the path, the download and the permissions."
        raise error(where, found, "a file", remedy) from problem
    if stand_in is not None:
        file.close()
        raise error(where, stand_in[0], "its bytes", stand_in[1])
    return file


def read_bytes(path: Path, where: object, max_bytes: int, error: type[FormatError] = SceneError) -> bytes:
    """All bytes of a regular file of at most `max_bytes`.

    Raises:
        FormatError: (of type `error`) the file is missing, unreadable, not a regular file, or larger.
    """
    with open_regular(path, where, error) as file:
        size = os.fstat(file.fileno()).st_size
        if size > max_bytes:
            raise error(where, f"{size} bytes", f"at most {max_bytes}", "This is not such a file; get the original.")
        try:
            return file.read(size)
        except OSError as problem:
            reason = problem.strerror or str(problem)
            raise error(where, reason, "a readable file", "Check the disk and copy the file again.") from problem


def read_part(file: BinaryIO, where: object, start: int, count: int) -> bytes:
    """Exactly `count` bytes of an open file from `start` on. Safe to call from several threads.

    Raises:
        FrameError: the file is closed, unreadable, or has become shorter.
    """
    try:
        data = os.pread(file.fileno(), count, start)
    except (OSError, ValueError) as problem:
        raise FrameError(where, str(problem), f"{count} bytes", "Check the disk; open the scene again.") from problem
    if len(data) != count:
        remedy = "The file changed while in use; open the scene again."
        raise FrameError(where, f"{len(data)} bytes", f"{count}", remedy)
    return data


def read_picture(path: Path) -> bytes:
    """All bytes of a picture file of at most 200 MB. Raises FrameError."""
    return read_bytes(path, path, MAX_PICTURE_BYTES, FrameError)


def read_text(path: Path, where: object, error: type[FormatError] = SceneError) -> str:
    """Text of a small file (at most 1 MB) without a byte order mark; bytes that are not UTF-8 are replaced. Raises like
    `read_bytes`.

    For longer tables, such as one pose per line of a long capture, decode what `read_bytes` gives under a larger limit.
    """
    return read_bytes(path, where, MAX_TEXT_BYTES, error).decode("utf-8-sig", "replace")


def read_json(
    source: Path | bytes, where: object, max_bytes: int = MAX_JSON_BYTES, error: type[FormatError] = SceneError
) -> Any:
    """Parsed JSON of a file or of bytes.

    Raises:
        FormatError: (of type `error`) unreadable, too large, not UTF-8, not JSON, with too many or too deep lists.
    """
    data = source if isinstance(source, bytes) else read_bytes(source, where, max_bytes, error)
    try:
        return parse_json(data, "keep", max_bytes, MAX_JSON_CONTAINERS)
    except ValueError as problem:
        raise error(where, f"no valid JSON ({str(problem)[:120]})", "a JSON document") from problem


_MSVC_FORMS = {"#INF": "inf", "#IND": "nan", "#QNAN": "nan", "#SNAN": "nan"}


def _number(token: str) -> float:
    found = re.fullmatch(r"([+-]?)1\.(#[A-Z]+)\d*", token.upper())
    if found and found[2] in _MSVC_FORMS:
        return float(found[1] + _MSVC_FORMS[found[2]])
    return float(token)


def parse_matrix(
    value: Any, where: object, shapes: Sequence[tuple[int, ...]], error: type[FormatError] = FrameError
) -> FloatArray:
    """float64 array from row-major numbers: a text split by blanks or commas, or JSON numbers, nested or flat.

    shapes: accepted shapes; the one with the right count of numbers is taken. Not finite values are kept, also in
    the forms old C libraries print (`-1.#INF`, `1.#QNAN`).

    Raises:
        FormatError: (of type `error`) no number, or another count.
    """
    wanted = " or ".join("x".join(map(str, shape)) for shape in shapes) + " numbers"
    try:
        if isinstance(value, str):
            value = [_number(token) for token in value[:MAX_TEXT_BYTES].replace(",", " ").split()]
        elif not isinstance(value, list):
            raise TypeError(f"a {type(value).__name__}")
        numbers = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as problem:
        raise error(where, str(problem)[:120], wanted) from problem
    for shape in shapes:
        if numbers.size == np.prod(shape):
            return numbers.reshape(shape)
    raise error(where, f"{numbers.size} numbers", wanted)


def compute_source_digest(entries: Iterable[Sequence[object]]) -> str:
    """32 hexadecimal digits for (name, size, header bytes, ...) of the files a scene was read from, in any order."""
    lines = sorted(
        json.dumps([e.hex() if isinstance(e, bytes) else e for e in entry], default=str) for entry in entries
    )
    return hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class PictureHeader:
    """What a JPEG, PNG or PGM says about itself before any pixel is decoded; sizes in pixels."""

    kind: str
    """The format: "jpeg", "png" or "pgm"."""
    width: int
    height: int
    channels: int
    """The number of channels as stored; 0 for a palette."""
    bits: int
    plain: bool
    """Whether it is 8-bit RGB without orientation data, so that every viewer shows what `decode_image_rgb` gives."""

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.width, self.height


def read_picture_header(data: bytes, where: object) -> PictureHeader:
    """Read the header of JPEG (ISO 10918-1 frame header), PNG (W3C IHDR) or binary PGM (netpbm P5) bytes.

    Raises:
        FrameError: none of the three, torn at either end, or more than 64 million pixels.
    """
    if data[:8] == b"\x89PNG\r\n\x1a\n":
        header = _parse_png_header(data)
        whole = data.rfind(b"IEND", -_TAIL_BYTES) >= 0
    elif data[:2] == b"\xff\xd8":
        header = _parse_jpeg_header(data)
        whole = data.rfind(b"\xff\xd9", -_TAIL_BYTES) >= 0
    elif found := _PGM_HEAD.match(data[:1024]):
        width, height, most = (int(value) for value in found.groups())
        header = PictureHeader("pgm", width, height, 1, 16 if 256 <= most < 1 << 16 else 8, False)
        whole = len(data) - found.end() >= width * height * header.bits // 8
    else:
        raise FrameError(where, f"bytes that begin {data[:8].hex() or 'nowhere'}", "a JPEG or PNG picture")
    if header is None or not whole:
        raise FrameError(where, "a torn picture", "a complete JPEG or PNG")
    if header.width < 1 or header.height < 1 or header.width * header.height > MAX_PIXELS:
        raise FrameError(where, f"{header.width}x{header.height} pixels", f"at most {MAX_PIXELS} pixels")
    return header


def read_file_header(path: Path) -> PictureHeader:
    """Header of a picture file from its first and last bytes; of a JPEG's whole file, its size stands anywhere.

    Raises:
        FrameError: as `read_bytes` and `read_picture_header`.
    """
    if path.suffix.lower() != ".png":
        return read_picture_header(read_picture(path), path)
    with open_regular(path, path, FrameError) as file:
        head = file.read(64)
        file.seek(max(file.seek(0, os.SEEK_END) - 16, len(head)))
        return read_picture_header(head + file.read(16), path)


def check_depth_header(header: PictureHeader, where: object) -> None:
    """Refuse what cannot hold millimeters: all but 16-bit grey PNG and PGM. Raises FrameError."""
    if header.kind == "jpeg" or (header.channels, header.bits) != (1, 16):
        found = f"a {header.bits}-bit {header.kind} of {header.channels} channels"
        raise FrameError(where, found, "a 16-bit grey PNG", "Export depth without conversion to 8 bits.")


def read_first(
    read: Callable[[_K], _T], keys: Iterable[_K], where: object, expected: str, remedy: str | None = None
) -> _T:
    """What `read` gives for the first sound one among a few keys; a torn first picture must not cost the scene.

    Raises:
        SceneError: `read` raises FrameError for each of them.
    """
    problems: list[FrameError] = []
    for key in itertools.islice(keys, 20):
        try:
            return read(key)
        except FrameError as error:
            problems.append(error)
    raise SceneError(where, f"nothing sound ({problems[0] if problems else 'no file'})", expected, remedy)


def read_first_size(paths: Iterable[Path], where: object) -> tuple[int, int]:
    """(width, height) of the first sound picture among a few. Raises SceneError where none is."""
    expected = "JPEG or PNG pictures, depth as PNG or PGM"
    return read_first(lambda path: read_file_header(path).size, paths, where, expected)


_PGM_HEAD = re.compile(rb"P5(?:\s|#[^\n]*\n)+(\d{1,6})(?:\s|#[^\n]*\n)+(\d{1,6})(?:\s|#[^\n]*\n)+(\d{1,6})\s")
_PNG_CHANNELS = {0: 1, 2: 3, 3: 0, 4: 2, 6: 4}


def _parse_png_header(data: bytes) -> PictureHeader | None:
    if len(data) < 33 or data[12:16] != b"IHDR":
        return None
    width, height, bits, colour_type = struct.unpack_from(">IIBB", data, 16)
    if colour_type not in _PNG_CHANNELS:
        return None
    plain = colour_type == 2 and bits == 8 and b"eXIf" not in data[: data.find(b"IDAT")]
    return PictureHeader("png", width, height, _PNG_CHANNELS[colour_type], bits, plain)


def _has_whole_chunks(data: bytes) -> bool:
    """Whether every chunk of a PNG lies in the bytes, up to the end: OpenCV takes the memory that a chunk asks for."""
    at = 8
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if kind == b"IEND":
            return bool(at <= len(data))
    return False


# Start-of-frame markers C0-CF without DHT (C4), JPG (C8) and DAC (CC).
_SOF = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_DHT, _SOS = 0xC4, 0xDA
_ZEROS = bytes(16)  # within the pixels of 546 frames of captures and samples, at most 5 zeros follow each other


def _list_segments(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Marker, place and contents of the segments of a JPEG up to its first scan (ISO 10918-1, B.1.1)."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF or marker == 0x01 or 0xD0 <= marker <= 0xD8:  # fill bytes and markers without a length
            at += 1 if marker == 0xFF else 2
            continue
        end = at + 2 + max(struct.unpack_from(">H", data, at + 2)[0], 2)
        yield marker, at, data[at + 4 : end]
        if marker == _SOS:
            return
        at = end


def _parse_jpeg_header(data: bytes) -> PictureHeader | None:
    turned = False
    for marker, _, content in _list_segments(data):
        if marker in _SOF:
            if len(content) < 6:
                return None
            bits, height, width, channels = struct.unpack_from(">BHHB", content)
            plain = bits == 8 and channels == 3 and not turned
            return PictureHeader("jpeg", width, height, channels, bits, plain)
        turned |= marker == 0xE1 and content[:4] == b"Exif"
    return None


def _has_zeroed_pixels(data: bytes) -> bool:
    """Whether zeros stand where a baseline JPEG of one scan keeps its pixels, which no encoder has written.

    Zeros repeat the first Huffman code of the brightness. Where that does not end a block, `_ZEROS` bytes of them are a
    block of dozens of equal coefficients, up to the finest. Where it does, they may be an even surface.
    """
    baseline = False
    first_codes: dict[int, int] = {}
    for marker, at, content in _list_segments(data):
        baseline |= marker in (0xC0, 0xC1)
        while marker == _DHT and len(content) > 17:
            first_codes[content[0]] = content[17]
            content = content[17 + sum(content[1:17]) :]
        if marker == _SOS and len(content) > 2:
            ends_block = first_codes.get(0x10 | content[2] & 0x0F, 0) == 0
            return baseline and not ends_block and data.find(_ZEROS, at, data.rfind(b"\xff\xd9")) >= 0
    return False


def _find_unit_px(data: bytes) -> tuple[int, int]:
    """Width and height of what a JPEG codes at once (MCU, ISO 10918-1, A.2): a block, or more with thinned colours."""
    factors = next((c[7 : 6 + 3 * c[5] : 3] for marker, _, c in _list_segments(data) if marker in _SOF), b"")
    if len(factors) < 2:
        return 8, 8
    return 8 * max(each >> 4 for each in factors), 8 * max(each & 0x0F for each in factors)


def _check_size(data: bytes, where: object, size: tuple[int, int] | None) -> PictureHeader:
    header = read_picture_header(data, where)
    if size is not None and header.size != size:
        found, expected = f"{header.width}x{header.height} pixels", f"{size[0]}x{size[1]}"
        raise FrameError(where, found, expected)
    return header


def decode_image_rgb(data: bytes, where: object, size: tuple[int, int] | None = None) -> ColorArray:
    """(H, W, 3) uint8 RGB of a JPEG or PNG, as stored (an orientation tag turns nothing).

    size: (width, height) the picture must have; checked on the header, before anything is decoded.

    Raises:
        FrameError: damaged, torn, too large, or of another size.
    """
    header = _check_size(data, where, size)
    return _decode_image(data, where, (header.height, header.width, 3), np.uint8)


def decode_depth_u16(data: bytes, where: object, size: tuple[int, int] | None = None) -> npt.NDArray[np.uint16]:
    """(h, w) uint16 of a 16-bit grey PNG or PGM, values as stored.

    size: as of `decode_image_rgb`.

    Raises:
        FrameError: damaged, torn, too large, of another size, or not 16-bit grey (8 bits cannot hold millimeters).
    """
    header = _check_size(data, where, size)
    check_depth_header(header, where)
    return _decode_image(data, where, (header.height, header.width), np.uint16)


def decode_depth_f32(data: bytes, where: object, size: tuple[int, int] | None = None) -> DepthArray:
    """(h, w) float32 of an 8-bit PNG whose four channels are the bytes of floats (RTAB-Map), values as stored.
    Raises as `decode_depth_u16`."""
    header = _check_size(data, where, size)
    if (header.kind, header.channels, header.bits) != ("png", 4, 8):
        found = f"a {header.bits}-bit {header.kind} of {header.channels} channels"
        raise FrameError(where, found, "an 8-bit PNG of 4 channels")
    pixels = _decode_png(data, where, color=False)
    if pixels.shape != (header.height, header.width, 4) or pixels.dtype != np.uint8:
        raise FrameError(where, f"pixels {pixels.shape} {pixels.dtype}", "4 bytes a pixel")
    return np.ascontiguousarray(pixels).view("<f4")[..., 0]


def decode_depth_m(data: bytes, where: object, size: tuple[int, int], most_m: float) -> DepthArray:
    """(h, w) float32 meters of a 16-bit PNG of millimeters; 0 where unknown or above `most_m`. Raises as
    `decode_depth_u16`."""
    depth_m = decode_depth_u16(data, where, size).astype(np.float32) / np.float32(1000.0)
    depth_m[depth_m > most_m] = 0.0
    return depth_m


def keep_plain(data: bytes, where: object, size: tuple[int, int]) -> bytes | None:
    """The bytes of a picture of this size if every viewer shows them as `decode_image_rgb` does, else None. Raises
    FrameError."""
    return data if _check_size(data, where, size).plain else None


def decode_mask_u8(data: bytes, where: object, size: tuple[int, int] | None = None) -> npt.NDArray[np.uint8]:
    """(h, w) uint8 of an 8-bit grey picture as stored; colour becomes grey. Raises like `decode_image_rgb`."""
    import cv2

    header = _check_size(data, where, size)
    if header.channels == 1 and header.bits == 8:
        return _decode_image(data, where, (header.height, header.width), np.uint8)
    rgb = _decode_image(data, where, (header.height, header.width, 3), np.uint8)
    return np.asarray(cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY), np.uint8)


def _decode_image(data: bytes, where: object, shape: tuple[int, ...], kind: type[np.generic]) -> npt.NDArray[Any]:
    """Pixels of this shape, RGB where it has three axes, and of this type. Raises FrameError where they are others."""
    if data[:2] == b"P5":
        head = _PGM_HEAD.match(data[:1024])
        # Samples of more than 8 bits are big-endian by the netpbm format.
        pixels = np.frombuffer(data, ">u2", math.prod(shape[:2]), head.end() if head else 0)
        pixels = pixels.reshape(shape[:2]).astype(np.uint16)
    elif data[:2] == b"\xff\xd8":
        pixels = _decode_jpeg(data, where, "RGB" if len(shape) == 3 else "GRAY")
    else:
        pixels = _decode_png(data, where, color=len(shape) == 3)
    if pixels.shape != shape or pixels.dtype != kind:
        expected = f"{shape} {kind.__name__} as in the header"
        raise FrameError(where, f"pixels {pixels.shape} {pixels.dtype}", expected)
    return pixels


def _decode_png(data: bytes, where: object, *, color: bool) -> npt.NDArray[Any]:
    if not _has_whole_chunks(data):
        raise FrameError(where, "a chunk that reaches beyond the end", "a complete PNG")
    import cv2

    flag = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION if color else cv2.IMREAD_UNCHANGED
    try:
        pixels = cv2.imdecode(np.frombuffer(data, np.uint8), flag)
    except cv2.error as problem:
        if problem.code == cv2.Error.STS_NO_MEM:
            raise MemoryError(str(where)) from problem
        raise FrameError(where, f"pixels that do not decode ({problem.err})", "a whole picture") from problem
    if pixels is None:
        raise FrameError(where, "pixels that do not decode", "a whole picture")
    return pixels


def _decode_jpeg(data: bytes, where: object, colorspace: str) -> npt.NDArray[Any]:
    """(H, W, 3) or (H, W, 1) uint8. Raises FrameError where libjpeg has so much as a warning.

    OpenCV and Pillow fill what a damaged file lacks and say nothing; see `docs/formats.md#damaged-pictures`.
    """
    import simplejpeg

    scans = data.count(b"\xff\xda")  # within pixels, 0xff is followed by 0 or by the number of a restart
    if scans > MAX_JPEG_SCANS:
        raise FrameError(where, f"a JPEG of {scans} scans", f"at most {MAX_JPEG_SCANS}")
    if scans == 1 and _has_zeroed_pixels(data):
        raise FrameError(where, "zeros in the place of pixels", "a whole picture")
    try:
        pixels: npt.NDArray[Any] = simplejpeg.decode_jpeg(data, colorspace, strict=True)
    except ValueError as problem:
        raise FrameError(where, f"pixels that do not decode ({problem})", "a whole picture") from problem
    if colorspace != "RGB":
        return pixels[..., 0]
    if (seam := find_seam(pixels, _find_unit_px(data))) is not None:
        raise FrameError(where, f"pixels that are off from row {seam[0]} on", "a whole picture")
    return pixels


_LEAST_UNITS = 16  # of a row; the mean over fewer blocks is the texture's as often as not
_MARGIN = 1 / 16  # of a row: a step along all but so much of it may be an edge along all of it, as of a black bar
_MOST = 40.0  # of one step, so that no single edge makes a mean
_STEP = 25.0  # of 4,800 whole pictures, drawn on and warped ones among them, 16 is the most
_ROWS = np.array([-5, -2, 1, 4])  # about a border: its own step, and the steps of the picture above and below


def find_seam(pixels: npt.NDArray[np.uint8], unit_px: tuple[int, int]) -> tuple[int, int] | None:
    """Row and column (pixels) from which on the picture is off; None where there is no such place.

    Args:
        pixels: (H, W, C). unit_px: width and height of what the file codes at once (MCU), a block or four.
    """
    import cv2

    width, height = unit_px
    count = pixels.shape[1] // width
    borders = np.arange(height, pixels.shape[0] - int(_ROWS[-1]), height)
    if count < _LEAST_UNITS or len(borders) < 2:
        return None
    about = np.ascontiguousarray(pixels[(borders[:, None] + _ROWS).ravel(), : count * width])
    means = cv2.resize(about, (count, len(about)), interpolation=cv2.INTER_AREA)
    steps = np.diff(means.reshape(len(borders), len(_ROWS), count, -1).astype(np.float32), axis=1)
    step, beside = steps[:, 1], np.abs(steps[:, ::2]).max(axis=1)
    # What of a border's step no edge nearby explains.
    excess = np.sign(step) * np.clip(np.abs(step) - beside, 0, _MOST)
    sums = np.cumsum(excess, axis=1)
    least = max(int(count * _MARGIN), 2)
    at = np.arange(least, count - least)
    left = sums[:, at - 1] / at[:, None]
    right = (sums[:, -1:] - sums[:, at - 1]) / (count - at)[:, None]
    begin, end = right[:-1], left[1:]  # of a seam: the right of one border and the left of the next
    seam = np.where(begin * end > 0, np.minimum(np.abs(begin), np.abs(end)), 0)
    seam -= np.maximum(np.abs(left[:-1]), np.abs(right[1:]))
    row, column, _ = np.unravel_index(int(np.argmax(seam)), seam.shape)
    return (int(borders[row]), int(at[column]) * width) if seam[row, column, _] > _STEP else None
