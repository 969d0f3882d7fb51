"""What unsloth_zoo 2026.10.9 does with rows that have a defect, under the exported `train.py`.

`altered`: trained, but not as written. `raised`: training stops at the row; where nothing of a row is learned, only
in the first batch, and later such rows are passed over with one warning. A column of images, where it is filled, is
read in the place of those in the messages.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.training.typed_defects import Record, damage

OUTCOMES = {
    "none": "kept",
    "images in a column": "raised",
    "images in a column, marks in the text": "raised",
    "images in a column, places in the messages": "kept",
    "more places than images in the column": "raised",
    "images in the messages, one in a column": "raised",
    "images as image_url": "raised",
    "images as path": "raised",
    "images as url": "raised",
    "images under an unknown key": "raised",
    "an image not there": "raised",
    "an image that is no image": "raised",
    "an image cut off": "raised",
    "an image 250 times as long as wide": "raised",
    "a grey image": "kept",
    "a long question": "altered",
    "a mark in the text": "kept",
    "a token of the model in the text": "raised",
    "an empty answer": "altered",
    "no answer": "raised",
    "an answer that is no list": "kept",
    "an answer of null": "raised",
    "no messages": "raised",
}


def damages(good: Record, folder: Path) -> Iterator[tuple[str, Record, str]]:
    """(defect, a record with it, outcome), as `tests.training.typed_defects.damage`."""
    return damage(good, folder, OUTCOMES)
