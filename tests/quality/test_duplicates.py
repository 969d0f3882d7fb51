"""Duplicates are found, partners are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.quality.conftest import Rows
from tests.quality.text_questions import question
from vgbench_gen.quality.duplicates import find_repeats
from vgbench_gen.quality.questions import Question, read_question

REGION = "What is the mean depth in meters of the region [1, 2, 30, 40]?"


def repeats(questions: list[Question], others: list[Question] | None = None) -> dict[str, list[str]]:
    return {name: ids for name, ids in find_repeats(questions, others or ()).items() if ids}


def test_our_own_rows_are_clean(rows: Rows) -> None:
    asked = [read_question(item) for item in rows.items]
    # Two depths of one frame may share a pool of four regions here; a build keeps groups apart.
    assert set(repeats(asked)) <= {"same options"}


def test_identical_questions_in_any_order_of_pictures_and_spacing() -> None:
    a = question("a", question=REGION, images=("x", "y"))
    assert repeats([a, replace(a, id="b", question=REGION.replace(" ", "  "))])["identical"] == ["b"]
    assert "identical" in repeats([a, replace(a, id="b", group="g2", images=("y", "x"))])
    assert not repeats([a, replace(a, id="b", group="g2", images=("x", "z"))])
    assert not repeats([a, replace(a, id="b", group="g2", context="Region 2.")])
    assert repeats([a, a])["same id"] == ["a"]


def test_declared_partners_may_exchange_pictures_but_not_repeat() -> None:
    a = question("a", question="Which pose?", images=("x", "y"), pair="p")
    assert not repeats([a, replace(a, id="b", images=("y", "x"))])
    assert "identical" in repeats([a, replace(a, id="b")])


def test_the_same_question_in_other_words() -> None:
    a = question("a", question=REGION)
    other = "Region [1, 2, 30, 40]: give its mean depth in meters."
    assert repeats([a, question("b", question=other, images=a.images)])["reworded"] == ["b"]
    assert not repeats([a, question("b", question=other.replace("40", "41"), images=a.images)])
    assert not repeats([a, question("b", question=other, images=("else.jpg",))])
    assert not repeats([a, question("b", question=other, images=a.images, group=a.group)])
    # Without numbers, words must agree.
    chair = question("c", question="Is the chair left of the table in this room?", images=("r.jpg",))
    assert "reworded" in repeats(
        [chair, replace(chair, id="d", group="", question=chair.question.replace("this", "the"))]
    )
    assert not repeats([chair, replace(chair, id="d", group="", question="Is the lamp above the bed?")])


def test_other_objects_are_another_question() -> None:
    words = "Seen from the camera, is the {} to the left of the {}?"
    a = question("a", question=words.format("lamp", "bed"), images=("r.jpg",), names=("", "bed", "lamp"))
    b = replace(a, id="b", group="", question=words.format("chair", "bed"), names=("", "bed", "chair"))
    assert not repeats([a, b])
    assert repeats([a, replace(b, names=a.names)])["reworded"] == ["b"]
    # Choices whose options name the objects have the same words.
    which = question("c", ["bed", "lamp"], 0, images=("r.jpg",), names=("", "bed", "lamp"))
    other = replace(which, id="d", group="", options=("door", "sink"), names=("", "door", "sink"))
    assert not repeats([which, other])
    assert repeats([which, replace(other, names=which.names[::-1])])["identical"] == ["d"]


def test_names_are_those_of_the_evidence(rows: Rows) -> None:
    def name(truth: Any) -> tuple[str, ...]:
        return read_question(replace(rows.items[0], evidence={"truth": truth})).names

    lamp, bed = {"label": "lamp"}, {"label": "bed"}
    assert name({"evidence": {"a": lamp, "b": bed, "up": [0, 0, 1]}}) == ("", "lamp", "bed")
    assert name({"evidence": {"about": "sofa", "labels": ["lamp", "bed"]}}) == ("sofa", "lamp", "bed")
    assert name(None) == name({"evidence": "other"}) == ()


def test_option_sets_that_return() -> None:
    a = question("a", ["1.10 m", "2.20 m", "3.30 m", "4.40 m"], 0)
    b = question("b", a.options[::-1], 2)
    assert repeats([a, b])["same options"] == ["b"]
    assert not repeats([a, replace(b, pair="p", group=a.group)])
    assert not repeats([a, replace(b, task="other")])
    assert not repeats([question("c", ["image 2", "image 3"], 0), question("d", ["image 2", "image 3"], 1)])


@pytest.mark.parametrize("pictured", [True, False])
def test_against_another_set(pictured: bool) -> None:
    text = f"{REGION} The image measures 640 x 480 pixels with fx = 500.1, fy = 501.2, cx = 320 and cy = 240."
    mine = question("a", question=text)
    theirs = replace(mine, id="z", images=mine.images if pictured else ("renamed.png",))
    found = repeats([mine], [theirs])
    assert found["text in another set"] == ["a"]
    assert ("in another set" in found) is pictured
    short = question("b", question="How deep is it?", images=("b.jpg",))
    assert not repeats([short], [replace(short, images=("c.jpg",))])
