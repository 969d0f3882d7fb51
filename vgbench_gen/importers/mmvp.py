"""MMVP: 150 pairs of photos that CLIP cannot tell apart, with one two-option question per pair.

The original repository and the corrected copy `lmms-lab-eval/MMVP` can be read. In the original the answers to
questions 99 and 100, and to 279 and 280, are swapped (lmms-eval#1018). Both copies are imported unchanged, and rows
with a swapped answer get a note. It is unknown which copy SpatialScore has, as only two of its MMVP rows are public.
The columns of the original are known only from descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import AliasChoices, Field

from vgbench_gen.importers._files import Number, Picture, Place, RawRow, Text
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers, read_letter

# Question -> its wrong answer in the original.
_SWAPPED = {99: "A", 100: "B", 279: "A", 280: "B"}


class _Row(RawRow):
    index: Number = Field(validation_alias=AliasChoices("Index", "index", "lndex"))
    question: Text = Field(validation_alias=AliasChoices("Question", "question"))
    options: Text = Field(validation_alias=AliasChoices("Options", "options"))
    answer: Text = Field(validation_alias=AliasChoices("Correct Answer", "answer"))
    image: Picture = Field("", validation_alias=AliasChoices("image", "Image"))


@importers.register("mmvp")
class Mmvp(Importer[_Row]):
    """300 questions; 1 and 2 form a pair, then 3 and 4, and so on."""

    title = "MMVP"
    benchmark = "MMVP"
    repository = "lmms-lab-eval/MMVP"
    patterns = ("data/*.parquet",)
    files = ("**/*.parquet", "**/Questions.csv")
    photos = ("MMVP Images", "MMVP")
    licence = "mit"
    columns = _Row
    first_row = 1
    parts: ClassVar[Mapping[str, Part]] = {"all": Part(300, ScoreCategory.MISCELLANEOUS)}

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        words = find_options(f"{fields.question.strip()}\n{fields.options.strip()}")
        answer = read_letter(fields.answer, words.options)
        return SourceRow(
            index=fields.index,
            question_type="multi-choice",
            words=words,
            answer=answer,
            images=[place.image(fields.image or f"{fields.index}.jpg", *self.photos)],
            pair=str((fields.index + 1) // 2),
            note="the original's key, which the photo contradicts" if _SWAPPED.get(fields.index) == answer else "",
        )
