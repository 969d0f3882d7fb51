"""Each rule of the text lint: a text that breaks it alone, and neighbours that must pass."""

from __future__ import annotations

import pytest

from vgbench_gen.core.errors import ConfigError
from vgbench_gen.text.lint import lint

QUESTION = "What is the mean depth of the region in meters?"
CONTEXT = (
    "The image is 640 x 480 pixels; pixel (0, 0) is the centre of the top-left pixel, x runs to the right and y runs "
    "down. Depth is z along the optical axis."
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("What is {{ claim }}?", "unfilled slot"),
        ("What is {option_str}?", "unfilled slot"),
        ("The value is nan meters.", "placeholder"),
        ("It is 1.23456 meters.", "float debris"),
        ("It is 1.8500000000000001 meters.", "float debris"),
        ("It is 0.012345 meters.", "float debris"),
        ("It is -0.00 meters.", "negative zero"),
        ("It is [1.0, -0.0, 2.0].", "negative zero"),
        ("It is 1.5e-03 meters.", "exponent"),
        ("It is 2E5 meters.", "exponent"),
        ("It  is here.", "bad spacing"),
        ("It is here .", "bad spacing"),
        ("It is here. ", "bad spacing"),
        ("It is\n\nhere.", "bad spacing"),
        ("It is is here.", "repeated word"),
        ("The the lamp.", "repeated word"),
        ("Choose. Options: 1", "option letters"),
        ("Is option B right?", "option letters"),
        ("Which?\nA: 2.10", "option letters"),
        ("Is it (C) or another?", "option letters"),
        ("", "empty"),
    ],
)
def test_each_rule_fires(text: str, problem: str) -> None:
    for problems in (lint(text, CONTEXT), lint(QUESTION, text)):
        assert len(problems) == 1
        assert problem in problems[0]


@pytest.mark.parametrize(
    "text",
    [
        "H =\n[[1.020, -0.1000, 20.50],\n [0.000, 0.00001234, -5.250]]",
        "It is 1.2345 meters, 0.0001 more than X2 = R X1 + t in 3D.",
        "A camera stood there. Choose an option.",
        "The value is -0.01.",
    ],
)
def test_neighbours_pass(text: str) -> None:
    assert lint(text, CONTEXT) == []


def test_directions_of_options_are_those_of_one_axis() -> None:
    right = "0.42 m right, 0.05 m up"
    assert lint(QUESTION, CONTEXT, [right, "0.31 m left, 0.12 m down"]) == []
    for other in ("0.31 m up, 0.12 m right", "0.31 m right, 0.12 m deep"):
        assert lint(QUESTION, CONTEXT, [right, other]) == ["options: the text around the numbers differs"]


@pytest.mark.parametrize(
    ("state", "cut"),
    [
        ("size", "640 x 480 pixels"),
        ("pixel_centre", "(0, 0)"),
        ("pixel_centre", "centre of the "),
        ("pixel_axes", "to the right"),
        ("pixel_axes", "down"),
        ("depth", "optical axis"),
    ],
)
def test_missing_conventions(state: str, cut: str) -> None:
    assert lint(QUESTION, CONTEXT, states=[state]) == []
    assert lint(QUESTION, CONTEXT.replace(cut, "thing"), states=[state]) == [f"text: does not state {state!r}"]


def test_the_question_itself_names_the_unit() -> None:
    assert lint(QUESTION, CONTEXT, states=["unit"]) == []
    assert lint("What is it?", f"{CONTEXT} Use meters.", states=["unit"]) == ["question: does not state 'unit'"]
    with pytest.raises(ConfigError, match="unknown names"):
        lint(QUESTION, CONTEXT, states=["moood"])


@pytest.mark.parametrize(
    "options",
    [
        ["2.10 m", "0.95 m", "10.30 m", "3.00 m"],
        ["the orange region", "the blue region", "the green region", "the pink region"],
        ["the orange circle", "the blue square"],
        ["image 2", "image 5"],
        ["[[1.000, 0.01234],\n [0.000, 12350]]", "[[0.9876, 1.234],\n [-0.0001234, 100.0]]"],
        ["(1.00, -2.00, 3.00)", "(-1.00, 12.00, 3.50)"],
        ["R =\n[[1.000]]\nt = [0.25]", "R =\n[[-0.500]]\nt = [-1.25]"],
    ],
)
def test_options_of_one_form_pass(options: list[str]) -> None:
    assert lint(QUESTION, CONTEXT, options) == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["2.10 m", "2.1 m"], "different decimals"),
        (["2.10 m", "3.20 meters"], "text around the numbers"),
        (["to the left", "to the right by 3"], "text around the numbers"),
        (["2.10 m", "2.10 m"], "two are equal"),
        (["2.10 m", "12345.10 m"], "lengths 6 to 10"),
        (["[1.00, 2.00]", "[1.00, 1200.00]"], "lengths 4 to 7"),
        (["[1.00, 2.00]", "[1.00, 2.000]"], "different decimals"),
        (["[1.00, 2.00]", "[1.00, 2.00, 3.00]"], "text around the numbers"),
        (["2.1000001 m", "3.1000001 m"], "float debris"),
        (["point 2", "point 1"], "taken for another option"),
        (["region A", "region B"], "taken for another option"),
        (["the blue square 1", "the blue square 2"], "taken for another option"),
        (["3", "4"], "taken for another option"),
        (["the blue square", "the blue square"], "two are equal"),
        (["-0.00 m", "1.00 m"], "negative zero"),
    ],
)
def test_options_of_different_form(options: list[str], problem: str) -> None:
    problems = lint(QUESTION, CONTEXT, options)
    assert problems
    assert all(problem in p for p in problems)
