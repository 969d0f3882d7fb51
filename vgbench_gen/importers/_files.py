"""Where a source lies on the disk: a folder that the user names, or what `huggingface_hub` fetched; and how it is read.

Files are found by patterns, because people keep copies in more shapes than one: a snapshot of the Hub's repository, or
its unpacked archives. Columns are checked when a file is opened, and the message says which ones it has.
"""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.paths import inside
from vgbench_gen.core.text_files import check_text, open_text
from vgbench_gen.core.text_files import read_text as read_text_file
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error

MAX_TEXT_FILE = 2**30
Fields = Mapping[str, Any]
_BATCH = 16


class RowError(ValueError):
    """A row that cannot be taken over.

    field: which of its fields is to blame. found: what it holds, short. reason: one word for the count.
    """

    def __init__(self, field: str, found: str, reason: str = "") -> None:
        super().__init__(f"{field}: {found}")
        self.field, self.found, self.reason = field, found, reason or field.lower().replace(" ", "_")


@dataclass(frozen=True, slots=True)
class Place:
    """Where the files of a source lie."""

    folder: Path
    """The folder with all of them."""
    images: Path | None = None
    """The folder of images that lie apart, None where they do not."""

    def find(self, *patterns: str) -> list[Path]:
        """Files of the first pattern that has any, sorted; patterns are as `Path.glob` takes them ("**/*.csv").

        Raises:
            DatasetError: no pattern has any.
        """
        for pattern in patterns:
            found = sorted(
                path
                for path in self.folder.glob(pattern)
                if path.is_file() and not any(part.startswith(".") for part in path.relative_to(self.folder).parts)
            )
            for path in found:
                inside(self.folder, path, dataset_error)
            if found:
                return found
        here = (
            ", ".join(sorted(path.name for path in self.folder.iterdir())[:12]) if self.folder.is_dir() else "nothing"
        )
        remedy = "Name the folder into which the source was downloaded and unpacked (--from)."
        raise dataset_error(self.folder, f"{here or 'an empty folder'}", f"files like {' or '.join(patterns)}", remedy)

    def has(self, *patterns: str) -> bool:
        """Whether any pattern has a file."""
        try:
            return bool(self.find(*patterns))
        except DatasetError:
            return False

    def picture(self, name: str, *folders: str) -> Path:
        """The image file of this name, below the folder of images or the top.

        Args:
            name: as the row names it, see `list_names`; nothing outside is ever read.
            folders: subfolders that are tried too.

        Raises:
            RowError: there is none.
        """
        for top in filter(None, (self.images, self.folder)):
            for inner in list_names(top, name):
                for sub in ("", *folders):
                    if (path := find_inside(top, f"{sub}/{inner}".lstrip("/"))).is_file():
                        return path
        raise RowError("image", f"no file {name[:120]!r}; --images names a folder of images", "image_missing")


def list_names(top: Path, name: str) -> Iterator[str]:
    """Names below a folder under which a file may lie that a row calls so.

    Rows come from other machines: folders may be divided by backslashes, and of a path from the top of a disk every
    tail counts, the longest first; of any other the path without the folder's own name.
    """
    parts = [part for part in re.split(r"[\\/]+", name) if part not in ("", ".")]
    yield "/".join(parts)
    if ".." not in parts:
        is_whole = re.match(r"[\\/]|[A-Za-z]:|file:", name)
        for k in range(1, len(parts)):
            if is_whole or (k == 1 and parts[0] == top.resolve().name):
                yield "/".join(parts[k:])


def find_inside(top: Path, name: str) -> Path:
    """The file of this name below a folder that the user gave; it need not be there.

    Raises:
        RowError: the name or a link leaves the folder.
    """
    try:
        return inside(top, name, dataset_error)
    except DatasetError as error:
        raise RowError("image", f"{name[:120]!r}, which leaves the folder", "image_name") from error


def read_column(fields: Fields, *names: str) -> Any:
    """The value of the first of these columns that a row has.

    Raises:
        RowError: it has none of them, or nothing in it; the message lists what it has.
    """
    value = read_optional(fields, *names)
    if value is None or (isinstance(value, str) and not value.strip()):
        there = next((name for name in names if name in fields), None)
        what = "nothing in it" if there else f"no such column; there are {', '.join(map(str, fields))}"
        raise RowError(there or names[0], what)
    return value


def read_optional(fields: Fields, *names: str) -> Any:
    """The value of the first of these columns that a row has; None where it has none."""
    return next((fields[name] for name in names if name in fields), None)


def read_text(fields: Fields, *names: str) -> str:
    """`read_column` as text; numbers are written out, whole ones without a point."""
    value = read_column(fields, *names)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        raise RowError(names[0], f"a {type(value).__name__}, which is no text")
    return str(value)


def read_picture(value: Any, place: Place, *folders: str) -> bytes | Path:
    """The image of a cell: {"bytes", "path"} as the Hub's parquet files have it, bytes, or a name below the folder.

    Raises:
        RowError: it is none of these, or there is no such file.
    """
    if isinstance(value, Mapping):
        data = value.get("bytes")
        value = data if data else value.get("path")
    if isinstance(value, bytes) and value:
        return value
    if isinstance(value, str) and value.strip():
        return place.picture(value, *folders)
    raise RowError("image", "no image", "image_missing")


def read_parquet_rows(path: Path, needed: Sequence[str | tuple[str, ...]]) -> Iterator[Fields]:
    """Rows of a parquet file.

    Args:
        path: the file.
        needed: columns that must be there; a tuple means any one of them.

    Raises:
        DatasetError: not parquet, damaged, or a column is missing.
    """
    with shards.open_parquet(path) as file:
        names = list(file.schema_arrow.names)
    check_columns(path, names, needed)
    yield from shards.iterate_rows([path], batch=_BATCH)


def read_csv_rows(path: Path, needed: Sequence[str | tuple[str, ...]]) -> Iterator[Fields]:
    """Rows of a table with a heading line, all cells text. Raises as `read_parquet_rows`.

    Cells are divided by tabs in a TSV file, else by what the heading has most of: commas, semicolons or tabs.
    """
    csv.field_size_limit(2**27)  # some TSV files hold images as base64
    try:
        if (size := path.stat().st_size) > MAX_TEXT_FILE:
            raise dataset_error(path, f"{size} bytes", f"at most {MAX_TEXT_FILE}", "Split the file.")
        with open_text(path, newline="") as file:
            lines = map(check_text, file, itertools.count(1))
            heading = next(lines, "")
            delimiter = "\t" if path.suffix == ".tsv" else max(",;\t", key=heading.count)
            reader = csv.DictReader(itertools.chain([heading], lines), delimiter=delimiter)
            check_columns(path, list(reader.fieldnames or ()), needed)
            for row in reader:
                yield {name: cell for name, cell in row.items() if isinstance(name, str)}
    except (OSError, ValueError, csv.Error) as error:
        raise dataset_error(path, f"no table ({error})", "CSV or TSV", "Save or download it again.") from error


def read_json_rows(path: Path) -> Iterator[Any]:
    """Members of a JSON list, or lines of a JSONL file; what a row is must be checked by whoever takes it.

    Raises:
        DatasetError: neither.
    """
    data = read_text_file(path, "a JSON list or JSON lines", dataset_error, MAX_TEXT_FILE)
    number = 0
    try:
        try:
            whole = parse_json(data, "none")
        except ValueError:
            if data.lstrip().startswith("[") and path.suffix != ".jsonl":
                raise
            if not data.strip():
                raise ValueError("nothing in it") from None
            for line in data.split("\n"):
                number += 1
                if line.strip():
                    yield parse_json(line, "none")
            return
        yield from whole if isinstance(whole, list) else [whole]
    except ValueError as error:
        where = f"{path}, line {number}" if number else path
        raise dataset_error(where, f"no JSON ({error})", "a JSON list or JSON lines", "Download it again.") from error


def table_rows(path: Path, needed: Sequence[str | tuple[str, ...]]) -> Iterator[Fields]:
    """Rows of a parquet, CSV, TSV or JSON file, whichever it is by its name.

    A member of a JSON list that is no object has no columns and is refused like one that lacks them.

    Raises:
        DatasetError: as `read_parquet_rows`, `read_csv_rows` and `read_json_rows`.
    """
    if path.suffix in (".csv", ".tsv"):
        yield from read_csv_rows(path, needed)
    elif path.suffix == ".parquet":
        yield from read_parquet_rows(path, needed)
    else:
        for row in read_json_rows(path):
            fields = row if isinstance(row, Mapping) else {}
            check_columns(path, list(fields), needed)
            yield fields


def check_columns(path: Path, names: Sequence[str], needed: Sequence[str | tuple[str, ...]]) -> None:
    """Raise DatasetError, naming the columns a file has, where one of those needed is missing."""
    groups = [(one,) if isinstance(one, str) else one for one in needed]
    missing = [" or ".join(group) for group in groups if not set(group) & set(names)]
    if missing:
        found = f"the columns {', '.join(names) or 'none'}"
        remedy = "The source changed its columns, or this is another file."
        raise dataset_error(path, found, f"among them {', '.join(missing)}", remedy)
