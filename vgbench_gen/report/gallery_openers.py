"""Which questions are shown first: one of every task in a gallery, and one of all as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import cv2
import numpy as np

from vgbench_gen.core.errors import DatasetError
from vgbench_gen.core.types import Item
from vgbench_gen.report.charts import spread
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.pictures import decode, find_size
from vgbench_gen.tasks.row_evidence import UNREADABLE, RowEvidence

_TRIED = 12  # questions of a task whose images are compared by their sharpness
_CONSIDERED = 60  # questions among which the example is chosen
_LONG_SIDE_PX = 480  # at which they are: noise of the sensor is gone there


def rate_opener(item: Item) -> int:
    """How well the first image opens a gallery: one for a landscape format, one for something that is marked on it."""
    try:
        row = RowEvidence.of(item)
        first = row.shown()[0]
        width, height = find_size(first, row.base_size(first.base))
    except UNREADABLE:
        return 0
    return int(width > height) + int(any(op["op"] in ("point", "region") for op in first.ops))


def measure_sharpness(image: bytes) -> float:
    """The variance of an image's second derivative, at the size of a screen: low where it is blurred or bare."""
    gray = cv2.cvtColor(decode(image, "an image"), cv2.COLOR_RGB2GRAY)
    scale = min(1.0, _LONG_SIDE_PX / max(gray.shape))
    small = cv2.resize(gray, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
    return float(cv2.Laplacian(small.astype(np.float32), cv2.CV_32F).var())


def choose_example(dataset: Dataset) -> Item:
    """The question that shows best what a dataset asks, with its evidence; the same for the same questions.

    It has two images where there is such a question, is multi-choice, has marks on as many images as possible, and of
    the questions like it the sharpest images.

    Raises:
        DatasetError: the dataset cannot be read, or is empty.
    """
    ranked: dict[tuple[bool, bool], list[str]] = {}
    for item in dataset.without_evidence():
        ranked.setdefault((len(item.images) == 2, item.question_type == "multi-choice"), []).append(item.id)
    if not ranked:
        raise DatasetError("the dataset: found no question; expected one. Build it again.")
    items = [dataset.by_id(name) for name in spread(ranked[max(ranked)], _CONSIDERED)]
    rated = {item.id: _count_marked(item) for item in items}
    best = [item for item in items if rated[item.id] == max(rated.values())]
    return max(best, key=lambda item: min(find_sharpness(dataset, item, k) for k in range(len(item.images))))


def find_sharpness(dataset: Dataset, item: Item, k: int) -> float:
    """`measure_sharpness` of an image of a question; 0 where it is not here."""
    try:
        return measure_sharpness(dataset.image_bytes(item, k))
    except DatasetError:
        return 0.0


def _count_marked(item: Item) -> tuple[int, int]:
    """On how many of its images a question has marks, and how well its first one opens."""
    try:
        shown = RowEvidence.of(item).shown()
    except UNREADABLE:
        return 0, 0
    return sum(any(op["op"] in ("point", "region") for op in one.ops) for one in shown), rate_opener(item)


def choose_striking(listed: Sequence[Mapping[str, Any]], sharpness: Callable[[int], float]) -> list[int]:
    """Of every task, in the order of their names, the row that a gallery opens on.

    It has an image, is multi-choice where there is such a question, and is rated best; among those it is of a scene
    that the fewest other openers come from, and of twelve of them the one with the sharpest image.

    Args:
        listed: what the list holds of every row: task, type, scene, image, rated.
        sharpness: how sharp the first image of a row is.
    """
    best: dict[str, list[int]] = {}
    for row, one in enumerate(listed):
        if one["image"]:
            best.setdefault(one["task"], []).append(row)
    used: Counter[str] = Counter()
    chosen = []
    for _, rows in sorted(best.items()):
        rank = min(_rank_opener(listed[k], used) for k in rows)
        row = max(spread([k for k in rows if _rank_opener(listed[k], used) == rank], _TRIED), key=sharpness)
        used[listed[row]["scene"]] += 1
        chosen.append(row)
    return chosen


def _rank_opener(one: Mapping[str, Any], used: Mapping[str, int]) -> tuple[bool, int, int]:
    return one["type"] != "multi-choice", -one["rated"], used[one["scene"]]
