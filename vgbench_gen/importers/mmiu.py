"""MMIU: multiple choice about several images; its ten spatial tasks, 2,133 questions.

Read is the parquet file of `FanqingM/MMIU-Benchmark` (`all.parquet`, 11,698 rows of 60 stored tasks, of which these are
taken) with `task`, `question`, `context`, `options`, `output` (a letter), `input_image_path` (a list), or the form in
which the authors' metadata nests them (`input`, `output.output_text`). Images lie at
"./2D-spatial/Homography_estimation/Homography_estimation_1_0.png" and the like as unpacked, or inside `2D-spatial.zip`
and the like. The text asked is `context`, a line
break and `question`; it holds the options, as all 137 rows of SpatialScore-Hard do, and `index_origin` is the number
in the names of the images, as there.

Inferred, not seen: columns and paths (from programs that read them); that visually grounded reasoning (400) is the two
stored tasks of NLVR2 and MaRVL, 200 each; the subcategories of grounded reasoning, pose estimation and multi-view
reasoning, of which SpatialScore-Hard has no row (their categories follow from the published sizes). No licence was
found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from vgbench_gen.importers._archives import find_archive, read_member
from vgbench_gen.importers._files import Fields, Place, RowError, read_optional, read_parquet_rows, read_text
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import (
    ABSOLUTE,
    CAMERA_POSE_3D,
    CORRESPONDENCE,
    LOCALIZATION_2D,
    LOCALIZATION_3D,
    TRACKING_3D,
    TRANSFORMATION_2D,
    Importer,
    Part,
    Record,
    SourceRow,
    importers,
    read_category,
)

_GROUNDED = "visually_grounded_reasoning"
_NUMBER = re.compile(r"_(\d+)_\d+\.\w+$")
_COLUMNS = ("task", ("input_image_path", "input"), "output")


@importers.register("mmiu")
class Mmiu(Importer):
    """Multiple choice with two to four options and two and more images."""

    title = "MMIU"
    benchmark = "MMIU"
    repository = "FanqingM/MMIU-Benchmark"
    patterns = ("all.parquet", "2D-spatial.zip", "3D-spatial.zip", "High-level-obj-semantic.zip")
    parts: ClassVar[Mapping[str, Part]] = {
        "Homography_estimation": Part(200, TRANSFORMATION_2D),
        "Image_Spatial_Transformation_Estimation": Part(200, TRANSFORMATION_2D),
        "Multiview_reasoning": Part(133, CAMERA_POSE_3D),
        "point_tracking": Part(200, TRACKING_3D),
        "threeD_Depth_Estimation": Part(200, ABSOLUTE),
        "threeD_Object_Detection": Part(200, LOCALIZATION_3D),
        "threeD_Object_Tracking": Part(200, LOCALIZATION_3D),
        "threeD_Pose_Estimation": Part(200, CAMERA_POSE_3D),
        "visual_correspondence_scannet": Part(200, CORRESPONDENCE),
        _GROUNDED: Part(400, LOCALIZATION_2D),
    }
    published = 2133

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; rows of other tasks are passed over."""
        for path in place.find("**/all.parquet", "**/*.parquet"):
            places: Counter[str] = Counter()
            for number, fields in enumerate(read_parquet_rows(path, _COLUMNS)):
                stored = str(fields["task"])
                task = _GROUNDED if stored.startswith(_GROUNDED) else stored
                if task in self.parts:
                    yield Record(f"{path.name}:{number}", task, {**fields, "place": places[stored]})
                    places[stored] += 1

    def row(self, record: Record, place: Place) -> SourceRow:
        fields = _flatten(record.fields)
        paths = fields.get("input_image_path")
        if not isinstance(paths, list) or not paths or not all(isinstance(path, str) for path in paths):
            raise RowError("input_image_path", f"{str(paths)[:60]!r}, which is no list of names")
        asked = (read_optional(fields, "context"), read_optional(fields, "question"))
        words = find_options("\n".join(part for part in asked if isinstance(part, str) and part.strip()))
        listed = read_optional(fields, "options")
        if isinstance(listed, str) and listed.strip() and len(find_options(listed).options) != len(words.options):
            raise RowError("context", f"{len(words.options)} options where `options` has another number")
        number = _NUMBER.search(paths[0])
        index, stored = int(number[1]) if number else int(fields["place"]), read_text(fields, "task")
        return SourceRow(
            index=index,
            origin=stored,
            category=read_category(self, record, "task"),
            question_type="multi-choice",
            words=words,
            answer=read_text(fields, "output"),
            images=[_find_picture(path, place) for path in paths],
            modality="multi-images",
            key=f"{stored}-{index}",
        )


def _find_picture(name: str, place: Place) -> bytes | Path:
    try:
        return place.picture(name, "MMIU-Benchmark")
    except RowError:
        folder, _, rest = str(PurePosixPath(name)).lstrip("/").partition("/")
        archive = find_archive(place, f"{folder}.zip", rest) if rest else None
        if archive is None:
            raise
        return read_member(archive, rest)


def _flatten(fields: Fields) -> dict[str, Any]:
    """A row whose `input` and `output` may hold its columns."""
    found = dict(fields)
    for name, inner in (("input", None), ("output", "output_text")):
        nested = found.get(name)
        if isinstance(nested, Mapping):
            found |= nested if inner is None else {name: nested.get(inner)}
    return found
