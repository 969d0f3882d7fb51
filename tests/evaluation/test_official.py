"""The published scripts' verdicts, mistakes included; every row was run through the released functions once."""

# ruff: noqa: RUF001 (characters of replies that look like others)

from __future__ import annotations

import pytest

from vgbench_gen.evaluation.answers.official import OfficialScore, score_spatialscore
from vgbench_gen.evaluation.answers.official_others import (
    score_blink,
    score_mmsi_bench,
    score_q_spatial,
    score_vsi_bench,
)
from vgbench_gen.evaluation.scoring import Case, official

OPTIONS = {
    "B": "B", "b.": "B", "(c)": "C", "The answer is D": "D", "answer: D": "D", "Option E": "E", "answer depends": "D",
    "option can": "C", "I cannot answer": "C", "None of the above": "E", "512.45 pixels": "E", "The third image": "E",
    "<answer>B</answer>": "A", "\\boxed{C}": "B", "ASSISTANT: (f) or A": "F", "A ASSISTANT: D": "D",
    "<conclusion>(B) Yes.</conclusion> A": "B", "<conclusion> c. </conclusion> A": "C", "left": "E", "G": "G",
    "<conclusion>(B)\n</conclusion> A": "B", "<conclusion>(B) x\n</conclusion> A": "A", "": "", "Ｂ": "Ｂ",
    "It is b, I think": "B", "x (d). y": "D",
}  # fmt: skip
YES_NO = {
    "no": "No", "No, the box is not correct": "Yes", "No. The chair is on the right": "Yes", "not true": "Yes",
    "I'm not sure": "No", "ASSISTANT: False": "F", "<conclusion>no</conclusion> yes": "No", "disagreed": "No",
    "Perhaps": "Perhaps", "<answer>maybe</answer>": "maybe", "knot": "knot", "是": "是",
}  # fmt: skip
NUMBERS = {
    "3": 3, "There are 3 or 4": 3, "1,234": 1, "-5": 5, "fourteen": 4, "twenty-one": 20, "second": 2,
    "two.": 2, "I see two": 2,
    "the two. ": 0, "<conclusion>7</conclusion> 3": 7, "ASSISTANT: B 5": 0, "none": 0, "": 0, "٣": 3,
    "²": 0, "3.5 m": 3.5,
    "there are five of them": 5, "shows six": 6, "nan": "nan",
}  # fmt: skip
LENGTHS = {
    "1.5 meters": ("1.5 meters", 1), "2.99 m": ("2.99 m", 1), "3 m": ("3 m", 0), "0.75 m": ("0.75 m", 0),
    "150 cm": ("150 cm", 1),
    "5 ft": ("5 ft", 1), "5 feet 4 inches": ("5 feet", 1), "2 yards": ("2 yards", 0),
    "150 km": ("150 km", 1), "1.5": (None, 0),
    "3D layout, 2.1 meters": ("3 d", 0), "2 chairs 1.5 meters": ("2 chairs", 0), "2 to 3 meters": ("2 to", 0),
    "scalar 1.5 distance_unit meters": ("1.5 distance", 0), "\\scalar{1.5} \\distance_unit{m}": ("1.5 m", 1),
    "\\scalar{1.5} in cm, 3 m": ("1.5 m", 1), "9 cm **2 m**": ("2 m", 1),
    "about 2 m, not 9 cm": ("2 m", 1), "0 m": ("0 m", 0),
    "1,200 mm": ("200 mm", 0), "1500 mm": ("1500 mm", 1), "1500 millimeters": ("1500 millimeters", 0),
    ".5 m": ("5 m", 0),
    "150 widgets": ("150 widgets", 1), "60 in": ("60 in", 1), "60 Inches": ("60 inches", 1),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "letter"), OPTIONS.items())
def test_letters(reply: str, letter: str) -> None:
    assert score_spatialscore(reply, "(B)", "multi-choice", "BLINK") == OfficialScore(letter, float(letter == "B"))


@pytest.mark.parametrize(("reply", "said"), YES_NO.items())
def test_yes_and_no(reply: str, said: str) -> None:
    assert score_spatialscore(reply, "Yes", "judgment", "VGBench") == OfficialScore(said, float(said == "Yes"))


@pytest.mark.parametrize(("reply", "number"), NUMBERS.items())
def test_numbers(reply: str, number: float | str) -> None:
    found = score_spatialscore(reply, "3", "open-ended", "spatialbench")
    assert str(found.extracted) == str(number if isinstance(number, str) else float(number))
    assert found.score == float(number == 3)


@pytest.mark.parametrize(("reply", "verdict"), LENGTHS.items())
def test_lengths(reply: str, verdict: tuple[str | None, int]) -> None:
    assert score_spatialscore(reply, "1.5 meters", "open-ended", "VGBench") == OfficialScore(
        verdict[0], float(verdict[1])
    )


def test_what_the_truth_and_the_source_decide() -> None:
    # A word with an m or ft in it is taken for a length and is never right.
    assert score_spatialscore("Left", "Left", "open-ended", "RealWorldQA").score == 0
    assert score_spatialscore("red", "Red", "open-ended", "RealWorldQA").score == 1
    assert score_spatialscore("Red.", "Red", "open-ended", "RealWorldQA").score == 0
    assert score_spatialscore("I refuse", "0", "open-ended", "spatialbench").score == 1
    assert score_spatialscore("6", "5", "open-ended", "VSI-Bench_8") == OfficialScore(6.0, 0.6)
    assert score_spatialscore("6", "5", "open-ended", "spatialbench").score == 0
    assert score_spatialscore("no idea", "0", "open-ended", "VSI-Bench_8").score == 1
    assert score_spatialscore("4", "red", "open-ended", "spatialbench").error
    assert score_spatialscore(None, "B", "multi-choice", "BLINK").error
    assert score_spatialscore("0 m", "0 m", "open-ended", "VGBench").score == 1


@pytest.mark.parametrize(
    ("reply", "score"),
    [("5", 1), ("5.", 1), ("5. because", 1), ("6 m", 0.6), ("6m", 0), ("There are 5", 0), (" 5", 0),
    ("5\nbecause", 0),
     ("five", 0), ("**5**", 0), ("nan", 0), ("5_0", 0), ("0_5", 1), ("5e0", 1)],
)  # fmt: skip
def test_vsi_bench_numbers(reply: str, score: float) -> None:
    assert score_vsi_bench(reply, "5", "numerical-answer").score == pytest.approx(score)


def test_vsi_bench_letters_and_zero() -> None:
    said = {"B": 1, "b.": 1, "B. left": 1, "(B)": 0, "B\nleft": 0, "The": 0}
    assert {reply: score_vsi_bench(reply, "B", "multi-choice").score for reply in said} == said
    assert score_vsi_bench("0", "0", "numerical-answer").error


def test_mmsi_bench() -> None:
    said = {"``B``": "B", "`B`": "B", "{B}": "B", "B": "B", "b": None, "E": None, "B because": None,
    "B\nExplanation": None, "C is correct": None,
            "`chair` is `B`": None, "90^{\\circ} B": None, "答案是B": None, "(B)": "B", "A chair. B": "B",
            "": None}  # fmt: skip
    assert {reply: score_mmsi_bench(reply, "B").extracted for reply in said} == said


BLINK = {
    "B": "(B)", "(B)": "(B)", "The answer is (B)": "(B)", "(A) no\n\n(B)": "(B)", "(A) (B)\n\n(A)": "(A)", "E": "(E)",
    "(E)": "(E)", "(B) then (B)": "(B)", "\n\n(B)": "(B)", "(C) or not (B)": "(B)", "(B)\t2": "(B)", "(B)\n": "(B)",
    "(A) (B)\n\nso (B) it is": "(B)", "x\n\n\n(B)": "(B)",
    # These go to a language model there.
    " B": "(Z)", "B.": "(Z)", "(b)": "(Z)", "(B).": "(Z)", "**(B)**": "(Z)", "(A) or (B)": "(Z)", "": "(Z)",
    "(A) no (B)\n\nnone": "(Z)", "B because": "(Z)", "(C)!": "(Z)", "I cannot": "(Z)", "F": "(Z)", "(F)": "(Z)",
    "(A),(B)": "(Z)", "(A)\n\n(A) (B)": "(Z)", "<answer>(B)</answer>": "(Z)", "( B )": "(Z)", "BC": "(Z)",
}  # fmt: skip


def test_blink() -> None:
    assert {reply: score_blink(reply, "(B)", 2).extracted for reply in BLINK} == BLINK
    assert all(score_blink(reply, "B", 2).score == (said == "(B)") for reply, said in BLINK.items())
    assert score_blink("maybe (C)", "(C)", 2).extracted == "(Z)"
    assert score_blink("maybe (C)", "(C)", 4) == OfficialScore("(C)", 1.0)
    assert score_blink("(Z)", "(Z)", 4).score == 0
    assert score_blink("Neither", "(A)", 2).error
    assert score_blink(None, "(A)", 2).error


Q_SPATIAL = {
    "\\scalar{1.5} \\distance_unit{m}": ("1.5 m", 1), "scalar{1.5} distance_unit{metres}": ("1.5 metres", 1),
    "\\scalar{9} \\scalar{2} \\distance_unit{cm} \\distance_unit{M}": ("2 M", 1),
    "\\distance_unit{m} and \\scalar{1 to 3}": ("2 m", 1), "scalar{2-3} distance_unit{m}": ("2.5 m", 1),
    "scalar{60} distance_unit{inches}": ("60 inches", 1), "scalar{5} distance_unit{foot}": ("5 foot", 1),
    "scalar{150} distance_unit{anything}": ("150 anything", 1), "scalar{150} distance_unit{ m}": ("150  m", 1),
    "scalar{1.} distance_unit{m}": ("1 m", 1), "scalar{-1.5} distance_unit{m}": ("1.5 m", 1),
    "scalar{3} distance_unit{m}": ("3 m", 0), "scalar{0.75} distance_unit{m}": ("0.75 m", 0),
    "scalar{2.99} distance_unit{m}": ("2.99 m", 1), "scalar{.5} distance_unit{m}": ("5 m", 0),
    "scalar{1500} distance_unit{mm}": ("1500 mm", 1), "scalar{1500} distance_unit{millimeters}": (
        "1500 millimeters", 0), "scalar{0} distance_unit{m}": ("0 m", 0), "scalar{x} distance_unit{m}": ("nan m", 0),
    "scalar{1.5 distance_unit{m}": ("1.5 m", 1),
    "scalar{1.5": (None, 0), "1.5 m": (None, 0), "scalar{1.5} m": (None, 0),
    "\\scalar {1.5} distance_unit{m}": (None, 0),
    "scalar{1.5} distance_unit{m": (None, 0), "": (None, 0), "scalar{{1.5}} distance_unit{m}": ("1.5 m", 1),
}  # fmt: skip


def test_q_spatial() -> None:
    for reply, (extracted, points) in Q_SPATIAL.items():
        found = score_q_spatial(reply, "1.5 meters")
        assert (found.extracted, found.score) == (extracted, points), reply
        assert bool(found.error) == (extracted is None)
    assert score_q_spatial("scalar{" * 50_000, "1 m").error  # in linear time
    assert score_q_spatial("scalar{1} distance_unit{m}", "tall").error


@pytest.mark.parametrize(
    ("name", "score"),
    [("BLINK", 0), ("SpatialScore/BLINK", 1), ("QSpatialBench-Plus", 1), ("Q-Spatial-Bench", 1),
     ("QSpatialBench-ScanNet", 1), ("SpatialScore/QSpatialBench-Plus", 0)],
)  # fmt: skip
def test_the_script_goes_with_the_benchmark(name: str, score: float) -> None:
    if name.endswith("BLINK"):
        case = Case(name, "multi-choice", "(B)", {"A": "left", "B": "right"})
        assert official(case, "B.").score == score
    else:
        case = Case(name, "open-ended", "1.5 meters")
        assert official(case, "scalar{150} distance_unit{cm}, and no 9 m").score == score
