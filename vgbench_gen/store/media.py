"""Images under the digest of their bytes: stored once, however many facts and items show them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.store.files import dataset_error, open_data, sync_all_to_disk, write_bytes

NAME = re.compile(r"[0-9a-f]{32}\.(?:jpg|png)", re.ASCII)
_MAGIC = {"jpg": b"\xff\xd8\xff", "png": b"\x89PNG\r\n\x1a\n"}


class MediaStore:
    """The folder `media/` of a build: `<root>/ab/<32 hex digits of BLAKE2b>.<jpg|png>`.

    Any number of threads and processes may put and get at once: equal names mean equal bytes, and a file appears
    under its name only when it is whole.

    Args:
        root: the media folder itself; made on the first `put`.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._unsynced: list[Path] | None = None

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Puts inside the block become durable together at its end, about ten times faster than one by one.

        Leave the block before writing a shard that names the images. A killed process loses nothing either way; the
        difference is a power cut.
        """
        if self._unsynced is not None:
            raise ValueError("a batch is open already")
        self._unsynced = []
        try:
            yield
            sync_all_to_disk(self._unsynced)
        finally:
            self._unsynced = None

    def put(self, data: bytes, suffix: str) -> str:
        """Store encoded image bytes and return their name.

        Args:
            data: the whole file.
            suffix: "jpg" or "png", with or without the dot.

        Raises:
            ValueError: another suffix, or the bytes do not begin like such a file.
        """
        suffix = suffix.removeprefix(".")
        if suffix not in _MAGIC or not data.startswith(_MAGIC[suffix]):
            raise ValueError(f"media are jpg or png files; got suffix {suffix!r} and bytes {data[:8]!r}")
        name = f"{digest_bytes(data)}.{suffix}"
        path = self._path(name)
        # A file of another length under this name is damage; writing anew mends it.
        if not path.is_file() or path.stat().st_size != len(data):
            write_bytes(path, data, durable=self._unsynced is None)
            if self._unsynced is not None:
                self._unsynced.append(path)
        return name

    def get(self, name: str) -> bytes:
        """The bytes that were put.

        Raises:
            DatasetError: not a media name, no such file, or its bytes no longer give its name.
        """
        path = self._path(name)
        remedy = "Measure its scene again (`vgbench build`)."
        with open_data(path, "an image that facts or items name", remedy) as file:
            data = file.read()
        if digest_bytes(data) != path.stem:
            raise dataset_error(
                path,
                f"{len(data)} bytes with digest {digest_bytes(data)}",
                "bytes whose digest is the file's name",
                "The file is damaged: delete it and measure its scene again (`vgbench build`).",
            )
        return data

    def has(self, name: str) -> bool:
        """Whether a file of this name is there. Raises DatasetError where it is not a media name."""
        return self._path(name).is_file()

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise dataset_error(
                self.root,
                f"the media name {name[:80]!r}",
                "32 hexadecimal digits and .jpg or .png",
                "The row that names it was not written by this program, or it is damaged.",
            )
        return self.root / name[:2] / name
