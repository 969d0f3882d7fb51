"""Example questions for the card: one per task, with small pictures, where the licence gate lets pixels travel."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vgbench_gen.core.types import ALPHABET, ColorArray, Item
from vgbench_gen.publish.licences import Gate
from vgbench_gen.publish.release import RowSet
from vgbench_gen.store.files import write_bytes
from vgbench_gen.store.pictures import decode, encode_jpeg

FOLDER = "assets/examples"
_WIDTH_PX = 1000  # of a strip of images; a card is about so wide
_HEIGHT_PX = 360
_GAP_PX = 8


@dataclass(frozen=True, slots=True)
class Example:
    """A question that the card shows."""

    task: str
    name: str
    """The name of the task's configuration."""
    source: str
    """The data set of its scene."""
    licence: str
    """The terms of its scene."""
    question: str
    options: tuple[tuple[str, str], ...]
    """(letter, text) of each option."""
    answer: str
    picture: str
    """Its images in one file, relative to the card."""


def write_examples(folder: Path, rows: RowSet, gate: Gate) -> list[Example]:
    """Write one picture per task below `folder`; tasks without a question whose pixels travel are left out.

    Raises:
        DatasetError: an image is missing or damaged.
    """
    examples = []
    for task, places in rows.by_task.items():
        item = _find_example([rows.dataset[k] for k in places], gate)
        if item is None:
            continue
        images = [decode(rows.dataset.image_bytes(item, k), item.images[k]) for k in range(len(item.images))]
        name = rows.configurations[task]
        picture = f"{FOLDER}/{name}.jpg"
        write_bytes(folder / picture, encode_jpeg(strip_of(images)), durable=False)
        options = tuple(zip(ALPHABET, item.options, strict=False))
        told = (item.source, item.licence, item.question, options, item.answer)
        examples.append(Example(task, name, *told, picture))
    return examples


def _find_example(items: list[Item], gate: Gate) -> Item | None:
    """The first one that may be shown, a choice where there is one: it says most about its task."""
    free = [item for item in items if item.images and gate.travels(item)]
    return min(free, key=lambda item: (item.question_type != "multi-choice", item.index), default=None)


def strip_of(images: list[ColorArray]) -> ColorArray:
    """Images (each (h, w, 3) uint8 RGB) side by side on white, all of one height, at most `_WIDTH_PX` wide."""
    import cv2
    import numpy as np

    gaps = _GAP_PX * (len(images) - 1)
    shapes = sum(image.shape[1] / image.shape[0] for image in images)
    height = max(1, min(_HEIGHT_PX, int((_WIDTH_PX - gaps) / shapes)))
    small = [
        cv2.resize(
            image, (max(1, round(image.shape[1] * height / image.shape[0])), height), interpolation=cv2.INTER_AREA
        )
        for image in images
    ]
    strip = np.full((height, sum(image.shape[1] for image in small) + gaps, 3), 255, dtype=np.uint8)
    left = 0
    for image in small:
        strip[:, left : left + image.shape[1]] = image
        left += image.shape[1] + _GAP_PX
    return strip
