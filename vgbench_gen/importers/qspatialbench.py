"""Q-Spatial Bench: lengths and distances with a unit, 101 questions on own photos and 170 on frames of ScanNet.

Read are the parquet files of `andrewliao11/Q-Spatial-Bench` (`question`, `answer_value` as float32, `answer_unit`,
`question_type`, `image_path`, `image`). Frames of ScanNet are not in it: the authors' script renders them from the
scans into `images/<scan>/color/<frame>.jpg`, for whoever signed ScanNet's terms; they are looked for below `--from`
and `--images`.

Values of `question_type` were not seen; those that name a width or height (but no distance) go to size, all others to
absolute distance. SpatialScore's own `index_origin` for these rows is not known; here it is the row's place in its
split.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from vgbench_gen.importers._files import (
    Place,
    RowError,
    read_column,
    read_optional,
    read_parquet_rows,
    read_picture,
    read_text,
)
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import ABSOLUTE, SIZE, Importer, Part, Record, SourceRow, importers

_COLUMNS = ("question", "answer_value", "answer_unit", "question_type", "image_path", "image")
_SPLITS = {"QSpatial_plus": "QSpatialBench-Plus", "QSpatial_scannet": "QSpatialBench-ScanNet"}
_SCAN = re.compile(r"scene\d{4}_\d{2}")
SCANNET_LICENCE = "scannet-tou"  # as the scene loaders name it


@importers.register("qspatialbench")
class QSpatialBench(Importer):
    """Open-ended lengths."""

    title = "QSpatialBench"
    benchmark = "QSpatialBench-Plus"
    repository = "andrewliao11/Q-Spatial-Bench"
    patterns = ("data/*.parquet",)
    licence = "apache-2.0"
    parts: ClassVar[Mapping[str, Part]] = {"QSpatial_plus": Part(101), "QSpatial_scannet": Part(170)}
    published = 271

    def records(self, place: Place) -> Iterator[Record]:
        for split in _SPLITS:
            if not place.has(f"**/{split}*.parquet"):
                continue  # told by its count
            number = 0
            for path in place.find(f"**/{split}*.parquet"):
                for fields in read_parquet_rows(path, _COLUMNS):
                    yield Record(f"{path.name}:{number}", split, {**fields, "number": number})
                    number += 1
        if not place.has(*(f"**/{split}*.parquet" for split in _SPLITS)):
            place.find(*(f"**/{split}*.parquet" for split in _SPLITS))

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        value = read_column(fields, "answer_value")
        if not isinstance(value, int | float) or not math.isfinite(value) or value <= 0:
            raise RowError("answer_value", f"{str(value)[:20]!r}, which is no length")
        kind = read_text(fields, "question_type")
        is_size = bool(re.search("width|height|size|length", kind, re.IGNORECASE)) and "distance" not in kind.casefold()
        name = str(read_optional(fields, "image_path") or "")
        scan = _SCAN.search(name)
        held = read_optional(fields, "image")
        # Seven digits are what a float32 holds: 1.51 is stored as 1.5099999904632568.
        return SourceRow(
            index=fields["number"],
            origin=kind,
            category=SIZE if is_size else ABSOLUTE,
            question_type="open-ended",
            words=plain_words(read_text(fields, "question")),
            answer=f"{value:.7g} {read_text(fields, 'answer_unit').strip()}",
            images=[
                read_picture(held if held else name, place, "images", "QSpatial_scannet", "QSpatial_scannet/images")
            ],
            benchmark=_SPLITS[record.part],
            scans="scannet" if scan else "",
            scene=scan.group() if scan else "",
            frames=(name.rpartition("/")[2].rpartition(".")[0],) if scan else (),
            licence=SCANNET_LICENCE if record.part == "QSpatial_scannet" else "",
        )
