"""The images of one run by the names that a model uses: `image-0`, `image-1`, ...; those that tools made come after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.store import pictures

MAX_IMAGE_BYTES = 64 << 20
MAX_IMAGES = 64  # of a run, those that tools made among them
NAME = re.compile(r"image-(0|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class NamedImage:
    """One image of a run."""

    name: str
    """`image-` and a number from 0 on."""
    source: bytes | Path
    """JPEG or PNG, or the file that holds it: a thousand questions under way hold no images of theirs."""
    digest: str
    size_px: tuple[int, int]
    """(width, height)."""
    made_by: str = ""
    """The tool that made it; "" for images of the question."""

    @property
    def data(self) -> bytes:
        """The bytes.

        Raises:
            OSError: its file is gone.
        """
        return read_source(self.source)


class ImageBook:
    """Images in the order of their numbers. No name ever stands for another image, and none is a path.

    Args:
        images: those of the question, encoded, or their files.

    Raises:
        DatasetError: one is no readable JPEG or PNG.
        ValueError: more than `MAX_IMAGES`.
    """

    def __init__(self, images: Sequence[bytes | Path] = ()) -> None:
        self._images: list[NamedImage] = []
        for source in images:
            self.add(source)

    def add(self, source: bytes | Path, made_by: str = "") -> NamedImage:
        """Give an image the next number.

        Raises:
            DatasetError: no readable JPEG or PNG.
            ValueError: there are `MAX_IMAGES` already, or the file is too large.
            OSError: the file cannot be read.
        """
        if len(self._images) >= MAX_IMAGES:
            raise ValueError(f"a run has at most {MAX_IMAGES} images")
        name = f"image-{len(self._images)}"
        data = read_source(source)
        image = NamedImage(name, source, digest_bytes(data), pictures.read_image_size(data, name), made_by)
        self._images.append(image)
        return image

    def find(self, name: str) -> NamedImage:
        """The image of this name.

        Raises:
            KeyError: there is none; the message lists those that there are.
        """
        match = NAME.fullmatch(name)
        if match is None or int(match[1]) >= len(self._images):
            known = ", ".join(image.name for image in self._images) or "none"
            raise KeyError(f"found {name!r:.60}; expected the name of an image: {known}")
        return self._images[int(match[1])]

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self):  # type: ignore[no-untyped-def]
        return iter(self._images)


def read_source(source: bytes | Path) -> bytes:
    """The bytes of an image.

    Raises:
        ValueError: the file is larger than `MAX_IMAGE_BYTES`.
        OSError: it cannot be read.
    """
    if isinstance(source, bytes):
        return source
    with source.open("rb") as file:
        data = file.read(MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        raise ValueError(f"{source}: larger than {MAX_IMAGE_BYTES} bytes")
    return data
