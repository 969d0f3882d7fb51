"""CV-Bench: counting and relations in ADE20K and COCO (2D), depth and distance in Omni3D (3D), 2,638 questions.

Read are `test_2d.parquet` and `test_3d.parquet` of `nyu-visionx/CV-Bench` (or the older single `test.parquet`), with
`idx`, `task`, `question`, `choices`, `answer`, `prompt`, `image`; and the `.jsonl` files beside them with the images
that the authors' script puts under `img/` (`filename`). `prompt` is the text asked; where it is missing it is put
together the same way. In SpatialScore-Hard the questions on depth and distance end in a line with the coordinates of
the boxes that are drawn in the image; whether `prompt` has that line was not seen, and it is not made up.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from vgbench_gen.importers._files import (
    Place,
    RowError,
    read_column,
    read_json_rows,
    read_optional,
    read_parquet_rows,
    read_picture,
    read_text,
)
from vgbench_gen.importers._words import find_options, lettered_words
from vgbench_gen.importers.base import (
    COUNTING,
    LOCALIZATION_3D,
    RELATIVE,
    Importer,
    Part,
    Record,
    SourceRow,
    importers,
    read_category,
)

_COLUMNS = ("idx", "task", "question", "choices", "answer", ("image", "filename"))


@importers.register("cvbench")
class CvBench(Importer):
    """Multiple choice with two to six options."""

    title = "CV-Bench"
    benchmark = "cvbench"
    own = "CV-Bench"
    repository = "nyu-visionx/CV-Bench"
    patterns = ("test*.parquet",)
    licence = "apache-2.0"
    parts: ClassVar[Mapping[str, Part]] = {
        "Count": Part(788, COUNTING),
        "Relation": Part(650, LOCALIZATION_3D),
        "Depth": Part(600, RELATIVE),
        "Distance": Part(600, RELATIVE),
    }
    published = 2638

    def records(self, place: Place) -> Iterator[Record]:
        for path in place.find("**/test_[23]d*.parquet", "**/test*.parquet", "**/test_[23]d.jsonl", "**/test.jsonl"):
            rows = read_parquet_rows(path, _COLUMNS) if path.suffix == ".parquet" else read_json_rows(path)
            for number, fields in enumerate(rows):
                held = fields if isinstance(fields, dict) else {}
                yield Record(f"{path.name}:{number}", str(held.get("task")), held)

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        category = read_category(self, record, "task")
        choices = read_column(fields, "choices")
        if not isinstance(choices, list) or not all(isinstance(choice, str) for choice in choices):
            raise RowError("choices", f"{str(choices)[:40]!r}, which is no list of texts")
        prompt = read_optional(fields, "prompt")
        if isinstance(prompt, str) and prompt.strip():
            words = find_options(prompt)
            if [option.casefold() for option in words.options] != [choice.strip().casefold() for choice in choices]:
                raise RowError("prompt", f"the options {words.options} where `choices` has {choices}"[:160])
        else:
            words = lettered_words(f"{read_text(fields, 'question')} Select from the following choices.", choices)
        held = read_optional(fields, "image")
        photo = read_optional(fields, "source_filename")
        return SourceRow(
            index=int(read_text(fields, "idx")) if read_text(fields, "idx").isdigit() else read_text(fields, "idx"),
            origin=record.part,
            category=category,
            question_type="multi-choice",
            words=words,
            answer=read_text(fields, "answer"),
            images=[read_picture(held if held else read_text(fields, "filename"), place, "img")],
            scans=str(read_optional(fields, "source_dataset", "source") or "") if photo else "",
            scene=str(photo or ""),
        )
