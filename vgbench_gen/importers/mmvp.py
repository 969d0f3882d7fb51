"""MMVP: 150 pairs of photos that CLIP cannot tell apart, one question with two options for both.

Read are the original repository (`Questions.csv` with Index, Question, Options, Correct Answer, and the photos `MMVP
Images/<Index>.jpg`) and the corrected copy `lmms-lab-eval/MMVP` (parquet with the same columns and `image`). In the
original the answers of questions 99 and 100, and of 279 and 280, are swapped (lmms-eval#1018); both copies are taken
over as they are, and rows with a swapped key carry a note. Which of the two keys SpatialScore has is not known; of its
rows only two of MMVP's are public. Columns of the original were seen in descriptions only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from vgbench_gen.importers._files import Place, RowError, read_optional, read_picture, read_text, table_rows
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import MISCELLANEOUS, UNKNOWN, Importer, Part, Record, SourceRow, importers, read_letter

_COLUMNS = (("Index", "index", "lndex"), ("Question", "question"), ("Options", "options"), ("Correct Answer", "answer"))
# Letters of these questions in the original, which the photos contradict.
_SWAPPED = {99: "A", 100: "B", 279: "A", 280: "B"}


@importers.register("mmvp")
class Mmvp(Importer):
    """300 questions; pairs are numbered two and two."""

    title = "MMVP"
    benchmark = "MMVP"
    repository = "lmms-lab-eval/MMVP"
    patterns = ("data/*.parquet",)
    licence = "mit"
    parts: ClassVar[Mapping[str, Part]] = {"all": Part(300)}
    published = 300

    def records(self, place: Place) -> Iterator[Record]:
        for path in place.find("**/*.parquet", "**/Questions.csv"):
            for number, fields in enumerate(table_rows(path, _COLUMNS), start=1):
                yield Record(f"{path.name}:{number}", "all", fields)

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        number = read_text(fields, *_COLUMNS[0])
        if not number.isdigit():
            raise RowError("Index", f"{number[:20]!r}, which is no number")
        index = int(number)
        words = find_options(f"{read_text(fields, *_COLUMNS[1]).strip()}\n{read_text(fields, *_COLUMNS[2]).strip()}")
        answer = read_letter(read_text(fields, *_COLUMNS[3]), words.options)
        held = read_optional(fields, "image", "Image")
        photo = f"{index}.jpg"
        image = (
            place.picture(photo, "MMVP Images", "MMVP") if held is None else read_picture(held, place, "MMVP Images")
        )
        return SourceRow(
            index=index,
            origin=UNKNOWN,
            category=MISCELLANEOUS,
            question_type="multi-choice",
            words=words,
            answer=answer,
            images=[image],
            pair=str((index + 1) // 2),
            note="the original's key, which the photo contradicts" if _SWAPPED.get(index) == answer else "",
        )
