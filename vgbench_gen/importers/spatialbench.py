"""SpatialBench (of SpatialBot): 174 questions on position, existence, counting, reaching and size.

The authors' JSON files are read, or parquet files of copies on the Hub. The repository requires a form, so its files
are known only from listings and the authors' evaluation code. `grounding.json` asks for boxes and is not among the 174.
According to SpatialScore's tables, 20 rows belong to counting and 35 to relations; the categories of the other 119
(existence, reaching and size share "distance" and "properties" with QSpatialBench) are unknown. Here reaching is
relative distance, existence and size are properties. `index_origin` is the file's `id`, or the row number from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar

from pydantic import AliasChoices, BeforeValidator, Field

from vgbench_gen.importers._files import Fields, Index, Picture, Place, RawRow, Text
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers
from vgbench_gen.importers.realworldqa import form_of

_OTHER_NAMES = {"position": "positional", "reaching": "reach"}


class _Row(RawRow):
    id: Index = Field("", validation_alias=AliasChoices("id", "question_id"))
    image: Annotated[list[Picture], BeforeValidator(lambda cell: cell if isinstance(cell, list) else [cell])]
    question: Text = Field(validation_alias=AliasChoices("question", "text"))
    answer: Text


@importers.register("spatialbench")
class SpatialBench(Importer[_Row]):
    """Yes or no, letters and counts."""

    title = "SpatialBench"
    benchmark = "spatialbench"
    repository = "RussRobin/SpatialBench"
    patterns = ("*.json", "counting/*", "existence/*", "positional/*", "reach/*", "size/*")
    licence = "cc-by-4.0"
    columns = _Row
    part_column = "category"
    parts: ClassVar[Mapping[str, Part]] = {
        "positional": Part(None, ScoreCategory.ORIENTATION),
        "existence": Part(None, ScoreCategory.SIZE),
        "counting": Part(20, ScoreCategory.COUNTING),
        "reach": Part(None, ScoreCategory.RELATIVE),
        "size": Part(None, ScoreCategory.SIZE),
    }
    unknown_parts = 154
    files = (*(f"**/{name}.json" for name in parts), "**/*.parquet")

    def find_tables(self, place: Place) -> list[Path]:
        """As `Importer.find_tables`; either all five JSON files, or parquet files."""
        patterns = self.files[:-1] if place.glob(self.files[0]) else self.files[-1:]
        return [path for pattern in patterns for path in place.find(pattern)]

    def find_part(self, fields: Fields, table: Path) -> str:
        if table.suffix == ".json":
            return table.stem
        category = super().find_part(fields, table).strip().casefold()
        return _OTHER_NAMES.get(category, category)

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        form, words = form_of(fields.question, fields.answer)
        return SourceRow(
            index=record.row if fields.id == "" else fields.id,
            origin=record.part,
            question_type=form,
            words=words,
            answer=fields.answer,
            images=[place.image(picture) for picture in fields.image],
            key=f"{record.part}-{record.row}",
        )
