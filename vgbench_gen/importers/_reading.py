"""Makes items from the rows of a source: stores images, counts bad rows, compares numbers of rows."""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vgbench_gen.core.rng import digest_bytes
from vgbench_gen.core.stand_ins import HEAD_BYTES, describe_stand_in
from vgbench_gen.core.types import Item
from vgbench_gen.importers._files import Place, RowError
from vgbench_gen.importers._words import QuestionWords, parse_measure
from vgbench_gen.importers.base import ASKED, ORIGIN, UNKNOWN, Importer, SourceRow, read_letter, read_yes_no
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import MAX_PIXELS, find_image_kind
from vgbench_gen.store.schema import SCHEMA_VERSION

FAMILY = "SpatialScore"  # prefix of `Item.benchmark` for rows that are scored by its rules
MAX_IMAGE_BYTES = 100 * 2**20
MAX_IMAGES = 1024
MAX_TEXT = 100_000
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(slots=True)
class ImportReport:
    """Counts and problems of a source."""

    source: str
    rows: int = 0
    items: int = 0
    left_out: int = 0
    """Number of rows in parts that SpatialScore does not have."""
    parts: Counter[str] = field(default_factory=Counter)
    bad: list[RowError] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    """`SourceRow.note` -> number of rows."""
    differences: list[str] = field(default_factory=list)
    """Differences from the known numbers of rows."""

    def as_json(self) -> dict[str, Any]:
        """The report for `--json` and the manifest, with counts of all bad rows and the first twenty of them."""
        return {
            "rows": self.rows,
            "items": self.items,
            "left_out": self.left_out,
            "parts": dict(sorted(self.parts.items())),
            "bad": dict(sorted(Counter(row.reason for row in self.bad).items())),
            "notes": dict(sorted(self.notes.items())),
            "bad_rows": [str(row) for row in self.bad[:20]],
            "differences": self.differences,
        }


def read_source(
    importer: Importer[Any], place: Place, media: MediaStore, report: ImportReport, published: bool, start: int = 0
) -> Iterator[Item]:
    """Yield the items of a source.

    Args:
        importer: of the source.
        place: the source's files.
        media: store for images; JPEG and PNG are stored unchanged, others as PNG.
        report: filled in; complete after the last item.
        published: whether to take only the rows in SpatialScore, to be scored by its rules; else all rows are taken, to
            be scored by the source's own rules.
        start: index of the first item.

    Raises:
        DatasetError: while iterating: a file or a column is missing.
    """
    ids: Counter[str] = Counter()
    for record in importer.records(place):
        report.rows += 1
        report.parts[record.part] += 1
        part = importer.parts.get(record.part)
        if published and (part is None or not part.published):
            report.left_out += 1
            continue
        try:
            if part is None:
                found = f"{record.part[:40]!r}, which is none of {', '.join(importer.parts)}"
                raise RowError(importer.part_column or "part", found)
            row = importer.row(importer.columns.read(record.fields), record, place)
            answer_of(row)  # raises before any image is read
            if not row.images or len(row.images) > MAX_IMAGES:
                raise RowError("images", f"{len(row.images)} of them", "image_missing")
            source = row.benchmark or importer.benchmark
            name = source if published else importer.own or source
            item = make_item(
                replace(row, category=row.category or part.category),
                name=name,
                benchmark=f"{FAMILY}/{source}" if published else name,
                source=source,
                images=tuple(_store_image(image, media) for image in row.images),
                index=start + report.items,
                repository=importer.repository,
                licence=importer.licence,
            )
        except ValueError as problem:  # also raised for a number of thousands of digits
            bad = problem if isinstance(problem, RowError) else RowError("row", str(problem)[:100], "unreadable")
            report.bad.append(bad.at(record.where))
            continue
        if row.note:
            report.notes[row.note] += 1
        report.items += 1
        yield name_once(item, ids)
    report.differences = list(_find_differences(importer, report))


def name_once(item: Item, ids: Counter[str]) -> Item:
    """The item with a unique id. ids: counts of all ids so far, updated here."""
    ids[item.id] += 1
    if ids[item.id] == 1:
        return item
    name = f"{item.id}-{ids[item.id]}"
    return replace(item, id=name, group_id=name if item.group_id == item.id else item.group_id)


NOT_OURS: dict[str, Any] = {
    "twin_id": "", "ask": "", "tolerance": 0.0, "distractors": (), "template_id": "", "paraphrase": "", "strategy": "",
    "distractor_seed": 0, "error_parts": (), "difficulty": "", "convention": {}, "schema_version": SCHEMA_VERSION,
}  # fmt: skip
"""Values in questions of other benchmarks of the columns that only our own questions use."""


def make_item(
    row: SourceRow,
    *,
    name: str,
    benchmark: str,
    source: str,
    images: tuple[str, ...],
    index: int,
    repository: str = "",
    licence: str = UNKNOWN,
) -> Item:
    """The item of a row.

    Args:
        row: the question; its images are ignored.
        name: prefix of the ids.
        benchmark: `Item.benchmark`.
        source: prefix of the task's name.
        images: names of the images.
        index: index in the dataset.
        repository, licence: of the source.

    Raises:
        RowError: options, answer or question are invalid.
    """
    answer, value, unit = answer_of(row)
    is_word = math.isnan(value)
    category, subcategory = row.category or ("", "")
    item_id = make_slug(name, row.key or str(row.index))
    return Item(
        id=item_id,
        index=index,
        group_id=make_slug(name, row.group) if row.group else item_id,
        pair_id=make_slug(name, row.pair) if row.pair else "",
        benchmark=benchmark,
        task=source if row.origin == UNKNOWN else f"{source}/{row.origin}",
        question_type=row.question_type,
        category=category,
        subcategory=subcategory,
        category_origin=row.origin,
        index_origin=row.index if isinstance(row.index, int) else -1,
        input_modality=row.modality or ("single-image" if len(images) == 1 else "multi-images"),
        source=row.scans or source,
        scene_id=row.scene or images[0].partition(".")[0],
        frame_ids=row.frames,
        split=row.split,
        question=row.words.lead,
        context=row.words.tail,
        options=row.words.options,
        answer=answer,
        answer_value=() if is_word else (value,),
        answer_shape=() if is_word else (1,),
        unit=unit,
        images=images,
        evidence=_make_evidence(row, repository),
        licence=row.licence or licence,
        **NOT_OURS,
    )


def _make_evidence(row: SourceRow, repository: str) -> dict[str, Any]:
    asked: dict[str, Any] = {"text": row.words.text, "options_at": [list(span) for span in row.words.options_at]}
    evidence = {ORIGIN: {"index": row.index, "repository": repository}, ASKED: asked}
    return evidence | ({"note": row.note} if row.note else {})


def answer_of(row: SourceRow) -> tuple[str, float, str]:
    """(`Item.answer`, its number or NaN, the number's unit).

    Raises:
        RowError: options, answer or question are invalid.
    """
    words: QuestionWords = row.words
    if not words.text.strip() or len(words.text) > MAX_TEXT:
        raise RowError("question", f"{len(words.text)} characters")
    if row.question_type == "multi-choice":
        if len(words.options) < 2:
            raise RowError("options", f"{len(words.options)} in {words.text[:60]!r}")
        return read_letter(row.answer, words.options), math.nan, ""
    if row.question_type == "judgment":
        return read_yes_no(row.answer), math.nan, ""
    answer = row.answer.strip()
    if not answer:
        raise RowError("answer", "nothing in it")
    return answer, *parse_measure(answer)


def _store_image(image: bytes | Path, media: MediaStore) -> str:
    """Store an image and return its media name; a new image is decoded to check it."""
    try:
        data = image if isinstance(image, bytes) else _read_start(image)
    except OSError as error:
        raise RowError("image", f"{error.filename} cannot be read ({error.strerror})", "image_missing") from error
    if len(data) > MAX_IMAGE_BYTES:
        raise RowError("image", f"more than {MAX_IMAGE_BYTES} bytes", "image_large")
    suffix = kind if (kind := find_image_kind(data)) in ("jpg", "png") else ""
    if suffix and media.has(f"{digest_bytes(data)}.{suffix}"):
        return media.put(data, suffix)
    return media.put(*_check_image(data, suffix))


def _read_start(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MAX_IMAGE_BYTES + 1)


def _check_image(data: bytes, suffix: str) -> tuple[bytes, str]:
    """(bytes, suffix) to store: unchanged with a suffix, else converted to PNG."""
    from PIL import Image

    try:
        with Image.open(io.BytesIO(data)) as picture:
            if picture.width * picture.height > MAX_PIXELS:
                raise ValueError(f"{picture.width}x{picture.height} pixels; expected at most {MAX_PIXELS}")
            picture.load()
            if suffix:
                return data, suffix
            png = io.BytesIO()
            picture.convert("RGBA" if "A" in picture.getbands() else "RGB").save(png, "PNG")
    # Pillow passes on the errors of its codecs; a huge size is a DecompressionBombError.
    except (OSError, ValueError, SyntaxError, EOFError, Image.DecompressionBombError) as error:
        found = describe_stand_in(data[:HEAD_BYTES]) or (f"{len(data)} bytes that are no image ({str(error)[:80]})",)
        raise RowError("image", ". ".join(found), "image_broken") from error
    return png.getvalue(), "png"


def make_slug(*parts: str) -> str:
    """An id of letters, digits and "._-", at most 120 of them."""
    return _UNSAFE.sub("_", "-".join(parts))[:120]


def _find_differences(importer: Importer[Any], report: ImportReport) -> Iterator[str]:
    for name, part in importer.parts.items():
        if part.expected is not None and report.parts[name] != part.expected:
            yield f"{name}: {report.parts[name]} rows where {part.expected} are known"
    for name in sorted(set(report.parts) - set(importer.parts)):
        yield f"{name}: {report.parts[name]} rows of a part that is not known"
    published = sum(report.parts[name] for name, part in importer.parts.items() if part.published)
    if published != importer.published:
        yield f"SpatialScore holds {importer.published} of its questions; {published} rows are here"
