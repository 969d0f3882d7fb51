"""VSI-Bench: 5,130 questions about 288 videos of rooms; 8 frames of each video are shown.

The debiased and pruned editions of the repository are ignored. Videos are `<dataset>/<scene_name>.mp4`, also inside
`<dataset>.zip`; the 8 frames are at indices from `numpy.linspace`, rounded down, as in other harnesses, and stored as
JPEG of quality 95. SpatialScore's own frames (`8_frames/<dataset>/<scene_name>/frame_00.jpg` to `frame_07.jpg`), whose
sampling rule is not published, are used unchanged if they exist. The question is asked with its options on one line, as
in all 336 rows of SpatialScore-Hard. `index_origin` is `id`, or the row number without `id`: the rows of
SpatialScore-Hard have the same order of tasks and data sets, but no row could be compared with its original. As
`VSI-Bench`, numbers are scored by mean relative accuracy; inside SpatialScore (`VSI-Bench_8`), by a factor of two. The
license is that of the questions; the videos are subject to the terms of ARKitScenes, ScanNet and ScanNet++.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from vgbench_gen.importers._archives import find_file
from vgbench_gen.importers._files import Fields, Index, Place, RawRow, RowError, Text
from vgbench_gen.importers._video import read_uniform_frames
from vgbench_gen.importers._words import QuestionWords, lettered_words, plain_words
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers

FRAMES = 8
_DIRECTION = "object_rel_direction"
_NUMBERS = {"object_abs_distance", "object_counting", "object_size_estimation", "room_size_estimation"}
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_OPTION = re.compile(r"\s*([A-Z])[.:)]\s*(.*)", re.DOTALL)
_OTHER_EDITIONS = ("debiased", "pruned")


class _Row(RawRow):
    id: Index = ""
    dataset: Text
    scene_name: Text
    question_type: Text
    question: Text
    options: list[str] = Field([])
    ground_truth: Text


@importers.register("vsi-bench")
class VsiBench(Importer[_Row]):
    """Numbers and choices with three or four options about a video."""

    title = "VSI-Bench"
    benchmark = "VSI-Bench_8"
    own = "VSI-Bench"
    repository = "nyu-visionx/VSI-Bench"
    patterns = ("test-*.parquet", "test.jsonl", "*.zip")
    files = ("**/test-*.parquet", "**/test.parquet", "**/0000.parquet", "**/test.jsonl")
    photos = ("8_frames", "VSI-Bench/8_frames", "dataset/VSI-Bench/8_frames", "videos")
    licence = "apache-2.0"
    columns = _Row
    part_column = "question_type"
    parts: ClassVar[Mapping[str, Part]] = {
        "obj_appearance_order": Part(618, ScoreCategory.MISCELLANEOUS),
        "object_abs_distance": Part(834, ScoreCategory.ABSOLUTE),
        "object_counting": Part(565, ScoreCategory.COUNTING),
        _DIRECTION: Part(968, ScoreCategory.ORIENTATION),
        "object_rel_distance": Part(710, ScoreCategory.RELATIVE),
        "object_size_estimation": Part(953, ScoreCategory.SIZE),
        "room_size_estimation": Part(288, ScoreCategory.SIZE),
        "route_planning": Part(194, ScoreCategory.MISCELLANEOUS),
    }

    def find_tables(self, place: Place) -> list[Path]:
        """As `Importer.find_tables`; other editions are ignored."""
        for pattern in self.files:
            found = [path for path in place.glob(pattern) if not any(name in str(path) for name in _OTHER_EDITIONS)]
            if found:
                return found
        return place.find(*self.files)

    def find_part(self, fields: Fields, table: Path) -> str:
        """As `Importer.find_part`; the three difficulties of relative direction are one part."""
        kind = super().find_part(fields, table)
        return _DIRECTION if kind.startswith(_DIRECTION) else kind

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        numeric, truth = record.part in _NUMBERS, fields.ground_truth.strip()
        if numeric and not _NUMBER.fullmatch(truth):
            raise RowError("ground_truth", f"{truth[:40]!r}, which is no number")
        return SourceRow(
            index=record.number if fields.id == "" else fields.id,
            origin=fields.question_type,
            question_type="open-ended" if numeric else "multi-choice",
            words=plain_words(fields.question) if numeric else _make_words(fields.question, fields.options),
            answer=truth,
            images=self._read_frames(place, fields.dataset, fields.scene_name),
            modality="video",
            scans=fields.dataset,
            scene=fields.scene_name,
        )

    def _read_frames(self, place: Place, scans: str, scene: str) -> tuple[bytes, ...] | list[Path]:
        try:
            return [place.picture(f"{scans}/{scene}/frame_{k:02}.jpg", *self.photos) for k in range(FRAMES)]
        except RowError:
            pass
        try:
            path, inner = find_file(place, f"{scans}/{scene}.mp4", f"{scans}.zip", f"{scene}.mp4", *self.photos)
        except RowError as error:
            if error.reason == "archive_broken":
                raise
            raise RowError("video", f"neither {scans}/{scene}.mp4 nor its frames", "video_missing") from error
        return read_uniform_frames(path, FRAMES, inner)


def _make_words(question: str, options: list[str]) -> QuestionWords:
    marked = [_OPTION.fullmatch(option) for option in options]
    letters = [match[1] if match else "" for match in marked]
    if not marked or letters != [chr(ord("A") + k) for k in range(len(marked))]:
        raise RowError("options", f"{str(options)[:60]!r}, which are no options A, B, …")
    texts = [match[2] for match in marked if match]
    return lettered_words(question, texts, "{}. ", between=", ", before=" Options: ")
