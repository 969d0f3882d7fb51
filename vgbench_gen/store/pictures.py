"""Pictures as data: a base image and what is done to it, small enough to stand in a fact and rendered when shown.

Operations, in the order they are applied (geometry first, then drawing):

| op | keys | does |
| --- | --- | --- |
| `crop_resize` | `rect` [x0, y0, w, h], `size` [W, H] | cut and resize, edge-aligned as `geometry.cameras` |
| `warp` | `H` 9 numbers row by row, `rect` and `size` of such a crop | see below |
| `point` | `uv` [u, v], `color`, `shape` | a marker around a pixel that does not cover it |
| `region` | `rect` [x1, y1, x2, y2] inclusive, `color` | an outline that does not cover them |
| `plan` | `size` [W, H], `polygons` of points [u, v], `colors` | their filled hulls on white, instead of the image |

All positions are integer pixels of the image the operation receives; pixel (0, 0) is the centre of the top-left one.
A warp's `H` maps pixels of the crop to pixels of the target, which has the crop's `size` and shows what lies around it
too. All that the target shows must lie in the image. Crops and warps have one sharpness, however much they shrink, so
that it does not tell by how much (`docs/validity.md#homographies`).
"""

from __future__ import annotations

import io
import math
import platform
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in
from vgbench_gen.core.types import ColorArray, FloatArray
from vgbench_gen.store import drawing
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.media import NAME, MediaStore

MAX_PIXELS = 64 * 10**6
MAX_SIDE = 32767 - 1  # warpPerspective and remap address pixels with 16 bits
MAX_OPS = 64
JPEG_QUALITY = 95
SPREAD_PX = 1.0  # standard deviation of the blur of crops and warps, pixels of theirs
FRAME_SPREAD_PX = 0.6  # that frames have by themselves, pixels of theirs
_FINER_MAX = 8
_KINDS = (
    (b"\xff\xd8\xff", "jpg"), (b"\x89PNG\r\n\x1a\n", "png"), (b"RIFF", "webp"), (b"GIF8", "gif"), (b"BM", "bmp"),
)  # fmt: skip
_KEYS = {
    "crop_resize": {"op", "rect", "size"},
    "warp": {"op", "H", "rect", "size"},
    "point": {"op", "uv", "color", "shape"},
    "region": {"op", "rect", "color"},
    "plan": {"op", "size", "polygons", "colors"},
}


@dataclass(frozen=True, slots=True)
class Picture:
    """A base image in the media store and the operations on it.

    Raises:
        ValueError: an operation is unknown, has other keys, or numbers out of bounds; geometry follows drawing.
    """

    base: str
    ops: tuple[Mapping[str, Any], ...] = ()
    """The operations in the order in which they are applied, those that move pixels before those that draw."""

    def __post_init__(self) -> None:
        if not isinstance(self.base, str) or not NAME.fullmatch(self.base):
            raise ValueError(f"a picture's base is a media name, got {self.base!r}")
        if len(self.ops) > MAX_OPS:
            raise ValueError(f"a picture takes at most {MAX_OPS} operations, got {len(self.ops)}")
        if len(self.ops) > 1 and any(op.get("op") == "plan" for op in self.ops if isinstance(op, Mapping)):
            raise ValueError("plan draws on white: nothing comes before it or after it")
        drawn = False
        for op in self.ops:
            _check(op)
            if op["op"] in {"point", "region", "plan"}:
                drawn = True
            elif drawn:
                raise ValueError(f"{op['op']} after drawing would blur the marks: put geometry first")

    def to_json(self) -> dict[str, Any]:
        """JSON-ready {"base", "ops"}."""
        return {"base": self.base, "ops": [dict(op) for op in self.ops]}

    @classmethod
    def from_json(cls, value: object) -> Picture:
        """The inverse of `to_json`, for values that come from a file.

        Raises:
            DatasetError: anything but exactly such a value.
        """
        try:
            if not isinstance(value, dict) or set(value) != {"base", "ops"} or not isinstance(value["ops"], list):
                raise ValueError("not an object of exactly base and a list of ops")
            return cls(value["base"], tuple(value["ops"]))
        except ValueError as error:
            remedy = "The row was not written by this program, or it is damaged: measure its scene again."
            raise dataset_error("picture", str(error), "a base and known operations", remedy) from error

    def key(self) -> str:
        """Canonical JSON, equal for equal pictures."""
        return format_canonical_json(self.to_json())


def find_size(picture: Picture, base_size: tuple[int, int]) -> tuple[int, int]:
    """(width, height) in pixels after all operations, for a base image of `base_size`."""
    for op in reversed(picture.ops):
        if "size" in op:
            return op["size"][0], op["size"][1]
    return base_size


def render(picture: Picture, media: MediaStore, load: Callable[[str], ColorArray] | None = None) -> bytes:
    """The picture as JPEG bytes, the same for the same picture.

    A JPEG base without operations passes through untouched, unless EXIF tells viewers to turn it: coordinates hold
    for the stored pixels, so it is encoded anew without EXIF. Everything else is decoded and encoded once, quality 95.

    load: gives a decoded base by its name, where the caller keeps some (many pictures share one).

    Raises:
        DatasetError: the base is missing, damaged or larger than 64 megapixels, or an operation does not fit it.
    """
    data = b"" if picture.ops or not picture.base.endswith(".jpg") else media.get(picture.base)
    if _is_unchanged(picture, data):
        return data
    base = load(picture.base) if load else decode(data or media.get(picture.base), picture.base)
    return encode_jpeg(apply(picture, base))


def render_from(picture: Picture, base: ColorArray | None, data: bytes) -> bytes:
    """`render` for a base at hand.

    base: its pixels; not looked at where `data` passes through. data: its encoded bytes, or b"" where there are none.

    Raises:
        DatasetError: as `render`.
    """
    if _is_unchanged(picture, data):
        return data
    if base is None:
        raise ValueError("a picture that is drawn needs the pixels of its base")
    return encode_jpeg(apply(picture, base))


def _is_unchanged(picture: Picture, data: bytes) -> bool:
    return not picture.ops and data[:2] == b"\xff\xd8" and not _read_header(picture.base, data)[1]


def apply(picture: Picture, image: ColorArray) -> ColorArray:
    """The picture's operations on its decoded base, (H, W, 3) uint8 RGB -> the same; the input is not changed.

    Raises:
        DatasetError: a crop, point or region lies outside the image, or a warp draws on what does.
    """
    marks: list[Mapping[str, Any]] = []
    for op in picture.ops:
        if op["op"] == "crop_resize":
            image = _crop_resize(op, image)
        elif op["op"] == "warp":
            image = _warp(op, image)
        elif op["op"] == "plan":
            image = drawing.draw_plan(op)
        else:
            _require_inside(op, image)
            marks.append(op)
    return drawing.draw(image, marks) if marks else image


def read_image_size(data: bytes, where: object = "image") -> tuple[int, int]:
    """(width, height) of encoded image bytes, from the header alone.

    Raises:
        DatasetError: not a JPEG or PNG, or more than 64 megapixels.
    """
    return _read_header(where, data)[0]


def decode(data: bytes, where: object = "image") -> ColorArray:
    """(H, W, 3) uint8 RGB, the stored pixels; an EXIF orientation is ignored because coordinates hold for these.

    Raises:
        DatasetError: not a readable JPEG or PNG, or more than 64 megapixels.
    """
    import cv2

    _read_header(where, data)
    flags = cv2.IMREAD_COLOR_RGB | cv2.IMREAD_IGNORE_ORIENTATION
    image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    if image is None:
        raise _make_format_error(where, data)
    return np.asarray(image, dtype=np.uint8)


def hash_look(grey: ColorArray) -> int:
    """64-bit perceptual hash of a grey picture (H, W): signs of the lowest 8 x 8 cosine terms of its 32 x 32 version
    against their median; pictures that look alike differ in few bits.

    After `JohannesBuchner/imagehash: imagehash/__init__.py` (phash).
    """
    import cv2

    small = cv2.resize(grey, (32, 32), interpolation=cv2.INTER_AREA).astype(np.float32)
    low = cv2.dct(small)[:8, :8]
    return int.from_bytes(np.packbits(low > np.median(low)).tobytes(), "big")


def encode_jpeg(image: ColorArray) -> bytes:
    """(H, W, 3) uint8 RGB as JPEG of quality 95, chroma halved in both directions."""
    import cv2

    done, data = cv2.imencode(".jpg", cv2.cvtColor(image, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, JPEG_QUALITY])
    if not done:
        raise ValueError(f"cannot encode an image of shape {image.shape}")
    return bytes(data.tobytes())


@cache
def list_codec_versions() -> dict[str, str]:
    """What the bytes of images hang on besides our code: OpenCV, its codecs, numpy, the kind of processor."""
    import cv2

    stated = cv2.getBuildInformation()

    def version(label: str) -> str:
        match = re.search(rf"^\s*{label}:.*?(\d+(?:\.\d+)+[-\w]*)", stated, re.MULTILINE)
        return match[1] if match else "unknown"

    codecs = {"jpeg": "JPEG", "png": "PNG", "video": "avcodec", "video_colour": "swscale"}
    versions = {name: version(label) for name, label in codecs.items()}
    return {"opencv": cv2.__version__, "numpy": np.__version__, "machine": platform.machine(), **versions}


def _crop_resize(op: Mapping[str, Any], image: ColorArray) -> ColorArray:
    _require_inside(op, image)
    x0, y0, w, h = op["rect"]
    if max(w, h) > MAX_SIDE:
        raise _make_outside_error(op, image)
    # What lies around a crop does not show in it.
    return resample(image[y0 : y0 + h, x0 : x0 + w], find_warp_matrix({**op, "rect": [0, 0, w, h]}), op["size"])


def _warp(op: Mapping[str, Any], image: ColorArray) -> ColorArray:
    height, width = image.shape[:2]
    if max(image.shape[:2]) > MAX_SIDE or not reads_inside(op, (width, height)):
        raise _make_outside_error(op, image)
    return resample(image, find_warp_matrix(op), op["size"])


def resample(image: npt.NDArray[Any], target_from_image: FloatArray, size: Sequence[int]) -> npt.NDArray[Any]:
    """The image (H, W) or (H, W, c) as a matrix (3, 3) maps its pixels to a target of `size` (width, height), the same
    type. In pixels of the target it is blurred as much wherever it is not enlarged.

    The frame's own blur and that of linear interpolation (a sixth of a squared pixel) shrink with it; what is missing
    to `SPREAD_PX` is added in the target, which is drawn finer.
    """
    import cv2

    width, height = size
    image_from_target = np.linalg.inv(target_from_image)
    x, y, w = image_from_target @ ((width - 1) / 2, (height - 1) / 2, 1.0)
    step = (image_from_target[:2, :2] - np.outer((x / w, y / w), image_from_target[2, :2])) / w
    scales = 1 / np.linalg.svd(step, compute_uv=False)  # pixels of the target to one of the image, at its center
    most = min(_FINER_MAX, MAX_SIDE // max(width, height), math.isqrt(MAX_PIXELS // (width * height)))
    # What a frame shows at most (half a period to one of its pixels) must not come to lie where the blur leaves it.
    finer = max(min(max(math.ceil(0.5 / scales.min() + 0.5), 2), most), 1)
    middle = (finer - 1) / 2
    matrix = np.array([[finer, 0.0, middle], [0.0, finer, middle], [0.0, 0.0, 1.0]]) @ target_from_image
    drawn = cv2.warpPerspective(image, matrix, (finer * width, finer * height), borderMode=cv2.BORDER_REPLICATE)
    own = (FRAME_SPREAD_PX**2 + 1 / 6) * scales.prod()
    missing = SPREAD_PX**2 - own - (1 - finer**-2) / 12  # averaging blurs as well
    if missing > 0:
        drawn = cv2.GaussianBlur(drawn, (0, 0), finer * math.sqrt(missing))
    return np.asarray(cv2.resize(drawn, (width, height), interpolation=cv2.INTER_AREA), dtype=image.dtype)


def find_warp_matrix(op: Mapping[str, Any]) -> FloatArray:
    """(3, 3) that maps pixels of the whole source to target pixels in an operation `warp` or `crop_resize`."""
    x0, y0, w, h = op["rect"]
    sx, sy = op["size"][0] / w, op["size"][1] / h
    resized = np.array([[sx, 0.0, (0.5 - x0) * sx - 0.5], [0.0, sy, (0.5 - y0) * sy - 0.5], [0.0, 0.0, 1.0]])
    return np.asarray(np.array(op["H"], dtype=np.float64).reshape(3, 3) @ resized) if "H" in op else resized


def reads_inside(op: Mapping[str, Any], size: tuple[int, int]) -> bool:
    """Whether an operation `warp` draws nothing but what lies inside a source of `size` (width, height), pixels."""
    right, bottom = op["size"][0] - 1.0, op["size"][1] - 1.0
    corners = np.array([[0.0, right, right, 0.0], [0.0, 0.0, bottom, bottom], [1.0, 1.0, 1.0, 1.0]])
    u, v, w = np.linalg.solve(find_warp_matrix(op), corners)
    if not (w.min() > 0 or w.max() < 0):  # the horizon runs through the target
        return False
    # All other pixels of the target show what lies between its corners.
    u, v = u / w, v / w
    return bool(min(u.min(), v.min()) >= 0 and u.max() <= size[0] - 1 and v.max() <= size[1] - 1)


def _check(op: object) -> None:
    """Raise ValueError unless `op` is exactly one of the known operations, all its numbers bounded."""
    name = op.get("op") if isinstance(op, Mapping) else op
    if not isinstance(op, Mapping) or not isinstance(name, str) or name not in _KEYS:
        raise ValueError(f"unknown picture operation {str(name)[:80]!r}; known: {', '.join(_KEYS)}")
    if set(op) != _KEYS[name]:
        raise ValueError(f"{name} takes exactly {sorted(_KEYS[name])}, got {sorted(map(str, op))}")
    if "size" in op:
        _check_size(op)
    if name in ("point", "region"):
        _check_mark(op)
        return
    if name == "plan":
        _check_plan(op)
        return
    _check_crop(op)
    if name == "warp":
        _check_matrix(op["H"])


def _check_size(op: Mapping[str, Any]) -> None:
    width, height = _read_integers(op, "size", 2)
    if not (0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE and width * height <= MAX_PIXELS):
        raise ValueError(f"{op['op']}: size {width}x{height} is not within 1 px and {MAX_PIXELS // 10**6} megapixels")


def _check_crop(op: Mapping[str, Any]) -> None:
    x0, y0, w, h = _read_integers(op, "rect", 4)
    if x0 < 0 or y0 < 0 or w <= 0 or h <= 0:
        raise ValueError(f"{op['op']}: rect {op['rect']} is not [x0 >= 0, y0 >= 0, w > 0, h > 0]")


def _check_matrix(H: object) -> None:
    if not isinstance(H, list | tuple) or len(H) != 9:
        raise ValueError("warp: H must be a list of 9 numbers")
    if any(isinstance(v, bool) or not isinstance(v, int | float) or not math.isfinite(v) for v in H):
        raise ValueError("warp: H must be finite numbers")
    matrix = np.array(H, dtype=np.float64).reshape(3, 3)
    scale = np.abs(matrix).max()
    # Relative to 1e-12 a matrix in pixels (entries from 1e-4 to 1e3) is still far from singular.
    if not (1e-12 < scale < 1e12) or abs(np.linalg.det(matrix / scale)) < 1e-15:
        raise ValueError(f"warp: H {list(H)} cannot be inverted")


def _check_mark(op: Mapping[str, Any]) -> None:
    name, known = op["op"], {"color": tuple(drawing.COLORS), "shape": (*drawing.SHAPES, drawing.CROSSHAIR)}
    for key in _KEYS[name] & set(known):
        if op[key] not in known[key]:
            raise ValueError(f"{name}: unknown {key} {str(op[key])[:40]!r}; known: {', '.join(known[key])}")
    if name == "point":
        _read_integers(op, "uv", 2)
    else:
        x1, y1, x2, y2 = _read_integers(op, "rect", 4)
        if x2 < x1 or y2 < y1:
            raise ValueError(f"region: rect {op['rect']} is not [x1, y1, x2 >= x1, y2 >= y1]")


def _check_plan(op: Mapping[str, Any]) -> None:
    polygons, colors = op["polygons"], op["colors"]
    if not isinstance(polygons, list | tuple) or not isinstance(colors, list | tuple) or len(polygons) != len(colors):
        raise ValueError("plan: polygons and colors must be lists of one length")
    if any(color not in drawing.COLORS for color in colors):
        raise ValueError(f"plan: unknown color in {str(colors)[:80]}; known: {', '.join(drawing.COLORS)}")
    for polygon in polygons:
        if not isinstance(polygon, list | tuple) or not 3 <= len(polygon) <= MAX_OPS:
            raise ValueError(f"plan: a polygon has 3 to {MAX_OPS} points, got {str(polygon)[:80]}")
        for point in polygon:
            u, v = _read_integers({"op": "plan", "point": point}, "point", 2)
            if not (0 <= u < op["size"][0] and 0 <= v < op["size"][1]):
                raise ValueError(f"plan: point {[u, v]} is outside of a drawing of {op['size']} px")


def _read_integers(op: Mapping[str, Any], key: str, count: int) -> list[int]:
    values = op[key]
    if not isinstance(values, list | tuple) or len(values) != count:
        raise ValueError(f"{op['op']}: {key} must be a list of {count} integers")
    if any(isinstance(v, bool) or not isinstance(v, int) or abs(v) > MAX_SIDE * 2 for v in values):
        raise ValueError(f"{op['op']}: {key} must hold integer pixels, got {str(values)[:80]}")
    return list(values)


def _require_inside(op: Mapping[str, Any], image: ColorArray) -> None:
    height, width = image.shape[:2]
    if op["op"] == "point":
        left, top = right, bottom = op["uv"]
    else:
        left, top, right, bottom = op["rect"]
        if op["op"] == "crop_resize":
            right, bottom = left + right - 1, top + bottom - 1
    if left < 0 or top < 0 or right >= width or bottom >= height:
        raise _make_outside_error(op, image)


def _make_outside_error(op: Mapping[str, Any], image: ColorArray) -> Exception:
    where = op.get("rect", op.get("uv", op.get("H")))
    found = f"{op['op']} {where} on an image of {image.shape[1]}x{image.shape[0]} px"
    remedy = "The row and its image do not belong together: measure its scene again."
    return dataset_error("picture", found, "an operation within the image", remedy)


def _read_header(where: object, data: bytes) -> tuple[tuple[int, int], bool]:
    """((width, height), whether EXIF asks viewers to turn the image); decodes nothing."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            width, height = image.size
            turned = image.format == "JPEG" and image.getexif().get(0x0112, 1) != 1
    except (OSError, ValueError, SyntaxError) as error:
        raise _make_format_error(where, data) from error
    except Image.DecompressionBombError as error:  # Pillow's own bound is higher than ours
        raise _make_size_error(where, "hundreds of megapixels") from error
    if width * height > MAX_PIXELS:
        raise _make_size_error(where, f"{width}x{height} px")
    return (width, height), turned


def find_image_kind(data: bytes) -> str:
    """The suffix for an encoded image by its first bytes, such as "jpg"; "" where they begin no image."""
    return next((kind for start, kind in _KINDS if data.startswith(start)), "")


def _make_format_error(where: object, data: bytes) -> Exception:
    damage = f"{len(data)} bytes that are no image", "The file is damaged: measure its scene again."
    found, remedy = describe_stand_in(data[:HEAD_BYTES]) or damage
    return dataset_error(where, found, "a JPEG or PNG", remedy)


def _make_size_error(where: object, found: str) -> Exception:
    remedy = "Shrink the source images before building."
    return dataset_error(where, found, f"at most {MAX_PIXELS // 10**6} megapixels", remedy)
