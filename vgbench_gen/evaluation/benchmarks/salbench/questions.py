"""Reads SalBench's questions from its parquet files, one file or folder per configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import AliasChoices, Field

from vgbench_gen.core.config import Config, load_toml
from vgbench_gen.core.types import Item
from vgbench_gen.evaluation.benchmarks import _parquet as parquet
from vgbench_gen.evaluation.benchmarks._parquet import ImagePlace, ParquetSource
from vgbench_gen.evaluation.benchmarks.salbench import labels
from vgbench_gen.evaluation.item_source import make_item
from vgbench_gen.importers._files import Place, RawRow, RowError, Text, table_rows
from vgbench_gen.store.files import dataset_error
from vgbench_gen.text.render import find_templates_root

REPOSITORY = "salbench-vlm/salbench"
NAMES = {"synthetic": "P3", "natural": "O3"}
# Configuration -> (split, task).
CONFIGS: Mapping[str, tuple[str, str]] = {
    f"{name}{ending}": (split, task)
    for split, name in NAMES.items()
    for ending, task in (("", "detection"), ("_box", "referring"), ("_box_img", "visual_referring"))
}
SHORT = {"D": "detection", "R": "referring", "VR": "visual_referring"}
ROWS = dict.fromkeys(("P3", "P3_box", "P3_box_img"), 2589)
_BOX = ("xmin", "ymin", "xmax", "ymax")
_SLOT = re.compile(r"\{\{ ([a-z_]+) \}\}")


class _Row(RawRow):
    image: Any
    answer: Any = Field(validation_alias=AliasChoices("answer", "label", "labels"))
    question: Text = ""
    image_id: Text = Field("", validation_alias=AliasChoices("image_id", "sample_id"))
    difficulty: Text = ""
    num_distractors: Text = ""
    object_category: Text = ""
    box: Any = Field(None, validation_alias=AliasChoices("bbox", "box"))
    image_with_box: Any = None


class LabelWords(Config):
    """The file `templates/benchmarks/salbench.toml`: the published wording, for rows without a question."""

    features: Mapping[str, str]
    """Name of a split -> its visual features, separated by commas."""
    prompts: Mapping[str, str]
    """Name of a task -> the question, with slots in double braces."""


@cache
def read_words() -> LabelWords:
    """The wording in the shipped file."""
    return load_toml(find_templates_root() / "benchmarks" / "salbench.toml", LabelWords)


def open_questions(path: Path) -> ParquetSource:
    """Open the configurations under a folder, in a file, or on the Hub; see `Benchmark.open`."""
    place = parquet.place_of(path, REPOSITORY, [f"{name}/test*" for name in CONFIGS])
    files = [path] if path.is_file() else sorted(_list_files(place))
    if not files:
        expected = "parquet files in folders or with names like P3, P3_box, P3_box_img, O3, O3_box, O3_box_img"
        raise dataset_error(path, "no configuration of SalBench", expected, f"Download {REPOSITORY} and name it.")
    items: list[Item] = []
    pictures: dict[str, ImagePlace] = {}
    notes = parquet.SkippedRows()
    counts: dict[str, int] = {}
    for file in files:
        config = find_config(file, place.folder)
        start = counts.get(config, 0)
        items += _read_items(file, config, pictures, notes, start)
        counts[config] = start + parquet.count_rows(file)
    sizes = [f"{config}: {counts[config]} rows, {ROWS[config]} published" for config in counts
             if config in ROWS and counts[config] != ROWS[config]]  # fmt: skip
    return ParquetSource("SalBench", place.folder, items, pictures, (*sizes, *notes.bad))


def find_config(file: Path, top: Path) -> str:
    """The configuration of a file, by its name or that of a folder above it.

    Raises:
        DatasetError: no name is that of a configuration.
    """
    for name in (file.name, *(parent.name for parent in file.parents if parent != top.parent)):
        stem = re.split(r"[-.](?:test|train|[0-9])|\.", name)[0]
        known = {config.casefold(): config for config in CONFIGS}
        if stem.casefold() in known:
            return known[stem.casefold()]
    remedy = "Name the file, or the folder that it lies in, after its configuration."
    raise dataset_error(file, "a name that says no configuration", f"one of {', '.join(CONFIGS)}", remedy)


def _list_files(place: Place) -> Iterator[Path]:
    for path in place.folder.rglob("*.parquet"):
        parts = path.relative_to(place.folder).parts
        hidden = any(part.startswith(".") for part in parts) or parts[0] in ("replies", "scores")
        if not hidden and any(part.split(".")[0].split("-")[0].casefold() in _LOWER for part in parts):
            yield path


_LOWER = {config.casefold() for config in CONFIGS}


def _read_items(
    file: Path, config: str, pictures: dict[str, ImagePlace], notes: parquet.SkippedRows, start: int
) -> Iterator[Item]:
    for number, fields in enumerate(table_rows(file, _Row.list_columns())):
        try:
            yield _make_item(file, number, config, fields, pictures, start)
        except RowError as problem:
            notes.add(file, number, problem)


def _make_item(
    file: Path, number: int, config: str, fields: Mapping[str, Any], pictures: dict[str, ImagePlace], start: int
) -> Item:
    split, task = CONFIGS[config]
    row = _Row.read(fields)
    name, where = _name(row.image, "image"), ImagePlace(file, number, "image")
    if not row.question and task == "visual_referring":
        name, where = _find_boxed_image(row, name, where)
    item = make_item(
        f"salbench-{config}-{start + number}",
        benchmark=f"SalBench-{NAMES[split]}",
        task=task,
        question_type="multi-label",
        question=(row.question or _make_question(row, split, task)).strip(),
        answer=_answer(row.answer, split),
        images=(name,),
        source=split,
        scene_id=row.image_id or f"{config}-{start + number}",
        category=config,
        difficulty=row.difficulty,
        index=start + number,
    )
    pictures[name] = where
    return item


def _name(cell: Any, key: str) -> str:
    names = parquet.list_image_names(cell)
    if len(names) != 1:
        raise RowError(key, f"{len(names)} images", "image_missing")
    return names[0]


def _answer(value: Any, split: str) -> str:
    text = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    if labels.parse_truth(text, labels.SPLITS[split]) is None:
        raise RowError("answer", f"{text[:60]!r}, which is no list of {', '.join(labels.SPLITS[split])}")
    return text


def _make_question(row: _Row, split: str, task: str) -> str:
    slots = {"features": read_words().features[split]}
    if task != "detection":
        slots |= {"num_distractors": row.num_distractors, "object_category": row.object_category}
        if empty := next((name for name in slots if not slots[name]), ""):
            raise RowError(empty, "nothing in it")
    if task == "referring":
        slots |= {name: f"{value:.2f}" for name, value in zip(_BOX, _box(row.box), strict=True)}
    return _SLOT.sub(lambda match: slots[match.group(1)], read_words().prompts[task])


def _box(value: Any) -> tuple[float, float, float, float]:
    if isinstance(value, Mapping):
        value = [value.get(name) for name in _BOX]
    if not isinstance(value, list) or len(value) != 4 or not all(isinstance(v, int | float) for v in value):
        raise RowError("bbox", f"{str(value)[:60]}; expected xmin, ymin, xmax, ymax")
    x1, y1, x2, y2 = map(float, value)
    if not (0 <= x1 < x2 and 0 <= y1 < y2):
        raise RowError("bbox", f"{str(value)[:60]}; expected xmin below xmax and ymin below ymax")
    return x1, y1, x2, y2


def _find_boxed_image(row: _Row, name: str, where: ImagePlace) -> tuple[str, ImagePlace]:
    """(name, place) of the image with the object's box, which is drawn if the row has no such image."""
    if row.image_with_box is not None:
        return _name(row.image_with_box, "image_with_box"), replace(where, column="image_with_box")
    box = _box(row.box)
    if max(box) <= 1:
        width, height = parquet.read_size_px(parquet.encode_image(row.image))
        box = (box[0] * width, box[1] * height, box[2] * width, box[3] * height)
    corners = "-".join(f"{value:.1f}" for value in box)
    return f"{name.partition('.')[0]}-{corners}.png", replace(where, drawn=box)
