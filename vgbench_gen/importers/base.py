"""The base class of importers. An importer reads one source in its published form and returns the question of each row.

An importer knows files and columns, but not our schema: `records` yields the raw rows of a local copy, and `row` turns
one into a `SourceRow` or raises `RowError`. `_reading` counts rows, checks images and makes items.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import Item, QuestionType
from vgbench_gen.importers._files import Fields, Place, RawRow, RowError, table_rows
from vgbench_gen.importers._words import QuestionWords

Modality = Literal["single-image", "multi-images", "video"]
UNKNOWN = "unknown"  # `category_origin` of sources without categories, as in the published rows
ORIGIN = "origin"  # key of `Item.evidence`: {"index": int or str, "repository": str}
ASKED = "asked"  # key of `Item.evidence`: {"text": str, "options_at": [[start, end], ...]}, see `_words.QuestionWords`

RowT = TypeVar("RowT", bound=RawRow)
_LETTER = re.compile(r"\s*\(?([A-Za-z])\)?\s*([.:)].*)?", re.DOTALL)


class ScoreCategory:
    """SpatialScore's categories and subcategories."""

    COUNTING = ("Counting", "Object Counting")
    LOCALIZATION_2D = ("Object Localization", "2D Localization")
    LOCALIZATION_3D = ("Object Localization", "3D Localization")
    ORIENTATION = ("3D Positional Relation", "Orientation")
    ABSOLUTE = ("Depth and Distance", "Absolute")
    RELATIVE = ("Depth and Distance", "Relative")
    SIZE = ("Object Properties", "Size")
    TRANSFORMATION_2D = ("Camera and Image Transformation", "2D Transformation")
    CAMERA_POSE_3D = ("Camera and Image Transformation", "3D Camera Pose")
    CORRESPONDENCE = ("Point and Object Tracking", "Point Correspondence")
    TRACKING_3D = ("Point and Object Tracking", "3D Tracking")
    MISCELLANEOUS = ("Others", "Miscellaneous")


class Record(NamedTuple):
    """A raw row of a source."""

    where: str
    """File and row number, for messages."""
    part: str
    """Name of its part; see `Importer.parts`."""
    fields: Fields
    """Column -> cell."""
    row: int
    """Row number in the file."""
    number: int
    """Row number in the source, from 0."""


@dataclass(frozen=True, slots=True)
class Part:
    """A split or category of a source."""

    expected: int | None
    """Number of rows; None if unknown."""
    category: tuple[str, str] | None = None
    """SpatialScore's category and subcategory, one of `ScoreCategory`; None if they depend on the row."""
    published: bool = True
    """Whether SpatialScore contains the part."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """The question of a row."""

    index: int | str
    """`index_origin` as in SpatialScore."""
    question_type: QuestionType
    words: QuestionWords
    """The question as SpatialScore asks it."""
    answer: str
    """A letter (in any case, with or without brackets) or the option's text; Yes or No; a number with its unit; or a
    word."""
    images: Sequence[bytes | Path]
    """Encoded bytes or files, in the order shown."""
    origin: str = UNKNOWN
    """`category_origin`."""
    category: tuple[str, str] | None = None
    """Category and subcategory, one of `ScoreCategory`; None for those of the part."""
    modality: Modality | Literal[""] = ""
    """"" for single-image or multi-images, by the number of images."""
    benchmark: str = ""
    """Name of the benchmark; "" for `Importer.benchmark`."""
    key: str = ""
    """A unique key within the benchmark, if `index` is not unique."""
    scans: str = ""
    """Data set of the images; "" if unknown. Rows with the same scans and scene are never treated as independent."""
    scene: str = ""
    """Scene or photo in the images, by which training scenes are found."""
    frames: tuple[str, ...] = ()
    """Ids of the images in that scene."""
    group: str = ""
    """A key shared by rows about the same fact."""
    pair: str = ""
    """A key shared by the two rows of a pair (a question and its flip or twin)."""
    split: str = "test"
    licence: str = ""
    """License of the row; "" for `Importer.licence`."""
    note: str = ""
    """A known error of the row; it is counted and kept in the evidence."""


class Importer(abc.ABC, Generic[RowT]):
    """A plug-in that reads one source. There is one instance per registered name, without state."""

    title: ClassVar[str]
    benchmark: ClassVar[str]
    """`source` in SpatialScore's rows, which selects prompts, scoring and tables."""
    own: ClassVar[str] = ""
    """Benchmark name under which the source's own scoring rules apply; "" if it has none."""
    repository: ClassVar[str] = ""
    """Dataset repository on the Hub; "" if there is none."""
    patterns: ClassVar[tuple[str, ...]] = ()
    """Glob patterns of the files to download; () for all."""
    files: ClassVar[tuple[str, ...]]
    """Glob patterns of the tables in a local copy; the first that matches is used (see `Place.find`)."""
    photos: ClassVar[tuple[str, ...]] = ()
    """Folders that are searched for images, besides the top."""
    licence: ClassVar[str] = UNKNOWN
    columns: type[RowT]
    first_row: ClassVar[int] = 0
    """Number of a file's first row in messages."""
    part_column: ClassVar[str] = ""
    """Column with the part of a row; "" if there is only one part."""
    parts: ClassVar[Mapping[str, Part]]
    """Name -> part."""
    unknown_parts: ClassVar[int] = 0
    """Number of questions in SpatialScore from parts of unknown sizes."""

    @property
    def published(self) -> int:
        """Number of the source's questions in SpatialScore."""
        return self.unknown_parts + sum(part.expected or 0 for part in self.parts.values() if part.published)

    def find_tables(self, place: Place) -> list[Path]:
        """The tables in a local copy, in the order of the source. Raises DatasetError if there are none."""
        return place.find(*self.files)

    def find_part(self, fields: Fields, table: Path) -> str:
        """Name of the part of a raw row; "" for a row that is ignored."""
        return str(fields.get(self.part_column)) if self.part_column else next(iter(self.parts))

    def records(self, place: Place) -> Iterator[Record]:
        """All raw rows in the order of the source, with unchecked cells.

        Raises:
            DatasetError: a file or a column is missing.
        """
        tables, number = self.find_tables(place), 0
        for table in tables:
            name = table.name if len(tables) == 1 else table.relative_to(place.folder).as_posix()
            for row, fields in enumerate(table_rows(table, self.columns.list_columns()), start=self.first_row):
                if part := self.find_part(fields, table):
                    yield Record(f"{name}:{row}", part, fields, row, number)
                    number += 1

    @abc.abstractmethod
    def row(self, fields: RowT, record: Record, place: Place) -> SourceRow:
        """The question of a row.

        Raises:
            RowError: the row cannot be imported; it is counted under its reason and skipped.
        """


importers: Registry[Importer[Any]] = Registry("source", "vgbench_gen.importers")


def read_origin_index(item: Item) -> int | str:
    """`index_origin` as in the published rows, where it may be text, which the column of an item cannot hold."""
    origin = item.evidence.get(ORIGIN)
    index = origin.get("index") if isinstance(origin, Mapping) else None
    return index if isinstance(index, int | str) and item.index_origin < 0 else item.index_origin


def read_letter(answer: str, options: Sequence[str]) -> str:
    """The capital letter of an answer such as "(b)", "B", "B. 2 m" or the text of an option.

    Raises:
        RowError: the answer is none of the options.
    """
    stripped = answer.strip()
    same = [k for k, option in enumerate(options) if option.strip().casefold() == stripped.casefold()]
    match = _LETTER.fullmatch(stripped)
    place = ord(match[1].upper()) - ord("A") if match else -1
    if not 0 <= place < len(options) and len(same) == 1:
        place = same[0]
    if not 0 <= place < len(options):
        raise RowError("answer", f"{answer[:60]!r}, which is none of the {len(options)} options")
    return chr(ord("A") + place)


def read_yes_no(answer: str) -> str:
    """ "Yes" or "No" for an answer such as "yes.", "True", "1". Raises RowError for other answers."""
    word = answer.strip().strip(".").casefold()
    if word in {"yes", "true", "1"}:
        return "Yes"
    if word in {"no", "false", "0"}:
        return "No"
    raise RowError("answer", f"{answer[:60]!r}, which is neither yes nor no")
