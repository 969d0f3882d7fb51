"""A question asked in all four orders of its options shows the same pixels and says the same words."""

from __future__ import annotations

import itertools
from collections import Counter

from tests.quality.conftest import Rows
from vgbench_gen.core.types import ALPHABET, Item
from vgbench_gen.evaluation.options import AskOptions
from vgbench_gen.evaluation.prompting import Asked, list_rotations, make_asked
from vgbench_gen.evaluation.scoring import make_case, score
from vgbench_gen.tasks.base import tasks
from vgbench_gen.text import lint


def asked_in_every_order(item: Item) -> list[Asked]:
    options = AskOptions(circular=True)
    rotations = list_rotations(item.question_type, len(item.options), options.circular)
    return [make_asked(item, options.settings("m"), options, rotation) for rotation in rotations]


def test_every_order_shows_the_same_images_and_words(all_rows: Rows) -> None:
    choices = [item for item in all_rows.items if item.question_type == "multi-choice"]
    asked_tasks = {name for name in tasks.names() if "multi-choice" in tasks[name].formats}
    assert {item.task for item in choices} == asked_tasks & {item.task for item in all_rows.items}
    shown_by_options = Counter[str]()
    for item in choices:
        found = asked_in_every_order(item)
        count = len(item.options)
        assert len(found) == count
        names = [[asked.item.images[0], *sorted(asked.item.images[1:])] for asked in found]
        assert names == [names[0]] * count  # the very same bytes: names are digests
        assert {(asked.item.question, asked.item.context) for asked in found} == {(item.question, item.context)}
        assert lint.lint_options(item.options) == []
        by_image = item.options == tuple(f"image {n}" for n in range(2, 6))
        shown_by_options[item.task] += by_image
        for rotation, asked in enumerate(found):
            right = ALPHABET.index(asked.item.answer)
            assert right == (ALPHABET.index(item.answer) - rotation) % count
            if by_image:  # the images move instead, and "image 2" is always the second one that is shown
                assert asked.item.options == item.options
                assert asked.item.images[right + 1] == item.images[ALPHABET.index(item.answer) + 1]
            else:
                assert asked.item.images == item.images
                assert asked.item.options == item.options[rotation:] + item.options[:rotation]
            # A reply that says the option's text is read in every order.
            assert score(make_case(asked.item), f"It is {asked.item.options[right]}.").score == 1.0
    by_images = {"homography_to_image", "orthographic_view", "rotated_arrangement", "view_after_motion"}
    assert {task for task, count in shown_by_options.items() if count} == by_images


def test_options_that_name_marks_hold_neither_letters_nor_numbers(all_rows: Rows) -> None:
    marked = [item for item in all_rows.items if item.options and item.options[0].startswith("the ")]
    assert {item.task for item in marked} >= {"point_tracking", "relative_depth"}
    for item, option in itertools.chain.from_iterable(((item, o) for o in item.options) for item in marked):
        assert not any(character.isdigit() for character in option), item.id
        assert min(map(len, option.split())) > 1, item.id
