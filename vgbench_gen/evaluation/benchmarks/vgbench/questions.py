"""Our own datasets: folders of `vgbench build`, or their parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.importers.base import ASKED, ORIGIN
from vgbench_gen.store import shards
from vgbench_gen.store.dataset import Dataset, load
from vgbench_gen.store.media import NAME
from vgbench_gen.store.provenance import MANIFEST, dataset_fingerprint, read_manifest

_COLUMNS = ["id", "task", "question_type", "options", "source", "scene_id", "group_id"]


class Built:
    """The questions of a built dataset. One row group of images is in memory at a time."""

    benchmark = "VGBench"

    def __init__(self, path: Path) -> None:
        self._path = path
        self._dataset: Dataset = load(path)
        self._media = self.folder / "media"
        self._has_media = self._media.is_dir()

    @cached_property
    def folder(self) -> Path:
        """The folder with `items/`, or without `items/` the folder with the files."""
        place = self._path.resolve().parent if self._path.is_file() else self._path
        return place.resolve().parent if place.resolve().name == "items" else place

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint in the manifest, else computed from the rows."""
        if (self.folder / MANIFEST).is_file() and not self._path.is_file():
            known = read_manifest(self.folder).get("fingerprint")
            if isinstance(known, str) and known:
                return known
        return dataset_fingerprint(self._dataset)

    def rows(self) -> Iterator[QuestionRow]:
        for place, row in enumerate(shards.iterate_rows(self._dataset.paths, _COLUMNS, 4096)):
            scene = f"{row['source']}/{row['scene_id']}"
            count = len(row["options"] or ())
            yield QuestionRow(place, row["id"], row["task"], row["question_type"], count, scene, row["group_id"])

    def item(self, row: int) -> Item:
        return self._dataset[row]

    def texts(self) -> Iterator[Item]:
        """The questions without most of their evidence, which takes longest to read."""
        return self._dataset.without_evidence(ASKED, ORIGIN)

    def image(self, item: Item, k: int) -> bytes | Path:
        """The file of an image in the build's media folder, else its bytes from the parquet files."""
        file = self._media / item.images[k][:2] / item.images[k]
        if self._has_media and NAME.fullmatch(item.images[k]) and file.is_file():
            return file
        return self._dataset.image_bytes(item, k)

    def again(self) -> Built:
        return Built(self._path)
