"""A dataset written again with some of its rows changed: what stays as it is is linked or carried over, never unpacked.

Most of a dataset's bytes are images, and most changes leave them alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgbench_gen.store.encoding import make_stored_schema, open_parquet_writer
from vgbench_gen.store.files import fill_folder, link_file, sync_to_disk
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import ITEMS, Row
from vgbench_gen.store.shards import iterate_rows, list_images, list_light_columns, open_parquet, read_group

_AT_ONCE = 512


@dataclass(frozen=True, slots=True)
class _Part:
    """One file of rows to make from another."""

    source: Path
    target: Path
    start: int
    """The place of its first row in the dataset."""
    count: int


def read_stored_rows(paths: Sequence[Path]) -> list[Row] | None:
    """The rows of a dataset as `make_item_row` makes them, whose texts were not read; `rewrite_items` takes them.

    Args:
        paths: all its files in order, as `store.dataset.Dataset.paths`.

    Returns:
        None where a file is not quite as this program writes it now: its rows must be read one by one.

    Raises:
        DatasetError: a file is missing, not parquet or damaged.
    """
    schema = make_stored_schema(ITEMS)
    for path in paths:
        with open_parquet(path) as file:
            # Fields have metadata of their own when they are read.
            if not file.schema_arrow.equals(schema) or file.schema_arrow.metadata != schema.metadata:
                return None
    rows = list(iterate_rows(paths, list_light_columns, _AT_ONCE))
    for row in rows:
        row["images"] = [{"bytes": None, **image} for image in row["images"]]
    return rows


def rewrite_items(
    folder: Path,
    paths: Sequence[Path],
    before: Sequence[Row],
    after: Sequence[Row],
    media: MediaStore,
    threads: int = 1,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Path]:
    """Write `after` as a dataset of as many files, cut where those of `before` are; see `shards.write_items`.

    A file without a changed row is linked (copied where the disk cannot link), so it must not be changed in place.
    Images of a row that names the same ones as before come from the file, others from `media`.

    Args:
        folder: replaced whole; may be where `paths` are.
        paths: files of `before`, of which `read_stored_rows` could read the rows.
        before, after: rows in order; after[k] is before[k], the same object, where a row stays.
        media: where the bytes of other images are.
        threads: files written at once; changes nothing.
        progress: called with (rows written, rows).

    Raises:
        DatasetError: an image is missing or damaged, or a file is; `folder` stays as it was.
    """
    parts: list[_Part] = []
    with fill_folder(folder) as filling, ThreadPoolExecutor(max(1, threads)) as pool:
        start = 0
        for k, path in enumerate(paths):
            with open_parquet(path) as file:
                count = file.metadata.num_rows
            parts.append(_Part(path, filling / f"items-{k:05d}-of-{len(paths):05d}.parquet", start, count))
            start += count
        waiting = {pool.submit(_write_part, part, before, after, media): part for part in parts}
        done = 0
        try:
            for future in as_completed(waiting):
                future.result()
                done += waiting[future].count
                progress(done, len(after))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [folder / part.target.name for part in parts]


def _write_part(part: _Part, before: Sequence[Row], after: Sequence[Row], media: MediaStore) -> None:
    places = range(part.start, part.start + part.count)
    changed = {k - part.start: after[k] for k in places if after[k] is not before[k]}
    if not changed:
        link_file(part.source, part.target)
        return
    repainted = {k for k, row in changed.items() if list_images(row) != list_images(before[part.start + k])}
    schema = make_stored_schema(ITEMS)
    with open_parquet(part.source) as file, open_parquet_writer(part.target, ITEMS, schema) as writer:
        start = 0
        for group in range(file.metadata.num_row_groups):
            table = read_group(part.source, file, group)
            here = range(start, start + len(table))
            mine = {k - start: row for k, row in changed.items() if k in here}
            if mine:
                table = _replace_rows(table, mine, {k - start for k in repainted if k in here}, media)
            start += len(table)
            writer.write_table(table, row_group_size=len(table))
    sync_to_disk(part.target)


def _replace_rows(table: Any, changed: Mapping[int, Row], repainted: set[int], media: MediaStore) -> Any:
    """The table with other rows at some places, and other images at some of these."""
    records = []
    for k, row in changed.items():
        names = list_images(row) if k in repainted else []
        records.append({**row, "images": [{"bytes": media.get(name), "path": name} for name in names]})
    both = pa.concat_tables([table, pa.Table.from_pylist(records, schema=table.schema)])
    new = {k: len(table) + j for j, k in enumerate(changed)}
    texts = both.drop_columns(["images"]).take([new.get(k, k) for k in range(len(table))])
    images = table["images"]
    if repainted:
        images = both["images"].take(pa.array([new[k] if k in repainted else k for k in range(len(table))]))
    place = table.schema.get_field_index("images")
    return texts.add_column(place, table.schema.field(place), images)
