"""Images that a caller sends along: base64, or paths below folders that the user opened to it."""

from __future__ import annotations

import base64
import binascii
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from vgbench_gen.agent.announced import MAX_IMAGES, MAX_REQUEST_BYTES
from vgbench_gen.agent.tool import ToolError

_MAGIC = {b"\xff\xd8\xff": "image/jpeg", b"\x89PNG\r\n\x1a\n": "image/png"}


def take_images(arguments: dict[str, Any], roots: Sequence[Path]) -> tuple[dict[str, Any], list[bytes]]:
    """(the arguments with images by name, the images).

    Args:
        arguments: with the images themselves as `image`.
        roots: folders without links in their paths; none: base64 alone.

    Raises:
        ToolError: one is neither an image in base64 nor a path to one below the folders.
    """
    given = arguments.get("image")
    if given is None:
        return arguments, []
    texts = given if isinstance(given, list) else [given]
    if len(texts) > MAX_IMAGES or not all(isinstance(text, str) for text in texts):
        raise ToolError(f"image: expected at most {MAX_IMAGES} texts")
    images = [_read_image(text, roots) for text in texts]
    names = [f"image-{k}" for k in range(len(images))]
    return arguments | {"image": names if isinstance(given, list) else names[0]}, images


def _read_image(text: str, roots: Sequence[Path]) -> bytes:
    encoded = text.partition("base64,")[2] if text.startswith("data:") else text
    try:
        data = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        data = b""
    if find_kind(data):
        return data
    if not roots:
        raise ToolError("image: found no JPEG or PNG in base64; paths are read where the server has --images FOLDER")
    for root in roots:
        if (found := _read_below(root, text)) is not None:
            return found
    # The same words whether it lies elsewhere or nowhere.
    raise ToolError("image: found neither a JPEG or PNG in base64 nor a path to one below the folders of --images")


def _read_below(root: Path, text: str) -> bytes | None:
    """The image at a path, if that lies below a folder once all links are followed."""
    try:
        path = Path(os.path.realpath(root / text))
        if not path.is_relative_to(root):
            return None
        # What is swapped for a link or a pipe meanwhile is not followed and does not block.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        return None
    with os.fdopen(handle, "rb") as file:
        data = file.read(MAX_REQUEST_BYTES + 1)
    return data if len(data) <= MAX_REQUEST_BYTES and find_kind(data) else None


def find_kind(data: bytes) -> str:
    """The media type of an encoded image; "" where it is neither JPEG nor PNG."""
    return next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
