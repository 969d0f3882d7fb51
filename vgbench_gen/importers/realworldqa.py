"""RealWorldQA: 765 photos, most of them taken from cars, each with a question that says how to answer.

No column has the question type, so it follows from the answer: the letter of an option is multi-choice, Yes or No a
judgment, and a number or word open-ended, as in the nine rows of SpatialScore-Hard. As there, `index_origin` is the row
number from 0.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from vgbench_gen.core.types import QuestionType
from vgbench_gen.importers._files import Picture, Place, RawRow, Text
from vgbench_gen.importers._words import QuestionWords, find_options, plain_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers

_LETTER = re.compile(r"\(?[A-Z]\)?\.?")
_YES_NO = {"yes", "no"}


def form_of(question: str, answer: str) -> tuple[QuestionType, QuestionWords]:
    """(question type, wording) of a question in a source with mixed types, by its answer."""
    words, answer = find_options(question), answer.strip()
    if words.options and (_LETTER.fullmatch(answer) or answer in words.options):
        return "multi-choice", words
    return "judgment" if answer.strip(".").casefold() in _YES_NO else "open-ended", plain_words(question)


class _Row(RawRow):
    image: Picture
    question: Text
    answer: Text


@importers.register("realworldqa")
class RealWorldQa(Importer[_Row]):
    """765 questions of mixed types."""

    title = "RealWorldQA"
    benchmark = "RealWorldQA"
    repository = "xai-org/RealworldQA"
    patterns = ("data/*.parquet",)
    files = ("**/test*.parquet", "**/*.parquet")
    licence = "cc-by-nd-4.0"
    columns = _Row
    parts: ClassVar[Mapping[str, Part]] = {"all": Part(765, ScoreCategory.MISCELLANEOUS)}

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        form, words = form_of(fields.question, fields.answer)
        return SourceRow(
            index=record.number,
            question_type=form,
            words=words,
            answer=fields.answer,
            images=[place.image(fields.image)],
        )
