"""Q-Spatial Bench: lengths and distances with a unit, 101 questions on own photos and 170 on frames of ScanNet.

Frames of ScanNet are not in the files; the authors' script extracts them from the scans into
`images/<scan>/color/<frame>.jpg` for users who signed ScanNet's terms. The values of `question_type` are unknown: those
that contain width, height, size or length (but not distance) become size, all others absolute distance. SpatialScore's
`index_origin` of these rows is unknown; here it is the row number in the split.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import AliasChoices, Field

from vgbench_gen.importers._files import Fields, Picture, Place, RawRow, Text
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers

_SPLITS = {"QSpatial_plus": "QSpatialBench-Plus", "QSpatial_scannet": "QSpatialBench-ScanNet"}
_SCAN = re.compile(r"scene\d{4}_\d{2}")
SCANNET_LICENCE = "scannet-tou"  # the license id of ScanNet's scene loader


class _Row(RawRow):
    question: Text
    answer_value: float = Field(gt=0)
    answer_unit: Text
    question_type: Text
    image_path: Text = ""
    image: Picture = Field(validation_alias=AliasChoices("image", "image_path"))


@importers.register("qspatialbench")
class QSpatialBench(Importer[_Row]):
    """Open-ended lengths."""

    title = "QSpatialBench"
    benchmark = "QSpatialBench-Plus"
    repository = "andrewliao11/Q-Spatial-Bench"
    patterns = ("data/*.parquet",)
    files = tuple(f"**/{split}*.parquet" for split in _SPLITS)
    photos = ("images", "QSpatial_scannet", "QSpatial_scannet/images")
    licence = "apache-2.0"
    columns = _Row
    parts: ClassVar[Mapping[str, Part]] = {"QSpatial_plus": Part(101), "QSpatial_scannet": Part(170)}

    def find_tables(self, place: Place) -> list[Path]:
        """As `Importer.find_tables`; one of the two splits may be missing."""
        return [path for pattern in self.files for path in place.glob(pattern)] or super().find_tables(place)

    def find_part(self, fields: Fields, table: Path) -> str:
        return next(split for split in _SPLITS if table.name.startswith(split))

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        kind, name = fields.question_type, fields.image_path
        is_size = bool(re.search("width|height|size|length", kind, re.IGNORECASE)) and "distance" not in kind.casefold()
        scan = _SCAN.search(name)
        # Seven digits, the precision of float32, in which 1.51 is stored as 1.5099999904632568.
        return SourceRow(
            index=record.row,
            origin=kind,
            category=ScoreCategory.SIZE if is_size else ScoreCategory.ABSOLUTE,
            question_type="open-ended",
            words=plain_words(fields.question),
            answer=f"{fields.answer_value:.7g} {fields.answer_unit.strip()}",
            images=[place.image(fields.image, *self.photos)],
            benchmark=_SPLITS[record.part],
            scans="scannet" if scan else "",
            scene=scan.group() if scan else "",
            frames=(name.rpartition("/")[2].rpartition(".")[0],) if scan else (),
            licence=SCANNET_LICENCE if record.part == "QSpatial_scannet" else "",
        )
