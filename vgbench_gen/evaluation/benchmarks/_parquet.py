"""Reads benchmarks from their published parquet files, without an import: texts in memory, images from the files."""

from __future__ import annotations

import copy
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.paths import choose_snapshot
from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.base import QuestionRow
from vgbench_gen.evaluation.item_source import ItemSource
from vgbench_gen.importers._files import Place, RowError
from vgbench_gen.importers.hub import download
from vgbench_gen.store import shards
from vgbench_gen.store.files import dataset_error
from vgbench_gen.store.pictures import find_image_kind

MAX_IMAGE_BYTES = 100 * 2**20


@dataclass(frozen=True, slots=True)
class ImagePlace:
    """The location of an image in a parquet file."""

    file: Path
    row: int
    column: str
    k: int = 0
    """Index in a cell with a list of images."""
    drawn: tuple[float, float, float, float] | None = None
    """A box (xmin, ymin, xmax, ymax in pixels) to draw in red; None for none."""


@dataclass(slots=True)
class SkippedRows:
    """Rows that cannot be asked."""

    bad: list[str] = field(default_factory=list)
    """A line per row with file, row number and reason."""

    def add(self, file: Path, row: int, problem: RowError | DatasetError | ValueError) -> None:
        """Add a row."""
        self.bad.append(f"{file.name}, row {row}: {problem}")


class ParquetSource(ItemSource):
    """A benchmark whose images are read from its published files.

    Args:
        benchmark, folder, items, notes: as of `ItemSource`.
        images: name of an image in the items -> its location.
    """

    def __init__(
        self,
        benchmark: str,
        folder: Path,
        items: Sequence[Item],
        images: Mapping[str, ImagePlace],
        notes: Sequence[str] = (),
    ) -> None:
        super().__init__(benchmark, folder, items, notes=notes)
        self._images = images
        self._cells = CellReader()

    def image(self, item: Item, k: int) -> bytes:
        return self.image_named(item.images[k])

    def image_named(self, name: str) -> bytes:
        """The encoded image with a name."""
        where = self._images[name]
        data = encode_image(self._cells.of(where.file, where.row, where.column), where.k)
        return data if where.drawn is None else draw_box(data, where.drawn)

    def missing_images(self, rows: Sequence[QuestionRow]) -> list[str]:
        """An empty list, because the images are in the files of the questions."""
        return []

    def again(self) -> Self:
        """As `Source.again`, with its own `CellReader`."""
        other = copy.copy(self)
        other._cells = CellReader()
        return other


class CellReader:
    """Reads single cells of parquet files; one column of the last row group is kept in memory."""

    def __init__(self) -> None:
        self._key: tuple[Path, int, str] | None = None
        self._values: Any = None
        self._starts: dict[Path, list[int]] = {}

    def of(self, file: Path, row: int, column: str) -> Any:
        """The value of a cell.

        Raises:
            DatasetError: the file cannot be read.
        """
        starts = self._starts.get(file)
        if starts is None:
            starts = [0]
            with shards.open_parquet(file) as opened:
                for group in range(opened.num_row_groups):
                    starts.append(starts[-1] + opened.metadata.row_group(group).num_rows)
            self._starts[file] = starts
        group = bisect_right(starts, row) - 1
        if self._key != (file, group, column):
            with shards.open_parquet(file) as opened:
                self._values = shards.read_group(file, opened, group, [column]).column(0)
            self._key = (file, group, column)
        return self._values[row - starts[group]].as_py()


def count_rows(file: Path) -> int:
    """Number of rows of a parquet file."""
    with shards.open_parquet(file) as opened:
        return int(opened.metadata.num_rows)


def list_image_names(cell: Any) -> list[str]:
    """Names of the images in a cell. Raises RowError if a part of the cell is no image."""
    return [
        name_image(encode_image(cell, k)) for k in range(len(cell) if isinstance(cell, list) else int(cell is not None))
    ]


def encode_image(cell: Any, k: int = 0) -> bytes:
    """The k-th image of a cell, which is bytes, {"bytes", "path"} as in files of the Hub, or a list of these.

    Raises:
        RowError: there is no image, or it is too large.
    """
    image = cell[k] if isinstance(cell, list) else cell
    data = image.get("bytes") if isinstance(image, Mapping) else image
    if not isinstance(data, bytes) or not data:
        raise RowError("image", f"no bytes in a {type(image).__name__}", "image_missing")
    if len(data) > MAX_IMAGE_BYTES:
        raise RowError("image", f"{len(data)} bytes, more than {MAX_IMAGE_BYTES}", "image_large")
    return data


def name_image(data: bytes) -> str:
    """Name of an image: the digest of its bytes and its format. Raises RowError if the bytes are no image."""
    if kind := find_image_kind(data):
        return f"{digest_bytes(data)}.{kind}"
    raise RowError("image", f"{data[:8]!r}, which begins no image", "image_unreadable")


def read_size_px(data: bytes) -> tuple[int, int]:
    """(width, height) of an encoded image. Raises RowError if it cannot be read."""
    import io

    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise RowError("image", str(error)[:80], "image_unreadable") from None


def draw_box(data: bytes, box: tuple[float, float, float, float]) -> bytes:
    """The image with a red rectangle of lines at least 2 pixels wide, as PNG.

    Raises:
        DatasetError: the image cannot be decoded.
    """
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise DatasetError("image: found bytes that cannot be decoded; expected an image. Download the file again.")
    height, width = image.shape[:2]
    x1, y1, x2, y2 = (round(value) for value in box)
    line = max(2, round(min(height, width) / 200))
    cv2.rectangle(image, (x1, y1), (x2, y2), (0, 0, 255), line)
    return bytes(cv2.imencode(".png", image)[1])


def place_of(path: Path, repository: str, patterns: Sequence[str]) -> Place:
    """The folder at a path, the folder of a file, or a download from the Hub if the path is the repository's name.

    Raises:
        DatasetError: nothing at the path, or the download fails.
    """
    if path.is_dir():
        return Place(choose_snapshot(path, dataset_error))
    if path.is_file():
        return Place(path.parent)
    if str(path) != repository:
        raise dataset_error(path, "nothing", "a folder or file", f"Download {repository} and name its folder.")
    return Place(download(repository.partition("/")[2], repository, patterns))
