"""A built dataset as a lazily read sequence of items."""

from __future__ import annotations

import bisect
import difflib
import io
import itertools
import re
from collections import OrderedDict
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.lines import format_command
from vgbench_gen.core.paths import choose_snapshot
from vgbench_gen.core.types import Item
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.schema import ITEMS

if TYPE_CHECKING:
    from PIL import Image

_SHARD = re.compile(r"(?P<stem>.+)-(?P<index>\d{5})-of-(?P<count>\d{5})\.parquet")
_FILES = "image_files"  # of published rows
_COLUMNS = (*(c.name for c in ITEMS.columns), _FILES)
_REMEDY = "Name a folder that `vgbench build` made, its `items` folder, or a parquet file of items."
_GROUPS_KEPT = 4
_LISTED = 5  # ids that a message names


def load(path: str | PathLike[str]) -> Dataset:
    """Open a dataset.

    Args:
        path: `build/<name>`, its `items` folder, any folder of parquet files, or one parquet file.

    Raises:
        DatasetError: nothing there, a shard is missing, a file is damaged or holds something else.
    """
    return Dataset(_find(Path(path)))


def find_id(ids: Collection[str], beginning: str, where: object) -> str:
    """The id that is so, or the only one that begins so, of a dataset that errors call `where`.

    Raises:
        DatasetError: there is none, or several begin so.
    """
    if beginning in ids:
        return beginning
    fitting = [known for known in ids if known.startswith(beginning)] if beginning else []
    if len(fitting) > 1:
        some = ", ".join(fitting[:_LISTED]) + f" and {len(fitting) - _LISTED} more" * (len(fitting) > _LISTED)
        found = f"{len(fitting)} ids that begin with {beginning!r} ({some})"
        raise dataset_error(where, found, "one", "Give more characters.")
    if not fitting:
        near = difflib.get_close_matches(beginning, ids, n=1)
        hint = f"Did you mean {near[0]}?" if near else "`vgbench show` lists them."
        raise dataset_error(where, f"no item {beginning!r}", f"one of its {len(ids)} ids", hint)
    return fitting[0]


class Dataset(Sequence[Item]):
    """Items in the order of the files; one row group of questions, and one of images, is in memory at a time.

    Args:
        paths: parquet files of items, in order.

    Raises:
        DatasetError: a file is missing, damaged or holds something else.
    """

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._groups: list[tuple[Path, int]] = []
        sizes: list[int] = []
        for path in self.paths:
            with shards.open_parquet(path) as file:
                shards.check_schema(path, file, ITEMS)
                for k in range(file.metadata.num_row_groups):
                    self._groups.append((path, k))
                    sizes.append(file.metadata.row_group(k).num_rows)
        self._starts: list[int] = [0, *itertools.accumulate(sizes)]
        self._rows_read: OrderedDict[int, list[dict[str, Any] | Item]] = OrderedDict()
        self._images: tuple[int, list[list[bytes]]] = (-1, [])
        self._rows: dict[str, int] | None = None

    def __len__(self) -> int:
        return self._starts[-1]

    @property
    def group_starts(self) -> tuple[int, ...]:
        """Rows with which row groups begin, and the number of all rows; a group is read whole for any of its rows."""
        return tuple(self._starts)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[k] for k in range(*index.indices(len(self)))]
        row = index + len(self) if index < 0 else index
        if not 0 <= row < len(self):
            raise IndexError(f"row {index} of a dataset of {len(self)}")
        group = self._group_of(row)
        return self._read_item(group, row - self._starts[group])

    def __iter__(self) -> Iterator[Item]:
        for group, size in enumerate(self._count_group_rows()):
            for place in range(size):
                yield self._read_item(group, place)

    def without_evidence(self, *but: str) -> Iterator[Item]:
        """All items in order, with empty evidence, convention and distractors: these take longest to read.

        but: keys of evidence; items that have one of them keep theirs.
        """
        empty: dict[str, Any] = {"evidence": "{}", "convention": "{}", "distractors": []}
        columns = [name for name in _COLUMNS if name not in empty or (but and name == "evidence")]
        for path in self.paths:
            for row in shards.iterate_rows([path], partial(_list_leaves, names=columns), 1024):
                kept = {"evidence": row["evidence"]} if any(f'"{key}":' in row["evidence"] for key in but) else {}
                yield ITEMS.from_row(row | empty | kept, path)

    def take(self, places: Iterable[int]) -> Iterator[Item]:
        """The items in these rows, in the order of the dataset; the others are not unpacked."""
        for row in shards.iterate_rows(self.paths, _list_leaves, 64, set(places)):
            yield ITEMS.from_row(row, self._name())

    def by_id(self, item_id: str) -> Item:
        """The item of this id, or the only one whose id begins so.

        Raises:
            DatasetError: as `find_id`, or two items share an id.
        """
        return self[self._find_row(item_id)]

    def images(self, item: Item | str | int) -> list[Image.Image]:
        """The images of an item (or of the item with this id, or in this row) in the order shown, as Pillow's.

        Raises:
            DatasetError: as `image_bytes`, or an image cannot be decoded.
        """
        from PIL import Image, UnidentifiedImageError

        row = item if isinstance(item, int) else self._find_row(item if isinstance(item, str) else item.id)
        found = []
        for k, name in enumerate(self[row].images):
            try:
                found.append(Image.open(io.BytesIO(self.image_bytes(row, k))).convert("RGB"))
            except (UnidentifiedImageError, OSError) as error:
                raise DatasetError(f"{name}: cannot be decoded ({error}); build the dataset again.") from None
        return found

    def image_bytes(self, item: Item | str | int, k: int) -> bytes:
        """The encoded k-th image of an item (or of the item with this id, or in this row), as embedded in the file.

        By row it is found without reading the ids of the whole dataset.

        Raises:
            DatasetError: no such item; or its images are not embedded.
            IndexError: it has fewer images.
        """
        row = item if isinstance(item, int) else self._find_row(item if isinstance(item, str) else item.id)
        group = self._group_of(row)
        if self._images[0] != group:
            path, index = self._groups[group]
            rows = _read_group(path, index, ["images"])
            self._images = group, [[image["bytes"] for image in r["images"]] for r in rows]
        name, embedded = self[row].images[k], self._images[1][row - self._starts[group]]
        data: bytes | None = embedded[k] if embedded else None
        if data is None:
            where = f"{self._groups[group][0]}, item {self[row].id}, {name}"
            remedy = "Rebuild the pixels with `vgbench pull --scenes`."
            raise dataset_error(where, f"image {k} without bytes", "embedded images", remedy)
        return data

    def ids(self) -> list[str]:
        """All ids in order."""
        return list(self._index())

    def _count_group_rows(self) -> list[int]:
        return [end - start for start, end in itertools.pairwise(self._starts)]

    def _group_of(self, row: int) -> int:
        # The right one of equal starts: empty row groups hold no row.
        return bisect.bisect_right(self._starts, row) - 1

    def _find_row(self, item_id: str) -> int:
        rows = self._index()
        return rows[find_id(rows, item_id, str(self._name()))]

    def _index(self) -> dict[str, int]:
        if self._rows is None:
            rows: dict[str, int] = {}
            for row, record in enumerate(shards.iterate_rows(self.paths, ["id"], 4096)):
                if rows.setdefault(record["id"], row) != row:
                    found = f"item {record['id']!r} in rows {rows[record['id']]} and {row}"
                    raise dataset_error(
                        self._name(), found, "every id once", "Build it again (`vgbench build --facts`)."
                    )
            self._rows = rows
        return self._rows

    def _read_item(self, group: int, place: int) -> Item:
        if group not in self._rows_read:
            self._rows_read[group] = [*_read_group(*self._groups[group])]
            if len(self._rows_read) > _GROUPS_KEPT:
                self._rows_read.popitem(last=False)
        self._rows_read.move_to_end(group)
        rows = self._rows_read[group]
        # Unpacked when asked for: a draw of few questions meets every group.
        if not isinstance(row := rows[place], Item):
            row = rows[place] = ITEMS.from_row(row, self._groups[group][0])
        return row

    def _name(self) -> Path:
        return self.paths[0] if len(self.paths) == 1 else self.paths[0].parent


def _list_leaves(file: Any, names: Container[str] = _COLUMNS) -> list[str]:
    # Of published rows the checksums of images are not needed.
    leaves = shards.list_light_columns(file, names)
    return [leaf for leaf in leaves if not leaf.startswith(f"{_FILES}.") or leaf.endswith(".name")]


def _read_group(path: Path, index: int, columns: Sequence[str] = ()) -> list[dict[str, Any]]:
    with shards.open_parquet(path) as file:
        names = columns or _list_leaves(file)
        return shards.list_rows(path, shards.read_group(path, file, index, names))


def _find(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise dataset_error(path, "nothing", "a built dataset", _REMEDY)
    folder = path / "items" if (path / "items").is_dir() else path
    files = sorted(p for p in folder.glob("*.parquet") if not p.name.startswith("."))
    if not files:
        found, remedy = _look_below(choose_snapshot(folder, dataset_error))
        raise dataset_error(folder, found, "a built dataset", remedy)
    _require_all_shards(folder, files)
    return files


def _look_below(folder: Path) -> tuple[str, str]:
    """What a folder holds that has no parquet files itself, and how to open it."""
    below = next((path for depth in range(1, 4) for path in sorted(folder.glob("*/" * depth + "*-of-*.parquet"))), None)
    if below is None:
        return "no parquet files", _REMEDY
    home = next((each for each in below.parents if (each / "manifest.json").is_file()), folder)
    if below.relative_to(home).parts[0] != "data":
        return f"no parquet files but in {below.parent}", "Name that folder."
    pull = format_command("vgbench", "pull", home, "--out", "FOLDER")
    return "a published set as it is downloaded", f"Run `{pull}` and name that FOLDER."


def _require_all_shards(folder: Path, files: Sequence[Path]) -> None:
    sets: dict[tuple[str, int], set[int]] = {}
    for file in files:
        match = _SHARD.fullmatch(file.name)
        if match is not None:
            sets.setdefault((match["stem"], int(match["count"])), set()).add(int(match["index"]))
    for (stem, count), have in sets.items():
        if have != set(range(count)):
            found = f"{len(have)} of {count} files {stem}-*-of-{count:05d}.parquet"
            raise dataset_error(folder, found, "all of them", "Copy or build the dataset again.")
    if len({count for _, count in sets}) > 1 and len({stem for stem, _ in sets}) == 1:
        raise dataset_error(folder, "files of two different sets", "one set", "Build the dataset again.")


__all__ = ["Dataset", "DatasetError", "load"]
