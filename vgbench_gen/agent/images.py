"""The images of one run by the names that a model uses: `image-0`, `image-1`, ...; those that tools made come after."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in
from vgbench_gen.store import pictures
from vgbench_gen.store.files import dataset_error, open_data

MAX_IMAGE_BYTES = 64 << 20
MAX_IMAGES = 64  # of a run, those that tools made among them
MAX_MADE_BYTES = 256 << 20  # of all that tools made in a run
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
            DatasetError: its file is gone.
        """
        return read_source(self.source)


class ImageBook:
    """Images in the order of their numbers. No name ever stands for another image, and none is a path.

    Args:
        images: those of the question, encoded, or their files.

    Raises:
        DatasetError: as `add`.
    """

    def __init__(self, images: Sequence[bytes | Path] = ()) -> None:
        self._images: list[NamedImage] = []
        self._made_bytes = 0
        for source in images:
            self.add(source)

    def add(self, source: bytes | Path, made_by: str = "") -> NamedImage:
        """Give an image the next number.

        Raises:
            DatasetError: no readable JPEG or PNG, or there are `MAX_IMAGES` or `MAX_MADE_BYTES` already.
        """
        name = f"image-{len(self._images)}"
        if len(self._images) >= MAX_IMAGES:
            raise dataset_error(name, "one more image", f"at most {MAX_IMAGES} in a run", "Leave some out.")
        data, where = read_source(source), source if isinstance(source, Path) else name
        if made_by:
            self._made_bytes += len(data)
            if self._made_bytes > MAX_MADE_BYTES:
                raise dataset_error(name, f"{self._made_bytes} bytes made by tools", "fewer", "Make smaller images.")
        try:
            size_px = pictures.read_image_size(data, where)
        except DatasetError:
            if (found := describe_stand_in(data[:HEAD_BYTES])) is None:
                raise
            raise dataset_error(where, found[0], "a JPEG or PNG", found[1]) from None
        image = NamedImage(name, source, digest_bytes(data), size_px, made_by)
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
        DatasetError: no regular file that can be read, or one larger than `MAX_IMAGE_BYTES`.
    """
    if isinstance(source, bytes):
        return source
    with open_data(source, "a JPEG or PNG", "Check the path.") as file:
        data = file.read(MAX_IMAGE_BYTES + 1)
    if len(data) > MAX_IMAGE_BYTES:
        raise dataset_error(source, f"more than {MAX_IMAGE_BYTES} bytes", "a JPEG or PNG", "Make it smaller.")
    return data
