"""BLINK: multiple choice about what people perceive within a blink; its six spatial tasks, 814 questions.

The split `val` is read, because the answers of `test` are hidden. The question is `prompt`, as in all 41 rows of
SpatialScore-Hard. SpatialScore has five of these tasks, 681 questions; it takes multi-view reasoning from MMIU, whose
category is used here. Questions about the same image count as one scene. Columns and file names are taken from the
authors' script and other programs, not from the files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import AliasChoices, Field

from vgbench_gen.importers._files import Picture, Place, RawRow, RowError, Text
from vgbench_gen.importers._words import find_options, lettered_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers


class _Row(RawRow):
    idx: Text
    choices: list[str]
    answer: Text
    asked: Text = Field(validation_alias=AliasChoices("prompt", "question"))
    prompt: Text = ""
    image_1: Picture
    image_2: Picture = ""
    image_3: Picture = ""
    image_4: Picture = ""


@importers.register("blink")
class Blink(Importer[_Row]):
    """Multiple choice with two to four options and one to four images."""

    title = "BLINK"
    benchmark = "BLINK"
    repository = "BLINK-Benchmark/BLINK"
    licence = "apache-2.0"
    columns = _Row
    parts: ClassVar[Mapping[str, Part]] = {
        "Counting": Part(120, ScoreCategory.COUNTING),
        "Multi-view_Reasoning": Part(133, ScoreCategory.CAMERA_POSE_3D, published=False),
        "Object_Localization": Part(122, ScoreCategory.LOCALIZATION_2D),
        "Relative_Depth": Part(124, ScoreCategory.RELATIVE),
        "Spatial_Relation": Part(143, ScoreCategory.ORIENTATION),
        "Visual_Correspondence": Part(172, ScoreCategory.CORRESPONDENCE),
    }
    patterns = tuple(f"{task}/val*.parquet" for task in parts)
    files = tuple(f"**/{task}/**/val*.parquet" for task in parts)

    def find_tables(self, place: Place) -> list[Path]:
        """As `Importer.find_tables`; the task that is not in SpatialScore may be missing."""
        tables = zip(self.files, self.parts.values(), strict=True)
        return [path for files, part in tables for path in (place.find if part.published else place.glob)(files)]

    def find_part(self, fields: object, table: Path) -> str:
        return next(task for task in self.parts if task in table.parts)

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        if fields.prompt:
            words = find_options(fields.prompt)
            if len(words.options) != len(fields.choices):
                found = f"{len(words.options)} options where `choices` has {len(fields.choices)}"
                raise RowError("prompt", found)
        else:
            words = lettered_words(f"{fields.asked}\nSelect from the following choices.", fields.choices)
        shown = (fields.image_1, fields.image_2, fields.image_3, fields.image_4)
        return SourceRow(
            index=fields.idx,
            origin=record.part,
            question_type="multi-choice",
            words=words,
            answer=fields.answer,
            images=[place.image(picture, record.part) for picture in shown if picture],
            split="val",
        )
