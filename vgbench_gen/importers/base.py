"""What an importer is: it reads one source in the form in which that is distributed and says what each row asks.

An importer knows files and columns, and nothing of our schema: `records` walks the raw rows of a local copy, `row`
turns one into a `SourceRow` or raises `RowError`. `_reading` counts, checks the images and makes `Item`s of them.
"""

from __future__ import annotations

import abc
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from vgbench_gen.core.registry import Registry
from vgbench_gen.core.types import Item, QuestionType
from vgbench_gen.importers._files import Fields, Place, RowError
from vgbench_gen.importers._words import QuestionWords

Modality = Literal["single-image", "multi-images", "video"]
UNKNOWN = "unknown"  # `category_origin` of sources without categories, as the published rows have it
ORIGIN = "origin"  # key of `Item.evidence`: {"index": int or str, "repository": str}
ASKED = "asked"  # key of `Item.evidence`: {"text": str, "options_at": [[start, end], ...]}, see `_words.QuestionWords`

# SpatialScore's categories and subcategories.
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

_LETTER = re.compile(r"\s*\(?([A-Za-z])\)?\s*[.:)]?\s*")


class Record(NamedTuple):
    """A raw row. where: file and place in it, for messages. part: which expected count it counts towards."""

    where: str
    part: str
    fields: Fields


@dataclass(frozen=True, slots=True)
class Part:
    """A split or category of a source whose size is known.

    expected: rows that it has, None where that is not known. published: whether SpatialScore holds it.
    """

    expected: int | None
    published: bool = True


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What a row asks.

    index: `index_origin` as SpatialScore writes it, number or text. origin: `category_origin`. category: category and
    subcategory, one of the pairs above. words: the question as SpatialScore asks it. answer: a letter (any case, with
    or without parentheses) or the option's text; Yes or No; a number with its unit; a word. images: encoded bytes or
    files, in the order shown. modality: "" for single-image or multi-images by their number. benchmark: "" for the
    importer's own. key: unique within the benchmark where `index` is not. scans, scene: data set and scene (or photo)
    behind the images, "" where nobody knows; rows that share them are never counted as independent, and the leakage
    guard looks them up. frames: their ids in that scene. group: shared by rows about one truth. pair: shared by two
    rows that are one question asked from two sides (a flip, a twin). licence: "" for the importer's. note: what is
    known to be wrong with the row, kept in the evidence and counted.
    """

    index: int | str
    origin: str
    category: tuple[str, str]
    question_type: QuestionType
    words: QuestionWords
    answer: str
    images: Sequence[bytes | Path]
    modality: Modality | Literal[""] = ""
    benchmark: str = ""
    key: str = ""
    scans: str = ""
    scene: str = ""
    frames: tuple[str, ...] = ()
    group: str = ""
    pair: str = ""
    split: str = "test"
    licence: str = ""
    note: str = ""


class Importer(abc.ABC):
    """A plug-in: one source. One instance per registered name, without state.

    title: its name for people. benchmark: `source` of SpatialScore's rows, which selects prompts, scoring and tables.
    own: the name under which it is scored by its own rules, "" where these are SpatialScore's. repository: on the Hub.
    patterns: files of it that are fetched, all where empty. licence: id of its terms, `UNKNOWN` where they were not
    found. parts: by name, see `Record.part`. published: questions of it that SpatialScore holds.
    """

    title: ClassVar[str]
    benchmark: ClassVar[str]
    own: ClassVar[str] = ""
    repository: ClassVar[str] = ""
    patterns: ClassVar[tuple[str, ...]] = ()
    licence: ClassVar[str] = UNKNOWN
    parts: ClassVar[Mapping[str, Part]]
    published: ClassVar[int]

    @abc.abstractmethod
    def records(self, place: Place) -> Iterator[Record]:
        """All raw rows, in the order of the source; cells are not looked at.

        Raises:
            DatasetError: a file or a column is missing.
        """

    @abc.abstractmethod
    def row(self, record: Record, place: Place) -> SourceRow:
        """What a raw row asks.

        Raises:
            RowError: it cannot be taken over; it is counted by its reason, and the others go on.
        """


importers: Registry[Importer] = Registry("source", "vgbench_gen.importers")


def origin_index(item: Item) -> int | str:
    """`index_origin` of the published rows, which is text for some sources; the column holds numbers only."""
    origin = item.evidence.get(ORIGIN)
    index = origin.get("index") if isinstance(origin, Mapping) else None
    return index if isinstance(index, int | str) and item.index_origin < 0 else item.index_origin


def letter_of(answer: str, options: Sequence[str]) -> str:
    """The capital letter of an answer such as "(b)", "B", "B." or the text of an option.

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


def yes_no(answer: str) -> str:
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
