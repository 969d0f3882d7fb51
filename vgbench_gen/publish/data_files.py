"""The parquet files of a published set, `data/<configuration>/…`, and the example pictures of its card.

Images are embedded in the parquet files; each task of the benchmark has its own folder. Files are written as in a
build, within the limits of the Hub's viewer: below 500 MB, row groups of at most 100 rows or 8 MB, a page index, and an
image that several rows of a group show is stored once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path

from vgbench_gen.core.types import ColorArray, Item
from vgbench_gen.publish.licences import Gate
from vgbench_gen.publish.redact_pixels import FileFacts, RowImages, make_published_row
from vgbench_gen.publish.release import ALL, TRAIN, Release, RowSet
from vgbench_gen.store import shards
from vgbench_gen.store.columns import Column
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import decode, encode_jpeg
from vgbench_gen.store.schema import PUBLISHED, RecordSchema, Row

FOLDER = "data"
_EXAMPLES = "assets/examples"
_STRIP_WIDTH_PX = 1000  # the width of a card on the Hub
_STRIP_HEIGHT_PX = 360
_GAP_PX = 8
CANARY = Column("canary", "string", "the same in every row, to find out what was trained on; empty in training data")
_BATCH_ROWS = 32  # images of this many rows are decoded in parallel
TABLE: RecordSchema[Item] = RecordSchema(
    PUBLISHED.kind, (*PUBLISHED.columns, CANARY), PUBLISHED.to_row, PUBLISHED.read_row
)


@dataclass(frozen=True, slots=True)
class DataPart:
    """The data files of one task, of the hard questions or of the training data."""

    config: str
    """Configuration of `datasets`."""
    split: str
    task: str
    """Name of the task; "" for hard questions and training data."""
    pattern: str
    """Glob pattern of the files in the published set."""
    rows: int
    name: str = ""
    """Configuration of the task alone."""

    @property
    def title(self) -> str:
        """The task if its configuration has another name; else ""."""
        return self.task if self.task != self.name else ""


def write_parts(
    folder: Path, release: Release, gate: Gate, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[DataPart]:
    """Write all data files below `folder` and describe them.

    Args:
        gate: decides which rows have their images embedded; the others say how their images are made.
        progress: called with (rows written, rows in all).

    Raises:
        DatasetError: an image is missing or damaged.
    """
    total = sum(map(len, release.sets))
    parts: list[DataPart] = []
    for rows in release.sets:
        memory = FileFacts()
        canary = "" if rows.name == TRAIN else release.canary
        for task, places in (rows.by_task if rows.name == ALL else {"": rows.places}).items():
            name = rows.configurations[task] if rows.name == ALL else ""
            where = f"{FOLDER}/{rows.name}/{name}" if name else f"{FOLDER}/{rows.name}"
            before = sum(part.rows for part in parts)
            made = ({**row, CANARY.name: canary} for row in _make_rows(rows, places, gate, memory))
            shards.write_embedded_rows(folder / where, _report_rows(made, progress, before, total), TABLE, rows.split)
            pattern = f"{where}/{rows.split}-*.parquet"
            parts.append(DataPart(rows.name, rows.split, task, pattern, len(places), name))
    return parts


def _make_rows(rows: RowSet, places: Sequence[int], gate: Gate, memory: FileFacts) -> Iterator[Row]:
    """The rows at some places of a set, in the published form."""
    media = MediaStore(rows.home / "media") if (rows.home / "media").is_dir() else None
    columns = None if media is None else shards.list_light_columns
    found = shards.iterate_rows(rows.dataset.paths, columns, only=set(places))
    # Decoding and hashing release the interpreter lock.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        while batch := [{**row, **rows.apart.get(row["id"], {})} for row in islice(found, _BATCH_ROWS)]:
            if media is not None:
                new = [row for row in batch if not row.get("image_files")]
                names = dict.fromkeys(image["path"] for row in new for image in row["images"])
                list(pool.map(memory.of, names, repeat(media)))
            for row in batch:
                yield make_published_row(row, media or RowImages(row), gate.travels(row), memory)


def _report_rows(rows: Iterator[Row], progress: Callable[[int, int], None], before: int, total: int) -> Iterator[Row]:
    for done, row in enumerate(rows, start=before + 1):
        yield row
        progress(done, total)


@dataclass(frozen=True, slots=True)
class Example:
    """A question shown on the card."""

    item: Item
    picture: str
    """Path of the file with all its images, relative to the card."""


def write_examples(folder: Path, rows: RowSet, gate: Gate) -> list[Example]:
    """Write one picture per task below `folder`, of its first multiple-choice question, or of its first question.

    Tasks whose images may not be published are left out.

    Raises:
        DatasetError: an image is missing or damaged.
    """
    examples = []
    for task, places in rows.by_task.items():
        shown = [item for item in map(rows.dataset.__getitem__, places) if item.images and gate.travels(item)]
        if not shown:
            continue
        item = min(shown, key=lambda item: (item.question_type != "multi-choice", item.index))
        images = [decode(rows.dataset.image_bytes(item, k), item.images[k]) for k in range(len(item.images))]
        name = rows.configurations[task]
        picture = f"{_EXAMPLES}/{name}.jpg"
        write_bytes(folder / picture, encode_jpeg(strip_of(images)), durable=False)
        examples.append(Example(item, picture))
    return examples


def strip_of(images: list[ColorArray]) -> ColorArray:
    """Images ((h, w, 3) uint8 RGB) side by side on white at one height, at most `_STRIP_WIDTH_PX` wide."""
    import cv2
    import numpy as np

    gaps = _GAP_PX * (len(images) - 1)
    shapes = sum(image.shape[1] / image.shape[0] for image in images)
    height = max(1, min(_STRIP_HEIGHT_PX, int((_STRIP_WIDTH_PX - gaps) / shapes)))
    small = [
        cv2.resize(
            image, (max(1, round(image.shape[1] * height / image.shape[0])), height), interpolation=cv2.INTER_AREA
        )
        for image in images
    ]
    strip = np.full((height, sum(image.shape[1] for image in small) + gaps, 3), 255, dtype=np.uint8)
    left = 0
    for image in small:
        strip[:, left : left + image.shape[1]] = image
        left += image.shape[1] + _GAP_PX
    return strip
