"""Which questions a gallery opens on: one of every task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from vgbench_gen.core.types import Item
from vgbench_gen.report.gallery_evidence import read_row
from vgbench_gen.report.gallery_told import UNREADABLE
from vgbench_gen.store.pictures import find_size


def rate_opener(item: Item) -> int:
    """How well the first image opens a gallery: one for a landscape format, one for something that is marked on it."""
    try:
        row = read_row(item)
        first = row.shown()[0]
        width, height = find_size(first, row.base_size(first.base))
    except UNREADABLE:
        return 0
    return int(width > height) + int(any(op["op"] in ("point", "region") for op in first.ops))


def choose_striking(listed: Sequence[Mapping[str, Any]]) -> list[int]:
    """Of every task, in the order of their names, the row that a gallery opens on.

    It has an image, is a choice between options where there is one, and is rated best; among those the
    scene that the fewest other openers come from, and then the first.

    Args:
        listed: what the list holds of every row: task, type, scene, image, rated.
    """
    best: dict[str, list[int]] = {}
    for row, one in enumerate(listed):
        if one["image"]:
            best.setdefault(one["task"], []).append(row)
    used: Counter[str] = Counter()
    chosen = []
    for _, rows in sorted(best.items()):
        row = min(rows, key=lambda k: _rank_opener(listed[k], used, k))
        used[listed[row]["scene"]] += 1
        chosen.append(row)
    return chosen


def _rank_opener(one: Mapping[str, Any], used: Mapping[str, int], row: int) -> tuple[bool, int, int, int]:
    return one["type"] != "multi-choice", -one["rated"], used[one["scene"]], row
