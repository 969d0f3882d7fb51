"""SpatialScore in its published form: a JSON list of rows, and a folder with their images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path

from vgbench_gen.core.rng import digest_bytes, hash_stably
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.importers.published import list_image_files, read_items
from vgbench_gen.store.files import dataset_error

_READING = "1"  # version of reading the rows; a new version gives the same file another fingerprint
REMEDY = "Download the images of SpatialScore and name the folder that holds `dataset/` with --images."


class Published:
    """The questions of a file. Replies and scores are written to the folder `<file without .json>.vgbench` next to it.

    Images are identified by their paths, so a changed image under the same path is not noticed.
    """

    benchmark = "SpatialScore"

    def __init__(self, path: Path, images: Path | None) -> None:
        self._path = path
        self._folders = (images,) if images is not None else (path.parent, path.resolve().parent.parent)
        self._found: dict[str, Path] = {}
        self._items, self.notes = read_items(path)

    @property
    def folder(self) -> Path:
        return self._path.with_name(f"{self._path.stem}.vgbench")

    @cached_property
    def fingerprint(self) -> str:
        """Digest of the file's bytes."""
        return hash_stably(_READING, digest_bytes(self._path.read_bytes()), size=16)

    def rows(self) -> Iterator[QuestionRow]:
        for place, item in enumerate(self._items):
            scene = f"{item.source}/{item.scene_id}"
            yield QuestionRow(place, item.id, item.task, item.question_type, len(item.options), scene, item.group_id)

    def item(self, row: int) -> Item:
        return self._items[row]

    def image(self, item: Item, k: int) -> Path:
        """The file of an image. Raises DatasetError if there is none."""
        name = item.images[k]
        if name not in self._found:
            file = next((path for path in list_image_files(self._folders, name) if path.is_file()), None)
            if file is None:
                where = " or ".join(map(str, self._folders))
                raise dataset_error(where, f"no file {name}", "the images of the questions", REMEDY)
            self._found[name] = file
        return self._found[name]

    def missing_images(self, rows: Sequence[QuestionRow]) -> list[str]:
        names = dict.fromkeys(name for row in rows for name in self.item(row.row).images)
        return [
            name
            for name in names
            if name not in self._found and not any(path.is_file() for path in list_image_files(self._folders, name))
        ]

    def again(self) -> Published:
        """This object, because its rows never change."""
        return self
