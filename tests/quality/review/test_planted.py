from __future__ import annotations

import numpy as np
import pytest

from tests.quality.review.people import entry
from vgbench_gen.core.rng import rng_for
from vgbench_gen.core.types import Item
from vgbench_gen.quality.review import planted
from vgbench_gen.quality.review.lines import KINDS, Kind
from vgbench_gen.quality.review.planted import ReviewedItem
from vgbench_gen.quality.review.queue import list_items
from vgbench_gen.store.dataset import Dataset
from vgbench_gen.store.media import MediaStore
from vgbench_gen.store.pictures import decode


def one(dataset: Dataset, task: str, form: str) -> Item:
    return next(item for item in dataset if (item.task, item.question_type) == (task, form))


def bad(dataset: Dataset, media: MediaStore | None, item: Item, kind: Kind, *key: str) -> ReviewedItem:
    return planted.make_planted(item, kind, list(dataset), dataset.image_bytes, media, *key)


def test_a_twentieth_is_planted_and_every_batch_is_checked() -> None:
    assert [planted.count_planted(n) for n in (0, 1, 20, 21, 50, 100)] == [0, 1, 1, 2, 3, 5]
    failed = [planted.is_failed(*pair) for pair in ((0, 0), (1, 1), (1, 3), (2, 3), (2, 10), (3, 10))]
    assert failed == [False, False, False, True, False, True]
    assert planted.is_caught("invalid", ())
    assert planted.is_caught("unsure", ("unclear",))
    assert not planted.is_caught("unsure", ("needs_instrument",))
    assert not planted.is_caught("valid", ("unclear",))


def test_planted_items_come_from_outside_the_batch_where_there_is_an_outside() -> None:
    pool = [entry(f"i{n}") for n in range(30)] + [entry(f"other{n}", task="metric_depth") for n in range(30)]
    chosen = planted.choose_planted(pool, pool[:25], 4, "ann", "b", "0")
    assert {e.id for e, _ in chosen} < {f"i{n}" for n in range(25, 30)}
    assert {kind for _, kind in chosen} == set(KINDS)
    assert chosen == planted.choose_planted(pool, pool[:25], 4, "ann", "b", "0")
    assert chosen != planted.choose_planted(pool, pool[:25], 4, "ann", "b", "1")
    assert len(planted.choose_planted(pool[:3], pool[:3], 2, "ann")) == 2
    assert len(planted.choose_planted(pool, pool, 60, "ann")) == 60


@pytest.mark.parametrize("form", ["multi-choice", "judgment", "open-ended"])
def test_every_form_has_a_wrong_stated_answer(dataset: Dataset, form: str) -> None:
    item = one(dataset, "metric_depth", form)
    shown = bad(dataset, None, item, "exchanged" if form != "judgment" else "flipped", "ann")
    assert shown.kind == ("flipped" if form == "judgment" else "exchanged")
    assert not shown.images
    (right,), (stated,) = list_items([item]), list_items([shown.item])
    assert not right.is_right(shown.item.answer.split()[0])
    assert stated.is_right(shown.item.answer.split()[0])
    assert shown.item.evidence == item.evidence  # what a reviewer can compare it with


def test_a_marker_moves(dataset: Dataset, media: MediaStore) -> None:
    item = one(dataset, "point_tracking", "multi-choice")
    shown = bad(dataset, media, item, "moved_marker", "ann")
    assert (shown.kind, shown.item) == ("moved_marker", item)
    ((k, data),) = shown.images.items()
    before, after = decode(dataset.image_bytes(item, k)), decode(data)
    changed = np.argwhere(np.abs(before.astype(int) - after.astype(int)).max(axis=-1) > 60)
    assert np.hypot(*np.ptp(changed, axis=0)) >= 0.2 * np.hypot(*before.shape[:2])  # it left one place for another
    assert bad(dataset, media, item, "moved_marker", "ann").images == shown.images


def test_a_marker_moves_far_and_stays_inside() -> None:
    for seed in range(60):
        rng = rng_for(seed, "test")
        point = planted._draw_far_point({"op": "point", "uv": [100, 80]}, 640, 480, rng)
        rect = planted._draw_far_point({"op": "region", "rect": [20, 30, 219, 129]}, 640, 480, rng)
        assert point is not None
        assert rect is not None
        (x, y), (x1, y1, x2, y2) = point["uv"], rect["rect"]
        assert min(np.hypot(x - 100, y - 80), np.hypot(x1 - 20, y1 - 30)) >= 0.2 * 800
        assert (x2 - x1, y2 - y1) == (199, 99)
        assert min(x, y, x1, y1) >= 0
        assert max(x, x2) < 640
        assert max(y, y2) < 480
    whole = {"op": "region", "rect": [0, 0, 600, 470]}
    assert planted._draw_far_point(whole, 640, 480, rng_for(0, "test")) is None


def test_another_item_s_image_is_of_another_scene(dataset: Dataset, media: MediaStore) -> None:
    item = one(dataset, "metric_depth", "multi-choice")
    shown = bad(dataset, media, item, "other_image", "ann")
    assert shown.kind == "other_image"
    others = [d for d in dataset if d.scene_id != item.scene_id]
    assert shown.images[0] in [dataset.image_bytes(d, 0) for d in others]


def test_where_a_defect_cannot_be_made_the_next_one_is(dataset: Dataset) -> None:
    item = one(dataset, "metric_depth", "multi-choice")
    assert planted.make_planted(item, "flipped", [], dataset.image_bytes, None, "ann").kind == "exchanged"
    assert planted.make_planted(item, "moved_marker", [item], dataset.image_bytes, None, "ann").kind == "exchanged"
