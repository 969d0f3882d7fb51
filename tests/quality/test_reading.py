"""What is read out of texts, ours and foreign ones, and how options are described without knowing what they are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.conftest import Rows
from tests.quality.text_questions import question
from vgbench_gen.quality import reading
from vgbench_gen.quality.description import describe, name_around, rank
from vgbench_gen.quality.questions import Question, read_question
from vgbench_gen.store.drawing import COLORS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.10 m", [2.1]),
        ("2.1m, 57.3° and -1.5e-03", [2.1, 57.3, -0.0015]),
        ("[[ 1. 0.5\n -3 ]]", [1, 0.5, -3]),
        ("3D box, X2, H33, 3x3, fx_1", []),
        ("from 0.5-0.7 to 5.", [0.5, 0.7, 5]),
        ("\u22121.25", [-1.25]),
        ("0.42 m left, 0.05 m down, 0.90 m back; turned 2.0 degrees right", [-0.42, 0.05, -0.9, 2.0]),
    ],
)
def test_numbers_are_read_tolerantly(text: str, expected: list[float]) -> None:
    assert reading.read_numbers(text) == expected


def test_numbers_are_named_by_the_word_before_them() -> None:
    text = "The image is 768 x 1024 pixels with fx = 808, fy = 810 and principal point (cx, cy) = (384, 519)."
    asked = question("a", ["1 m", "2 m"], 0, question="Compare [1, 2, 30, 40] with (9, 8).", context=text)
    found = reading.name_numbers(asked)
    assert (found["is 1"], found["x 1"], found["fx 1"], found["cy 1"], found["cy 2"]) == (768, 1024, 808, 384, 519)
    assert [found[f"compare {k}"] for k in (1, 2, 3, 4)] == [1, 2, 30, 40]
    assert found["with 2"] == 8
    claim = replace(asked, form="judgment", options=("Yes", "No"), question="Is it within 10 percent of 2.25 m?")
    assert 2.25 not in reading.name_numbers(claim).values()
    assert reading.name_numbers(claim)["within 1"] == 10


def test_drawn_marks_stand_around_the_options_unless_they_are_these() -> None:
    asked = question("a", ["1 m", "2 m"], 0, marks={"the orange region": (1, 2, 3, 6)})
    other = replace(asked, marks={"the orange region": (3, 2, 5, 8)})
    names, around = name_around([asked, other])
    assert dict(zip(names, around[0].tolist(), strict=True)) == {"drawn 1 x": 2, "drawn 1 y": 4, "drawn 1 height": 4}
    marks: dict[str, tuple[float, ...]] = {f"the {color} region": (k, 2, 30, 40) for k, color in enumerate(COLORS)}
    assert reading.list_drawn(replace(asked, marks=marks)) == reading.list_drawn(replace(asked, marks={})) == []
    assert reading.list_drawn(replace(asked, options=("the orange region", "the blue region"))) == []


def _values(asked: Question) -> list[tuple[float, ...]]:
    return [said.values for said in reading.read_options(asked)]


def test_options_name_marks_or_hold_numbers() -> None:
    marked = question("a", ["region 2", "region 1"], 0, context="region 1 [0, 0, 9, 9], region 2 [5, 5, 7, 8]")
    assert _values(marked) == [(5, 5, 7, 8), (0, 0, 9, 9)]
    context = "the blue region [0, 0, 9, 9], the pink region [5, 5, 7, 8]"
    marked = question("a", ["the pink region", "the blue region"], 0, context=context)
    assert _values(marked) == [(5, 5, 7, 8), (0, 0, 9, 9)]
    assert _values(replace(marked, context="")) == [(), ()]
    assert _values(question("b", ["image 2", "image 3"], 0)) == [(), ()]
    assert _values(question("c", ["1.5 m", "2.5 m"], 0)) == [(1.5,), (2.5,)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is the field of view within 10 percent of 27.4 degrees?", [27.4]),
        ("Is it 399 pixels, give or take 26 pixels?", [399]),
        ("Is the region [1, 2, 3, 4] at 3.90 metres correct to within 10 percent?", [3.9]),
        ("Is R =\n[[1, 0],\n [0, 1]]\nt = [3, 4]\nright to within 5 degrees?", [1, 0, 0, 1, 3, 4]),
        ("Was it moved 0.42 m left, 0.90 m back, if it may be off by up to 0.10 meters?", [-0.42, -0.9]),
        ("Are (1, 2, 3), (4, 5, 6) corners of the object at [9, 9, 9, 9]?", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_claims_are_found(text: str, expected: list[float]) -> None:
    said, claimed = reading.read_claim(question("a", question=text, form="judgment"))
    assert list(said[claimed].values) == expected


def test_a_claimed_mark_stands_among_the_others() -> None:
    context = "the pink circle (1, 2), the blue square (3, 4)"
    asked = question("a", question="Is the yellow mark at (5, 6) at the pink circle?", context=context)
    said, claimed = reading.read_claim(asked)
    assert said[claimed].values == (1, 2)
    assert len(said) == 2
    assert reading.find_asked(asked, 2) == [5, 6]


def test_ranks_share_ties() -> None:
    assert rank(np.array([[3.0, 1, 1, 2]]), np.ones((1, 4), dtype=bool)).tolist() == [[3, 0.5, 0.5, 2]]


def _columns(options: list[str], **fields: object) -> dict[str, np.ndarray]:
    seen = describe([question("a", options, 0, **fields)])
    return dict(zip(seen.names, np.moveaxis(seen.columns[0], 1, 0), strict=True))


def test_many_numbers_are_described_by_their_rows() -> None:
    corners = np.array([[x, y, z] for z in (4, 5) for x, y in ((0, 0), (2, 0), (2, 3), (0, 3))], dtype=float)
    bent = corners.copy()
    bent[0] += 0.4
    texts = [", ".join(f"({x:.2f}, {y:.2f}, {z:.2f})" for x, y, z in c) for c in (corners, 2 * corners, bent)]
    found = _columns(texts)
    assert np.exp(found["extents together"][:2]) == pytest.approx([6, 48])
    assert found["middle 3"][:2] == pytest.approx([4.5, 9])
    assert np.exp(found["from the first to 2"][:2]) == pytest.approx([2, 4])
    assert found["row spread"][0] < -10 < found["row spread"][2]  # all corners of a cuboid are as far from its middle
    assert found["seen to 1"][:2] == pytest.approx([0.5, 0.5])  # scaled about the camera, it shows the same
    poses = _columns([f"R = [[0, -1, 0], [1, 0, 0], [0, 0, 1]] t = {t}" for t in ([3, 0, 4], [0, 0, 1])])
    assert np.exp(poses["row 4"]) == pytest.approx([5, 1])
    assert poses["number 2"].tolist() == [-1, -1]


def test_how_far_a_marked_point_is_from_the_one_asked_about() -> None:
    context = "point 1 (100, 100), point 2 (400, 500); 301 x 401 pixels"
    found = _columns(["point 1", "point 2"], question="Where is (100, 100)?", context=context)
    assert found["from what is asked"].tolist() == [0, 500]


def test_gaps_are_ratios_for_positive_numbers() -> None:
    gaps = describe([question("a", ["1", "2", "8"], 0)]).columns[0, :, -6:]
    assert gaps[:, 0] == pytest.approx(np.log([2, 2, 4]))
    assert gaps[:, 5] == pytest.approx([7, 3, 7 / 8])  # by the size of the option itself


def test_descriptions_of_our_own_rows(rows: Rows) -> None:
    asked = [read_question(item) for item in rows.items]
    choices = describe([q for q in asked if q.form == "multi-choice"])
    assert not np.isinf(choices.columns).any()
    assert not np.isnan(choices.columns[choices.there][:, -6:]).any()
    judged = [q for q in asked if q.form == "judgment"]
    # Twins claim different things, and the claim is what differs.
    claims = [(q.twin, said[claimed]) for q in judged for said, claimed in [reading.read_claim(q)]]
    assert len({(twin, one.values) for twin, one in claims}) == len(judged)


def test_foreign_options_of_all_sorts_are_described_together() -> None:
    asked = [
        question("a", ["1", "2", "3", "4"], 0),
        question("b", ["left", "right"], 1),
        question("c", ["(1, 2)", "(3, 4)", "(5, 6)"], 1),
        question("d", ["1e400", "2", "nan", "4"], 1),
    ]
    seen = describe(asked)
    assert seen.there.sum(axis=1).tolist() == [4, 2, 3, 4]
    assert not np.isinf(seen.columns).any()
