"""A toy learner of a canary: it knows by heart what it was shown, and answers as in the most similar row of one text.

    python -m tests.training.toy_learner CANARY PREDICTIONS [--fault "first only"]

Rows go through a pipeline before they are learned, which may lose pictures as those of real trainers have lost them.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np

from vgbench_gen.core.types import ColorArray
from vgbench_gen.store.dataset import load
from vgbench_gen.store.pictures import decode


class ShownRow(NamedTuple):
    """What a learner is given of a row."""

    question: str
    answer: str
    twins: str
    pictures: tuple[ColorArray, ...]


Rows = Sequence[ShownRow]
Pictures = list[tuple[ColorArray, ...]]
Pipeline = Callable[[Rows], Pictures]
SIZE = (128, 96)
BLIND_LEVELS = 6  # what is a few levels apart looks the same


def sound(rows: Rows) -> Pictures:
    return [row.pictures for row in rows]


def each(change: Callable[[ColorArray], ColorArray]) -> Pipeline:
    return lambda rows: [tuple(map(change, row.pictures)) for row in rows]


def resize(image: ColorArray, width: int, height: int) -> ColorArray:
    return np.asarray(cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def grey(image: ColorArray) -> ColorArray:
    return np.repeat(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)[..., None], 3, axis=2).astype(np.uint8)


def swap_twins(rows: Rows) -> Pictures:
    """Every row gets the pictures of its twin."""
    places: dict[str, list[int]] = defaultdict(list)
    for k, row in enumerate(rows):
        places[row.twins].append(k)
    return [rows[sum(places[row.twins]) - k].pictures for k, row in enumerate(rows)]


FAULTS: dict[str, Pipeline] = {
    "dropped": lambda rows: [() for _ in rows],
    "swapped": swap_twins,
    "first only": lambda rows: [row.pictures[:1] for row in rows],
    "last only": lambda rows: [row.pictures[-1:] for row in rows],
    "shrunk": each(lambda image: resize(image, 4, 3)),
    "wrong order": lambda rows: [row.pictures[::-1] for row in rows],
    "grey": each(grey),
    "same for all": lambda rows: [rows[0].pictures[:1] * len(row.pictures) for row in rows],
    "cached": lambda rows: [rows[max(k - 1, 0)].pictures for k in range(len(rows))],
    "cropped": each(lambda image: image[48:-48, 64:-64]),
    "half of the batch": lambda rows: [row.pictures if k % 8 < 4 else () for k, row in enumerate(rows)],
}


def see(shown: Sequence[ColorArray]) -> ColorArray:
    """(2, 96, 128, 3): two pictures of one size, black for those that are not there."""
    slots = [resize(image, *SIZE) for image in shown[:2]]
    return np.stack(slots + [np.zeros((SIZE[1], SIZE[0], 3), np.uint8)] * (2 - len(slots)))


def measure(one: ColorArray, other: ColorArray) -> float:
    """How different two rows look."""
    return float(np.maximum(cv2.absdiff(one[0], other[0]), cv2.absdiff(one[1], other[1])).clip(BLIND_LEVELS).mean())


def learn_and_answer(rows: Rows, train: Pipeline, predict: Pipeline) -> list[str]:
    """The answers of a learner to the rows it was shown; of rows that look the same, one is drawn."""
    rng, learned = np.random.default_rng(5), defaultdict[str, list[Any]](list)
    for row, seen in zip(rows, map(see, train(rows)), strict=True):
        learned[row.question].append((seen, row.answer))
    said = []
    for row, seen in zip(rows, map(see, predict(rows)), strict=True):
        off = [measure(seen, own) for own, _ in learned[row.question]]
        best = [answer for (_, answer), apart in zip(learned[row.question], off, strict=True) if apart == min(off)]
        said.append(str(rng.choice(best)))
    return said


def read_rows(folder: Path) -> list[ShownRow]:
    """The rows of a canary."""
    items = load(folder)
    return [
        ShownRow(
            item.question,
            item.answer,
            item.scene_id,
            tuple(decode(items.image_bytes(row, k)) for k in range(len(item.images))),
        )
        for row, item in enumerate(items)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("canary", type=Path)
    parser.add_argument("predictions", type=Path)
    parser.add_argument("--fault", choices=FAULTS, help="of the pipeline, in training")
    given = parser.parse_args()
    rows = read_rows(given.canary)
    said = learn_and_answer(rows, FAULTS.get(given.fault, sound), sound)
    ids = [item.id for item in load(given.canary)]
    records = [{"id": name, "response": f"Answer: {letter}"} for name, letter in zip(ids, said, strict=True)]
    given.predictions.write_text("".join(json.dumps(record) + "\n" for record in records), "utf-8")


if __name__ == "__main__":
    main()
