"""What axolotl 0.21.0 does with rows that have a defect, under the exported `axolotl.yaml`.

`altered`: trained, but not as written. `raised`: training stops at the row. A long question is kept, because rows are
not measured where `skip_prepare_dataset` is on, and without it no image is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.training.typed_defects import Record, damage

OUTCOMES = {
    "none": "kept",
    "images in a column": "altered",
    "images in a column, marks in the text": "altered",
    "images in a column, places in the messages": "raised",
    "more places than images in the column": "raised",
    "images in the messages, one in a column": "altered",
    "images as image_url": "kept",
    "images as path": "kept",
    "images as url": "kept",
    "images under an unknown key": "altered",
    "an image not there": "raised",
    "an image that is no image": "raised",
    "an image cut off": "raised",
    "an image 250 times as long as wide": "raised",
    "a grey image": "kept",
    "a long question": "kept",
    "a mark in the text": "kept",
    "a token of the model in the text": "raised",
    "an empty answer": "altered",
    "no answer": "altered",
    "an answer that is no list": "kept",
    "an answer of null": "altered",
    "no messages": "raised",
}


def damages(good: Record, folder: Path) -> Iterator[tuple[str, Record, str]]:
    """(defect, a record with it, outcome), as `tests.training.typed_defects.damage`."""
    return damage(good, folder, OUTCOMES)
