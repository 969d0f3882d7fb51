"""MMIU: multiple choice about several images; its ten spatial tasks, 2,133 questions of 11,698 in 60 stored tasks.

Columns are flat, or nested in `input` and `output` as in the authors' metadata. Images are files such as
"./2D-spatial/Homography_estimation/Homography_estimation_1_0.png", also inside archives such as `2D-spatial.zip`. The
question is `context`, a line break and `question`, which contains the options, as in all 137 rows of SpatialScore-Hard.
As there, `index_origin` is the number in the names of the images.

Inferred without the files: columns and paths (from programs that read them); that visually grounded reasoning (400) is
the two stored tasks of NLVR2 and MaRVL, 200 each; the subcategories of grounded reasoning, pose estimation and
multi-view reasoning, which SpatialScore-Hard does not contain (their categories follow from the published sizes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar

from pydantic import AliasChoices, Field, model_validator

from vgbench_gen.importers._archives import find_picture
from vgbench_gen.importers._files import Fields, Place, RawRow, RowError, Text
from vgbench_gen.importers._words import find_options
from vgbench_gen.importers.base import Importer, Part, Record, ScoreCategory, SourceRow, importers

_GROUNDED = "visually_grounded_reasoning"
_NUMBER = re.compile(r"_(\d+)_\d+\.\w+$")


class _Row(RawRow):
    task: Text
    context: Text = ""
    question: Text = ""
    options: Text = ""
    input_image_path: list[str] = Field(min_length=1, validation_alias=AliasChoices("input_image_path", "input"))
    output: Text

    @model_validator(mode="before")
    @classmethod
    def _flatten(cls, cells: Fields) -> dict[str, Any]:
        inputs, output = cells.get("input"), cells.get("output")
        inputs = inputs if isinstance(inputs, Mapping) else {}
        return {**cells, **inputs, "output": output.get("output_text") if isinstance(output, Mapping) else output}


@importers.register("mmiu")
class Mmiu(Importer[_Row]):
    """Multiple choice with two to four options and at least two images."""

    title = "MMIU"
    benchmark = "MMIU"
    repository = "FanqingM/MMIU-Benchmark"
    patterns = ("all.parquet", "2D-spatial.zip", "3D-spatial.zip", "High-level-obj-semantic.zip")
    files = ("**/all.parquet", "**/*.parquet")
    photos = ("MMIU-Benchmark",)
    columns = _Row
    parts: ClassVar[Mapping[str, Part]] = {
        "Homography_estimation": Part(200, ScoreCategory.TRANSFORMATION_2D),
        "Image_Spatial_Transformation_Estimation": Part(200, ScoreCategory.TRANSFORMATION_2D),
        "Multiview_reasoning": Part(133, ScoreCategory.CAMERA_POSE_3D),
        "point_tracking": Part(200, ScoreCategory.TRACKING_3D),
        "threeD_Depth_Estimation": Part(200, ScoreCategory.ABSOLUTE),
        "threeD_Object_Detection": Part(200, ScoreCategory.LOCALIZATION_3D),
        "threeD_Object_Tracking": Part(200, ScoreCategory.LOCALIZATION_3D),
        "threeD_Pose_Estimation": Part(200, ScoreCategory.CAMERA_POSE_3D),
        "visual_correspondence_scannet": Part(200, ScoreCategory.CORRESPONDENCE),
        _GROUNDED: Part(400, ScoreCategory.LOCALIZATION_2D),
    }

    def find_part(self, fields: Fields, table: Path) -> str:
        task = str(fields["task"])
        return _GROUNDED if task.startswith(_GROUNDED) else task if task in self.parts else ""

    def row(self, fields: _Row, record: Record, place: Place) -> SourceRow:
        words = find_options("\n".join(filter(None, (fields.context, fields.question))))
        if fields.options and len(find_options(fields.options).options) != len(words.options):
            raise RowError("context", f"{len(words.options)} options where `options` has another number")
        number = _NUMBER.search(fields.input_image_path[0])
        index = int(number[1]) if number else record.number
        return SourceRow(
            index=index,
            origin=fields.task,
            question_type="multi-choice",
            words=words,
            answer=fields.output,
            images=[self._find_image(name, place) for name in fields.input_image_path],
            modality="multi-images",
            key=f"{fields.task}-{index}",
        )

    def _find_image(self, name: str, place: Place) -> bytes | Path:
        folder, _, rest = str(PurePosixPath(name)).lstrip("/").partition("/")
        return find_picture(place, name, f"{folder}.zip", rest, *self.photos)
