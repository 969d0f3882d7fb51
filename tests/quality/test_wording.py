"""Each defect of form is named, and clean texts have none."""

from __future__ import annotations

import pytest

from tests.quality.conftest import Rows
from tests.quality.text_questions import question
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.quality.wording import DEFECTS, find_defects

SIZE = "The image is 640 x 480 pixels."


def defects(asked: Question) -> set[str]:
    return {name for name, ids in find_defects([asked]).items() if ids}


def choice(*options: str, text: str = "Which is it, in meters?") -> Question:
    return question("a", options, 0, question=text)


def test_our_own_rows_are_clean(rows: Rows) -> None:
    assert find_defects([read_question(item) for item in rows.items]) == {name: [] for name in DEFECTS}


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (choice("6 m", "82.35 m"), {"mixed decimals", "unequal length"}),
        (choice("6.1 m", "82.35 m"), {"mixed decimals"}),
        (choice("1.093", "0.02978"), set()),  # four significant digits
        (choice("0.1234567 m", "0.7654321 m"), {"float debris"}),
        (choice("-0.0001872", "-0.0002326"), set()),
        (question("a", question="Is R [[-0.0, 1.0]] right?"), {"negative zero"}),
        (question("a", question="Is R [[-0.5, -0.02, 10.0]] right?"), set()),
        (question("a", question="Is p 1.5e-04 right?"), {"exponent"}),
        (question("a", question="Which {object_name} is left?"), {"unfilled slot"}),
        (question("a", question="<image>\nWhich is left?"), set()),
        (question("a", question="The set {1, 2} of which?"), set()),
        (question("a", question="Which matrix [[1, 2], [3, 4] is it?"), {"open bracket"}),
        (question("a", question="What is in [1, 2, 30, 40]?"), {"box without image size"}),
        (question("a", question="What is in [1, 2, 30, 40]?", context=SIZE), set()),
        (question("a", question="How many chairs are there? Options: A: 1, B: 2"), {"options in the sentence"}),
        (question("a", question="Which one is it? A. red B. blue"), {"options in the sentence"}),
        (question("a", question="What is the distance to the chair?"), {"missing unit"}),
        (question("a", question="What is the distance to the chair in meters?"), set()),
        (question("a", ["1.2 m", "3.4 m"], 0, question="What is the distance to the chair?"), set()),
        (question("a", ["left", "right"], 0, question="What is the distance to the chair?"), set()),
        (question("a", question="Which is left, by the provided camera parameters?"), {"context not given"}),
        (question("a", question="By the given intrinsics?", context="fx = 1, fy = 2, cx = 3, cy = 4"), set()),
        (choice("10.25 m", "2.30 m"), set()),
        (choice("1000.25 m", "2.30 m"), {"unequal length"}),
        (choice("2.30 m", "2.30 m"), {"equal options"}),
    ],
)
def test_defects(asked: Question, expected: set[str]) -> None:
    assert defects(asked) == expected


def test_every_defect_is_tested() -> None:
    marks = test_defects.pytestmark  # type: ignore[attr-defined]
    named = set().union(*(expected for mark in marks for _, expected in mark.args[1]))
    assert named == set(DEFECTS)
