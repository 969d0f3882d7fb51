"""SpatialSense: does a relation between two things of a photo hold? 3,622 questions, its test split.

Read is `annotations.json` as the authors publish it: a list of photos with `url`, `split` and `annotations` (`_id`,
`predicate`, `subject` and `object` with `name`, `label`); photos lie in `images/flickr` (where `url` is an address)
and `images/nyu`. The question's wording is that of all 71 rows of SpatialScore-Hard. That the 3,622 are the test split
is inferred from their number. No licence of the photos was found; those of Flickr stand under their owners' terms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from vgbench_gen.importers._files import Place, RowError, read_column, read_json_rows, read_text
from vgbench_gen.importers._words import plain_words
from vgbench_gen.importers.base import ORIENTATION, UNKNOWN, Importer, Part, Record, SourceRow, importers
from vgbench_gen.store.files import dataset_error

SPLIT = "test"


@importers.register("spatialsense")
class SpatialSense(Importer):
    """Yes or no about (subject, predicate, object)."""

    title = "SpatialSense"
    benchmark = "SpatialSense"
    parts: ClassVar[Mapping[str, Part]] = {SPLIT: Part(3622)}
    published = 3622

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; other splits are passed over."""
        for path in place.find("**/annotations.json", "**/annotation.json"):
            for photo in read_json_rows(path):
                if not isinstance(photo, Mapping) or not isinstance(photo.get("annotations"), list):
                    raise dataset_error(
                        path, "a photo without annotations", "SpatialSense's format", "Download it again."
                    )
                for annotation in photo["annotations"] if photo.get("split") == SPLIT else ():
                    name = annotation.get("_id") if isinstance(annotation, Mapping) else None
                    yield Record(f"{path.name}:{name}", SPLIT, {"photo": photo, "relation": annotation})

    def row(self, record: Record, place: Place) -> SourceRow:
        photo, relation = record.fields["photo"], record.fields["relation"]
        if not isinstance(relation, Mapping):
            raise RowError("annotations", f"a {type(relation).__name__}")
        names = [read_text(_read_thing(relation, side), "name") for side in ("subject", "object")]
        label = read_column(relation, "label")
        if not isinstance(label, bool):
            raise RowError("label", f"{str(label)[:20]!r}, which is neither true nor false")
        url = read_text(photo, "url")
        folder = "flickr" if url.startswith("http") else "nyu"
        file = url.rpartition("/")[2]
        return SourceRow(
            index=read_text(relation, "_id"),
            origin=UNKNOWN,
            category=ORIENTATION,
            question_type="judgment",
            words=plain_words(
                f"Is the {names[0]} {read_text(relation, 'predicate')} the {names[1]}? Answer with Yes or No."
            ),
            answer="Yes" if label else "No",
            images=[place.picture(f"{folder}/{file}", "images")],
            scans=folder,
            scene=file.rpartition(".")[0],
            split=record.part,
        )


def _read_thing(relation: Mapping[str, Any], side: str) -> Mapping[str, Any]:
    found = read_column(relation, side)
    if not isinstance(found, Mapping):
        raise RowError(side, f"a {type(found).__name__}, which has no name")
    return found
