"""3DSRBench: multiple choice about 3D relations in photos, 5,157 questions including those on mirrored photos.

Rotated copies in the circular edition ("-1", "-flip-2") are ignored, because our circular evaluation rotates options.
The repository's parquet file has 2,772 questions without flips and refers to photos by `image_url`. Ids have eight
characters, and "-flip" for the question on the mirrored photo. The released rows of SpatialScore name the original
photo for both, so that a flip contradicts its twin there. Here an embedded image is used unchanged (the authors
describe it as mirrored for flips), and a photo that a flip names is mirrored on import. Columns and files are known
only from descriptions and other programs.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, ClassVar

from pydantic import AliasChoices, BeforeValidator, Field

from vgbench_gen.importers._archives import find_picture
from vgbench_gen.importers._files import Fields, Picture, Place, RawRow, RowError, Text
from vgbench_gen.importers._words import lettered_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers

_ID = re.compile(r"(?P<base>[A-Za-z0-9]+)(?P<flip>-flip)?(?P<turned>-\d+)?")
_LONGEST_NAME = 256


def _decode_base64(cell: Any) -> Any:
    if not isinstance(cell, str) or len(cell) <= _LONGEST_NAME:
        return cell
    try:
        return base64.b64decode(cell, validate=True)
    except binascii.Error as error:
        raise RowError("image", f"{cell[:20]!r}…, which is no base64", "image_broken") from error


class _Row(RawRow):
    id: Text = Field(validation_alias=AliasChoices("qid", "index"))
    question: Text
    A: Text
    B: Text
    C: Text = ""
    D: Text = ""
    answer: Text
    category: Text
    image: Annotated[Picture, BeforeValidator(_decode_base64)] = Field(
        validation_alias=AliasChoices("image", "image_url")
    )
    image_url: Text = ""


@importers.register("3dsrbench")
class ThreeDSRBench(Importer[_Row]):
    """Multiple choice with two or four options about one photo."""

    title = "3DSRBench"
    benchmark = "3DSRBench"
    repository = "ccvl/3DSRBench"
    patterns = ("3dsrbench_v1_vlmevalkit.tsv",)
    files = ("**/3dsrbench*vlmevalkit.tsv", "**/*circular.tsv", "**/3DSRBench*.tsv", "**/*.parquet")
    photos = tuple(f"{outer}{inner}" for outer in ("coco_images/", "") for inner in ("train2017", "val2017", ""))
    licence = "cc-by-4.0"
    columns = _Row
    part_column = "category"
    parts: ClassVar[Mapping[str, Part]] = {
        "height": Part(690, ScoreCategory.SIZE),
        "location": Part(1709, ScoreCategory.LOCALIZATION_3D),
        "orientation": Part(1036, ScoreCategory.ORIENTATION),
        "multi_object": Part(1722, ScoreCategory.ORIENTATION),
    }

    def find_part(self, fields: Fields, table: Path) -> str:
        """As `Importer.find_part`; rotated copies are ignored."""
        known = _ID.fullmatch(str(fields.get("qid") or fields.get("index")))
        category = super().find_part(fields, table)
        named = (part for part in self.parts if category.startswith(f"{part}_"))
        return "" if known and known["turned"] else next(named, category)

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        known = _ID.fullmatch(fields.id)
        if known is None:
            raise RowError("qid", f"{fields.id[:40]!r}, which is no id of 3DSRBench")
        photo = PurePosixPath(fields.image_url).stem
        return SourceRow(
            index=fields.id,
            origin=fields.category,
            question_type="multi-choice",
            words=lettered_words(fields.question, list(filter(None, (fields.A, fields.B, fields.C, fields.D)))),
            answer=fields.answer,
            images=[self._find_photo(fields.image, place, flip=bool(known["flip"]))],
            scans="coco" if photo else "",
            scene=photo or known["base"],
            group=known["base"],
            pair=known["base"],
        )

    def _find_photo(self, cell: bytes | str, place: Place, flip: bool) -> bytes | Path:
        if isinstance(cell, bytes):
            return cell
        name = PurePosixPath(cell).name
        found = find_picture(place, name, "coco_images.zip", name, *self.photos)
        return _mirror(found) if flip else found


def _mirror(photo: bytes | Path) -> bytes:
    import cv2
    import numpy as np

    data = photo if isinstance(photo, bytes) else photo.read_bytes()
    pixels = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR) if data else None
    if pixels is None:
        raise RowError("image", f"{len(data)} bytes that are no image", "image_broken")
    return bytes(cv2.imencode(".png", cv2.flip(pixels, 1))[1].tobytes())
