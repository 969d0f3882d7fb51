"""The parquet files of a published set: `data/<configuration>/…`, images inside, one folder per task of the benchmark.

The writer is the one of a build: files below 500 MB, row groups of at most 100 rows or 8 MB, a page index, images
that many rows of a group show stored once. That is what the Hub's viewer asks for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from vgbench_gen.core.types import Item
from vgbench_gen.publish.licences import Gate
from vgbench_gen.publish.redact_pixels import EmbeddedMedia, FileFacts, make_published_row
from vgbench_gen.publish.release import ALL, TRAIN, Release, RowSet
from vgbench_gen.store import shards
from vgbench_gen.store.columns import Column
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import PUBLISHED, RecordSchema, Row

FOLDER = "data"
CANARY = Column("canary", "string", "the same in every row, to find out what was trained on; empty in training data")
_AT_ONCE = 32  # rows whose images are looked at together
TABLE: RecordSchema[Item] = RecordSchema(
    PUBLISHED.kind, (*PUBLISHED.columns, CANARY), PUBLISHED.to_row, PUBLISHED.read_row
)


@dataclass(frozen=True, slots=True)
class DataPart:
    """Data files that belong together."""

    config: str
    """The configuration under which `datasets` finds them."""
    split: str
    """The split under which `datasets` finds them."""
    task: str
    """The task whose questions they hold, "" outside the benchmark."""
    pattern: str
    """What their names in the published set match."""
    rows: int
    """How many questions all of them hold."""
    files: tuple[Path, ...]
    name: str = ""
    """The name of the task's own configuration."""

    @property
    def title(self) -> str:
        """The task, named beside the configuration where the two differ; else ""."""
        return self.task if self.task != self.name else ""


def write_parts(
    folder: Path, release: Release, gate: Gate, progress: Callable[[int, int], None] = lambda done, total: None
) -> list[DataPart]:
    """Write all data files and say what they are.

    Args:
        folder: gets `data/`.
        gate: whose pixels travel; other rows carry how to make their images instead.
        progress: called with (rows written, rows in all).

    Raises:
        DatasetError: an image is missing or damaged.
    """
    total = sum(map(len, release.sets))
    parts: list[DataPart] = []
    for rows in release.sets:
        make = _Rows(rows, gate, "" if rows.name == TRAIN else release.canary)
        for task, places in (rows.by_task if rows.name == ALL else {"": _choose_places(rows)}).items():
            name = rows.configurations[task] if rows.name == ALL else ""
            where = f"{FOLDER}/{rows.name}/{name}" if name else f"{FOLDER}/{rows.name}"
            before = sum(part.rows for part in parts)
            told = _report_rows(make.of(places), partial(_offset_progress, progress, before, total))
            files = shards.write_embedded_rows(folder / where, told, TABLE, rows.split)
            pattern = f"{where}/{rows.split}-*.parquet"
            parts.append(DataPart(rows.name, rows.split, task, pattern, len(places), tuple(files), name))
    return parts


class _Rows:
    """Rows of a set as they are published."""

    def __init__(self, rows: RowSet, gate: Gate, canary: str) -> None:
        self._paths = rows.dataset.paths
        self._apart = rows.apart
        media = rows.home / "media"
        self._media = MediaStore(media) if media.is_dir() else EmbeddedMedia(rows.dataset)
        self._gate = gate
        self._canary = {CANARY.name: canary}
        self._memory = FileFacts()

    def of(self, places: Sequence[int]) -> Iterator[Row]:
        found = shards.iterate_rows(self._paths, shards.list_light_columns, only=set(places))
        rows = ({**row, **self._apart.get(row["id"], {})} for row in found)
        # Decoding and digests let go of the interpreter; their order does not matter.
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
            while batch := list(islice(rows, _AT_ONCE)):
                if isinstance(self._media, MediaStore):
                    new = [row for row in batch if not row.get("image_files")]
                    names = dict.fromkeys(image["path"] for row in new for image in row["images"])
                    list(pool.map(lambda name: self._memory.of(name, self._media), names))
                for row in batch:
                    yield make_published_row(row, self._media, self._gate.travels(row), self._memory) | self._canary


def _offset_progress(progress: Callable[[int, int], None], before: int, total: int, done: int) -> None:
    progress(before + done, total)


def _report_rows(rows: Iterator[Row], progress: Callable[[int], None]) -> Iterator[Row]:
    for done, row in enumerate(rows, start=1):
        yield row
        progress(done)


def _choose_places(rows: RowSet) -> Sequence[int]:
    return range(len(rows.dataset)) if rows.keep is None else rows.keep
