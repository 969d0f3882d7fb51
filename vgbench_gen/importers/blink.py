"""BLINK: multiple choice about things that are perceived in a blink; its six spatial tasks, 814 questions.

Read is the split `val` of `BLINK-Benchmark/BLINK` (answers of `test` are hidden), a folder of parquet files per task:
`idx`, `question`, `choices`, `answer` "(A)", `prompt`, `image_1` to `image_4`. `prompt` is the text asked, as in all 41
rows of SpatialScore-Hard. SpatialScore holds five of these tasks, 681 questions; multi-view reasoning comes to it
through MMIU, so its category here is that of MMIU's rows. Which scenes the images come from is not said; questions that
show one image count as one scene. Columns and names of files were seen in the authors' script and other programs that
read them, not in the files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from vgbench_gen.importers._files import (
    Place,
    RowError,
    read_column,
    read_optional,
    read_parquet_rows,
    read_picture,
    read_text,
)
from vgbench_gen.importers._words import find_options, lettered_words
from vgbench_gen.importers.base import (
    CAMERA_POSE_3D,
    CORRESPONDENCE,
    COUNTING,
    LOCALIZATION_2D,
    ORIENTATION,
    RELATIVE,
    Importer,
    Part,
    Record,
    SourceRow,
    importers,
    read_category,
)

_COLUMNS = ("idx", "choices", "answer", ("prompt", "question"), "image_1")


@importers.register("blink")
class Blink(Importer):
    """Multiple choice with two to four options and one to four images."""

    title = "BLINK"
    benchmark = "BLINK"
    repository = "BLINK-Benchmark/BLINK"
    licence = "apache-2.0"
    parts: ClassVar[Mapping[str, Part]] = {
        "Counting": Part(120, COUNTING),
        "Multi-view_Reasoning": Part(133, CAMERA_POSE_3D, published=False),
        "Object_Localization": Part(122, LOCALIZATION_2D),
        "Relative_Depth": Part(124, RELATIVE),
        "Spatial_Relation": Part(143, ORIENTATION),
        "Visual_Correspondence": Part(172, CORRESPONDENCE),
    }
    patterns = tuple(f"{task}/val*.parquet" for task in parts)
    published = 681

    def records(self, place: Place) -> Iterator[Record]:
        """As `Importer.records`; the task that SpatialScore does not hold may be missing."""
        for task, part in self.parts.items():
            patterns = (f"**/{task}/val*.parquet", f"**/{task}/**/val*.parquet")
            if not part.published and not place.has(*patterns):
                continue
            for path in place.find(*patterns):
                for number, fields in enumerate(read_parquet_rows(path, _COLUMNS)):
                    yield Record(f"{task}/{path.name}:{number}", task, fields)

    def row(self, record: Record, place: Place) -> SourceRow:
        fields, task = record.fields, record.part
        choices = read_column(fields, "choices")
        prompt = read_optional(fields, "prompt")
        if isinstance(prompt, str) and prompt.strip():
            words = find_options(prompt)
            if len(words.options) != len(choices):
                raise RowError("prompt", f"{len(words.options)} options where `choices` has {len(choices)}")
        else:
            words = lettered_words(f"{read_text(fields, 'question')}\nSelect from the following choices.", choices)
        shown = [fields[name] for k in range(1, 5) if fields.get(name := f"image_{k}") is not None]
        return SourceRow(
            index=read_text(fields, "idx"),
            origin=task,
            category=read_category(self, record, "task"),
            question_type="multi-choice",
            words=words,
            answer=read_text(fields, "answer"),
            images=[read_picture(one, place, task) for one in shown],
            split="val",
        )
