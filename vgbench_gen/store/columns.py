"""Every column that is written, in one table per record kind: name, type, unit, meaning, where it comes from.

`schema` builds the Arrow schemas and the conversions from these tables; `docs/data-dictionary.md` is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vgbench_gen.core.noise import NoiseGates

SCHEMA_VERSION = 2

Type = Literal["string", "int64", "float64", "json", "strings", "int64s", "float64s", "images", "struct", "structs"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: Type
    """Its type: "json" is canonical JSON text, the plural names are lists, "images" is a list of {bytes, path}, a
    "struct" has `fields`, and "structs" is a list of such."""
    meaning: str
    """What it holds, as the data dictionary says it."""
    origin: str = "measure"
    """The stage that fills it."""
    unit: str = ""
    """The unit of its numbers, "" where there is none."""
    fields: tuple[Column, ...] = ()


_SHIPPED = [f"`{name}`" for name in (*NoiseGates().stated, "posed")]
# The scans that this package has loaders for; those of a loader from another package stand under its name.
_SCANS = f"{', '.join(_SHIPPED[:-1])} or {_SHIPPED[-1]}"

_CANDIDATE = (
    Column("key", "string", "stable name within the fact, such as `region:212,96,64,64`"),
    Column("value", "float64s", "the value, flattened row by row", unit="the task's unit"),
    Column("value_shape", "int64s", "its shape; empty for a scalar"),
    Column("frame_ids", "strings", "frames shown because of this candidate"),
    Column("show", "json", "what is drawn and stated: pixels, crops, labels"),
    Column("evidence", "json", "numbers behind the value"),
)

FACT_COLUMNS = (
    Column("task", "string", "task id, such as `metric_depth`"),
    Column("task_version", "int64", "version of the task's measuring code"),
    Column("ask", "string", "sub-kind of the task, such as `fx` or `deepest`"),
    Column("dataset", "string", "scan dataset"),
    Column("scene_id", "string", "scene, as the dataset names it"),
    Column("split", "string", "official split: `train`, `val`, `test` or `unknown`"),
    Column("key", "string", "stable name within task and scene"),
    Column("frame_ids", "strings", "frames always shown, in order"),
    Column("candidates", "structs", "values from which options are chosen", fields=_CANDIDATE),
    Column("truth", "int64", "position of the correct one in `candidates`"),
    Column("second_value", "float64s", "correct value by the second route, flattened", unit="the task's unit"),
    Column("second_shape", "int64s", "its shape; empty for a scalar"),
    Column("margin", "float64", "smallest margin over all gates, relative to the limit, at least 1", unit="ratio"),
    Column("evidence", "json", "cameras, poses, values by both routes, margins"),
    Column("licence", "string", "license id of the scans"),
    Column("pictures", "json", "frame id -> media name of its base image"),
    Column(
        "cameras", "json", "frame id -> `K` (9 numbers, row by row), `width`, `height` of its base image", unit="px"
    ),
)

REJECT_COLUMNS = (
    Column("task", "string", "task id, such as `metric_depth`"),
    Column("dataset", "string", "scan dataset"),
    Column("scene_id", "string", "scene, as the dataset names it"),
    Column("key", "string", "stable name within task and scene"),
    Column("reason", "string", "reason, such as `region_spread`"),
    Column("value", "float64", "measured number, if any", unit="as the gate"),
    Column("limit", "float64", "limit that it violates, if any", unit="as the gate"),
    Column("detail", "string", "one-line explanation"),
)

QUESTION_COLUMNS = (
    Column("task", "string", "task id, such as `metric_depth`", "compose"),
    Column("source", "string", f"scan dataset: {_SCANS}", "compose"),
    Column("split", "string", "official split: `train`, `val`, `test` or `unknown`", "compose"),
    Column("scene_id", "string", "scene, as the dataset names it", "compose"),
    Column("group_id", "string", "hash of the fact, shared by its questions", "compose"),
    Column("question_type", "string", "`judgment`, `multi-choice` or `open-ended`", "compose"),
    Column("row", "int64", "row of the fact in its file in `facts/`", "compose"),
    Column("ask", "string", "sub-kind of the task, such as `fx` or `deepest`", "compose"),
    Column("value", "float64", "the answer, if it is one number", "compose", "as the task"),
    Column("frame", "string", "first frame shown", "compose"),
    Column("draw", "int64", "which draw of its options or claims is used", "compose"),
    Column("outcome", "string", "`asked`, or why the fact is not used", "compose"),
)

_DISTRACTOR = (
    Column("strategy", "string", "strategy that made this option", "compose"),
    Column("key", "string", "candidate that it shows; empty if computed", "compose"),
    Column("separation", "float64", "distance from the truth over the required distance", "compose", "ratio"),
)

ITEM_COLUMNS = (
    Column("id", "string", "hash of the question's content; changes if the question does", "compose"),
    Column("index", "int64", "position in the dataset, from 0", "compose"),
    Column("group_id", "string", "hash of the fact, shared by its questions", "compose"),
    Column("twin_id", "string", "shared by a true and a false claim (judgment)", "compose"),
    Column("pair_id", "string", "shared by the two questions of a consistency pair", "compose"),
    Column("benchmark", "string", "selects prompts and scorer, such as `VGBench`; SpatialScore's `source`", "compose"),
    Column("task", "string", "task id, such as `metric_depth`"),
    Column("ask", "string", "sub-kind of the task, such as `fx` or `deepest`"),
    Column("question_type", "string", "`judgment`, `multi-choice` or `open-ended`", "compose"),
    Column("category", "string", "SpatialScore category", "compose"),
    Column("subcategory", "string", "SpatialScore subcategory", "compose"),
    Column("category_origin", "string", "category in the source benchmark", "compose"),
    Column("index_origin", "int64",
           "index in the source benchmark, or `index`; -1 if that is a string (`evidence.origin.index`)", "compose"),
    Column("input_modality", "string", "such as `image` or `multi-images`", "compose"),
    Column("source", "string", f"scan dataset: {_SCANS}"),
    Column("scene_id", "string", "scene, as the dataset names it"),
    Column("frame_ids", "strings", "frames from which the images are made"),
    Column("split", "string", "official split: `train`, `val`, `test` or `unknown`"),
    Column("question", "string", "the question", "compose"),
    Column("context", "string", "text before the question: image size, conventions, units", "compose"),
    Column("options", "strings", "option texts without letters, in letter order", "compose"),
    Column("answer", "string", "letter, `Yes` or `No`, or number with unit", "compose"),
    Column("answer_value", "float64s", "correct value as printed, flattened row by row", "compose", "see `unit`"),
    Column("answer_shape", "int64s", "its shape; empty for a scalar", "compose"),
    Column("unit", "string", "unit of `answer_value`", "compose"),
    Column("tolerance", "float64", "maximum deviation of a correct number", "compose", "see `unit`"),
    Column("images", "images", "query image first; `path` is the name in `media/`", "compose"),
    Column("convention", "json", "frame, axes and units", "compose"),
    Column("distractors", "structs", "how each wrong option was made", "compose", fields=_DISTRACTOR),
    Column("evidence", "json", "cameras, poses, values by both routes, margins, noise test, position in a pair"),
    Column("template_id", "string", "id of the wording", "compose"),
    Column("paraphrase", "string", "model that reworded the question", "compose"),
    Column("strategy", "string", "strategy of the option set", "compose"),
    Column("distractor_seed", "int64", "seed of the option set", "compose"),
    Column("error_parts", "strings",
           "in factorial sets: the wrong parts of each option, such as `depth+yaw`; empty for the correct one",
           "compose"),
    Column("difficulty", "string", "tercile of `evidence.noise.lead` within task, sub-kind and type", "compose"),
    Column("licence", "string", "license id of the scans"),
    Column("schema_version", "int64", "version of this table", "compose"),
)  # fmt: skip

_IMAGE_FILE = (
    Column("name", "string", "name in `media/`: BLAKE2b (128 bits) of the encoded bytes, and suffix", "publish"),
    Column("size_bytes", "int64", "length of the encoded bytes", "publish", "bytes"),
    Column("width", "int64", "image width", "publish", "px"),
    Column("height", "int64", "image height", "publish", "px"),
    Column("pixels", "string", "BLAKE2b (128 bits) of the decoded RGB pixels, row by row", "publish"),
    Column("look", "string", "perceptual hash (64 bits)", "publish"),
    Column("frame_id", "string", "frame of the scan from which it is made", "publish"),
    Column("base", "string", "media name of the frame's base image", "publish"),
    Column("base_pixels", "string", "BLAKE2b (128 bits) of the base image's RGB pixels", "publish"),
    Column("base_width", "int64", "base image width (the frame, downscaled)", "publish", "px"),
    Column("base_height", "int64", "base image height", "publish", "px"),
    Column("ops", "json", "operations on the base image: crop, homography, marks", "publish"),
)

IMAGE_FILES = Column(
    "image_files",
    "structs",
    "per image, checksums and how it is made; `images` is empty if pixels may not be published",
    "publish",
    fields=_IMAGE_FILE,
)

# A viewer of tables opens at the left; it should open on what a question is.
_SHOWN_FIRST = ("images", "question", "options", "answer", "task")

PUBLISHED_COLUMNS = (
    *(next(column for column in ITEM_COLUMNS if column.name == name) for name in _SHOWN_FIRST),
    *(column for column in ITEM_COLUMNS if column.name not in _SHOWN_FIRST),
    IMAGE_FILES,
)
