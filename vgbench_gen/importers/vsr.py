"""VSR: is a statement about two things of a photo true? Test splits: zero-shot 1,222 questions, random 2,195.

Read is `test.jsonl` of `cambridgeltl/vsr_zeroshot` and `cambridgeltl/vsr_random`, or of the folders `zeroshot` and
`random` of the authors' repository (cambridgeltl/visual-spatial-reasoning, `data/splits`), whose files were seen and
have these numbers of lines: `image` (a file name of COCO 2017), `image_link`, `caption`, `label` 0 or 1, `relation`;
the zero-shot split also `subj` and `obj`, the random one `reference_frame`, by which a file of the other split is
refused.
No repository holds the photos: they are looked for by name under `images`, `trainval2017`, `train2017` and `val2017`.
The question's wording is that of all eight rows of SpatialScore-Hard. SpatialScore's 28,093 hold the zero-shot split
alone. The licence is that of the annotations; the photos stand under their owners' terms at Flickr.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import ClassVar

from vgbench_gen.importers._files import Place, RowError, check_columns, read_json_rows, read_optional, read_text
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import ORIENTATION, UNKNOWN, Importer, Part, Record, SourceRow, importers
from vgbench_gen.store.files import dataset_error

_COLUMNS = ("image", "caption", "label")
_FOLDERS = ("images", "trainval2017", "train2017", "val2017")
_NESTED = ("", "data", "COCO2017", "coco", "coco_images")
_PLACES = tuple(f"{outer}/{inner}".strip("/") for outer in _NESTED for inner in _FOLDERS)


class _Split(Importer):
    """What both splits have in common."""

    split: ClassVar[str]
    """Its name in the authors' repository."""
    mark: ClassVar[str]
    """A column that it alone has."""
    licence = "apache-2.0"

    def records(self, place: Place) -> Iterator[Record]:
        for path in place.find(f"**/{self.split}/test.jsonl", f"**/vsr_{self.split}/test.jsonl", "test.jsonl"):
            rows = read_json_rows(path)
            first = next(rows, None)
            held = dict(first) if isinstance(first, Mapping) else {}
            check_columns(path, list(held), _COLUMNS)
            others = {cls.mark for cls in _Split.__subclasses__()} - {self.mark}
            if self.mark not in held and others & held.keys():
                found = f"the column {', '.join(others & held.keys())}"
                raise dataset_error(path, found, f"the {self.split} split of VSR", "Name the folder of that split.")
            for number, fields in enumerate(chain([held], rows), start=1):
                yield Record(f"{path.name}:{number}", self.split, fields if isinstance(fields, Mapping) else {})

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        name, label = read_text(fields, "image"), read_optional(fields, "label")
        if label not in (0, 1):
            raise RowError("label", f"{str(label)[:20]!r}, which is neither 0 nor 1")
        caption = read_text(fields, "caption").strip()
        return SourceRow(
            index=name,
            origin=UNKNOWN,
            category=ORIENTATION,
            question_type="judgment",
            words=plain_words(f"Is this statement true based on the image: '{caption}'? Answer with Yes or No."),
            answer="Yes" if label else "No",
            images=[place.picture(name, *_PLACES)],
            key=f"{name.rpartition('.')[0]}-{record.where.rpartition(':')[2]}",
            scans="coco",
            scene=name.rpartition(".")[0],
        )


@importers.register("vsr")
class VsrZeroShot(_Split):
    """The split whose concepts do not occur in its training part."""

    title = "VSR (zero-shot)"
    benchmark = "VSR-ZeroShot"
    repository = "cambridgeltl/vsr_zeroshot"
    patterns = ("test.jsonl",)
    split = "zeroshot"
    mark = "subj"
    parts: ClassVar[Mapping[str, Part]] = {"zeroshot": Part(1222)}
    published = 1222


@importers.register("vsr-random")
class VsrRandom(_Split):
    """The random split, which SpatialScore does not hold."""

    title = "VSR (random)"
    benchmark = "VSR-Random"
    repository = "cambridgeltl/vsr_random"
    patterns = ("test.jsonl",)
    split = "random"
    mark = "reference_frame"
    parts: ClassVar[Mapping[str, Part]] = {"random": Part(2195, published=False)}
    published = 0
