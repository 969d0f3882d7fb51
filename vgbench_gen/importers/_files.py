"""Finds and reads the files of a source in a folder of the user or a download from the Hub.

Files are found by patterns, because copies differ in layout: a snapshot of the Hub's repository, or unpacked archives.
Columns are checked when a file is opened, and the error lists the existing ones.
"""

from __future__ import annotations

import csv
import itertools
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.json_text import parse_json
from vgbench_gen.core.paths import inside
from vgbench_gen.core.text_files import check_text, open_text
from vgbench_gen.core.text_files import read_text as read_text_file
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error

MAX_TEXT_FILE = 2**30
Fields = Mapping[str, Any]
_BATCH_ROWS = 16
_MAX_DIGITS = 18  # any number with this many digits fits into 64 bits


class RowError(ValueError):
    """A row that cannot be imported.

    field: the bad column. found: its content, shortened. reason: one word for the kind of error, under which rows are
    counted. where: file and row.
    """

    def __init__(self, field: str, found: str, reason: str = "", where: str = "") -> None:
        super().__init__(f"{where}, {field}: {found}" if where else f"{field}: {found}")
        self.field, self.found, self.where = field, found, where
        self.reason = reason or field.lower().replace(" ", "_")

    def at(self, where: str) -> RowError:
        """A copy with `where`, and without the traceback, whose frames would keep images in memory."""
        return RowError(self.field, self.found, self.reason, where)


@dataclass(frozen=True, slots=True)
class Place:
    """The folder with the files of a source, and perhaps a separate folder of images."""

    folder: Path
    images: Path | None = None

    def glob(self, pattern: str) -> list[Path]:
        """Sorted files of a `Path.glob` pattern such as "**/*.csv"; hidden ones are left out.

        Raises:
            DatasetError: a link leads out of the folder.
        """
        found = []
        for path in sorted(filter(Path.is_file, self.folder.glob(pattern))):
            if not any(part.startswith(".") for part in path.relative_to(self.folder).parts):
                inside(self.folder, path, dataset_error)
                found.append(path)
        return found

    def find(self, *patterns: str) -> list[Path]:
        """The files of the first pattern that matches any.

        Raises:
            DatasetError: no pattern matches a file.
        """
        for pattern in patterns:
            if found := self.glob(pattern):
                return found
        names = sorted(path.name for path in self.folder.iterdir())[:12] if self.folder.is_dir() else ["nothing"]
        remedy = "Name the folder into which the source was downloaded and unpacked (--from)."
        expected = f"files like {' or '.join(patterns)}"
        raise dataset_error(self.folder, ", ".join(names) or "an empty folder", expected, remedy)

    def picture(self, name: str, *folders: str) -> Path:
        """The image file with a name, in the folder of images or of the source; never outside them.

        Args:
            name: as in the row, see `list_names`.
            folders: subfolders to try.

        Raises:
            RowError: no such file.
        """
        for top in filter(None, (self.images, self.folder)):
            for inner in list_names(top, name):
                for sub in ("", *folders):
                    if (path := find_inside(top, f"{sub}/{inner}".lstrip("/"))).is_file():
                        return path
        raise RowError("image", f"no file {name[:120]!r}; --images names a folder of images", "image_missing")

    def image(self, picture: bytes | str, *folders: str) -> bytes | Path:
        """The image of a cell: its bytes, or the file that the cell names."""
        return picture if isinstance(picture, bytes) else self.picture(picture, *folders)


def list_names(top: Path, name: str) -> Iterator[str]:
    """Paths below a folder at which the file named by a row may be.

    Rows come from other machines: separators may be backslashes, and of an absolute path every tail is tried, the
    longest first. From a relative path the name of the folder itself may be removed.
    """
    parts = [part for part in re.split(r"[\\/]+", name) if part not in ("", ".")]
    yield "/".join(parts)
    if ".." not in parts:
        is_whole = re.match(r"[\\/]|[A-Za-z]:|file:", name)
        for k in range(1, len(parts)):
            if is_whole or (k == 1 and parts[0] == top.resolve().name):
                yield "/".join(parts[k:])


def find_inside(top: Path, name: str) -> Path:
    """The path of a file below a folder of the user, whether or not it exists.

    Raises:
        RowError: the name or a link leaves the folder.
    """
    try:
        return inside(top, name, dataset_error)
    except DatasetError as error:
        raise RowError("image", f"{name[:120]!r}, which leaves the folder", "image_name") from error


def _is_empty(cell: Any) -> bool:
    return cell is None or cell != cell or (isinstance(cell, str) and cell.strip().casefold() in ("", "nan"))


def _format_number(cell: Any) -> Any:
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return str(cell) if isinstance(cell, int | float) and not isinstance(cell, bool) else cell


def _parse_index(cell: Any) -> Any:
    cell = _format_number(cell)
    return int(cell) if isinstance(cell, str) and cell.isdecimal() and len(cell) <= _MAX_DIGITS else cell


def _read_picture(cell: Any) -> bytes | str:
    if isinstance(cell, Mapping):
        cell = cell.get("bytes") or cell.get("path")
    if isinstance(cell, bytes | str) and cell.strip():
        return cell
    raise RowError("image", "no image", "image_missing")


Text = Annotated[str, BeforeValidator(_format_number)]
"""A text; a number becomes text, a whole number without a decimal point."""
Number = Annotated[int, BeforeValidator(_parse_index)]
"""A whole number, or a text of digits."""
Index = Annotated[int | str, BeforeValidator(_parse_index)]
"""A name or a number; a text of digits becomes a number."""
Picture = Annotated[bytes | str, BeforeValidator(_read_picture)]
"""The bytes of an image or the name of its file; a cell may be {"bytes", "path"} as in the Hub's parquet files."""


class RawRow(BaseModel):
    """The columns that are read from a row, with their types; other columns are ignored.

    An empty cell (null, NaN, blanks, or "nan" as pandas writes it) counts as missing. A field without a default is a
    required column. Of a field with several names (`AliasChoices`) a table needs one, and a row uses the first that is
    not empty.
    """

    model_config = ConfigDict(frozen=True, strict=True, allow_inf_nan=False)

    @model_validator(mode="before")
    @classmethod
    def _leave_out_empty(cls, cells: Any) -> Any:
        return {k: v for k, v in cells.items() if not _is_empty(v)} if isinstance(cells, Mapping) else cells

    @classmethod
    def list_columns(cls) -> list[tuple[str, ...]]:
        """For each required column, the names that it may have."""
        found = []
        for name, field in cls.model_fields.items():
            if field.is_required():
                alias = field.validation_alias
                names = alias.choices if isinstance(alias, AliasChoices) else [alias or name]
                found.append(tuple(map(str, names)))
        return found

    @classmethod
    def read(cls, cells: Any) -> Self:
        """Read a row from its cells.

        Raises:
            RowError: no mapping, or a cell is missing, empty or of another type.
        """
        try:
            return cls.model_validate(cells)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
        if isinstance(own := problem.get("ctx", {}).get("error"), RowError):
            raise own
        place = [str(part) for part in problem["loc"] if part not in (0, "int", "str")] or ["row"]
        if problem["type"] == "missing":
            names = next((group for group in cls.list_columns() if place[0] == group[0]), ())
            empty = next((name for name in names if len(place) == 1 and name in cells), "")
            there = ", ".join(map(str, cells if len(place) == 1 else problem["input"]))
            raise RowError(empty or ".".join(place), "nothing in it" if empty else f"no such column; there are {there}")
        expected = problem["msg"].removeprefix("Input should be ").partition(" or instance")[0]
        raise RowError(".".join(place), f"{reprlib.repr(problem['input'])}; expected {expected}")


def read_csv_rows(path: Path, needed: Sequence[Sequence[str]]) -> Iterator[Fields]:
    """Rows of a CSV or TSV file with a header, all cells text; see `table_rows`.

    The delimiter of a CSV file is the most frequent of comma, semicolon and tab in the header.
    """
    csv.field_size_limit(2**27)  # some TSV files contain images as base64
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
    """Members of a JSON list, or lines of a JSONL file, of any JSON type.

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


def table_rows(path: Path, needed: Sequence[Sequence[str]] = ()) -> Iterator[Fields]:
    """Rows of a parquet, CSV, TSV or JSON file.

    Args:
        path: the file; its suffix tells the format.
        needed: required columns, as from `RawRow.list_columns`. A JSON file has a column if any row has it; a row that
            is no object has no columns.

    Raises:
        DatasetError: another format, a damaged file, or a column is missing.
    """
    if path.suffix in (".csv", ".tsv"):
        yield from read_csv_rows(path, needed)
    elif path.suffix == ".parquet":
        with shards.open_parquet(path) as file:
            check_columns(path, file.schema_arrow.names, needed)
        yield from shards.iterate_rows([path], batch=_BATCH_ROWS)
    else:
        rows: Iterable[Fields] = (row if isinstance(row, Mapping) else {} for row in read_json_rows(path))
        if needed:
            rows = list(rows)
            check_columns(path, list(dict.fromkeys(name for row in rows for name in row)), needed)
        yield from rows


def check_columns(path: Path, names: Sequence[str], needed: Sequence[Sequence[str]]) -> None:
    """Raise DatasetError, which lists the columns of the file, if a required column is missing."""
    if missing := [" or ".join(group) for group in needed if not set(group) & set(names)]:
        found = f"the columns {', '.join(names) or 'none'}"
        remedy = "The source changed its columns, or this is another file."
        raise dataset_error(path, found, f"among them {', '.join(missing)}", remedy)
