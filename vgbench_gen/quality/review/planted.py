"""Bad items made from good ones on purpose, to see whether a reviewer looks (`docs/validity.md#review-by-people`).

Words and pixels change, the evidence stays that of the good item: whoever compares the stated answer with the picture,
the drawn truth and the numbers can see every planted defect, also where people cannot measure by eye.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from vgbench_gen.core.rng import hash_stably, rng_for
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.quality.review.lines import KINDS, Kind
from vgbench_gen.quality.review.queue import ReviewItem
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import Picture, apply, decode, encode_jpeg, find_size, read_image_size
from vgbench_gen.tasks.base import tasks
from vgbench_gen.tasks.row_evidence import RowEvidence
from vgbench_gen.text.render import fill_word

SHARE = 0.05  # of a batch
MISSED_MAX = 0.2  # of the planted items; above, none of a reviewer's verdicts count
_SHIFT_MIN = 0.2  # of the image diagonal: nobody who looks takes such a mark for the right one
_SCALE = 1.8  # of an open-ended answer: far outside the tolerance of 1.25
_NUMBER = re.compile(r"\d+(?:\.(?P<decimals>\d+))?")

ImageBytes = Callable[[Item, int], bytes]


@dataclass(frozen=True, slots=True, eq=False)
class ReviewedItem:
    """An item as a reviewer sees it."""

    item: Item
    """The row, with the planted defect where there is one."""
    kind: Kind | str = ""
    """The kind of the planted defect, "" for a real item."""
    images: Mapping[int, bytes] = field(default_factory=dict)
    """By place, the images that take the place of the item's own."""


def count_planted(items: int) -> int:
    """Planted items of a batch with so many real ones; at least one, so that every batch is checked."""
    return max(1, math.ceil(items * SHARE)) if items else 0


def is_failed(missed: int, judged: int) -> bool:
    """Whether a reviewer missed too many of the planted items judged; one slip alone says little."""
    return missed > max(1, MISSED_MAX * judged)


def is_caught(verdict: str, flags: Sequence[str]) -> bool:
    """Whether a verdict on a planted item shows that the reviewer saw something: invalid, or unsure with a flag.

    That an item needs an instrument can be said of many without looking; it does not count.
    """
    return verdict == "invalid" or (verdict == "unsure" and bool(set(flags) - {"needs_instrument"}))


def choose_planted(
    pool: Sequence[ReviewItem], batch: Sequence[ReviewItem], number: int, *key: str
) -> list[tuple[ReviewItem, Kind]]:
    """Which items of `pool` are planted in a batch, with the defect that is tried first; fixed by `key`.

    They are of tasks, types and sources that the batch has: one of another kind would stand out. Items that the batch
    itself holds, or whose truth is asked in it, come last: a reviewer should not meet one twice on one day.
    """
    inside = {e.id for e in batch} | {e.group for e in batch}
    cells = {(e.task, e.form, e.source) for e in batch}
    alike = [e for e in pool if (e.task, e.form, e.source) in cells]
    order = [alike[k] for k in rng_for(0, "planted", *key).permutation(len(alike)).tolist()]
    order.sort(key=lambda e: e.id in inside or e.group in inside)
    first = int(hash_stably("planted kinds", *key), 16)
    return [(e, KINDS[(first + n) % len(KINDS)]) for n, e in enumerate(order[:number])]


def make_planted(
    item: Item, first: Kind, donors: Sequence[Item], read: ImageBytes, media: MediaStore | None, *key: str
) -> ReviewedItem:
    """The item with one defect: of kind `first` if it can have that, else the next kind that it can have.

    donors: items whose first image may be shown instead; those of another scene are used. media: the base images, None
    where the dataset has none beside it; no marker is moved then.
    """
    start = KINDS.index(first)
    for kind in (*KINDS[start:], *KINDS[:start]):
        rng = rng_for(0, "planted", kind, item.id, *key)
        shown = None
        if kind == "exchanged" and item.question_type != "judgment":
            shown = _exchange_answer(item, rng)
        elif kind == "flipped" and item.question_type == "judgment":
            yes, no = fill_word("answer.yes"), fill_word("answer.no")
            shown = replace(item, answer=no if item.answer == yes else yes)
        elif kind == "moved_marker" and media is not None:
            images = _move_marker(item, media, read, rng)
            if images:
                return ReviewedItem(item, kind, images)
        elif kind == "other_image" and not _fits_any_image(item):
            others = [d for d in donors if (d.source, d.scene_id) != (item.source, item.scene_id)]
            if others:
                return ReviewedItem(item, kind, {0: read(others[int(rng.integers(len(others)))], 0)})
        if shown is not None and shown.answer != item.answer:
            return ReviewedItem(shown, kind)
    raise ValueError(f"item {item.id} takes no planted defect")  # every form has exchanged or flipped


def _fits_any_image(item: Item) -> bool:
    """Whether the item's task says that no other image could contradict its numbers."""
    return item.task in tasks.names() and tasks[item.task].any_image_fits


def _exchange_answer(item: Item, rng: np.random.Generator) -> Item:
    """The item with another option, or another number, as its stated answer."""
    if item.options:
        others = [letter for letter in ALPHABET[: len(item.options)] if letter != item.answer]
        return replace(item, answer=others[int(rng.integers(len(others)))])
    factor = _SCALE if rng.integers(2) else 1 / _SCALE

    def scale_number(match: re.Match[str]) -> str:
        return f"{float(match.group()) * factor:.{len(match['decimals'] or '')}f}"

    answer = _NUMBER.sub(scale_number, item.answer, count=1)
    return replace(item, answer=answer, answer_value=(item.answer_value[0] * factor, *item.answer_value[1:]))


def _move_marker(item: Item, media: MediaStore, read: ImageBytes, rng: np.random.Generator) -> dict[int, bytes]:
    """{place of the image: JPEG bytes} with one drawn mark far from where it belongs; empty where that cannot be."""
    row = RowEvidence.found(item)
    shown = [] if row is None else row.shown()
    drawn = [
        (k, n) for k, picture in enumerate(shown) for n, op in enumerate(picture.ops) if op["op"] in ("point", "region")
    ]
    for place in rng.permutation(len(drawn)).tolist():
        k, n = drawn[place]
        picture = shown[k]
        if not media.has(picture.base):
            continue
        width, height = read_image_size(read(item, k), item.images[k])
        op = _draw_far_point(picture.ops[n], width, height, rng)
        if op is None:
            continue
        changed = Picture(picture.base, (*picture.ops[:n], op, *picture.ops[n + 1 :]))
        base = decode(media.get(picture.base), picture.base)
        if find_size(changed, (base.shape[1], base.shape[0])) == (width, height):
            return {k: encode_jpeg(apply(changed, base))}
    return {}


def _draw_far_point(op: Mapping[str, Any], width: int, height: int, rng: np.random.Generator) -> dict[str, Any] | None:
    """The mark at another place of the image, at least `_SHIFT_MIN` diagonals away, or None where it does not fit."""
    key = "uv" if op["op"] == "point" else "rect"
    numbers = np.array(op[key], dtype=np.int64).reshape(-1, 2)
    low, high = -numbers.min(axis=0), np.array([width - 1, height - 1]) - numbers.max(axis=0)
    if (high < low).any():
        return None
    shifts = rng.integers(low, high + 1, size=(64, 2))
    away = np.hypot(shifts[:, 0], shifts[:, 1]) / np.hypot(width, height)
    fitting = shifts[away >= _SHIFT_MIN]
    return {**op, key: (numbers + fitting[0]).ravel().tolist()} if len(fitting) else None
