"""Rows of training exports, in which an image is a mark in the text, `<image>`, or a part of typed content."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from vgbench_gen.publish.export import ExportRow, Job
from vgbench_gen.training.training_files import MARK

# What trainers replace wherever it stands: marks of media and boxes, and, as `<|image_pad|>`, tokens of models.
_RESERVED = re.compile(r"<(?=\||/?(?:image|img|video|audio|bbox|ref-object|start-image|cot-process)>)")


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
    """A training row whose messages have typed content, with what a reward needs."""
    return {**describe_row(row), "messages": make_typed_messages(row, job.settings.system), "solution": row.solution}


def make_typed_messages(row: ExportRow, system: str) -> list[dict[str, Any]]:
    """The same messages with lists of parts, in which images have their places, and paths in the key `image`."""

    def turn(role: str, *parts: dict[str, str]) -> dict[str, Any]:
        return {"role": role, "content": list(parts)}

    def text(words: str) -> dict[str, str]:
        return {"type": "text", "text": protect(words)}

    question = [
        {"type": "image", "image": part["path"]} if part["type"] == "image" else text(part["text"])
        for part in row.parts()
    ]
    start = [turn("system", text(system))] if system else []
    return [*start, turn("user", *question), turn("assistant", text(row.reply))]


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


def format_settings(settings: Mapping[str, Any]) -> str:
    """Settings as a YAML file, one on each line."""
    return "".join(f"{name}: {json.dumps(value)}\n" for name, value in settings.items())
