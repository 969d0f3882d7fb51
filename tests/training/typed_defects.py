"""Rows of typed messages with one defect each; see `damage_axolotl` and `damage_unsloth` for what becomes of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from PIL import Image

Record = dict[str, Any]


def damage(good: Record, folder: Path, outcomes: Mapping[str, str]) -> Iterator[tuple[str, Record, str]]:
    """(defect, a record with it, outcome) of every defect that `outcomes` names.

    Args:
        good: a record of an export with two images.
        folder: the export; images with defects are written there.
        outcomes: defect -> what the trainer does.
    """
    images = folder / "images"
    (images / "words.jpg").write_text("no picture\n")
    (images / "cut.jpg").write_bytes((folder / _images(good)[0]["image"]).read_bytes()[:400])
    Image.new("RGB", (2000, 8)).save(images / "strip.png")
    Image.new("L", (64, 64), 90).save(images / "grey.png")
    for defect, outcome in outcomes.items():
        record = copy.deepcopy(good)
        DEFECTS[defect](record)
        yield defect, record, outcome


def _user(record: Record) -> list[dict[str, Any]]:
    (content,) = (message["content"] for message in record["messages"] if message["role"] == "user")
    return list(content)


def _images(record: Record) -> list[dict[str, Any]]:
    return [part for part in _user(record) if part["type"] == "image"]


def _text(record: Record) -> dict[str, Any]:
    """The question's own part."""
    return _user(record)[-1]


def _show(file: str) -> Callable[[Record], object]:
    """Show this file instead of the first image."""
    return lambda record: _images(record)[0].update(image=f"images/{file}")


def _move_to_column(record: Record) -> None:
    record["images"] = [part["image"] for part in _images(record)]
    record["messages"][-2]["content"] = [part for part in _user(record) if part["type"] == "text"]


def _move_with_marks(record: Record) -> None:
    _move_to_column(record)
    _text(record)["text"] = "<image>" * len(record["images"]) + _text(record)["text"]


def _leave_places(record: Record) -> None:
    record["images"] = [part.pop("image") for part in _images(record)]


def _leave_places_for_fewer(record: Record) -> None:
    record["images"] = [part.pop("image") for part in _images(record)][:1]


def _rename(key: str) -> Callable[[Record], object]:
    def rename(record: Record) -> None:
        for part in _images(record):
            part[key] = part.pop("image")

    return rename


def _name_as_url(record: Record) -> None:
    for part in _images(record):
        part |= {"type": "image_url", "image_url": {"url": part.pop("image")}}


def _put_before(words: str) -> Callable[[Record], object]:
    return lambda record: _text(record).update(text=words + _text(record)["text"])


def _answer(content: Any) -> Callable[[Record], object]:
    return lambda record: record["messages"][-1].update(content=content)


DEFECTS: dict[str, Callable[[Record], object]] = {
    "none": lambda record: None,
    "images in a column": _move_to_column,
    "images in a column, marks in the text": _move_with_marks,
    "images in a column, places in the messages": _leave_places,
    "more places than images in the column": _leave_places_for_fewer,
    "images in the messages, one in a column": lambda record: record.update(images=[_images(record)[0]["image"]]),
    "images as image_url": _name_as_url,
    "images as path": _rename("path"),
    "images as url": _rename("url"),
    "images under an unknown key": _rename("file"),
    "an image not there": _show("none.jpg"),
    "an image that is no image": _show("words.jpg"),
    "an image cut off": _show("cut.jpg"),
    "an image 250 times as long as wide": _show("strip.png"),
    "a grey image": _show("grey.png"),
    "a long question": lambda record: _text(record).update(text=_text(record)["text"] * 600),
    "a mark in the text": _put_before("<image>"),
    "a token of the model in the text": _put_before("<|image_pad|>"),
    "an empty answer": _answer([{"type": "text", "text": ""}]),
    "no answer": lambda record: record["messages"].pop(),
    "an answer that is no list": _answer("Answer: A"),
    "an answer of null": _answer(None),
    "no messages": lambda record: record.update(messages=None),
}
