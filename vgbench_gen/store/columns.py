"""Every column that is written, in one table per record kind: name, type, unit, meaning, where it comes from.

`schema` builds the Arrow schemas and the conversions from these tables; `docs/data-dictionary.md` is made of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from vgbench_gen.core.noise import NoiseGates

SCHEMA_VERSION = 2

Type = Literal["string", "int64", "float64", "json", "strings", "int64s", "float64s", "images", "structs"]


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table."""

    name: str
    type: Type
    """Its type: "json" is canonical JSON text, the plural names are lists, "images" is a list of {bytes, path}, and
    "structs" is a list of structs with `fields`."""
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
    Column("value_shape", "int64s", "shape of `value`; empty for a scalar"),
    Column("frame_ids", "strings", "frames shown because of this candidate"),
    Column("show", "json", "what must be drawn and said: integer pixels, crops, labels", unit="pixels"),
    Column("evidence", "json", "the numbers behind the value"),
)

FACT_COLUMNS = (
    Column("task", "string", "task id, such as `metric_depth`"),
    Column("task_version", "int64", "version of the task's measuring code"),
    Column("ask", "string", "sub-kind of the task, such as `fx` or `deepest`; empty where there is one kind only"),
    Column("dataset", "string", _SCANS),
    Column("scene_id", "string", "the scene, as the dataset names it"),
    Column("split", "string", "official split: `train`, `val`, `test` or `unknown`"),
    Column("key", "string", "stable name, unique within task and scene"),
    Column("frame_ids", "strings", "frames that are always shown, in order"),
    Column("candidates", "structs", "values of the same kind that could have been asked about", fields=_CANDIDATE),
    Column("truth", "int64", "position in `candidates` of the one that is asked about"),
    Column("second_value", "float64s", "the true value by the second route, flattened", unit="the task's unit"),
    Column("second_shape", "int64s", "shape of `second_value`; empty for a scalar"),
    Column("margin", "float64", "smallest margin of any gate over its requirement; at least 1", unit="ratio"),
    Column("evidence", "json", "the numbers behind the fact: cameras, poses, both routes, margins"),
    Column("licence", "string", "licence id of the scans"),
    Column("pictures", "json", "frame id -> name of its base image under `media/`"),
    Column(
        "cameras", "json", "frame id -> `K` (9 numbers, row by row), `width`, `height` of its base image", unit="px"
    ),
)

REJECT_COLUMNS = (
    Column("task", "string", "task id"),
    Column("dataset", "string", "scan dataset"),
    Column("scene_id", "string", "the scene, as the dataset names it"),
    Column("key", "string", "name of the draft within task and scene"),
    Column("reason", "string", "machine-readable reason, such as `region_spread`"),
    Column("value", "float64", "the number that was measured; NaN where there is none", unit="as the gate"),
    Column("limit", "float64", "the bar it missed; NaN where there is none", unit="as the gate"),
    Column("detail", "string", "one line for a person"),
)

QUESTION_COLUMNS = (
    Column("task", "string", "task id", "compose"),
    Column("source", "string", "scan dataset", "compose"),
    Column("split", "string", "split of the scan dataset", "compose"),
    Column("scene_id", "string", "the scene, as the dataset names it", "compose"),
    Column("group_id", "string", "names the fact; the column of the same name of its rows", "compose"),
    Column("question_type", "string", "`multi-choice`, `judgment` or `open-ended`", "compose"),
    Column("row", "int64", "place of the fact in its file below `facts/`", "compose"),
    Column("ask", "string", "sub-kind of the task", "compose"),
    Column("value", "float64", "the answer where it is one number, else NaN", "compose", "as the task"),
    Column("frame", "string", "the first frame that is shown", "compose"),
    Column("draw", "int64", "which of several draws of its options or claims it is asked with", "compose"),
    Column("outcome", "string", "`asked`, or the reason why it is not", "compose"),
)

_DISTRACTOR = (
    Column("strategy", "string", "the strategy that made this option", "compose"),
    Column("key", "string", "the candidate it shows; empty where it was computed", "compose"),
    Column("separation", "float64", "distance from the truth over the required distance", "compose", "ratio"),
)

ITEM_COLUMNS = (
    Column("id", "string", "hash of group, question type, template, strategy, seed: a changed question is another id",
           "compose"),
    Column("index", "int64", "position in the dataset, from 0", "compose"),
    Column("group_id", "string", "hash of the fact; the same truth in several question types shares it", "compose"),
    Column("twin_id", "string", "shared by the two halves of a judgment pair; empty elsewhere", "compose"),
    Column("pair_id", "string", "shared by two items that ask one truth from two sides; empty elsewhere", "compose"),
    Column("benchmark", "string", "selects prompts and scorer, such as `VGBench`; exported as SpatialScore's `source`",
           "compose"),
    Column("task", "string", "task id"),
    Column("ask", "string", "sub-kind of the task; empty where there is one kind only"),
    Column("question_type", "string", "`judgment`, `multi-choice` or `open-ended`", "compose"),
    Column("category", "string", "SpatialScore category", "compose"),
    Column("subcategory", "string", "SpatialScore subcategory", "compose"),
    Column("category_origin", "string", "category in the benchmark the item came from", "compose"),
    Column("index_origin", "int64",
           "index in the benchmark the item came from; -1 where there is none or it is text: `evidence.origin.index`",
           "compose"),
    Column("input_modality", "string", "what is shown, such as `image` or `multi-images`", "compose"),
    Column("source", "string", f"the scan dataset: {_SCANS}"),
    Column("scene_id", "string", "the scene, as the dataset names it"),
    Column("frame_ids", "strings", "frames behind the images, as the dataset names them"),
    Column("split", "string", "official split: `train`, `val`, `test` or `unknown`"),
    Column("question", "string", "the question", "compose"),
    Column("context", "string", "what the reader must know first: image size, conventions, units", "compose"),
    Column("options", "strings", "option texts without letters, in letter order; multi-choice only", "compose"),
    Column("answer", "string", "letter, `Yes` or `No`, or the number with its unit", "compose"),
    Column("answer_value", "float64s", "the true value as printed, flattened row by row", "compose", "see `unit`"),
    Column("answer_shape", "int64s", "shape of `answer_value`; empty for a scalar", "compose"),
    Column("unit", "string", "unit of `answer_value`", "compose"),
    Column("tolerance", "float64", "how far a number may be off and still be right", "compose", "see `unit`"),
    Column("images", "images", "in the order shown, query first; `path` is the name under `media/`", "compose"),
    Column("convention", "json", "frame, axes and units, in words that a program can read", "compose"),
    Column("distractors", "structs", "how each wrong option was made", "compose", fields=_DISTRACTOR),
    Column("evidence", "json", "cameras, poses, both routes' numbers, margins, noise test, side of a pair"),
    Column("template_id", "string", "which phrasing was used", "compose"),
    Column("paraphrase", "string", "model that reworded it; empty where none did", "compose"),
    Column("strategy", "string", "distractor strategy of the option set", "compose"),
    Column("distractor_seed", "int64", "seed of the option set", "compose"),
    Column("error_parts", "strings",
           "per option the parts of the answer that it gets wrong, as in `depth+yaw`, empty text for the right one; no "
           "entries where options are no combinations of parts", "compose"),
    Column("difficulty", "string", "tercile of `evidence.noise.lead` within task, sub-kind and form", "compose"),
    Column("licence", "string", "licence id of the scans"),
    Column("schema_version", "int64", "version of this table", "compose"),
)  # fmt: skip

_IMAGE_FILE = (
    Column("name", "string", "name under `media/`: BLAKE2b (128 bits) of the encoded bytes, and the suffix", "publish"),
    Column("size_bytes", "int64", "length of the encoded bytes", "publish", "bytes"),
    Column("width", "int64", "of the image", "publish", "px"),
    Column("height", "int64", "of the image", "publish", "px"),
    Column("pixels", "string", "BLAKE2b (128 bits) of the decoded RGB pixels, row by row", "publish"),
    Column("look", "string", "perceptual hash (64 bits), which tells another picture from another encoding", "publish"),
    Column("frame_id", "string", "the scan's frame it is made from; empty where no scan is behind it", "publish"),
    Column("base", "string", "media name of that frame's base image", "publish"),
    Column("base_pixels", "string", "BLAKE2b (128 bits) of the base image's RGB pixels; empty if unknown", "publish"),
    Column("base_width", "int64", "of the base image: the frame shrunk to this size", "publish", "px"),
    Column("base_height", "int64", "of the base image", "publish", "px"),
    Column("ops", "json", "what is done to the base: crop, homography, marks (`store/pictures.py`)", "publish"),
)

IMAGE_FILES = Column(
    "image_files",
    "structs",
    "per image its checksums and how to make it; `images` is empty where pixels may not be published",
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
