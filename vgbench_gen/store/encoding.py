"""How tables are laid down in parquet files, whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from vgbench_gen.core.rng import format_canonical_json
from vgbench_gen.store.schema import SCHEMA_VERSION, RecordSchema, Row

GROUP_ROWS = 100
GROUP_BYTES = 8 * 2**20  # of a row group; writing takes about ten times this in memory


def make_stored_schema(table: RecordSchema[Any], metadata: Mapping[str, Any] | None = None) -> pa.Schema:
    """The table's schema with the notes of a file, see `read_metadata`."""
    notes = {**(metadata or {}), "kind": table.kind, "schema_version": SCHEMA_VERSION}
    schema = table.schema
    return schema.with_metadata({**schema.metadata, b"vgbench": format_canonical_json(notes).encode()})


def list_leaves(path: str, arrow_type: Any) -> Iterator[tuple[str, Any]]:
    """(parquet path, type) of all that a column of this type holds."""
    if pa.types.is_list(arrow_type):
        yield from list_leaves(f"{path}.list.element", arrow_type.value_type)
    elif pa.types.is_struct(arrow_type):
        for field in arrow_type:
            yield from list_leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, arrow_type


def open_parquet_writer(path: Path, table: RecordSchema[Any], schema: pa.Schema) -> Any:
    """A `pyarrow.parquet.ParquetWriter` with the encodings of this table."""
    leaves = dict(leaf for field in table.schema for leaf in list_leaves(field.name, field.type))
    text, images = ([path for path, kind in leaves.items() if kind == each] for each in (pa.string(), pa.binary()))
    numbers = [path for path in leaves if path not in {*text, *images}]
    # No dictionaries for numbers: they make equal floats share an entry, and zeros and NaNs compare oddly. One for
    # images lets twins, and all rows of a group, share theirs; JPEG bytes gain nothing from a codec or from bounds.
    return pq.ParquetWriter(
        path,
        schema,
        compression=dict.fromkeys([*text, *numbers], "snappy") | dict.fromkeys(images, "none"),
        use_dictionary=[*text, *images],
        dictionary_pagesize_limit=4 * GROUP_BYTES,
        write_statistics=[*text, *numbers],
        write_page_index=True,
    )


class GroupWriter:
    """One parquet file, written row group by row group: one is written while the rows of the next are gathered.

    rows: rows added. size: bytes of text and images added.
    """

    def __init__(self, path: Path, table: RecordSchema[Any], metadata: Mapping[str, Any] | None) -> None:
        self._schema = make_stored_schema(table, metadata)
        self._parquet = open_parquet_writer(path, table, self._schema)
        self._pending: list[Row] = []
        self._beside = ThreadPoolExecutor(1)
        self._writing: Future[None] | None = None
        self._shown: set[str] = set()
        self._pending_size = 0
        self.rows = self.size = 0

    def add(self, row: Row) -> None:
        """Add a row, as the table has them; a row group that is full then is written."""
        size = _measure_row(row)
        for image in row.get("images", ()):
            if image["path"] in self._shown:
                size -= len(image["bytes"] or b"")
            self._shown.add(image["path"])
        self._pending.append(row)
        self._pending_size += size
        self.rows += 1
        self.size += size
        if len(self._pending) >= GROUP_ROWS or self._pending_size >= GROUP_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left, and the footer."""
        if self._pending:
            self._flush()
        self._settle()
        self._beside.shutdown()
        self._parquet.close()

    def abandon(self) -> None:
        """Let go of the file; what is on the disk is of no use."""
        self._pending.clear()
        self._beside.shutdown()
        with suppress(OSError):  # closing writes a footer, and the disk may be full
            self._parquet.close()

    def __enter__(self) -> GroupWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()

    def _flush(self) -> None:
        self._settle()
        self._writing = self._beside.submit(self._write, self._pending)
        self._pending, self._pending_size = [], 0
        self._shown.clear()

    def _settle(self) -> None:
        """Wait for the row group that is being written. Raises what writing it raised."""
        if self._writing is not None:
            self._writing.result()
            self._writing = None

    def _write(self, rows: list[Row]) -> None:
        self._parquet.write_table(pa.Table.from_pylist(rows, schema=self._schema), row_group_size=len(rows))


def _measure_row(value: Any) -> int:
    if isinstance(value, str | bytes):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_measure_row, value.values()))
    if isinstance(value, list):
        return sum(map(_measure_row, value))
    return 8
