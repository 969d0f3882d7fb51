"""VSR: is a statement about two objects in a photo true? Test splits: zero-shot 1,222 questions, random 2,195.

Each split is read from its file on the Hub or its folder in the authors' repository
(cambridgeltl/visual-spatial-reasoning, `data/splits`). The column `subj` is only in the zero-shot split and
`reference_frame` only in the random one, so a file of the other split is refused. The photos are COCO 2017's, which no
repository includes; they are found by name. The wording is that of all eight rows of SpatialScore-Hard. The license is
that of the annotations; the photos are subject to their owners' terms at Flickr.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

from vgbench_gen.importers._files import Place, RawRow, Text, table_rows
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers
from vgbench_gen.store.files import dataset_error

_FOLDERS = ("images", "trainval2017", "train2017", "val2017")
_NESTED = ("", "data", "COCO2017", "coco", "coco_images")


class _Row(RawRow):
    image: Text
    caption: Text
    label: Literal[0, 1]


class _Split(Importer[_Row]):
    """Base class of both splits."""

    marks: ClassVar[Mapping[str, str]] = {"zeroshot": "subj", "random": "reference_frame"}
    """Split -> a column that the other split does not have."""
    patterns = ("test.jsonl",)
    photos = tuple(f"{outer}/{inner}".strip("/") for outer in _NESTED for inner in _FOLDERS)
    licence = "apache-2.0"
    columns = _Row
    first_row = 1

    def find_tables(self, place: Place) -> list[Path]:
        """As `Importer.find_tables`; a file of the other split is refused."""
        (split,) = self.parts
        tables = super().find_tables(place)
        for path in tables:
            marks = {*self.marks.values()} & next(table_rows(path), {}).keys()
            if marks and self.marks[split] not in marks:
                remedy = "Name the folder of that split."
                raise dataset_error(path, f"the column {', '.join(marks)}", f"the {split} split of VSR", remedy)
        return tables

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        name = fields.image
        question = f"Is this statement true based on the image: '{fields.caption.strip()}'? Answer with Yes or No."
        return SourceRow(
            index=name,
            question_type="judgment",
            words=plain_words(question),
            answer="Yes" if fields.label else "No",
            images=[place.picture(name, *self.photos)],
            key=f"{name.rpartition('.')[0]}-{record.row}",
            scans="coco",
            scene=name.rpartition(".")[0],
        )


@importers.register("vsr")
class VsrZeroShot(_Split):
    """The split with concepts that its training split does not contain."""

    title = "VSR (zero-shot)"
    benchmark = "VSR-ZeroShot"
    repository = "cambridgeltl/vsr_zeroshot"
    files = ("**/zeroshot/test.jsonl", "**/vsr_zeroshot/test.jsonl", "test.jsonl")
    parts: ClassVar[Mapping[str, Part]] = {"zeroshot": Part(1222, ScoreCategory.ORIENTATION)}


@importers.register("vsr-random")
class VsrRandom(_Split):
    """The random split, which is not in SpatialScore."""

    title = "VSR (random)"
    benchmark = "VSR-Random"
    repository = "cambridgeltl/vsr_random"
    files = ("**/random/test.jsonl", "**/vsr_random/test.jsonl", "test.jsonl")
    parts: ClassVar[Mapping[str, Part]] = {"random": Part(2195, ScoreCategory.ORIENTATION, published=False)}
