"""VSI-Bench: questions about 288 walks through rooms, 5,130 of them, of each 8 frames shown.

Read is `test-*.parquet` (or `test.jsonl`) of `nyu-visionx/VSI-Bench`: `id`, `dataset` (arkitscenes, scannet,
scannetpp), `scene_name`, `question_type`, `question`, `options` ("A. …", for choices), `ground_truth`. The debiased and
pruned editions of the same repository are passed over. Videos are `<dataset>/<scene_name>.mp4` as unpacked, or inside
`<dataset>.zip` (read with PyAV, the extra `video`); 8 frames are taken from the first to the last, at places that
`numpy.linspace` rounds down, as other harnesses do, and kept as JPEG of quality 95. Where SpatialScore's own frames lie
there instead (`8_frames/<dataset>/<scene_name>/frame_00.jpg` to `frame_07.jpg`), they are taken as they are; by which
rule those were chosen is not published.

The text asked is the question and its options on one line, as in all 336 rows of SpatialScore-Hard. `index_origin` is
`id`, or the row's number where there is none: the released rows of SpatialScore-Hard lie in the same order of tasks and
data sets, though none was seen beside its original. Scored by itself (`VSI-Bench`) numbers count by mean relative
accuracy, inside SpatialScore (`VSI-Bench_8`) by a factor of two. The licence is that of the questions; the videos stand
under the terms of ARKitScenes, ScanNet and ScanNet++.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from vgbench_gen.importers._archives import find_archive
from vgbench_gen.importers._files import Place, RowError, read_optional, read_text, table_rows
from vgbench_gen.importers._video import read_uniform_frames
from vgbench_gen.importers._words import QuestionWords, lettered_words, plain_words
from vgbench_gen.importers.base import (
    ABSOLUTE,
    COUNTING,
    MISCELLANEOUS,
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

FRAMES = 8
_DIRECTION = "object_rel_direction"
_NUMBERS = {"object_abs_distance", "object_counting", "object_size_estimation", "room_size_estimation"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OPTION = re.compile(r"\s*([A-Z])[.:)]\s*(.*)", re.DOTALL)
_COLUMNS = ("dataset", "scene_name", "question_type", "question", "options", "ground_truth")
_FILES = ("**/test-*.parquet", "**/test.parquet", "**/0000.parquet", "**/test.jsonl")
_OTHER_EDITIONS = ("debiased", "pruned")
_EXTRACTED = ("8_frames", "VSI-Bench/8_frames", "dataset/VSI-Bench/8_frames")


@importers.register("vsi-bench")
class VsiBench(Importer):
    """Numbers and choices with three or four options about a video."""

    title = "VSI-Bench"
    benchmark = "VSI-Bench_8"
    own = "VSI-Bench"
    repository = "nyu-visionx/VSI-Bench"
    patterns = ("test-*.parquet", "test.jsonl", "*.zip")
    licence = "apache-2.0"
    parts: ClassVar[Mapping[str, Part]] = {
        "obj_appearance_order": Part(618, MISCELLANEOUS),
        "object_abs_distance": Part(834, ABSOLUTE),
        "object_counting": Part(565, COUNTING),
        _DIRECTION: Part(968, ORIENTATION),
        "object_rel_distance": Part(710, RELATIVE),
        "object_size_estimation": Part(953, SIZE),
        "room_size_estimation": Part(288, SIZE),
        "route_planning": Part(194, MISCELLANEOUS),
    }
    published = 5130

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; the three difficulties of directions are one part."""
        number = 0
        for path in _find_tables(place):
            for fields in table_rows(path, _COLUMNS):
                kind = str(fields["question_type"])
                part = _DIRECTION if kind.startswith(_DIRECTION) else kind
                yield Record(f"{path.name}:{number}", part, {"id": number, **fields})
                number += 1

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = record.fields
        category, numeric = read_category(self, record, "question_type"), record.part in _NUMBERS
        scans, scene = read_text(fields, "dataset"), read_text(fields, "scene_name")
        index, truth = read_text(fields, "id"), read_text(fields, "ground_truth").strip()
        if numeric and not _NUMBER.fullmatch(truth):
            raise RowError("ground_truth", f"{truth[:40]!r}, which is no number")
        words = _make_words(read_text(fields, "question"), read_optional(fields, "options"), chosen=not numeric)
        return SourceRow(
            index=int(index) if index.isdigit() else index,
            origin=read_text(fields, "question_type"),
            category=category,
            question_type="open-ended" if numeric else "multi-choice",
            words=words,
            answer=truth,
            images=_read_frames(place, scans, scene),
            modality="video",
            scans=scans,
            scene=scene,
        )


def _find_tables(place: Place) -> list[Path]:
    for pattern in _FILES:
        found = place.find(pattern) if place.has(pattern) else []
        found = [path for path in found if not any(name in str(path) for name in _OTHER_EDITIONS)]
        if found:
            return found
    return place.find(*_FILES)


def _make_words(question: str, options: object, chosen: bool) -> QuestionWords:
    if not chosen:
        return plain_words(question)
    marked = [_OPTION.fullmatch(option) for option in options] if isinstance(options, list) else []
    letters = [match[1] if match else "" for match in marked]
    if not marked or letters != [chr(ord("A") + k) for k in range(len(marked))]:
        raise RowError("options", f"{str(options)[:60]!r}, which are no options A, B, …")
    texts = [match[2] for match in marked if match]
    return lettered_words(question, texts, "{}. ", between=", ", before=" Options: ")


def _read_frames(place: Place, scans: str, scene: str) -> tuple[bytes, ...] | list[Path]:
    try:
        return [place.picture(f"{scans}/{scene}/frame_{k:02}.jpg", *_EXTRACTED) for k in range(FRAMES)]
    except RowError:
        pass
    try:
        return read_uniform_frames(place.picture(f"{scans}/{scene}.mp4", "videos"), FRAMES)
    except RowError as error:
        if error.reason == "video_broken":
            raise
    archive = find_archive(place, f"{scans}.zip", f"{scene}.mp4")
    if archive is None:
        raise RowError("video", f"neither {scans}/{scene}.mp4 nor its frames", "video_missing")
    return read_uniform_frames(archive, FRAMES, f"{scene}.mp4")
