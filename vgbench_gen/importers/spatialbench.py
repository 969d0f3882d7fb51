"""SpatialBench (of SpatialBot): 174 questions on position, existence, counting, reaching and size.

Read are the authors' files (`positional.json` and so on: a list with `image`, `question`, `answer`; images in folders
of the same names, those ending in `_d` are depth and not used) and parquet with `image`, `read_text` or `question`,
`answer`, `category`, which copies on the Hub have. The repository is behind a form, so its files were seen in listings
and in the authors' evaluation code only. `grounding.json` asks for boxes and is no part of the 174.

SpatialScore's tables tell that 20 of its rows are counted under counting and 35 under relations; where the other 119
go (existence, reaching and size share "distance" and "properties" with QSpatialBench) is not known. Here reaching goes
to relative distance, existence and size to properties. `index_origin` is the file's `id`, or the row's place from 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from vgbench_gen.importers._files import (
    Place,
    read_column,
    read_json_rows,
    read_optional,
    read_parquet_rows,
    read_picture,
    read_text,
)
from vgbench_gen.importers.base import (
    COUNTING,
    ORIENTATION,
    RELATIVE,
    SIZE,
    Importer,
    Part,
    Record,
    SourceRow,
    importers,
    read_category,
)
from vgbench_gen.importers.realworldqa import form_of

_OTHER_NAMES = {"position": "positional", "reaching": "reach"}


@importers.register("spatialbench")
class SpatialBench(Importer):
    """Yes or no, letters and counts."""

    title = "SpatialBench"
    benchmark = "spatialbench"
    repository = "RussRobin/SpatialBench"
    patterns = ("*.json", "counting/*", "existence/*", "positional/*", "reach/*", "size/*")
    licence = "cc-by-4.0"
    parts: ClassVar[Mapping[str, Part]] = {
        "positional": Part(None, ORIENTATION),
        "existence": Part(None, SIZE),
        "counting": Part(20, COUNTING),
        "reach": Part(None, RELATIVE),
        "size": Part(None, SIZE),
    }
    published = 174

    def records(self, place: Place) -> Iterator[Record]:
        if place.has("**/positional.json"):
            for name in self.parts:
                for path in place.find(f"**/{name}.json"):
                    for number, fields in enumerate(read_json_rows(path)):
                        yield Record(f"{path.name}:{number}", name, _add_place(fields, number, name))
            return
        number = 0
        for path in place.find("**/*.parquet"):
            for fields in read_parquet_rows(path, ("image", ("text", "question"), "answer", "category")):
                category = str(fields["category"]).strip().casefold()
                name = _OTHER_NAMES.get(category, category)
                yield Record(f"{path.name}:{number}", name, _add_place(fields, number, name))
                number += 1

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        category = read_category(self, record, "category")
        answer = read_text(fields, "answer")
        form, words = form_of(read_text(fields, "question", "text"), answer)
        images = read_column(fields, "image")
        index = read_optional(fields, "id", "question_id")
        return SourceRow(
            index=index if isinstance(index, int | str) and not isinstance(index, bool) else fields["number"],
            origin=record.part,
            category=category,
            question_type=form,
            words=words,
            answer=answer,
            images=[read_picture(image, place) for image in (images if isinstance(images, list) else [images])],
            key=f"{record.part}-{fields['number']}",
        )


def _add_place(fields: object, number: int, name: str) -> Mapping[str, object]:
    return {**(fields if isinstance(fields, Mapping) else {}), "number": number, "part": name}
