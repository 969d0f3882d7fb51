"""What is read out of texts, ours and foreign ones, and what is computed from it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.quality.conftest import Rows
from tests.quality.text_questions import question
from vgbench_gen.quality import features
from vgbench_gen.quality._blocks import list_claim_sets, list_option_sets, make_blocks, rank_options, summarise_gaps
from vgbench_gen.quality._values import list_rects, read, read_claim, read_numbers, read_option_values
from vgbench_gen.quality.questions import read_question
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
    ],
)
def test_numbers_are_read_tolerantly(text: str, expected: list[float]) -> None:
    assert read_numbers(text) == expected


def test_camera_regions_and_marks_are_read() -> None:
    text = "The image is 768 x 1024 pixels with fx = 808, fy = 810 and principal point (cx, cy) = (384, 519)."
    found = read("Compare [1, 2, 30, 40] with (9, 8).", text + " Marked: point 1 (748, 303), point 2 (598, 380).")
    assert found.size == (768, 1024)
    assert found.camera == (808, 810, 384, 519)
    assert found.rects == ((1, 2, 30, 40),)
    assert found.point == (9, 8)
    assert found.places == {"point 1": (748, 303), "point 2": (598, 380)}
    marked = read(
        "Is the blue square at the pink mark at (9, 8)?", "the blue square (748, 303), the pink region [1, 2, 3, 4]"
    )
    assert marked.places == {"the blue square": (748, 303), "the pink region": (1, 2, 3, 4)}
    assert marked.point == (9, 8)
    framed = read("Is the orange rectangle [1, 2, 3, 4] near?", "")
    assert (framed.rects, framed.places) == (((1, 2, 3, 4),), {})
    assert read("K = [[500.0, 0, 320], [0, 501, 240], [0, 0, 1]]", "").camera == (500, 501, 320, 240)
    wide = read("", "The picture is 1024 pixels wide and 765 pixels high (fx = 1, fy = 2, cx = 3, cy = 4, in pixels).")
    assert (wide.size, wide.camera) == ((1024, 765), (1, 2, 3, 4))


def test_rectangles_are_those_drawn_unless_they_are_printed_or_the_options() -> None:
    asked = question("a", ["1 m", "2 m"], 0)
    marks: dict[str, tuple[float, ...]] = {f"the {color} region": (k, 2, 30, 40) for k, color in enumerate(COLORS)}
    one = replace(asked, marks={"the orange region": (1, 2, 3, 4), "the blue circle": (5, 6)})
    assert list_rects(one) == [(1, 2, 3, 4)]
    assert list_rects(replace(one, question="How deep is [5, 6, 7, 8]?")) == [(5, 6, 7, 8)]
    assert list_rects(replace(asked, marks=marks)) == list_rects(asked) == []


def test_options_name_marks_or_hold_numbers() -> None:
    marked = question("a", ["region 2", "region 1"], 0, context="region 1 [0, 0, 9, 9], region 2 [5, 5, 7, 8]")
    assert read_option_values(marked)[0] == "mark"
    assert read_option_values(marked)[1].tolist() == [[5, 5, 7, 8], [0, 0, 9, 9]]
    context = "the blue region [0, 0, 9, 9], the pink region [5, 5, 7, 8]"
    marked = question("a", ["the pink region", "the blue region"], 0, context=context)
    assert read_option_values(marked)[0] == "mark"
    assert read_option_values(marked)[1].tolist() == [[5, 5, 7, 8], [0, 0, 9, 9]]
    assert read_option_values(replace(marked, context=""))[0] == "text"
    assert read_option_values(question("b", ["image 2", "image 3"], 0))[0] == "name"
    assert read_option_values(question("c", ["1.5 m", "2.5 m"], 0))[1].tolist() == [[1.5], [2.5]]
    assert read_option_values(question("d", ["to the left", "2 m"], 0))[1].shape == (2, 0)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Is the field of view within 10 percent of 27.4 degrees?", [27.4]),
        ("Is it 399 pixels, give or take 26 pixels?", [399]),
        ("Is the region [1, 2, 3, 4] at 3.90 metres correct to within 10 percent?", [3.9]),
        ("Is R =\n[[1, 0],\n [0, 1]]\nt = [3, 4]\nright to within 5 degrees?", [1, 0, 0, 1, 3, 4]),
        ("Are (1, 2, 3), (4, 5, 6) corners of the object at [9, 9, 9, 9]?", [1, 2, 3, 4, 5, 6]),
    ],
)
def test_claims_are_found(text: str, expected: list[float]) -> None:
    assert read_claim(question("a", question=text, form="judgment")).values[0].tolist() == expected


def test_a_claimed_mark_stands_among_the_others() -> None:
    claim = read_claim(question("a", question="Is it point 2?", context="point 1 (1, 2), point 2 (3, 4)"))
    assert claim.values[claim.claimed].tolist() == [3, 4]
    assert len(claim.values) == 2
    context = "the pink circle (1, 2), the blue square (3, 4)"
    claim = read_claim(question("a", question="Is the yellow mark at (5, 6) at the pink circle?", context=context))
    assert claim.values[claim.claimed].tolist() == [1, 2]
    assert len(claim.values) == 2


def test_ranks_share_ties() -> None:
    assert rank_options(np.array([[3.0, 1, 1, 2]])).tolist() == [[3, 0.5, 0.5, 2]]


def _columns(options: list[str], **fields: object) -> dict[str, np.ndarray]:
    asked = [question("a", options, 0, **fields)]
    (block,) = make_blocks(asked, list_option_sets(asked))
    return block.columns


def test_box_quantities() -> None:
    corners = np.array([[x, y, z] for z in (4, 5) for x, y in ((0, 0), (2, 0), (2, 3), (0, 3))], dtype=float)
    bent = corners.copy()
    bent[0] += 0.4
    texts = [", ".join(f"({x:.2f}, {y:.2f}, {z:.2f})" for x, y, z in c) for c in (corners, 2 * corners, bent)]
    where = "in 1000 x 1000 pixels with fx = 100, fy = 100, cx = 0 and cy = 0"
    found = _columns(texts, question=f"Box of [0, 0, 50, 75] {where}?")
    assert [found[f"size {i}"][0, 0] for i in range(3)] == pytest.approx([1, 2, 3])
    assert found["volume"][0, :2] == pytest.approx([6, 48])
    assert found["depth"][0, :2] == pytest.approx([4.5, 9])
    assert found["not_cuboid"][0, :2] == pytest.approx([0, 0])
    assert found["not_cuboid"][0, 2] > 0.1
    assert found["projection"][0, :2] == pytest.approx([1, 1])  # scaled about the camera, it shows the same


def test_pose_and_homography_quantities() -> None:
    turn = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    t = np.array([3, 0, 4])
    poses = [(np.eye(3), [0, 0, 0]), (turn, t), (turn.T, -turn.T @ t), (1.1 * turn, t)]
    found = _columns([f"R = {R.tolist()} t = {np.asarray(s).tolist()}" for R, s in poses])
    assert found["angle"][0, :3] == pytest.approx([0, 90, 90])
    assert found["move"][0] == pytest.approx([0, 5, 5, 5])
    assert found["deviation"][0, :3] == pytest.approx([0, 0, 0])
    assert found["deviation"][0, 3] > 0.3
    assert found["inverse_near"][0, 1:3] == pytest.approx([0, 0])
    moved = _columns(["[[1, 0, 30], [0, 1, 40], [0, 0, 1]]", "[[2, 0, 0], [0, 2, 0], [0, 0, 1]]"])
    assert moved["corner_move"][0, 0] == pytest.approx(50)
    assert moved["scale"][0] == pytest.approx([1, 2])


def test_point_quantities() -> None:
    found = _columns(
        ["point 1", "point 2"],
        question="Where is (100, 100)?",
        context="point 1 (100, 100), point 2 (400, 500); 301 x 401 pixels",
    )
    diagonal = np.hypot(301, 401)
    assert found["from_query"][0] == pytest.approx([0, 500 / diagonal])


def test_gaps_are_ratios_for_positive_numbers() -> None:
    asked = [question("a", ["1", "2", "8"], 0)]
    (block,) = make_blocks(asked, list_option_sets(asked))
    nearest, mean = summarise_gaps(block.gaps)
    assert nearest[0] == pytest.approx(np.log([2, 2, 4]))
    assert mean[0, 0] == pytest.approx(np.log(16) / 2)


def test_tables_of_our_own_rows(rows: Rows) -> None:
    asked = [read_question(item) for item in rows.items]
    choices = [q for q in asked if q.form == "multi-choice"]
    table = features.make_option_table(choices)
    assert table.X.shape == (sum(len(q.options) for q in choices), len(table.names))
    assert not np.isinf(table.X).any()
    first = table.question == 0
    assert table.option[first].tolist() == list(range(len(choices[0].options)))
    judged = [q for q in asked if q.form == "judgment"]
    assert features.make_claim_table(judged).X.shape[0] == len(judged)
    # Twins claim different things, and the claim is what differs.
    sets, claimed = list_claim_sets(judged)
    said = {(q.twin, sets[i].values[claimed[i]].tobytes()) for i, q in enumerate(judged)}
    assert len(said) == len(judged)


def test_foreign_options_of_all_sorts_make_one_table() -> None:
    asked = [
        question("a", ["1", "2", "3", "4"], 0),
        question("b", ["left", "right"], 1),
        question("c", ["(1, 2)", "(3, 4)", "(5, 6)"], 1),
        question("d", ["1e400", "2", "nan", "4"], 1),
    ]
    table = features.make_option_table(asked)
    assert np.bincount(table.question).tolist() == [4, 2, 3, 4]
    assert not np.isinf(table.X).any()
