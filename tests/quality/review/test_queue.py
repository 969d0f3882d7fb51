from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.quality.review.people import entry
from tests.store.examples import make_item
from vgbench_gen.core.errors import ConfigError
from vgbench_gen.quality.review.lines import CANNOT_TELL
from vgbench_gen.quality.review.queue import (
    ReviewFilter,
    list_items,
    normalise_answer,
    place_token,
    select_items,
    split_batches,
)

ITEMS = [entry(f"{task}{n}", task, source) for task in "ab" for source in ("ca1m", "scannet") for n in range(40)]
ITEMS = [entry(f"{e.source}-{e.id}", e.task, e.source) for e in ITEMS]


def test_batches_are_the_same_for_everybody_and_every_order() -> None:
    found = split_batches(ITEMS, 50)
    assert [len(part) for _, part in found] == [50, 50, 50, 10]
    assert found == split_batches(ITEMS[::-1], 50)
    assert sorted(e.id for _, part in found for e in part) == sorted(e.id for e in ITEMS)
    assert len(Counter((e.task, e.source) for e in found[0][1])) == 4  # spread, not block by block
    assert len({name for name, _ in found}) == 4


def test_a_word_of_other_people_has_no_value() -> None:
    open_ended: dict[str, Any] = {"question_type": "open-ended", "options": ()}
    word = make_item(answer="the desk", answer_value=(), **open_ended)
    length = make_item(1, answer="2.40 m", answer_value=(2.4,), **open_ended)
    assert [(e.answer, e.value) for e in list_items([word, length])] == [("the desk", 0.0), ("2.40 m", 2.4)]


def test_reviewers_meet_a_batch_in_orders_of_their_own() -> None:
    name, part = split_batches(ITEMS, 50)[0]
    reversed_part = part[::-1]
    orders = {r: sorted(part, key=lambda e: place_token(r, name, e.id, False)) for r in ("ann", "bob")}
    assert orders["ann"] != orders["bob"]
    assert orders["ann"] == sorted(reversed_part, key=lambda e: place_token("ann", name, e.id, False))
    assert place_token("ann", name, "x", False) != place_token("ann", name, "x", True)


def test_filters() -> None:
    assert select_items(ITEMS, ReviewFilter()) == ITEMS
    assert {(e.task, e.source) for e in select_items(ITEMS, ReviewFilter(("a",), (), ("ca1m",)))} == {("a", "ca1m")}
    assert [e.id for e in select_items(ITEMS, ReviewFilter(ids=("ca1m-b3", "ca1m-a7")))] == ["ca1m-a7", "ca1m-b3"]
    small, large = select_items(ITEMS, ReviewFilter(sample=5)), select_items(ITEMS, ReviewFilter(sample=9))
    assert set(Counter((e.task, e.source) for e in small).values()) == {5}
    assert {e.id for e in small} < {e.id for e in large}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (ReviewFilter(tasks=("c",)), "--task: found 'c'; expected one of a, b"),
        (ReviewFilter(forms=("essay",)), "--type: found 'essay'"),
        (ReviewFilter(ids=("x", "y", "ca1m-a1")), "--ids: found 'x' and 1 more; expected an id"),
        (ReviewFilter(tasks=("a",), ids=("ca1m-b1",)), "leave no item"),
    ],
)
def test_filters_that_fit_nothing_say_so(wanted: ReviewFilter, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        select_items(ITEMS, wanted)


def test_which_answers_can_be_given_and_which_are_right() -> None:
    yes_no = ("Yes", "No")
    number = entry("n", form="open-ended", value=2.0)
    given = {text: normalise_answer(number, 0, yes_no, text) for text in ("1,6", " 2.5 ", "nan", "inf", "two", "")}
    assert given == {"1,6": "1.6", " 2.5 ": "2.5", "nan": None, "inf": None, "two": None, "": None}
    assert [number.is_right(text) for text in ("1.6", "2.5", "1.59", "2.51", "-2", CANNOT_TELL)] == [True] * 2 + [
        False
    ] * 4
    letter = entry("l", answer="B")
    assert [normalise_answer(letter, 3, yes_no, text) for text in ("C", "D", "Yes", CANNOT_TELL)] == [
        "C", None, None, CANNOT_TELL,
    ]  # fmt: skip
    assert [letter.is_right(text) for text in ("B", "A", CANNOT_TELL)] == [True, False, False]
    claim = entry("c", form="judgment", answer="No")
    assert [normalise_answer(claim, 0, yes_no, text) for text in ("No", "no", "A")] == ["No", None, None]
