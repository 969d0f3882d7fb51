"""SpatialSense: does a spatial relation hold between two objects in a photo? The 3,622 questions of the test split.

The authors' `annotations.json` is a list of photos with `url`, `split` and `annotations`; photos are in `images/flickr`
(if `url` is a web address) and `images/nyu`. The wording is that of all 71 rows of SpatialScore-Hard. That SpatialScore
uses the test split is inferred from the number of questions. No license of the photos was found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from pydantic import Field

from vgbench_gen.importers._files import Place, RawRow, Text, read_json_rows
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers
from vgbench_gen.store.files import dataset_error

SPLIT = "test"


class _Named(RawRow):
    name: Text


class _Row(RawRow):
    id: Text = Field(validation_alias="_id")
    subject: _Named
    predicate: Text
    object: _Named
    label: bool
    url: Text


@importers.register("spatialsense")
class SpatialSense(Importer[_Row]):
    """Yes or no about (subject, predicate, object)."""

    title = "SpatialSense"
    benchmark = "SpatialSense"
    files = ("**/annotations.json", "**/annotation.json")
    photos = ("images",)
    columns = _Row
    parts: ClassVar[Mapping[str, Part]] = {SPLIT: Part(3622, ScoreCategory.ORIENTATION)}

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; other splits are ignored."""
        number = 0
        for path in self.find_tables(place):
            for row, photo in enumerate(read_json_rows(path)):
                if not isinstance(photo, Mapping) or not isinstance(photo.get("annotations"), list):
                    found = "a photo without annotations"
                    raise dataset_error(path, found, "SpatialSense's format", "Download it again.")
                for relation in photo["annotations"] if photo.get("split") == SPLIT else ():
                    cells = {**relation, "url": photo.get("url")} if isinstance(relation, Mapping) else {}
                    yield Record(f"{path.name}:{cells.get('_id')}", SPLIT, cells, row, number)
                    number += 1

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        folder = "flickr" if fields.url.startswith("http") else "nyu"
        file = fields.url.rpartition("/")[2]
        asked = f"Is the {fields.subject.name} {fields.predicate} the {fields.object.name}? Answer with Yes or No."
        return SourceRow(
            index=fields.id,
            question_type="judgment",
            words=plain_words(asked),
            answer="Yes" if fields.label else "No",
            images=[place.picture(f"{folder}/{file}", *self.photos)],
            scans=folder,
            scene=file.rpartition(".")[0],
            split=record.part,
        )
