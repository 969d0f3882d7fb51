"""Rows of training exports, in which an image is a mark in the text, `<image>`, or a part of typed content."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from vgbench_gen.publish.export import IMAGES, ExportRow, Job
from vgbench_gen.store.columns import Column
from vgbench_gen.store.schema import RecordSchema
from vgbench_gen.store.shards import write_rows
from vgbench_gen.training.training_files import MARK

MODELS = {
    "qwen2.5-vl": "Qwen/Qwen2.5-VL-7B-Instruct",
    "qwen3-vl": "Qwen/Qwen3-VL-8B-Instruct",
    "internvl": "OpenGVLab/InternVL3-8B-hf",
}
"""Family -> a model, as transformers loads it."""
# What trainers replace wherever it stands: marks of media and boxes, and, as `<|image_pad|>`, tokens of models.
_RESERVED = re.compile(r"<(?=\||/?(?:image|img|video|audio|bbox|ref-object|start-image|cot-process)>)")

# In a folder of its own, from which `datasets` loads it anew when it has changed. Beside other files it may take these
# for data, and with a list of data files in README.md it loads an older copy of a folder of the same name. A file name
# with "test" or "val" in it would be another split.
TABLE = "data/train.parquet"
_DESCRIBED = ("id", "task", "question_type", "scene", "split", "licence")
_IMAGES = Column("images", "images", "")


def make_messages(row: ExportRow, system: str) -> list[dict[str, str]]:
    """System prompt (if any), question and answer of a training row, each as one string."""
    prompt = "".join(MARK if part["type"] == "image" else protect(part["text"]) for part in row.parts())
    messages = [{"role": "system", "content": protect(system)}] if system else []
    messages.append({"role": "user", "content": prompt})
    messages.append({"role": "assistant", "content": protect(row.reply)})
    return messages


def make_typed_records(job: Job) -> Iterator[dict[str, Any]]:
    """Yield the rows of an export whose messages have typed content."""
    for row in job.rows():
        yield make_typed_record(row, job)


def make_typed_record(row: ExportRow, job: Job) -> dict[str, Any]:
    """A training row with what a reward needs, whose messages are lists of parts: images have their places, and paths
    in the key `image`."""
    turns = {"system": [_make_text(job.settings.system)] if job.settings.system else []}
    turns["user"] = [
        {"type": "image", "image": part["path"]} if part["type"] == "image" else _make_text(part["text"])
        for part in row.parts()
    ]
    turns["assistant"] = [_make_text(row.reply)]
    messages = [{"role": role, "content": content} for role, content in turns.items() if content]
    return {**describe_row(row), "messages": messages, "solution": row.solution}


def _make_text(words: str) -> dict[str, str]:
    return {"type": "text", "text": protect(words)}


def protect(text: str) -> str:
    """The text with a space in what a trainer would take for a mark: a question about `<image>` has no image more."""
    return _RESERVED.sub("< ", text)


def describe_row(row: ExportRow) -> dict[str, Any]:
    """The columns that say where a training row comes from; trainers ignore them."""
    item = row.item
    return {
        "id": item.id,
        "task": item.task,
        "question_type": item.question_type,
        "scene": f"{item.source}/{item.scene_id}",
        "split": item.split,
        "licence": item.licence,
    }


def find_model(job: Job) -> str:
    """The model whose training an export's settings are for."""
    return MODELS.get(job.train.family, MODELS["qwen2.5-vl"])


def format_settings(settings: Mapping[str, Any]) -> str:
    """Settings as a YAML file, one on each line."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())


def write_table(
    job: Job, template: str, columns: Sequence[Column], make_record: Callable[[ExportRow], Mapping[str, Any]]
) -> None:
    """Write every row to `TABLE`, with the bytes of its images, and beside it the reward and a README.

    Args:
        job: the export; the image files that it laid down are removed again.
        template: the README's folder in `templates/exports/`.
        columns: columns of this trainer, to which `images` and those of `describe_row` are added.
        make_record: their values in a row.
    """
    most_images = 0

    def make_rows() -> Iterator[dict[str, Any]]:
        nonlocal most_images
        for row in job.rows():
            most_images = max(most_images, len(row.images))
            images = [{"bytes": (job.folder / at).read_bytes(), "path": PurePosixPath(at).name} for at in row.images]
            yield {**make_record(row), "images": images, **describe_row(row)}

    table = RecordSchema(
        "training rows", (*columns, _IMAGES, *(Column(name, "string", "") for name in _DESCRIBED)), dict, dict
    )
    write_rows(job.folder / TABLE, make_rows(), table)
    shutil.rmtree(job.folder / IMAGES, ignore_errors=True)
    job.scorer()
    job.template("rewards/vgbench_reward.py", "vgbench_reward.py")
    limit = job.train.max_pixels
    pixels = f" Limit it to {limit} pixels in the model's `preprocessor_config.json`." if limit else ""
    job.template(f"{template}/README.md", "README.md", images=str(most_images), pixels=pixels)
