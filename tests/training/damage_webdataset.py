"""What Megatron energon 7.4.1 does with samples that have a defect, read with the exported `cooker.py`.

A sample that raises is dropped: energon prints the error and goes on, and ends the run at the hundredth in a row.
`file`: no sample of the dataset is read, because `energon prepare` stops.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from PIL import Image

Files = dict[str, bytes]
"""Name in the shard -> bytes: the files of one sample, `KEY.000.jpg`, ..., `KEY.json`."""


def damages(good: Mapping[str, bytes], other: str) -> Iterator[tuple[str, Files, str]]:
    """(defect, the files of a sample with it, outcome) of every defect.

    Args:
        good: the files of a sample, of whose images it holds two and other samples hold some.
        other: the key of the first sample of the shard, which is not next to this one.
    """
    for defect, outcome, damage in _DEFECTS:
        yield defect, damage(dict(good)), outcome
    yield "the key of another sample", _rename(other)(dict(good)), "file"


def _show(make: Callable[[bytes], bytes]) -> Callable[[Files], Files]:
    """Change the first image."""
    return lambda files: files | {min(files): make(files[min(files)])}


def _drop_first(files: Files) -> Files:
    return {name: data for name, data in files.items() if name != min(files)}


def _draw(mode: str, size: tuple[int, int]) -> Callable[[bytes], bytes]:
    def draw(_: bytes) -> bytes:
        buffer = io.BytesIO()
        Image.new(mode, size, 90).save(buffer, "JPEG")
        return buffer.getvalue()

    return draw


def _rename(key: str) -> Callable[[Files], Files]:
    return lambda files: {f"{key}.{name.partition('.')[2]}": data for name, data in files.items()}


def _edit(change: Callable[[dict[str, Any]], object]) -> Callable[[Files], Files]:
    """Change the JSON."""

    def edit(files: Files) -> Files:
        (name,) = (name for name in files if name.endswith(".json"))
        record = json.loads(files[name])
        change(record)
        return files | {name: json.dumps(record).encode()}

    return edit


def _empty_answer(record: dict[str, Any]) -> None:
    record["messages"][-1]["content"][0]["text"] = ""


def _name_another(record: dict[str, Any]) -> None:
    parts = record["messages"][-2]["content"]
    next(part for part in parts if part["type"] == "image").update(image="00000000.009.jpg")


_DEFECTS: tuple[tuple[str, str, Callable[[Files], Files]], ...] = (
    ("none", "kept", lambda files: files),
    ("an image not there", "dropped", _drop_first),
    ("an image of another sample not there", "dropped", _edit(_name_another)),
    ("an image that is no image", "dropped", _show(lambda data: b"no picture")),
    ("an image cut off", "dropped", _show(lambda data: data[:400])),
    ("an image 250 times as long as wide", "kept", _show(_draw("RGB", (2000, 8)))),
    ("a grey image", "kept", _show(_draw("L", (64, 64)))),
    ("no messages", "dropped", _edit(lambda record: record.update(messages=None))),
    ("an empty answer", "altered", _edit(_empty_answer)),
    ("a key with a dot", "dropped", _rename("item.5")),
)
