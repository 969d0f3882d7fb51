"""Questions of other benchmarks from their own parquet files: texts in memory, images left where they are.

Used by the benchmarks that are asked as they are published, without becoming a dataset of ours.
"""

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
    """One image of a parquet file."""

    file: Path
    """The file."""
    row: int
    """The row of its cell."""
    column: str
    """The column of its cell."""
    k: int = 0
    """Its place in the cell, where that holds a list."""
    drawn: tuple[float, float, float, float] | None = None
    """A box (xmin, ymin, xmax, ymax in pixels) to draw in red; None for none."""


@dataclass(slots=True)
class SkippedRows:
    """Rows that could not be asked about."""

    bad: list[str] = field(default_factory=list)
    """One line per row, with file, row and reason."""

    def add(self, file: Path, row: int, problem: RowError | DatasetError | ValueError) -> None:
        """Count one."""
        self.bad.append(f"{file.name}, row {row}: {problem}")


class ParquetSource(ItemSource):
    """The rows of a benchmark as it is published, whose images are read from its files.

    Args:
        benchmark, folder, items, notes: as of `ItemSource`.
        images: the place of each image by its name in the items.
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
        """The encoded image of a name."""
        where = self._images[name]
        data = encode_image(self._cells.of(where.file, where.row, where.column), where.k)
        return data if where.drawn is None else draw_box(data, where.drawn)

    def missing_images(self, rows: Sequence[QuestionRow]) -> list[str]:
        """None: the images are in the files of the questions."""
        return []

    def again(self) -> Self:
        """As `Source.again`, with a reader of cells of its own."""
        other = copy.copy(self)
        other._cells = CellReader()
        return other


class CellReader:
    """Single cells of parquet files; the last row group read of one column is in memory."""

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
    """Rows of a parquet file."""
    with shards.open_parquet(file) as opened:
        return int(opened.metadata.num_rows)


def list_image_names(cell: Any) -> list[str]:
    """Names of the images of a cell; none where it is empty.

    Raises:
        RowError: something in it is no image.
    """
    return [
        name_image(encode_image(cell, k)) for k in range(len(cell) if isinstance(cell, list) else int(cell is not None))
    ]


def encode_image(cell: Any, k: int = 0) -> bytes:
    """The k-th image of a cell: bytes, {"bytes", "path"} as the Hub writes them, or a list of these.

    Raises:
        RowError: there is none, or it is no image.
    """
    one = cell[k] if isinstance(cell, list) else cell
    data = one.get("bytes") if isinstance(one, Mapping) else one
    if not isinstance(data, bytes) or not data:
        raise RowError("image", f"no bytes in a {type(one).__name__}", "image_missing")
    if len(data) > MAX_IMAGE_BYTES:
        raise RowError("image", f"{len(data)} bytes, more than {MAX_IMAGE_BYTES}", "image_large")
    return data


def name_image(data: bytes) -> str:
    """Name of an image in records: the digest of its bytes and what it is.

    Raises:
        RowError: the bytes are no image.
    """
    if kind := find_image_kind(data):
        return f"{digest_bytes(data)}.{kind}"
    raise RowError("image", f"{data[:8]!r}, which begins no image", "image_unreadable")


def read_size_px(data: bytes) -> tuple[int, int]:
    """(width, height) of an encoded image.

    Raises:
        RowError: it cannot be read.
    """
    import io

    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(io.BytesIO(data)) as image:
            return image.size
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise RowError("image", str(error)[:80], "image_unreadable") from None


def draw_box(data: bytes, box: tuple[float, float, float, float]) -> bytes:
    """The image with a red rectangle, as PNG; its lines are at least 2 pixels wide.

    Raises:
        DatasetError: it cannot be decoded.
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
    """A folder, the folder of a file, or what the Hub has under the name `owner/name` where nothing is at the path.

    Raises:
        DatasetError: neither there nor to be had.
    """
    if path.is_dir():
        return Place(choose_snapshot(path, dataset_error))
    if path.is_file():
        return Place(path.parent)
    if str(path) != repository:
        raise dataset_error(path, "nothing", "a folder or file", f"Download {repository} and name its folder.")
    return Place(download(repository.partition("/")[2], repository, patterns))
