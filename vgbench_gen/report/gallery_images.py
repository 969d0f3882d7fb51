"""Where a gallery finds the images of its items: in the dataset's `media/`, or in a folder of its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.files import replace_file
from vgbench_gen.store.media import NAME, MediaStore

OWN = "images"
_MAGIC = {b"\xff\xd8\xff": "jpg", b"\x89PNG\r\n\x1a\n": "png"}


def make_relative_address(folder: Path, target: Path) -> str:
    """The relative address of `target` for pages that stand in `folder`, which may not be there yet."""
    return quote(Path(os.path.relpath(target.resolve(), folder.resolve())).as_posix())


@dataclass
class GalleryImages:
    """Addresses of the images of a gallery; writes those that stand nowhere yet."""

    gallery: Path
    media: Path | None
    """The dataset's folder of images; None where it has none."""
    standalone: bool = False
    """Whether every image goes into the gallery, as a hard link where the disk allows it."""
    referenced: int = 0
    """The number of images that are shown from `media`."""
    own: int = 0
    """The number of images in the gallery that are shown."""
    missing: int = 0
    """The number of images that are neither stored nor embedded."""
    bytes: int = 0
    """The size in bytes of the images in the gallery that are shown."""
    store: MediaStore = field(init=False)
    """The gallery's own folder of images."""
    _known: dict[str, str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.store = MediaStore(self.gallery / OWN)

    @property
    def prefix(self) -> str:
        """Address of the media folder, relative to the gallery; "" where no image is taken from it."""
        if self.media is None or self.standalone:
            return ""
        return f"{make_relative_address(self.gallery, self.media)}/"

    def find_address(self, dataset: Dataset, item: Item, k: int) -> str:
        """Address of the item's k-th image: relative to the gallery, or "@…" relative to `prefix`; "" for none."""
        name = item.images[k]
        # A name is used as a path only when it is one of ours; anything else is known by its bytes.
        ours = isinstance(name, str) and NAME.fullmatch(name) is not None
        if ours and name in self._known:
            return self._known[name]
        found = self._link_stored(name) if ours else ""
        if not found:
            found = self._copy_embedded(dataset, item, k)
        if ours:
            self._known[name] = found
        return found

    def find_base(self, name: str) -> str:
        """The address of the frame that images are made of, as it was taken; "" where it is not stored or the gallery
        must be movable."""
        if self.media is None or self.standalone or not NAME.fullmatch(name):
            return ""
        return f"@{name[:2]}/{name}" if (self.media / name[:2] / name).is_file() else ""

    def close(self) -> None:
        """Remove own images that no item shows any more."""
        for path in sorted((self.gallery / OWN).glob("??/*")):
            if NAME.fullmatch(path.name) and path.name not in self._used:
                path.unlink()

    def _link_stored(self, name: str) -> str:
        if self.media is None:
            return ""
        source = self.media / name[:2] / name
        if not source.is_file():
            return ""
        if not self.standalone:
            self.referenced += 1
            return f"@{name[:2]}/{name}"
        target = self.gallery / OWN / name[:2] / name
        size = source.stat().st_size
        self._count(name, size)
        if not target.is_file() or target.stat().st_size != size:
            with replace_file(target, durable=False) as temporary:
                try:
                    os.link(source, temporary)
                except OSError:  # another disk, or one without links
                    shutil.copyfile(source, temporary)
        return f"{OWN}/{name[:2]}/{name}"

    def _copy_embedded(self, dataset: Dataset, item: Item, k: int) -> str:
        try:
            data = dataset.image_bytes(item, k)
        except DatasetError:
            self.missing += 1
            return ""
        suffix = next((kind for magic, kind in _MAGIC.items() if data.startswith(magic)), "")
        if not suffix:
            self.missing += 1
            return ""
        digest = f"{digest_bytes(data)}.{suffix}"
        if digest not in self._used:
            self._count(digest, len(data))
            self.store.put(data, suffix)
        return f"{OWN}/{digest[:2]}/{digest}"

    def _count(self, name: str, size: int) -> None:
        self._used.add(name)
        self.own += 1
        self.bytes += size
