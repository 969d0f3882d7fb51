"""Parquet files written whole or not at all, with the same bytes for the same rows.

Nothing in a file depends on the clock or the process. The bytes do depend on the pyarrow release, which signs them;
`provenance.dataset_fingerprint` does not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.types import Item
from vgbench_gen.store.encoding import GroupWriter
from vgbench_gen.store.files import (
    clean_temporary,
    dataset_error,
    fill_folder,
    replace_file,
    sync_to_disk,
)
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.schema import ITEMS, PUBLISHED, SCHEMA_VERSION, RecordSchema, Row, make_item_row

__all__ = [
    "check_schema", "clean_temporary", "damage_error", "iterate_rows", "list_images", "list_light_columns", "list_rows",
    "open_parquet", "read_columns", "read_group", "read_metadata", "read_shard", "write_embedded_rows",
    "write_item_rows", "write_items", "write_rows", "write_shard",
]  # fmt: skip

READ_AHEAD = 32  # rows whose images are read at once
SHARD_BYTES = 400 * 2**20  # below the 500 MB up to which the Hub makes previews
MAX_GROUP_BYTES = 512 * 2**20
"""Bytes of text and numbers in a row group at most; those that we write hold less than 1 MB."""
MAX_DECODED_BYTES = 2**30
"""What a row group may take in memory where it is read whole, images included."""
_BATCH_BYTES = 512 * 2**20  # a long cell may stand in every row of a group, and in the file only once
_VALUE_BYTES = 16  # that a value takes at least, of which the file may hold less than one
_REMEDY = "Build it again (`vgbench build`), or name the right path."

_ITEM_NAMES = {column.name for column in ITEMS.columns}
_ITEM_TYPES = {field.name: field.type for field in PUBLISHED.schema}

R = TypeVar("R")


def write_shard(
    path: Path, records: Iterable[R], table: RecordSchema[R], metadata: Mapping[str, Any] | None = None
) -> int:
    """Write records (facts or rejects) as one file and return how many they were.

    Args:
        path: target; its folder is made. It appears, or is replaced, only when the new file is whole.
        records: in the order to keep; consumed once.
        metadata: JSON-ready notes about this shard (config digest, task versions, counts), see `read_metadata`.
    """
    return write_rows(path, map(table.to_row, records), table, metadata)


def write_rows(
    path: Path, rows: Iterable[Row], table: RecordSchema[R], metadata: Mapping[str, Any] | None = None
) -> int:
    """`write_shard` for rows that are already in the table's columns."""
    count = 0
    with replace_file(path) as temporary, GroupWriter(temporary, table, metadata) as writer:
        for row in rows:
            writer.add(row)
            count += 1
    return count


def write_items(
    folder: Path,
    items: Iterable[Item],
    media: MediaStore,
    rows_per_shard: int | None = None,
    bytes_per_shard: int = SHARD_BYTES,
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:
    """Write the dataset `folder/items-00000-of-0000N.parquet` with the images inside.

    Items are streamed: at most one row group (100 rows or 8 MB of images) is in memory, and the images of the next 64
    rows. A row group holds an image once, however many of its rows show it. The files are written beside
    `folder`, which is swapped at the end, so a reader sees the old set or the new one. No items give one empty file.

    Args:
        folder: usually `build/<name>/items`; replaced whole.
        media: where the images' bytes are.
        rows_per_shard, bytes_per_shard: a shard ends when either is reached (bytes: images, once per row group, and
            text before compression); both count rows only, so the cuts are the same on every machine.

    Raises:
        DatasetError: an image is missing or damaged; `folder` stays as it was.
    """
    return write_item_rows(folder, map(make_item_row, items), media, rows_per_shard, bytes_per_shard, metadata)


def write_item_rows(
    folder: Path,
    rows: Iterable[Row],
    media: MediaStore,
    rows_per_shard: int | None = None,
    bytes_per_shard: int = SHARD_BYTES,
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:
    """`write_items` for rows of `make_item_row`; the bytes of their images are set here."""
    embedded = (
        {**row, "images": [{"bytes": images[name], "path": name} for name in list_images(row)]}
        for row, images in _embed_images(rows, media)
    )
    return write_embedded_rows(folder, embedded, ITEMS, "items", rows_per_shard, bytes_per_shard, metadata)


def write_embedded_rows(
    folder: Path,
    rows: Iterable[Row],
    table: RecordSchema[Any],
    stem: str,
    rows_per_shard: int | None = None,
    bytes_per_shard: int = SHARD_BYTES,
    metadata: Mapping[str, Any] | None = None,
) -> list[Path]:
    """As `write_item_rows`, for rows that hold their images, in files `<stem>-00000-of-0000N.parquet` of any table."""
    parts: list[Path] = []
    writer: GroupWriter | None = None
    with fill_folder(folder) as filling, ExitStack() as opened:

        def begin() -> GroupWriter:
            opened.close()
            parts.append(filling / f"{len(parts):05d}")
            return opened.enter_context(GroupWriter(parts[-1], table, metadata))

        for row in rows:
            if writer is None or writer.rows == rows_per_shard or writer.size >= bytes_per_shard:
                writer = begin()
            writer.add(row)
        if writer is None:
            begin()
        opened.close()
        names = [f"{stem}-{k:05d}-of-{len(parts):05d}.parquet" for k in range(len(parts))]
        for part, name in zip(parts, names, strict=True):
            sync_to_disk(part)
            part.rename(filling / name)
    return [folder / name for name in names]


def _embed_images(items: Iterable[Row], media: MediaStore) -> Iterator[tuple[Row, dict[str, bytes]]]:
    """Every row with its images by name; the next ones are read and checked while the last ones are written."""
    ahead: deque[tuple[list[Row], dict[str, Future[bytes]]]] = deque()
    rows = iter(items)
    # Reading, digests and pyarrow's writing all let go of the interpreter.
    with ThreadPoolExecutor(1) as reader:
        while batch := list(islice(rows, READ_AHEAD)):
            names = dict.fromkeys(name for row in batch for name in list_images(row))
            ahead.append((batch, {name: reader.submit(media.get, name) for name in names}))
            if len(ahead) > 1:
                yield from _read(*ahead.popleft())
        for batch, reading in ahead:
            yield from _read(batch, reading)


def _read(batch: Sequence[Row], reading: Mapping[str, Future[bytes]]) -> Iterator[tuple[Row, dict[str, bytes]]]:
    for row in batch:
        yield row, {name: reading[name].result() for name in list_images(row)}


def list_images(row: Row) -> list[str]:
    """The names of a row's images, in the order shown."""
    return [image["path"] for image in row["images"]]


def read_shard(path: Path, table: RecordSchema[R]) -> list[R]:
    """All records of one file.

    Raises:
        DatasetError: missing, not parquet, another kind of record, another schema version, damaged.
    """
    check_schema(path, open_parquet(path), table)
    return [table.from_row(row, path) for row in iterate_rows([path], [c.name for c in table.columns])]


def read_metadata(path: Path) -> dict[str, Any]:
    """The notes given to `write_shard`, with `kind` and `schema_version`.

    Only the file's footer is read. Empty for a file that this program did not write.

    Raises:
        DatasetError: missing or not parquet.
    """
    raw = (open_parquet(path).schema_arrow.metadata or {}).get(b"vgbench", b"{}")
    try:
        found = parse_json(raw)
    except ValueError:
        found = None
    return found if isinstance(found, dict) else {}


def iterate_rows(
    paths: Iterable[Path],
    columns: Sequence[str] | Callable[[Any], Sequence[str]] | None = None,
    batch: int = 64,
    only: Container[int] | None = None,
) -> Iterator[dict[str, Any]]:
    """Rows of some files, one after the other, at most `batch` of them in memory.

    Args:
        columns: column names, or parquet paths such as `images.list.element.path` to leave the bytes on the disk, or
            what names them for an open file.
        only: places, counted over all files, of the rows that are wanted; the others are not unpacked.

    Raises:
        DatasetError: a file is missing, not parquet or damaged.
    """
    first = 0
    for path in paths:
        with open_parquet(path) as file:
            names = columns(file) if callable(columns) else columns
            groups, places = _find_groups(file.metadata, only, first)
            whole = max([0, *(_check_group(path, file.metadata, k, names)[0] for k in groups)])
            holds_items = set(file.schema_arrow.names) >= _ITEM_NAMES
            size = max(1, min(batch, _BATCH_BYTES // max(whole, 1)))
            wanted = None if names is None else list(names)
            # Of several row groups at once pyarrow keeps all bytes that it has read, up to a whole shard.
            batches = chain.from_iterable(
                file.iter_batches(size, row_groups=[k], columns=wanted, use_threads=False) for k in groups
            )
            start = 0
            while True:
                try:
                    rows = next(batches)
                except StopIteration:
                    break
                except (OSError, pa.ArrowException) as error:
                    raise damage_error(path, error) from error
                count = len(rows)
                if holds_items:
                    rows = _fit_items(path, pa.Table.from_batches([rows]), places[start] - first)
                if only is not None:
                    rows = rows.take(_make_indices([k for k in range(count) if places[start + k] in only]))
                start += count
                yield from list_rows(path, rows)
            first += file.metadata.num_rows


def list_light_columns(file: Any, names: Container[str] | None = None) -> list[str]:
    """Parquet paths of some columns of an open file, all by default, without the bytes of images."""
    leaves = [file.schema.column(k).path for k in range(len(file.schema))]
    return [
        leaf
        for leaf in leaves
        if (names is None or leaf.partition(".")[0] in names)
        and not (leaf.startswith("images.") and leaf.endswith(".bytes"))
    ]


def read_group(path: Path, file: Any, group: int, columns: Sequence[str] | None = None) -> Any:
    """An arrow table of some columns of a row group of an open file, as `iterate_rows` reads them.

    Raises:
        DatasetError: it is damaged, or takes more than `MAX_DECODED_BYTES`.
    """
    _, size = _check_group(path, file.metadata, group, columns)
    if size > MAX_DECODED_BYTES:
        found = f"a row group of {size} bytes once it is decoded"
        raise dataset_error(path, found, f"at most {MAX_DECODED_BYTES}", "Write it with smaller row groups.")
    try:
        rows = file.read_row_group(group, columns=None if columns is None else list(columns), use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise damage_error(path, error) from error
    if not set(file.schema_arrow.names) >= _ITEM_NAMES:
        return rows
    return _fit_items(path, rows, sum(file.metadata.row_group(k).num_rows for k in range(group)))


def list_rows(path: Path, table: Any) -> list[dict[str, Any]]:
    """The rows of an arrow table or batch of a file. Raises DatasetError where text in it is not UTF-8."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except UnicodeDecodeError as error:
        raise damage_error(path, error) from error
    return rows


def _check_group(path: Path, metadata: Any, number: int, columns: Sequence[str] | None) -> tuple[int, int]:
    """Bytes of some columns of a row group in the file, before compression, and decoded; one row may take the former.

    Raises:
        DatasetError: they are more than any of ours.
    """
    group = metadata.row_group(number)
    sizes, stored = {False: 0, True: 0}, 0
    for chunk in map(group.column, range(group.num_columns)):
        try:
            name = chunk.path_in_schema
        except UnicodeDecodeError as error:
            raise damage_error(path, error) from error
        if columns is None or _is_among(name, columns):
            size = max(chunk.total_uncompressed_size, _VALUE_BYTES * chunk.num_values)
            stored += size
            # A cell that many rows hold may stand in the file once.
            if chunk.physical_type == "BYTE_ARRAY" and size < MAX_DECODED_BYTES < size * chunk.num_values:
                size = max(size, _measure_decoded(path, number, name))
            sizes[name.endswith("bytes")] += size
    for is_image, most in ((False, MAX_GROUP_BYTES), (True, max(MAX_DECODED_BYTES, stored))):
        if sizes[is_image] > most:
            found = f"a row group with {sizes[is_image]} bytes of {'images' if is_image else 'text and numbers'}"
            raise dataset_error(path, found, f"at most {most}", _REMEDY)
    return stored, sum(sizes.values())


def _measure_decoded(path: Path, group: int, leaf: str) -> int:
    """Bytes of all texts of a column in a row group, of which equal ones are read once."""
    import pyarrow.compute as pc

    size = 0
    try:
        with pq.ParquetFile(path, read_dictionary=[leaf]) as file:
            chunks = file.read_row_group(group, columns=[leaf], use_threads=False).column(0).chunks
        for part in chunks:
            while pa.types.is_nested(part.type):
                part = part.flatten() if hasattr(part, "values") else part.field(0)
            lengths = pc.binary_length(getattr(part, "dictionary", part))
            size += pc.sum(lengths.take(part.indices) if hasattr(part, "indices") else lengths).as_py() or 0
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damage_error(path, error) from error
    return size


def _is_among(path: str, columns: Sequence[str]) -> bool:
    return path in columns or any(path.startswith(f"{name}.") for name in columns)


def _make_indices(places: Sequence[int]) -> pa.Array:
    """As `pa.array` makes them, which imports pandas: every worker would spend half a second on that."""
    return pa.Array.from_buffers(pa.int64(), len(places), [None, pa.py_buffer(np.array(places, dtype=np.int64))])


def _find_groups(metadata: Any, only: Container[int] | None, start: int) -> tuple[list[int], list[int]]:
    """(row groups that hold a wanted row, places of their rows); start: the place of the file's first row."""
    groups: list[int] = []
    places: list[int] = []
    for k in range(metadata.num_row_groups):
        here = range(start, start + metadata.row_group(k).num_rows)
        if only is None or any(place in only for place in here):
            groups.append(k)
            places += here
        start = here.stop
    return groups, places


def read_columns(path: Path, names: Sequence[str]) -> list[tuple[Any, ...]]:
    """Some plain columns of a file, row by row; many times faster than `iterate_rows`, and all in memory at once.

    Raises:
        DatasetError: the file is missing, not parquet or damaged.
    """
    with open_parquet(path) as file:
        for group in range(file.metadata.num_row_groups):
            _check_group(path, file.metadata, group, names)
        try:
            table = file.read(columns=list(names), use_threads=False)
            return list(zip(*(table[name].to_pylist() for name in names), strict=True))
        except (OSError, pa.ArrowException, UnicodeDecodeError) as error:
            raise damage_error(path, error) from error


def open_parquet(path: Path) -> Any:
    """A `pyarrow.parquet.ParquetFile`, its footer read. Raises DatasetError where that fails."""
    if path.exists() and not path.is_file():  # a named pipe would be waited for
        raise dataset_error(path, "no regular file", "a parquet file", _REMEDY)
    try:
        return pq.ParquetFile(path, memory_map=False)
    except FileNotFoundError:
        raise dataset_error(path, "no file", "a parquet file", _REMEDY) from None
    except (OSError, ValueError, pa.ArrowException) as error:  # a name that is no UTF-8 is a ValueError
        raise damage_error(path, error) from error


def check_schema(path: Path, file: Any, table: RecordSchema[Any]) -> None:
    """Make sure that an open file holds this table: every column, of its type, in this schema version.

    Raises:
        DatasetError: says which columns are wrong.
    """
    notes = read_metadata(path)
    kind, version = notes.get("kind", table.kind), notes.get("schema_version", SCHEMA_VERSION)
    if (kind, version) != (table.kind, SCHEMA_VERSION):
        found = f"{kind}, schema version {version}"
        raise dataset_error(path, found, f"{table.kind}, schema version {SCHEMA_VERSION}", _REMEDY)
    have = {field.name: field.type for field in file.schema_arrow}
    fit = _fit_type if table.kind == ITEMS.kind else lambda have, want: have
    wrong = [
        f"{field.name} ({have.get(field.name, 'missing')})"
        for field in table.schema
        if field.name not in have or fit(have[field.name], field.type) != field.type
    ]
    if wrong:
        found = f"wrong columns {', '.join(wrong[:6])}{' …' if len(wrong) > 6 else ''}"
        raise dataset_error(path, found, f"the columns of {table.kind} (docs/data-dictionary.md)", _REMEDY)


def _fit_type(have: Any, want: Any) -> Any:
    """The wanted arrow type, of its structs those fields that are there; None where values are of another kind.

    Writers choose types by what a column happens to hold: null where nothing does, floats where a number was missing.
    """
    is_type = pa.types
    if is_type.is_dictionary(have):
        have = have.value_type
    if is_type.is_null(have):
        return want
    if is_type.is_list(want):
        is_list = is_type.is_list(have) or is_type.is_large_list(have) or is_type.is_fixed_size_list(have)
        inner = _fit_type(have.value_type, want.value_type) if is_list else None
        return inner and pa.list_(inner)
    if is_type.is_struct(want):
        there = {field.name: field.type for field in have} if is_type.is_struct(have) else {}
        fields = [(f.name, _fit_type(there[f.name], f.type)) for f in want if f.name in there]
        return pa.struct(fields) if fields and all(kind for _, kind in fields) else None
    is_number = is_type.is_integer(have) or is_type.is_floating(have)
    if is_type.is_integer(want) or is_type.is_floating(want):
        return want if is_number else None
    return want if str(have).replace("large_", "").replace("_view", "") == str(want) else None


def _fit_items(path: Path, rows: Any, start: int) -> Any:
    """Rows of items, of some columns, with the types that we write.

    start: the place of the first one in the file.

    Raises:
        DatasetError: a cell has another value than its column takes, or none.
    """
    for k, field in enumerate(rows.schema):
        if (want := _ITEM_TYPES.get(field.name)) is None:
            continue
        if field.type != want and field.type != (want := _fit_type(field.type, want)):
            try:
                rows = rows.set_column(k, field.name, rows.column(k).cast(want))
            except (pa.ArrowException, TypeError) as error:
                found = f"{field.name} that is no {want} ({str(error)[:100]})"
                raise dataset_error(path, found, "items as in docs/data-dictionary.md", _REMEDY) from error
        places = (place for part in rows.column(k).chunks if (place := _find_null(part)) is not None)
        if (place := next(places, None)) is not None:
            where = f"{path}, row {start + place}" if rows.column(k).num_chunks == 1 else str(path)
            remedy = "Leave out that row, or build it again (`vgbench build`)."
            raise dataset_error(where, f"nothing in {field.name}", "a value in every cell of items", remedy)
    return rows


def _find_null(cells: Any) -> int | None:
    """The place of the first cell that is null or holds one, besides bytes of images; None where there is none."""
    if cells.null_count:
        return int(cells.is_null().index(True).as_py())
    if pa.types.is_struct(cells.type):
        places = [_find_null(cells.field(k)) for k, field in enumerate(cells.type) if field.name != "bytes"]
        return min((place for place in places if place is not None), default=None)
    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
        if _find_null(cells.values) is None:  # also of other rows; flattening loads a library for a tenth of a second
            return None
        place = _find_null(cells.flatten())
        return None if place is None else int(cells.value_parent_indices()[place].as_py())
    return None


def damage_error(path: Path, error: Exception) -> DatasetError:
    """The error for a file that pyarrow cannot read."""
    reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
    remedy = "Copy or download it again, or build it again (`vgbench build`)."
    return dataset_error(path, f"an unreadable file ({reason})", "a whole parquet file", remedy)
