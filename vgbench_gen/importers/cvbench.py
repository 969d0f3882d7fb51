"""CV-Bench: counting and relations in ADE20K and COCO (2D), depth and distance in Omni3D (3D), 2,638 questions.

Images are in the parquet files, or for `.jsonl` in the folder of the authors' script. The question is `prompt`; a row
without it gets the same wording. In SpatialScore-Hard the questions on depth and distance end in a line with the
coordinates of the boxes drawn in the image. It is unknown whether `prompt` has that line; it is not added here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import AliasChoices, Field

from vgbench_gen.importers._files import Index, Picture, Place, RawRow, RowError, Text
from vgbench_gen.importers._words import find_options, lettered_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers


class _Row(RawRow):
    idx: Index
    task: Text
    choices: list[str]
    answer: Text
    asked: Text = Field(validation_alias=AliasChoices("prompt", "question"))
    prompt: Text = ""
    image: Picture = Field(validation_alias=AliasChoices("image", "filename"))
    scans: Text = Field("", validation_alias=AliasChoices("source_dataset", "source"))
    photo: Text = Field("", validation_alias="source_filename")


@importers.register("cvbench")
class CvBench(Importer[_Row]):
    """Multiple choice with two to six options."""

    title = "CV-Bench"
    benchmark = "cvbench"
    own = "CV-Bench"
    repository = "nyu-visionx/CV-Bench"
    patterns = ("test*.parquet",)
    files = ("**/test_[23]d*.parquet", "**/test*.parquet", "**/test_[23]d.jsonl", "**/test.jsonl")
    photos = ("img",)
    licence = "apache-2.0"
    columns = _Row
    part_column = "task"
    parts: ClassVar[Mapping[str, Part]] = {
        "Count": Part(788, ScoreCategory.COUNTING),
        "Relation": Part(650, ScoreCategory.LOCALIZATION_3D),
        "Depth": Part(600, ScoreCategory.RELATIVE),
        "Distance": Part(600, ScoreCategory.RELATIVE),
    }

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        if fields.prompt:
            words = find_options(fields.prompt)
            if [text.casefold() for text in words.options] != [text.strip().casefold() for text in fields.choices]:
                raise RowError("prompt", f"the options {words.options} where `choices` has {fields.choices}"[:160])
        else:
            words = lettered_words(f"{fields.asked} Select from the following choices.", fields.choices)
        return SourceRow(
            index=fields.idx,
            origin=record.part,
            question_type="multi-choice",
            words=words,
            answer=fields.answer,
            images=[place.image(fields.image, *self.photos)],
            scans=fields.scans if fields.photo else "",
            scene=fields.photo,
        )
