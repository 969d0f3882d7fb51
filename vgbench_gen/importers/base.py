"""What an importer is: it reads one source in the form in which that is distributed and says what each row asks.

An importer knows files and columns, and nothing of our schema: `records` walks the raw rows of a local copy, whose
columns a model declares, and `row` makes of one what it asks or raises `RowError`. `_reading` counts, checks the images
and makes items of them.
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
UNKNOWN = "unknown"  # `category_origin` of sources without categories, as the published rows have it
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
    """The file and the number of the row in it, for messages."""
    part: str
    """The part that it counts towards; see `Importer.parts`."""
    fields: Fields
    """Its cells by column."""
    row: int
    """Its number in the file."""
    number: int
    """Its number in the source, from 0."""


@dataclass(frozen=True, slots=True)
class Part:
    """A split or category of a source whose size is known."""

    expected: int | None
    """How many rows it has, None where that is not known."""
    category: tuple[str, str] | None = None
    """SpatialScore's category and subcategory, one of `ScoreCategory`; None where they depend on the row."""
    published: bool = True
    """Whether SpatialScore holds it."""


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What a row asks."""

    index: int | str
    """`index_origin` as SpatialScore writes it, a number or a text."""
    question_type: QuestionType
    words: QuestionWords
    """The question as SpatialScore asks it."""
    answer: str
    """A letter (in any case, with or without brackets) or the option's text; Yes or No; a number with its unit; a word.
    """
    images: Sequence[bytes | Path]
    """Encoded bytes or files, in the order in which they are shown."""
    origin: str = UNKNOWN
    """`category_origin`."""
    category: tuple[str, str] | None = None
    """ScoreCategory and subcategory, one of `ScoreCategory`; None for those of the part."""
    modality: Modality | Literal[""] = ""
    """"" for single-image or multi-images, by their number."""
    benchmark: str = ""
    """The benchmark's name, "" for the importer's own."""
    key: str = ""
    """What is unique within the benchmark, where `index` is not."""
    scans: str = ""
    """The data set behind the images, "" where nobody knows. Rows that share scans and scene never count as
    independent.
    """
    scene: str = ""
    """The scene or photo behind the images. The leakage guard looks it up."""
    frames: tuple[str, ...] = ()
    """The ids of the images in that scene."""
    group: str = ""
    """A name that rows about one truth share."""
    pair: str = ""
    """A name that two rows share which ask one question from two sides (a flip, a twin)."""
    split: str = "test"
    licence: str = ""
    """The terms of the row, "" for those of the importer."""
    note: str = ""
    """What is known to be wrong with the row. It is kept in the evidence and counted."""


class Importer(abc.ABC, Generic[RowT]):
    """A plug-in that reads one source. There is one instance per registered name, without state."""

    title: ClassVar[str]
    benchmark: ClassVar[str]
    """`source` of SpatialScore's rows, which selects prompts, scoring and tables."""
    own: ClassVar[str] = ""
    """The name under which it is scored by its own rules, "" where these are SpatialScore's."""
    repository: ClassVar[str] = ""
    """Where it lies on the Hub, "" where it does not."""
    patterns: ClassVar[tuple[str, ...]] = ()
    """The files that are fetched from there, all where empty."""
    files: ClassVar[tuple[str, ...]]
    """The tables in a local copy: all of the first of these patterns that finds any (see `Place.find`)."""
    photos: ClassVar[tuple[str, ...]] = ()
    """Folders in which images are looked for that rows only name, besides the top."""
    licence: ClassVar[str] = UNKNOWN
    columns: type[RowT]
    first_row: ClassVar[int] = 0
    """The number of a file's first row in messages."""
    part_column: ClassVar[str] = ""
    """The column that names the part of a row, "" where there is one part only."""
    parts: ClassVar[Mapping[str, Part]]
    """Its parts by name; see `Record.part`."""
    unknown_parts: ClassVar[int] = 0
    """How many questions SpatialScore holds of parts whose sizes are not known."""

    @property
    def published(self) -> int:
        """How many of its questions SpatialScore holds."""
        return self.unknown_parts + sum(part.expected or 0 for part in self.parts.values() if part.published)

    def find_tables(self, place: Place) -> list[Path]:
        """Its tables in a local copy, in the order of the source.

        Raises:
            DatasetError: there are none.
        """
        return place.find(*self.files)

    def find_part(self, fields: Fields, table: Path) -> str:
        """The part that a raw row of a table counts towards, "" for a row that is passed over."""
        return str(fields.get(self.part_column)) if self.part_column else next(iter(self.parts))

    def records(self, place: Place) -> Iterator[Record]:
        """All raw rows, in the order of the source; cells are not looked at.

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
        """What a row asks.

        Raises:
            RowError: it cannot be taken over; it is counted by its reason, and the others go on.
        """


importers: Registry[Importer[Any]] = Registry("source", "vgbench_gen.importers")


def read_origin_index(item: Item) -> int | str:
    """`index_origin` of the published rows, which is text for some sources; the column holds numbers only."""
    origin = item.evidence.get(ORIGIN)
    index = origin.get("index") if isinstance(origin, Mapping) else None
    return index if isinstance(index, int | str) and item.index_origin < 0 else item.index_origin


def read_letter(answer: str, options: Sequence[str]) -> str:
    """The capital letter of an answer such as "(b)", "B", "B. 2 m" or the text of an option.

    Raises:
        RowError: it is none of the options.
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
    """ "Yes" or "No" of an answer such as "yes.", "True", "1".

    Raises:
        RowError: it is neither.
    """
    said = answer.strip().strip(".").casefold()
    if said in {"yes", "true", "1"}:
        return "Yes"
    if said in {"no", "false", "0"}:
        return "No"
    raise RowError("answer", f"{answer[:60]!r}, which is neither yes nor no")
