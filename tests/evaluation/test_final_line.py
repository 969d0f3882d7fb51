"""The strict reader: one last line in one form."""

from __future__ import annotations

import pytest

from vgbench_gen.evaluation.answers.final_line import read_final_line
from vgbench_gen.evaluation.answers.units import SPELLINGS


@pytest.mark.parametrize(
    ("kind", "reply", "value"),
    [
        ("letter", "B", "B"), ("letter", "Because A is far.\nAnswer: B", "B"),
        ("letter", "so\n\nFinal answer: (B).\n", "B"),
        ("letter", "Answer: B\nThanks", None), ("letter", "B\nbecause it is near", None),
        ("letter", "The answer is B", None),
        ("letter", "**B**", None), ("letter", "b", None), ("letter", "E", None), ("letter", "", None),
        ("letter", "Answer: A or B", None),
        ("letter", "x" * 5000 + "\nB", "B"), ("letter", "B" * 5000, None),
        ("yes_no", "Answer: Yes", "Yes"), ("yes_no", "no.", "No"), ("yes_no", "No, it is not", None),
        ("yes_no", "true", None),
        ("length", "Answer: 1.5 m", 1.5), ("length", "150 cm", 1.5),
        ("length", "\\scalar{1.5} \\distance_unit{m}", 1.5),
        ("length", "scalar{5} distance_unit{feet}", 1.524), ("length", "1.5", None), ("length", "about 1.5 m", None),
        ("length", "1.5 m away", None), ("length", "-1.5 m", None), ("length", "1.5 s", None),
        ("length", "1 to 2 m", None),
        ("count", "3", 3.0), ("count", "Answer: 3 chairs", 3.0), ("count", "three", None), ("count", "3 or 4", None),
        ("number", "3.4", 3.4), ("number", "-3.4", -3.4), ("number", "3.4 m", 3.4), ("number", "3.4 bananas", None),
        ("angle", "54.1 degrees", 54.1), ("angle", "54.1°", 54.1), ("pixels", "693 pixels", 693.0),
        ("pixels", "693 m", None),
        ("text", "Answer: Left.", "left"),
    ],
)  # fmt: skip
def test_only_the_last_line_counts(kind: str, reply: str, value: str | float | None) -> None:
    assert read_final_line(reply, kind, "ABCD").value == (pytest.approx(value) if isinstance(value, float) else value)


def test_the_unit_may_be_left_to_the_question() -> None:
    assert read_final_line("Answer: 1.5", "length", unit=SPELLINGS["m"]).value == 1.5
    assert read_final_line("Answer: 150", "length", unit=SPELLINGS["cm"]).value == 1.5
    assert read_final_line("1.2 m", "number", unit=SPELLINGS["cm"]).value == pytest.approx(120)
