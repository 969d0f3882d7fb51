"""Prepares images for sending: checks them, scales them down if asked, and keeps the latest ones encoded."""

from __future__ import annotations

import asyncio
import base64
import io
import os
import stat
import warnings
from collections import OrderedDict
from dataclasses import dataclass

from vgbench_gen.backends.base import BackendError, ImagePart
from vgbench_gen.core.rng import digest_bytes

MAX_BYTES = 32 << 20  # providers refuse images of 20 MB and more
MAX_PIXELS = 1 << 27  # 134 megapixels, far above any camera; it bounds the memory of resizing
_KEPT_BYTES = 48 << 20
_JPEG_QUALITY = 95  # that of delivered images (docs/formats.md#delivered-images)
_TYPES = {"JPEG": "image/jpeg", "PNG": "image/png"}


@dataclass(frozen=True, slots=True)
class SentImage:
    """An encoded image as it is sent."""

    data: bytes
    url: str
    """A data URL (RFC 2397) of the data."""
    digest: str
    size_px: tuple[int, int]
    """(width, height)."""
    kind: str = "jpeg"
    """"jpeg" or "png"."""


class ImageCache:
    """Prepares images and keeps the latest ones, up to a bound in bytes."""

    def __init__(self, kept_bytes: int = _KEPT_BYTES) -> None:
        self._kept: OrderedDict[tuple[object, ...], SentImage] = OrderedDict()
        self._room = kept_bytes

    async def prepare(self, part: ImagePart) -> SentImage:
        """The image as it is sent.

        Raises:
            BackendError: wrong_request: no such file, no JPEG or PNG, too large, or damaged.
        """
        key = _make_key(part)
        if (kept := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return kept
        data, where = _read(part)
        size_px, kind = _read_header(data, where)
        if part.long_side_px and max(size_px) > part.long_side_px:
            data, size_px = await asyncio.to_thread(_shrink, data, size_px, kind, part.long_side_px, where)
        url = f"data:{_TYPES[kind]};base64,{base64.b64encode(data).decode()}"
        image = SentImage(data, url, digest_bytes(data), size_px, kind.lower())
        self._keep(key, image)
        return image

    def _keep(self, key: tuple[object, ...], image: SentImage) -> None:
        if key in self._kept:
            return
        self._kept[key] = image
        self._room -= len(image.data) + len(image.url)
        while self._room < 0 and self._kept:
            _, old = self._kept.popitem(last=False)
            self._room += len(old.data) + len(old.url)


def _make_key(part: ImagePart) -> tuple[object, ...]:
    if isinstance(part.source, bytes):
        return (digest_bytes(part.source), part.long_side_px)
    try:
        status = part.source.stat()
    except OSError as exc:
        raise BackendError("wrong_request", f"{part.source}: the image cannot be read ({exc.strerror}).") from None
    if not stat.S_ISREG(status.st_mode):
        raise BackendError("wrong_request", f"{part.source}: found no regular file; expected a JPEG or PNG file.")
    return (str(part.source), status.st_ino, status.st_mtime_ns, status.st_size, part.long_side_px)


def _read(part: ImagePart) -> tuple[bytes, str]:
    if isinstance(part.source, bytes):
        data, where = part.source, "an image given as bytes"
    else:
        where = str(part.source)
        try:
            with part.source.open("rb") as file:
                # `read` allocates the whole bound, so the bound is the size where that is less.
                data = file.read(min(os.fstat(file.fileno()).st_size, MAX_BYTES) + 1)
        except OSError as exc:
            raise BackendError("wrong_request", f"{where}: the image cannot be read ({exc.strerror}).") from None
    if len(data) > MAX_BYTES:
        raise BackendError("wrong_request", f"{where}: larger than {MAX_BYTES} bytes. Send a smaller image.")
    return data, where


def _read_header(data: bytes, where: str) -> tuple[tuple[int, int], str]:
    """(width, height) and JPEG or PNG, from the header alone."""
    from PIL import Image, UnidentifiedImageError

    try:
        with warnings.catch_warnings(action="ignore"), Image.open(io.BytesIO(data), formats=("JPEG", "PNG")) as image:
            size_px, kind = image.size, str(image.format)
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, SyntaxError, ValueError) as exc:
        # The message does not quote the bytes, which are untrusted.
        raise BackendError(
            "wrong_request", f"{where}: found no usable JPEG or PNG ({type(exc).__name__}). Send such a file."
        ) from None
    if size_px[0] * size_px[1] > MAX_PIXELS:
        raise BackendError("wrong_request", f"{where}: {size_px[0]} x {size_px[1]} pixels, more than {MAX_PIXELS}.")
    return size_px, kind


def _shrink(
    data: bytes, size_px: tuple[int, int], kind: str, long_side_px: int, where: str
) -> tuple[bytes, tuple[int, int]]:
    import cv2
    import numpy as np

    scale = long_side_px / max(size_px)
    target = (max(1, round(size_px[0] * scale)), max(1, round(size_px[1] * scale)))
    pixels = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED | cv2.IMREAD_IGNORE_ORIENTATION)
    if pixels is None:
        raise BackendError("wrong_request", f"{where}: damaged: its header is fine, its pixels cannot be decoded.")
    smaller = cv2.resize(pixels, target, interpolation=cv2.INTER_AREA)
    if kind == "JPEG":
        done, encoded = cv2.imencode(".jpg", smaller, [cv2.IMWRITE_JPEG_QUALITY, _JPEG_QUALITY])
    else:
        done, encoded = cv2.imencode(".png", smaller)
    if not done:
        raise BackendError("wrong_request", f"{where}: cannot be encoded at {target[0]} x {target[1]}.")
    return encoded.tobytes(), target
