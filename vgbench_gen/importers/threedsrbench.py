"""3DSRBench: multiple choice about the third dimension of photos, 5,157 questions with those on mirrored photos.

Read is `3dsrbench_v1_vlmevalkit.tsv` of `ccvl/3DSRBench`: `qid` (or `index`), `question`, `A` to `D`, `answer`,
`category`, `image` as base64, maybe `image_url`; also its circular edition, whose turned copies ("-1", "-flip-2") are
passed over because circular evaluation turns options itself, and parquet copies with `image` inside (the copy that
lmms-eval reads). The repository's own parquet file has 2,772 questions without flips and names its photos by
`image_url` only; they are looked for in `coco_images.zip`, unpacked or not.

Ids are eight characters, with "-flip" for the question on the mirrored photo. The released rows of SpatialScore name
the photo as it is for both, so that a flip contradicts its twin there. Here an image inside a row is taken as it is
(by the authors' description a flip's is mirrored; that was not seen), and where a flip only names its photo it is
mirrored on import. Columns and files were seen in descriptions and in programs that read them.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from vgbench_gen.importers._archives import find_archive, read_member
from vgbench_gen.importers._files import Fields, Place, RowError, read_optional, read_picture, read_text, table_rows
from vgbench_gen.importers._words import lettered_words
from vgbench_gen.importers.base import (
    LOCALIZATION_3D,
    ORIENTATION,
    SIZE,
    Importer,
    Part,
    Record,
    SourceRow,
    importers,
    read_category,
)

_ID = re.compile(r"(?P<base>[A-Za-z0-9]+)(?P<flip>-flip)?(?P<turned>-\d+)?")
_COLUMNS = (("qid", "index"), "question", "A", "B", "answer", "category", ("image", "image_url"))
_FOLDERS = tuple(
    f"{outer}{inner}" for outer in ("coco_images/", "") for inner in ("train2017", "val2017", "")
)  # fmt: skip
_LONGEST_NAME = 256


@importers.register("3dsrbench")
class ThreeDSRBench(Importer):
    """Multiple choice with two or four options about one photo."""

    title = "3DSRBench"
    benchmark = "3DSRBench"
    repository = "ccvl/3DSRBench"
    patterns = ("3dsrbench_v1_vlmevalkit.tsv",)
    licence = "cc-by-4.0"
    parts: ClassVar[Mapping[str, Part]] = {
        "height": Part(690, SIZE),
        "location": Part(1709, LOCALIZATION_3D),
        "orientation": Part(1036, ORIENTATION),
        "multi_object": Part(1722, ORIENTATION),
    }
    published = 5157

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; turned copies are passed over."""
        for path in place.find("**/3dsrbench*vlmevalkit.tsv", "**/*circular.tsv", "**/3DSRBench*.tsv", "**/*.parquet"):
            for number, fields in enumerate(table_rows(path, _COLUMNS)):
                known = _ID.fullmatch(str(read_optional(fields, "qid", "index")))
                if known is None or not known["turned"]:
                    yield Record(f"{path.name}:{number}", self._find_part(str(fields["category"])), fields)

    def row(self, record: Record, place: Place) -> SourceRow:
        fields, name = record.fields, read_text(record.fields, "qid", "index")
        known = _ID.fullmatch(name)
        if known is None:
            raise RowError("qid", f"{name[:40]!r}, which is no id of 3DSRBench")
        category = read_category(self, record, "category")
        options = [str(fields[letter]) for letter in "ABCD" if _has_value(fields.get(letter))]
        url = read_optional(fields, "image_url")
        photo = PurePosixPath(url).stem if _has_value(url) else ""
        return SourceRow(
            index=name,
            origin=read_text(fields, "category"),
            category=category,
            question_type="multi-choice",
            words=lettered_words(read_text(fields, "question"), options),
            answer=read_text(fields, "answer"),
            images=[_find_photo(fields, place, flip=bool(known["flip"]))],
            scans="coco" if photo else "",
            scene=photo or known["base"],
            group=known["base"],
            pair=known["base"],
        )

    def _find_part(self, category: str) -> str:
        return next((part for part in self.parts if category.startswith(f"{part}_")), category)


def _has_value(cell: Any) -> bool:
    """Whether a cell holds something; tables made by pandas write "nan" for nothing."""
    return isinstance(cell, str) and cell.strip().casefold() not in ("", "nan")


def _find_photo(fields: Fields, place: Place, flip: bool) -> bytes | Path:
    held = read_optional(fields, "image")
    if isinstance(held, str) and len(held) > _LONGEST_NAME:
        try:
            return base64.b64decode(held, validate=True)
        except binascii.Error as error:
            raise RowError("image", f"{held[:20]!r}…, which is no base64", "image_broken") from error
    if isinstance(held, bytes) or (isinstance(held, Mapping) and held.get("bytes")):
        return read_picture(held, place)
    if isinstance(held, Mapping):
        held = held.get("path")
    named = held if _has_value(held) else read_optional(fields, "image_url")
    if not isinstance(named, str) or not named.strip():
        raise RowError("image", "no image", "image_missing")
    name = PurePosixPath(named).name
    found: bytes | Path
    try:
        found = place.picture(name, *_FOLDERS)
    except RowError:
        archive = find_archive(place, "coco_images.zip", name)
        if archive is None:
            raise
        found = read_member(archive, name)
    return _mirror(found) if flip else found


def _mirror(photo: bytes | Path) -> bytes:
    import cv2
    import numpy as np

    data = photo if isinstance(photo, bytes) else photo.read_bytes()
    pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR) if data else None
    if pixels is None:
        raise RowError("image", f"{len(data)} bytes that are no image", "image_broken")
    return bytes(cv2.imencode(".png", cv2.flip(pixels, 1))[1].tobytes())
