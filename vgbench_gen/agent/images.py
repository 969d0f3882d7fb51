"""The images of one run, named `image-0`, `image-1`, ...: first those of the question, then those that tools made."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.store.files import dataset_error, open_data
from vgbench_gen.store.pictures import read_image_size

MAX_IMAGE_BYTES = 64 << 20
MAX_IMAGES = 64  # the most images in a run, including those made by tools
MAX_MADE_BYTES = 256 << 20  # total size of the images that tools make in a run
NAME = re.compile(r"image-(0|[1-9][0-9]?)")


@dataclass(frozen=True, slots=True)
class NamedImage:
    """One image of a run."""

    name: str
    source: bytes | Path
    """JPEG or PNG bytes, or a file. Files are read when needed, so that a thousand questions at once fit in memory."""
    digest: str
    size_px: tuple[int, int]
    """(width, height)."""
    made_by: str = ""
    """The tool that made it; "" for images of the question."""

    @property
    def data(self) -> bytes:
        """The encoded image.

        Raises:
            DatasetError: its file is gone.
        """
        return read_source(self.source)


class ImageBook:
    """Images in the order of their numbers, first those of the question; errors are those of `add`.

    A name never changes its image, and is never used as a path.
    """

    def __init__(self, images: Sequence[bytes | Path] = ()) -> None:
        self._images: list[NamedImage] = []
        self._made_bytes = 0
        for source in images:
            self.add(source)

    def add(self, source: bytes | Path, made_by: str = "") -> NamedImage:
        """Add an image under the next number.

        Raises:
            DatasetError: no readable JPEG or PNG, or more than `MAX_IMAGES` or `MAX_MADE_BYTES`.
        """
        name = f"image-{len(self._images)}"
        if len(self._images) >= MAX_IMAGES:
            raise dataset_error(name, "one image too many", f"at most {MAX_IMAGES} in a run", "Leave some out.")
        data, where = read_source(source), source if isinstance(source, Path) else name
        if made_by:
            self._made_bytes += len(data)
            if self._made_bytes > MAX_MADE_BYTES:
                raise dataset_error(name, f"{self._made_bytes} bytes made by tools", "fewer", "Make smaller images.")
        image = NamedImage(name, source, digest_bytes(data), read_image_size(data, where), made_by)
        self._images.append(image)
        return image

    def find(self, name: str) -> NamedImage:
        """The image of this name.

        Raises:
            KeyError: there is none; the message lists the known names.
        """
        match = NAME.fullmatch(name)
        if match is None or int(match[1]) >= len(self._images):
            known = ", ".join(image.name for image in self._images) or "none"
            raise KeyError(f"found {name!r:.60}; expected the name of an image: {known}")
        return self._images[int(match[1])]

    def __len__(self) -> int:
        return len(self._images)

    def __iter__(self) -> Iterator[NamedImage]:
        return iter(self._images)


def read_source(source: bytes | Path) -> bytes:
    """The bytes of an image.

    Raises:
        DatasetError: no regular file that can be read, or one larger than `MAX_IMAGE_BYTES`.
    """
    if isinstance(source, bytes):
        return source
    with open_data(source, "a JPEG or PNG", "Check the path.") as file:
        data = file.read(MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        raise dataset_error(source, f"more than {MAX_IMAGE_BYTES} bytes", "a JPEG or PNG", "Make it smaller.")
    return data
